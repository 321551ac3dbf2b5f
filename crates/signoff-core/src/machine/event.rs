//! The events and effects of a loop.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::outcome::{AttemptFailure, Outcome};
use super::state::{GateRecord, Head, PauseReason, Position, Question, ReviewScope};
use crate::agent_output::AgentError;
use crate::ids::{AttemptId, Commit, FindingId, QuestionId, ReviewerName, Tree};
use crate::ledger::{FindingDecision, FixClaim, Ledger};
use crate::review::{Finding, Review};
use crate::workflow::Role;

/// An event of a loop, as recorded in the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The base tree of the loop's diff. Missing in older logs, and for loops whose reviewers judge an answer instead
    /// of a diff.
    BaseSet { tree: Tree },
    /// Findings that earlier tasks on the branch left open or disputed, recorded before the loop starts. Missing in
    /// older logs.
    FindingsInherited {
        #[serde(rename = "left")]
        ledger: Ledger,
    },
    /// The worktree was created at this commit.
    Started { head: Head },
    /// The loop continues from the state of another program. Earlier phases count as done.
    Imported {
        head: Head,
        #[serde(rename = "at")]
        position: Position,
        #[serde(flatten)]
        progress: ImportedProgress,
    },
    /// A plan was read. The `per_item` phases go through this many items.
    ItemsPlanned { count: u32 },
    /// An agent that writes to the worktree ended by itself.
    WorkEnded { attempt: AttemptId, report: WorkReport },
    /// A fixer's claims about its findings, recorded just before its end.
    FindingsClaimed {
        attempt: AttemptId,
        /// The fixer's commit.
        commit: Commit,
        claims: Vec<FixClaim>,
    },
    /// The project's checks ended.
    CheckEnded { attempt: AttemptId, report: CheckReport },
    /// A reviewer ended by itself. An unparsable answer is an inconclusive review.
    ReviewArrived { attempt: AttemptId, review: Box<Review> },
    /// Parallel fixes were combined without a conflict.
    FixesCombined { attempt: AttemptId, head: Head },
    /// Parallel fixes conflict. `kept` are the indices of the fixes that could be combined.
    FixesOverlapped { attempt: AttemptId, kept: Vec<usize>, head: Head },
    /// The landing ended.
    LandingEnded { attempt: AttemptId, report: LandingReport },
    /// An agent failed.
    AttemptFailed { attempt: AttemptId, failure: AttemptFailure },
    /// The program lost the attempt.
    AttemptLost { attempt: AttemptId, loss: AttemptLoss },
    /// The provider limits the rate of an agent.
    RateLimited {
        attempt: AttemptId,
        plan: LimitPlan,
        /// The agent's own error message.
        #[serde(rename = "why", default, skip_serializing_if = "Option::is_none")]
        error: Option<AgentError>,
        /// Missing in older logs.
        #[serde(rename = "turn", default, skip_serializing_if = "Option::is_none")]
        next_agent: Option<NextAgent>,
    },
    /// A budget cap of the task or the run is reached.
    BudgetReached,
    /// The budget does not allow this launch; other attempts continue.
    BudgetRefused { attempt: AttemptId },
    /// A pause ended.
    Resumed {
        #[serde(rename = "hold")]
        reason: PauseReason,
    },
    /// A checkpoint review of this loop started.
    CheckpointBegan { number: u32 },
    /// A checkpoint review of this loop ended. Each finding names the reviewer that reported it.
    CheckpointEnded {
        findings: Vec<Finding>,
        /// The number of the review. Logs without it are older than checkpoint findings in the ledger: their findings
        /// go to the next attempt and nowhere else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
    },
    /// The group or a person allows this loop to land.
    LandingGranted,
    /// A foreign commit was added to the branch.
    HeadMoved { head: Head },
    /// A person answered a question.
    PersonAnswered { question: QuestionId, choice: Choice, by: String },
    /// A person continues an ended loop.
    PersonRetried { by: String },
    /// A person sets the verdict.
    PersonEdited {
        verdict: FinalVerdict,
        by: String,
        reason: String,
        /// The tip of the branch. An approval applies to this commit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Head>,
        /// The person's reasons for refusing the work, as findings. Empty in older logs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<Finding>,
    },
    /// A person or a check decided about a finding.
    FindingDecided { finding: FindingId, decision: FindingDecision },
    /// A person cancelled the loop.
    Cancelled { by: String },
}

/// Progress that another program made, up to the position where a loop continues.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ImportedProgress {
    /// Fixes made at this gate in this pass.
    pub fixes: u32,
    /// Open findings at this gate.
    pub findings: Vec<Finding>,
    /// Open findings of other gates and passes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierFindings>,
    /// The gates of this pass that ended without an approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateRecord>,
}

/// Open findings from before the position where a loop continues.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EarlierFindings {
    pub pass: u32,
    /// The gate's phase index.
    pub phase: usize,
    pub findings: Vec<Finding>,
}

/// The final verdicts a person can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(strum::EnumString, strum::VariantArray, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum FinalVerdict {
    Approved,
    ChangesRequested,
    MaxCyclesReached,
    NeedsDiscussion,
}

impl FinalVerdict {
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;
}

/// How an agent that writes to the worktree ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkReport {
    /// The agent says that the task is done.
    Complete { head: Head },
    /// Progress, but not done: another attempt follows.
    Incomplete { head: Head },
    /// The agent gave up.
    Stuck { head: Head, reason: String },
    /// The agent says that its tracker has no work left, and changed nothing.
    NoWorkLeft { head: Head },
}

impl WorkReport {
    /// The tip of the branch after the attempt.
    pub fn head(&self) -> &Head {
        match self {
            Self::Complete { head }
            | Self::Incomplete { head }
            | Self::Stuck { head, .. }
            | Self::NoWorkLeft { head } => head,
        }
    }
}

