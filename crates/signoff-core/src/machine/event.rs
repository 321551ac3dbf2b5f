//! What can happen to a loop, and what it can ask for.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::outcome::Outcome;
use super::state::{GateRecord, Head, Hold, Position, Question, Scope};
use crate::heard::Trouble;
use crate::ids::{AttemptId, Commit, FindingId, QuestionId, ReviewerName, Tree};
use crate::ledger::{Claim, Decision, Ledger};
use crate::review::{Finding, Review};
use crate::workflow::Role;

/// A fact about a loop, past tense, as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The tree that the loop's diff begins at. Logs of older programs do not have it, nor do loops whose reviewers
    /// judge an answer instead of a diff.
    BaseSet {
        tree: Tree,
    },
    /// What earlier tasks on the branch left open or disputed, before the loop starts. Logs of older programs do not
    /// have it.
    FindingsInherited {
        left: Ledger,
    },
    /// The worktree is there, at this commit.
    Started {
        head: Head,
    },
    /// The loop goes on from a state that another program left: earlier phases are taken as done.
    Imported {
        head: Head,
        at: Position,
        #[serde(flatten)]
        left: Left,
    },
    /// A plan was read: the `per_item` phases go through this many items.
    ItemsPlanned {
        count: u32,
    },
    /// An agent that changes the worktree ended by itself.
    WorkEnded {
        attempt: AttemptId,
        report: WorkReport,
    },
    /// What a fixer says about the findings it was given, recorded just before its end.
    FindingsClaimed {
        attempt: AttemptId,
        /// What the fixer left.
        commit: Commit,
        claims: Vec<Claim>,
    },
    CheckEnded {
        attempt: AttemptId,
        report: CheckReport,
    },
    /// A reviewer ended by itself. An answer nobody could read is an inconclusive review.
    ReviewArrived {
        attempt: AttemptId,
        review: Box<Review>,
    },
    /// Fixes made side by side fit together.
    FixesCombined {
        attempt: AttemptId,
        head: Head,
    },
    /// They did not: only those at these places of the list could be kept.
    FixesOverlapped {
        attempt: AttemptId,
        kept: Vec<usize>,
        head: Head,
    },
    LandingEnded {
        attempt: AttemptId,
        report: LandReport,
    },
    /// An agent ended badly.
    AttemptFailed {
        attempt: AttemptId,
        failure: Failure,
    },
    /// The program itself lost the attempt.
    AttemptLost {
        attempt: AttemptId,
        loss: Loss,
    },
    RateLimited {
        attempt: AttemptId,
        plan: LimitPlan,
        /// Why, as the agent says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Trouble>,
        /// Older logs do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<Turn>,
    },
    /// A cap of the task or the run is reached.
    BudgetReached,
    /// There is no money for this one launch; the others go on.
    BudgetRefused {
        attempt: AttemptId,
    },
    /// What was waited for is over.
    Resumed {
        hold: Hold,
    },
    /// A checkpoint review of this loop started.
    CheckpointBegan {
        number: u32,
    },
    /// A checkpoint review of this loop is in. Each finding names the reviewer that reported it.
    CheckpointEnded {
        findings: Vec<Finding>,
        /// The number of the review. Logs without it are older than checkpoint findings in the ledger: their
        /// findings go to the next attempt and nowhere else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
    },
    /// The group, or a person, lets this loop land.
    LandingGranted,
    /// Somebody committed to the branch.
    HeadMoved {
        head: Head,
    },
    PersonAnswered {
        question: QuestionId,
        choice: Choice,
        by: String,
    },
    PersonRetried {
        by: String,
    },
    PersonEdited {
        verdict: FinalWord,
        by: String,
        reason: String,
        /// Where the branch is: what they approve is that commit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Head>,
        /// Why they refuse the work, as findings. Logs of older programs have none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<Finding>,
    },
    FindingDecided {
        finding: FindingId,
        decision: Decision,
    },
    Cancelled {
        by: String,
    },
}

/// What another program left, at the place where a loop goes on and before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Left {
    /// Fixes made at this gate, in this pass.
    pub fixes: u32,
    /// What is open at this gate.
    pub findings: Vec<Finding>,
    /// What other gates and passes left open, in the order in which it was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Earlier>,
    /// The gates of this pass that were passed without an approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateRecord>,
}

/// What was found earlier than where a loop goes on, and is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Earlier {
    pub pass: u32,
    /// The gate's phase index.
    pub phase: usize,
    pub findings: Vec<Finding>,
}

/// The final verdicts a person can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FinalWord {
    Approved,
    ChangesRequested,
    MaxCyclesReached,
    NeedsDiscussion,
}

impl FinalWord {
    pub const ALL: [Self; 4] =
        [Self::Approved, Self::ChangesRequested, Self::MaxCyclesReached, Self::NeedsDiscussion];

    pub fn word(self) -> &'static str {
        match self {
            Self::Approved => "APPROVED",
            Self::ChangesRequested => "CHANGES_REQUESTED",
            Self::MaxCyclesReached => "MAX_CYCLES_REACHED",
            Self::NeedsDiscussion => "NEEDS_DISCUSSION",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }
}

