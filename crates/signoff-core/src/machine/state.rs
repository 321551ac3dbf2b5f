//! The state of a loop. The data of one stage is stored in that stage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::event::Choice;
use super::outcome::{Ending, Outcome, Reason};
use super::rate_limits::RateLimitState;
use crate::ids::{AttemptId, Commit, FindingId, QuestionId, ReviewerName, Tree};
use crate::ledger::{Ledger, LedgerEntry};
use crate::policy::FailureAction;
use crate::review::{FailThreshold, Finding, Review};

/// The tip of a loop's branch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Head {
    pub commit: Commit,
    /// The tree. Comparing it shows whether anything changed.
    pub tree: Tree,
}

/// The state of a loop: one task going through its workflow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Loop {
    #[serde(rename = "at")]
    pub position: Position,
    /// The number of items that the `per_item` phases go through.
    pub items: u32,
    pub stage: Stage,
    pub head: Head,
    /// The base tree of the loop's diff, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Tree>,
    /// Shared, because most events do not change it.
    pub ledger: Arc<Ledger>,
    #[serde(rename = "tally")]
    pub counters: LoopCounters,
    /// The results of the gates in this pass.
    pub gates: Vec<GateRecord>,
    /// The indices of the phases that run once per loop and have run.
    pub once_done: BTreeSet<usize>,
    /// The number of the last review at each gate of this pass.
    pub cycles: BTreeMap<usize, u32>,
    /// The reviewers of the last panel whose raw text the fixer gets.
    #[serde(rename = "unread")]
    pub unparsed_reviewers: Vec<ReviewerName>,
    /// Whether the work is in the target branch.
    pub landed: bool,
    /// Findings of checkpoint reviews, for the running attempt and for the next one.
    pub notes: Vec<Finding>,
    pub next_notes: Vec<Finding>,
    /// The number of the checkpoint review under way. Until its findings are in, the loop neither lands nor ends as
    /// signed off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u32>,
    pub(super) next_attempt: u64,
    pub(super) next_question: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    pub pass: u32,
    /// The phase index; one past the last phase while findings of the landing are fixed.
    pub phase: usize,
    pub item: u32,
}

/// The counters of a loop. Each kind of repetition has its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct LoopCounters {
    /// Implement and fix attempts so far.
    #[serde(rename = "iteration")]
    pub attempts: u32,
    /// Attempts that do not count towards the limit: the first one at each further item of a plan, and parallel
    /// fixers after the first.
    pub uncounted: u32,
    /// The number of attempts at the last checkpoint review.
    pub last_checkpoint: u32,
    /// The number of the current review, within this gate and pass.
    pub cycle: u32,
    /// Fixes so far, within this gate, pass and item.
    pub fixes: u32,
    /// Restarts caused by each gate, over all passes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub restarts: BTreeMap<usize, u32>,
    /// Consecutive fixes that changed nothing.
    pub noop_fixes: u32,
    /// Reviews of this cycle that requested a discussion.
    pub discussions: u32,
    /// Consecutive crashes that lost an attempt.
    pub losses: u32,
    /// Attempts that ran at the last crash and have not reported since. Losing them counts as the same crash.
    #[serde(rename = "survivors")]
    pub lost_with_crash: BTreeSet<AttemptId>,
    /// Rejected landings, and approvals invalidated by foreign commits.
    pub conflicts: u32,
    /// Reviews started in this loop.
    pub reviews: u32,
    /// Whether any review of the loop could be parsed.
    #[serde(default)]
    pub has_readable: bool,
    /// Whether any review of the loop could not be parsed.
    #[serde(default)]
    pub has_unclear: bool,
    /// Rate limits of the current jobs.
    pub limited: Vec<RateLimitState>,
    pub granted: ExtraAllowance,
}

/// Extra repetitions granted by a person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ExtraAllowance {
    pub fixes: u32,
    pub attempts: u32,
    pub passes: u32,
    pub conflicts: u32,
}