/// How the project's checks ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckReport {
    /// Every check succeeded.
    Passed,
    /// A check failed.
    Failed { findings: Vec<Finding> },
    /// The project has no checks. This is recorded and does not count as passed.
    NothingToCheck,
}

/// How a landing ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandingReport {
    /// The work is in the target branch.
    Landed { commit: Commit },
    /// A conflict, or checks that fail only together with work that landed before.
    SentBack { head: Head, findings: Vec<Finding> },
}

/// How the program lost an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptLoss {
    Crashed,
    /// A person interrupted the program. No counter limits this.
    Interrupted,
    /// The session to resume is gone. The next attempt starts a new one; this is limited by a counter.
    SessionGone,
}

/// What to do about a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitPlan {
    WaitUntil(Timestamp),
    /// Another agent takes over the job.
    FallBack,
}

/// The agent to try after a rate limit. Index 0 is the assigned agent, the others are its fallbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NextAgent {
    /// When the limited agent can be tried again; none if that is later than the maximum wait.
    #[serde(rename = "free", default, skip_serializing_if = "Option::is_none")]
    pub available_at: Option<Timestamp>,
    pub next: usize,
}

/// The answers that a person can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum Choice {
    Retry,
    Proceed,
    Skip,
    Continue,
    Fix,
    Restart,
    Stop,
}

/// An action requested by the state machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Start an attempt.
    Spawn(Job),
    /// Stop an attempt.
    Kill { attempt: AttemptId },
    /// Ask a person.
    Ask(Question),
    /// Report [`Event::Resumed`] when this is over; for a checkpoint [`Event::CheckpointEnded`].
    Wait {
        #[serde(rename = "hold")]
        reason: PauseReason,
    },
    /// Report [`Event::LandingGranted`] when the group is ready.
    AwaitLanding,
    /// The loop has ended.
    Finish(Outcome),
}

/// An attempt to start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Job {
    pub attempt: AttemptId,
    pub pass: u32,
    /// The phase index.
    pub phase: usize,
    pub item: u32,
    /// 0 before the first review, then the number of the review and of the fix that follows it.
    pub cycle: u32,
    pub kind: JobKind,
}

/// The role of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptRole {
    Agent(Role),
    Review,
    Check,
    Combine,
    Land,
}

impl AttemptRole {
    const OWN: [Self; 4] = [Self::Review, Self::Check, Self::Combine, Self::Land];

    /// The name in the log and in the JSON interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent(role) => role.into_str(),
            Self::Review => "review",
            Self::Check => "check",
            Self::Combine => "combine",
            Self::Land => "land",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        let agent = || word.parse().ok().map(Self::Agent);
        Self::OWN.into_iter().find(|role| role.as_str() == word).or_else(agent)
    }

    /// Whether an agent plays it, which costs something.
    pub fn is_by_agent(self) -> bool {
        matches!(self, Self::Agent(_) | Self::Review)
    }
}

/// What an attempt does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// The agent of a phase. `notes` are findings of a checkpoint review.
    Work { role: Role, notes: Vec<Finding> },
    /// A researcher of a phase's question.
    Research { role: Role, number: usize },
    /// The project's checks.
    Check,
    /// A reviewer judges one commit.
    Review { reviewer: ReviewerName, scope: ReviewScope, commit: Commit },
    /// `unparsed_reviewers` are the reviewers whose raw text goes to the fixer. `part` is the index of this fixer among the
    /// parallel ones.
    Fix {
        role: Role,
        findings: Vec<FindingId>,
        #[serde(rename = "unread")]
        unparsed_reviewers: Vec<ReviewerName>,
        notes: Vec<Finding>,
        #[serde(rename = "side_by_side")]
        parallel: bool,
        part: usize,
    },
    /// Combines the commits of parallel fixers, each with its index.
    Combine { parts: Vec<(usize, Commit)> },
    /// Lands the work.
    Land,
}

impl JobKind {
    pub fn role(&self) -> AttemptRole {
        match self {
            Self::Work { role, .. } | Self::Research { role, .. } | Self::Fix { role, .. } => AttemptRole::Agent(*role),
            Self::Review { .. } => AttemptRole::Review,
            Self::Check => AttemptRole::Check,
            Self::Combine { .. } => AttemptRole::Combine,
            Self::Land => AttemptRole::Land,
        }
    }
}

impl Job {
    /// The actor of this job.
    pub fn actor(&self) -> JobActor {
        match &self.kind {
            JobKind::Work { role, .. } | JobKind::Research { role, .. } | JobKind::Fix { role, .. } => {
                JobActor::Writer(*role)
            }
            JobKind::Review { reviewer, .. } => JobActor::Reviewer(reviewer.clone()),
            JobKind::Check | JobKind::Combine { .. } | JobKind::Land => JobActor::Program,
        }
    }
}

/// The actor that carries out a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JobActor {
    Writer(Role),
    Reviewer(ReviewerName),
    /// The program itself: checks, combining, landing.
    Program,
}

impl Event {
    /// The attempt whose end this event reports, if any.
    pub fn ends_attempt(&self) -> Option<AttemptId> {
        let (Self::WorkEnded { attempt, .. }
        | Self::CheckEnded { attempt, .. }
        | Self::ReviewArrived { attempt, .. }
        | Self::FixesCombined { attempt, .. }
        | Self::FixesOverlapped { attempt, .. }
        | Self::LandingEnded { attempt, .. }
        | Self::AttemptFailed { attempt, .. }
        | Self::AttemptLost { attempt, .. }
        | Self::BudgetRefused { attempt }
        | Self::RateLimited { attempt, .. }) = self
        else {
            return None;
        };
        Some(*attempt)
    }
}