/// How an agent that changes the worktree ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkReport {
    /// The task is done, says the agent.
    Complete { head: Head },
    /// Progress, but not done: another attempt follows.
    Incomplete { head: Head },
    /// The agent gave up.
    Stuck { head: Head, reason: String },
    /// The agent says that its tracker has no work left, and changed nothing.
    NoWorkLeft { head: Head },
}

impl WorkReport {
    /// The tip of the branch that it left.
    pub fn head(&self) -> &Head {
        match self {
            Self::Complete { head }
            | Self::Incomplete { head }
            | Self::Stuck { head, .. }
            | Self::NoWorkLeft { head } => head,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckReport {
    Passed,
    Failed {
        findings: Vec<Finding>,
    },
    /// The project has no checks: noted, not passed in silence.
    NothingToCheck,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandReport {
    Landed {
        commit: Commit,
    },
    /// A conflict, or checks that fail only together with what landed before.
    SentBack {
        head: Head,
        findings: Vec<Finding>,
    },
}

/// How the program lost an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    Crashed,
    /// A person interrupted the program. This is bounded by their patience, not by a counter.
    Interrupted,
    /// The session that it was to go on with is not known any more. The next one begins anew, and this is bounded.
    SessionGone,
}

/// What to do about a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitPlan {
    WaitUntil(Timestamp),
    /// Another agent takes the job.
    FallBack,
}

/// Whose turn it is after a refusal, among the agents that can do a job: 0 is the assigned one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Turn {
    /// When the one that was refused can be asked again; none is later than anybody waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<Timestamp>,
    pub next: usize,
}

/// What a person can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    Retry,
    Proceed,
    Skip,
    Continue,
    Fix,
    Restart,
    Stop,
}

impl Choice {
    pub const ALL: [Self; 7] =
        [Self::Retry, Self::Proceed, Self::Skip, Self::Continue, Self::Fix, Self::Restart, Self::Stop];

    pub fn word(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Proceed => "proceed",
            Self::Skip => "skip",
            Self::Continue => "continue",
            Self::Fix => "fix",
            Self::Restart => "restart",
            Self::Stop => "stop",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.word() == word)
    }
}

/// A wish of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Spawn(Job),
    Kill {
        attempt: AttemptId,
    },
    Ask(Question),
    /// Report [`Event::Resumed`] when this is over; for a checkpoint [`Event::CheckpointEnded`].
    Wait {
        hold: Hold,
    },
    /// Report [`Event::LandingGranted`] when the group is ready.
    AwaitLanding,
    Finish(Outcome),
}

/// One attempt to be started.
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

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// A phase's agent. `notes` are what a checkpoint review found.
    Work {
        role: Role,
        notes: Vec<Finding>,
    },
    /// One of the helpers that look into a phase's question first.
    Research {
        role: Role,
        number: usize,
    },
    Check,
    Review {
        reviewer: ReviewerName,
        scope: Scope,
        commit: Commit,
    },
    /// `unread` are the reviewers whose raw text goes to the fixer. Several at once work side by side; `part`
    /// is this one's place in their list.
    Fix {
        role: Role,
        findings: Vec<FindingId>,
        unread: Vec<ReviewerName>,
        notes: Vec<Finding>,
        side_by_side: bool,
        part: usize,
    },
    /// Puts together what fixers left that worked side by side: each with its place in their list.
    Combine {
        parts: Vec<(usize, Commit)>,
    },
    Land,
}

impl Job {
    /// Who does it, where an agent does.
    pub fn role(&self) -> Subject {
        match &self.kind {
            JobKind::Work { role, .. } | JobKind::Research { role, .. } | JobKind::Fix { role, .. } => {
                Subject::Writer(*role)
            }
            JobKind::Review { reviewer, .. } => Subject::Reviewer(reviewer.clone()),
            JobKind::Check | JobKind::Combine { .. } | JobKind::Land => Subject::Program,
        }
    }
}

/// Who carries a job out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    Writer(Role),
    Reviewer(ReviewerName),
    /// The program itself: checks, combining, landing.
    Program,
}

impl Event {
    /// The attempt whose end this event reports, if it reports one.
    pub fn ends_attempt(&self) -> Option<AttemptId> {
        match self {
            Self::WorkEnded { attempt, .. }
            | Self::CheckEnded { attempt, .. }
            | Self::ReviewArrived { attempt, .. }
            | Self::FixesCombined { attempt, .. }
            | Self::FixesOverlapped { attempt, .. }
            | Self::LandingEnded { attempt, .. }
            | Self::AttemptFailed { attempt, .. }
            | Self::AttemptLost { attempt, .. }
            | Self::BudgetRefused { attempt }
            | Self::RateLimited { attempt, .. } => Some(*attempt),
            Self::BaseSet { .. }
            | Self::FindingsInherited { .. }
            | Self::Started { .. }
            | Self::Imported { .. }
            | Self::ItemsPlanned { .. }
            | Self::FindingsClaimed { .. }
            | Self::BudgetReached
            | Self::Resumed { .. }
            | Self::CheckpointBegan { .. }
            | Self::CheckpointEnded { .. }
            | Self::LandingGranted
            | Self::HeadMoved { .. }
            | Self::PersonAnswered { .. }
            | Self::PersonRetried { .. }
            | Self::PersonEdited { .. }
            | Self::FindingDecided { .. }
            | Self::Cancelled { .. } => None,
        }
    }
}