/// The stage of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Not started.
    Queued,
    /// An agent phase. `failures` counts failed attempts of this job.
    Working { slot: AttemptSlot, failures: u32 },
    /// Researchers work in parallel before the agent of the phase starts.
    Researching { team: Vec<ResearcherState> },
    /// The project's checks run.
    Checking { slot: AttemptSlot, failures: u32 },
    /// All reviewers judge one commit in parallel.
    Reviewing(Panel),
    /// `from` is the tree before the fix, to detect a fix that changes nothing.
    Fixing { fixes: Vec<Fix>, order: FixOrder, from: Tree },
    /// Parallel fixes are combined.
    Combining { slot: AttemptSlot, fixes: Vec<Fix>, from: Tree },
    /// Signed off; waits for its group.
    AwaitingLanding { outcome: Outcome, reason: Option<Reason> },
    /// The work is merged into the target branch.
    Landing { slot: AttemptSlot, outcome: Outcome, reason: Option<Reason> },
    /// Waits for a person. `interrupted_stage` is the stage in which the question arose.
    Waiting {
        question: Question,
        #[serde(rename = "asked")]
        interrupted_stage: Box<Stage>,
    },
    /// Ended.
    Done(Ending),
}

/// The slot of one attempt: running or paused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptSlot {
    Running(AttemptId),
    #[serde(rename = "held")]
    Paused(PauseReason),
    /// The attempt ended, and no other follows yet.
    Vacant,
}

/// Why an attempt is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// A budget cap is reached.
    Budget,
    /// The agent is rate limited.
    RateLimit { until: Timestamp },
    /// A checkpoint review is due before the next attempt.
    Checkpoint,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResearcherState {
    /// At work.
    #[serde(rename = "out")]
    Assigned { slot: AttemptSlot, failures: u32 },
    /// Has answered.
    Done,
    /// Failed for good; the phase continues without this researcher.
    #[serde(rename = "absent")]
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewScope {
    Full,
    /// The open findings and the fix only.
    Scoped,
}

/// The reviewers of one round, on one commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Panel {
    pub commit: Commit,
    pub scope: ReviewScope,
    #[serde(rename = "seats")]
    pub reviewers: BTreeMap<ReviewerName, ReviewerState>,
    /// Findings that a checkpoint review added after the prompts of these reviewers were written. An approval does
    /// not close them.
    #[serde(rename = "untold", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unlisted: BTreeSet<FindingId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewerState {
    /// The reviewer is at work.
    #[serde(rename = "out")]
    Assigned { slot: AttemptSlot, failures: u32, unclear: u32 },
    /// The answer could be parsed.
    Answered(Box<Review>),
    /// The answer could not be parsed. `action` is what the policy says to do.
    Unclear {
        #[serde(rename = "rung")]
        action: FailureAction,
        failures: u32,
        unclear: u32,
    },
    /// The reviewer failed. `action` is what the policy says to do.
    Failed {
        #[serde(rename = "rung")]
        action: FailureAction,
        failures: u32,
        unclear: u32,
    },
}

/// The findings of one fixer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fix {
    pub findings: Vec<FindingId>,
    /// The reviewers whose raw text goes to the fixer.
    #[serde(rename = "unread")]
    pub unparsed_reviewers: Vec<ReviewerName>,
    pub failures: u32,
    pub state: FixState,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FixState {
    /// Not started yet.
    Queued,
    /// A fixer is at work.
    #[serde(rename = "out")]
    Assigned(AttemptSlot),
    /// `unmerged_commit` is the commit of a parallel fixer, until it is combined with the others.
    Done {
        #[serde(rename = "apart")]
        unmerged_commit: Option<Commit>,
    },
    /// The fixer failed. `action` is what the policy says to do.
    Failed {
        #[serde(rename = "rung")]
        action: FailureAction,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FixOrder {
    /// In parallel, each in its own worktree.
    #[serde(rename = "at_once")]
    Parallel,
    #[serde(rename = "in_turn")]
    Sequential,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Question {
    pub id: QuestionId,
    #[serde(rename = "about")]
    pub topic: QuestionTopic,
    pub choices: Vec<Choice>,
}

/// The topic of a question.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionTopic {
    /// Some reviewers are missing or unreadable, others answered.
    PartialReview { missing: Vec<ReviewerName> },
    /// There are answers, but none could be parsed.
    UnclearReview { missing: Vec<ReviewerName> },
    /// No reviewer answered.
    NoReview { missing: Vec<ReviewerName> },
    /// A limit of a gate is reached.
    Exhausted(Reason),
    /// The fixer failed.
    FixerFailed,
    /// The agent of a phase failed.
    ImplementerFailed,
    /// These reviewers ask for a discussion.
    Discussion { by: Vec<ReviewerName> },
}

/// How a gate ended in this pass.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GateRecord {
    pub phase: usize,
    pub item: u32,
    pub end: GateEnd,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateEnd {
    /// Every reviewer answered, and no finding at or above the threshold is open.
    Approved { commit: Commit },
    /// The loop went on with open findings.
    #[serde(rename = "noted")]
    LeftFindings { reason: Reason },
    /// The loop went on without an answer of every reviewer.
    #[serde(rename = "unheard")]
    ReviewersMissing,
    /// There was nothing to check.
    Unchecked,
}

impl Default for Loop {
    fn default() -> Self {
        Self {
            position: Position { pass: 1, phase: 0, item: 0 },
            items: 1,
            stage: Stage::Queued,
            head: Head { commit: Commit::new(""), tree: Tree::new("") },
            base: None,
            ledger: Arc::default(),
            counters: LoopCounters::default(),
            gates: Vec::new(),
            once_done: BTreeSet::new(),
            cycles: BTreeMap::new(),
            unparsed_reviewers: Vec::new(),
            landed: false,
            notes: Vec::new(),
            next_notes: Vec::new(),
            checkpoint: None,
            next_attempt: 1,
            next_question: 1,
        }
    }
}

impl Loop {
    /// Whether a run has started the loop, so that it has a branch with a head.
    pub fn has_started(&self) -> bool {
        !self.head.commit.as_str().is_empty()
    }

    pub(super) fn ledger_mut(&mut self) -> &mut Ledger {
        Arc::make_mut(&mut self.ledger)
    }

    /// The number of open findings of any severity. A landing conflict that the approved commit resolves is not
    /// counted; the next landing closes it.
    pub fn open_findings(&self) -> usize {
        let resolved = self.signed_off_commit().is_some();
        let of_queue = |source: &ReviewerName| source.as_str() == super::land::LANDING;
        let counts = |entry: &&LedgerEntry| !(resolved && entry.finding.sources.iter().all(of_queue));
        self.ledger.open(FailThreshold::Low).filter(counts).count()
    }

    /// Whether the diff is known to be empty.
    pub fn is_unchanged(&self) -> bool {
        self.base.as_ref() == Some(&self.head.tree)
    }

    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done(_))
    }

    /// The loop's own number of its open question.
    pub fn open_question(&self) -> Option<QuestionId> {
        if let Stage::Waiting { question, .. } = &self.stage { Some(question.id) } else { None }
    }

    /// Whether the loop can still be cancelled.
    pub fn can_be_cancelled(&self) -> bool {
        let Stage::Done(ending) = &self.stage else { return true };
        !ending.outcome.is_completed() && ending.outcome != Outcome::Cancelled
    }

    /// The number of the current review as displayed. Where the items of a plan are reviewed one by one, it restarts
    /// at one for each item.
    pub fn review_number(&self) -> u32 {
        if self.position.item > 0 { self.counters.fixes + 1 } else { self.counters.cycle }
    }
}

impl Panel {
    /// Whether a reviewer is still at work.
    pub fn is_open(&self) -> bool {
        self.reviewers.values().any(|state| matches!(state, ReviewerState::Assigned { .. }))
    }

    /// The reviewer whose running attempt this is.
    pub fn reviewer_of(&self, attempt: AttemptId) -> Option<&ReviewerName> {
        self.reviewers.iter().find(|(_, state)| state.attempt() == Some(attempt)).map(|(name, _)| name)
    }

    /// The reviews that could be parsed.
    pub fn answers(&self) -> Vec<Review> {
        let answer = |state: &ReviewerState| {
            if let ReviewerState::Answered(review) = state { Some((**review).clone()) } else { None }
        };
        self.reviewers.values().filter_map(answer).collect()
    }

    /// The reviewers without a usable answer.
    pub fn missing(&self) -> Vec<ReviewerName> {
        let answered = |state: &ReviewerState| matches!(state, ReviewerState::Answered(_));
        self.reviewers.iter().filter(|(_, state)| !answered(state)).map(|(name, _)| name.clone()).collect()
    }
}
