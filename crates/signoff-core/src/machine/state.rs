//! Where a loop stands. Data that makes sense in one stage lives in that stage.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::event::{Choice, FinalWord};
use super::limit::Limited;
use super::outcome::{Ending, Outcome, Reason};
use crate::ids::{AttemptId, Commit, FindingId, QuestionId, ReviewerName, Tree};
use crate::ledger::{Entry, Ledger};
use crate::policy::Rung;
use crate::review::{Bar, Finding, Review};

/// The tip of a loop's branch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Head {
    pub commit: Commit,
    /// Progress means that this changed.
    pub tree: Tree,
}

/// One task being carried through its workflow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Loop {
    pub at: Position,
    /// How many items the `per_item` phases go through.
    pub items: u32,
    pub stage: Stage,
    pub head: Head,
    /// The tree that its diff begins at, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Tree>,
    pub ledger: Ledger,
    pub tally: Tally,
    /// How the gates of this pass ended.
    pub gates: Vec<GateRecord>,
    pub once_done: BTreeSet<usize>,
    /// The number of the last review at each gate of this pass.
    pub cycles: BTreeMap<usize, u32>,
    /// The reviewers of the last panel whose raw text the fixer gets.
    pub unread: Vec<ReviewerName>,
    /// Whether its work is in the target branch.
    pub landed: bool,
    /// What a checkpoint review said, for the attempt that runs and for the one after it.
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
    /// The phase index; one past the last while landing's own findings are fixed.
    pub phase: usize,
    pub item: u32,
}

/// Everything that is counted. Each repetition has its own counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Implement and fix attempts so far.
    pub iteration: u32,
    /// Those of them that the bound on attempts does not count: the first at each further item of a plan, and fixers
    /// beside others.
    pub uncounted: u32,
    /// The iteration at the last checkpoint review.
    pub last_checkpoint: u32,
    /// The number of the current review; of this gate and pass.
    pub cycle: u32,
    /// Fixes so far; of this gate, pass and item.
    pub fixes: u32,
    /// Restarts that each gate caused, over all passes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub restarts: BTreeMap<usize, u32>,
    /// Fixes that changed nothing, in a row.
    pub noop_fixes: u32,
    /// Reviews that wanted to discuss; of this cycle.
    pub discussions: u32,
    /// Crashes in a row that lost an attempt.
    pub losses: u32,
    /// What ran at the last crash and has not been accounted for: losing it too is the same crash.
    pub survivors: BTreeSet<AttemptId>,
    /// Landings sent back and approvals voided by foreign commits.
    pub conflicts: u32,
    /// Reviews opened in the loop's life.
    pub reviews: u32,
    /// Whether a review of the loop could be read.
    #[serde(default)]
    pub has_readable: bool,
    /// Whether a review of the loop could not be read.
    #[serde(default)]
    pub has_unclear: bool,
    /// The jobs that their agents' providers refused, how often in a row.
    pub limited: Vec<Limited>,
    pub granted: Granted,
}

/// What a person allowed beyond the bounds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Granted {
    pub fixes: u32,
    pub attempts: u32,
    pub passes: u32,
    pub conflicts: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Not begun.
    Queued,
    /// An agent phase. `failures` are those of this job so far.
    Working {
        slot: Slot,
        failures: u32,
    },
    /// Helpers look into an agent phase's question first.
    Researching {
        team: Vec<Researcher>,
    },
    /// The project's commands run.
    Checking {
        slot: Slot,
        failures: u32,
    },
    /// All reviewers at once, one code state.
    Reviewing(Panel),
    /// `from` is the tree before, so that a fix that changes nothing is seen.
    Fixing {
        fixes: Vec<Fix>,
        order: Order,
        from: Tree,
    },
    /// Fixes made side by side are put together.
    Combining {
        slot: Slot,
        fixes: Vec<Fix>,
        from: Tree,
    },
    /// Signed off, until the group is.
    AwaitingLanding {
        outcome: Outcome,
        reason: Option<Reason>,
    },
    Landing {
        slot: Slot,
        outcome: Outcome,
        reason: Option<Reason>,
    },
    /// A person is needed. `asked` is where the question arose.
    Waiting {
        question: Question,
        asked: Box<Stage>,
    },
    Done(Ending),
}

/// The place of one attempt: at work, or held back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slot {
    Running(AttemptId),
    Held(Hold),
    /// Its attempt ended and no other follows yet.
    Vacant,
}

/// What an attempt waits for before it can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    Budget,
    RateLimit {
        until: Timestamp,
    },
    /// A checkpoint review is due before the next attempt.
    Checkpoint,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Researcher {
    Out {
        slot: Slot,
        failures: u32,
    },
    Done,
    /// Went missing; the others' work is brought together without it.
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Full,
    /// The open findings and the fix.
    Scoped,
}

/// The reviewers of one round, on one commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Panel {
    pub commit: Commit,
    pub scope: Scope,
    pub seats: BTreeMap<ReviewerName, Seat>,
    /// Findings that a checkpoint review brought after these reviewers were asked: their silence closes none of them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub untold: BTreeSet<FindingId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seat {
    Out {
        slot: Slot,
        failures: u32,
        unclear: u32,
    },
    Answered(Box<Review>),
    /// Answered, but nobody could read it; and what the policy says to that.
    Unclear {
        rung: Rung,
        failures: u32,
        unclear: u32,
    },
    /// Never answered; and what the policy says to that.
    Failed {
        rung: Rung,
        failures: u32,
        unclear: u32,
    },
}

/// One fixer's share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fix {
    pub findings: Vec<FindingId>,
    /// Reviewers whose raw text goes to the fixer.
    pub unread: Vec<ReviewerName>,
    pub failures: u32,
    pub state: FixState,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FixState {
    /// Its turn comes.
    Queued,
    Out(Slot),
    /// `apart` is what a fixer that worked side by side with others left, until it is put together with theirs.
    Done {
        apart: Option<Commit>,
    },
    Failed {
        rung: Rung,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Side by side, each in a worktree of its own.
    AtOnce,
    InTurn,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Question {
    pub id: QuestionId,
    pub about: Asked,
    pub choices: Vec<Choice>,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Some reviewers are missing or unreadable, others answered.
    PartialReview {
        missing: Vec<ReviewerName>,
    },
    /// Answers came, none readable.
    UnclearReview {
        missing: Vec<ReviewerName>,
    },
    /// Nobody answered at all.
    NoReview {
        missing: Vec<ReviewerName>,
    },
    Exhausted(Reason),
    FixerFailed,
    ImplementerFailed,
    Discussion {
        by: Vec<ReviewerName>,
    },
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
    /// Every reviewer was heard and nothing at or above the bar is open.
    Approved { commit: Commit },
    /// Went on with findings open.
    Noted { reason: Reason },
    /// Went on without hearing every reviewer.
    Unheard,
    /// There was nothing to check.
    Unchecked,
}

impl Default for Loop {
    fn default() -> Self {
        Self {
            at: Position { pass: 1, phase: 0, item: 0 },
            items: 1,
            stage: Stage::Queued,
            head: Head { commit: Commit::new(""), tree: Tree::new("") },
            base: None,
            ledger: Ledger::default(),
            tally: Tally::default(),
            gates: Vec::new(),
            once_done: BTreeSet::new(),
            cycles: BTreeMap::new(),
            unread: Vec::new(),
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
    /// How many findings are open, whatever their severity. A conflict of the merge queue that the approved commit resolves
    /// is not counted; the next landing closes it.
    pub fn open_findings(&self) -> usize {
        let resolved = self.signed_off_commit().is_some();
        let of_queue = |source: &ReviewerName| source.as_str() == super::land::LANDING;
        let counts = |entry: &&Entry| !(resolved && entry.finding.sources.iter().all(of_queue));
        self.ledger.open(Bar::Low).filter(counts).count()
    }

    /// The commit that reviewers or a person approved, where that is how it ended.
    pub fn approved_commit(&self) -> Option<&Commit> {
        let Stage::Done(ending) = &self.stage else { return None };
        self.approved_with(&ending.outcome)
    }

    /// The same, also where it is yet to land.
    pub fn signed_off_commit(&self) -> Option<&Commit> {
        match &self.stage {
            Stage::AwaitingLanding { .. } if self.checkpoint.is_some() => None,
            Stage::AwaitingLanding { outcome, .. } | Stage::Landing { outcome, .. } => {
                self.approved_with(outcome)
            }
            Stage::Queued
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { .. }
            | Stage::Combining { .. }
            | Stage::Waiting { .. }
            | Stage::Done(_) => self.approved_commit(),
        }
    }

    fn approved_with<'a>(&'a self, outcome: &'a Outcome) -> Option<&'a Commit> {
        match outcome {
            Outcome::Approved { commit } => Some(commit),
            Outcome::Accepted { .. } => Some(&self.head.commit),
            Outcome::Unreviewed
            | Outcome::CompletedWithIssues
            | Outcome::Exhausted
            | Outcome::Discussion
            | Outcome::NothingToReview
            | Outcome::Failed
            | Outcome::Stuck
            | Outcome::Cancelled => None,
        }
    }

    /// Whether its diff is known to be empty.
    pub fn is_unchanged(&self) -> bool {
        self.base.as_ref() == Some(&self.head.tree)
    }

    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done(_))
    }

    /// Whether there is still something to call off.
    pub fn can_be_cancelled(&self) -> bool {
        match &self.stage {
            Stage::Done(ending) => !ending.outcome.carries_on() && ending.outcome != Outcome::Cancelled,
            Stage::Queued
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { .. }
            | Stage::Combining { .. }
            | Stage::AwaitingLanding { .. }
            | Stage::Landing { .. }
            | Stage::Waiting { .. } => true,
        }
    }

    /// The number of the review at hand as people count it: where the items of a plan are judged one by one, those of
    /// each begin at one.
    pub fn review_number(&self) -> u32 {
        if self.at.item > 0 { self.tally.fixes + 1 } else { self.tally.cycle }
    }

    /// Whether it was reviewed, and no review of it could be read.
    pub fn has_only_unclear_reviews(&self) -> bool {
        self.tally.has_unclear && !self.tally.has_readable
    }

    /// The outcome and reason of a loop that ended, or that is signed off and has only to land. While a checkpoint
    /// review is under way nothing is.
    fn worth(&self) -> Option<(&Outcome, Option<Reason>)> {
        match &self.stage {
            Stage::Done(ending) => Some((&ending.outcome, ending.reason)),
            Stage::AwaitingLanding { .. } if self.checkpoint.is_some() => None,
            Stage::AwaitingLanding { outcome, reason } | Stage::Landing { outcome, reason, .. } => {
                Some((outcome, *reason))
            }
            Stage::Queued
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { .. }
            | Stage::Combining { .. }
            | Stage::Waiting { .. } => None,
        }
    }

    /// Whether it is signed off and has only to land.
    pub fn is_signed_off(&self) -> bool {
        !self.is_done() && self.worth().is_some()
    }

    /// The final verdict people see.
    pub fn final_verdict(&self) -> Option<FinalWord> {
        let (outcome, reason) = self.worth()?;
        let by_person = outcome.is_approval() || reason == Some(Reason::EditedByPerson);
        if self.has_only_unclear_reviews() && !by_person {
            return None;
        }
        match outcome {
            Outcome::Approved { .. } | Outcome::Accepted { .. } => Some(FinalWord::Approved),
            Outcome::Unreviewed | Outcome::NothingToReview | Outcome::Cancelled => None,
            Outcome::CompletedWithIssues => reason.and_then(Reason::left_standing),
            // What a person set stands as it was set.
            Outcome::Exhausted if reason == Some(Reason::EditedByPerson) => Some(FinalWord::MaxCyclesReached),
            Outcome::Exhausted if self.tally.reviews == 0 => None,
            Outcome::Exhausted => reason.and_then(Reason::left_standing),
            Outcome::Discussion => Some(FinalWord::NeedsDiscussion),
            Outcome::Failed | Outcome::Stuck => {
                let edited = reason == Some(Reason::EditedByPerson);
                (edited || self.tally.reviews > 0).then_some(FinalWord::ChangesRequested)
            }
        }
    }
}

impl Panel {
    /// Whether a seat still waits for its reviewer.
    pub fn is_open(&self) -> bool {
        self.seats.values().any(|seat| matches!(seat, Seat::Out { .. }))
    }

    /// The answers that could be read.
    pub fn answers(&self) -> Vec<Review> {
        let answer = |seat: &Seat| match seat {
            Seat::Answered(review) => Some((**review).clone()),
            Seat::Out { .. } | Seat::Unclear { .. } | Seat::Failed { .. } => None,
        };
        self.seats.values().filter_map(answer).collect()
    }

    /// Who was not heard.
    pub fn missing(&self) -> Vec<ReviewerName> {
        let heard = |seat: &Seat| matches!(seat, Seat::Answered(_));
        self.seats.iter().filter(|(_, seat)| !heard(seat)).map(|(name, _)| name.clone()).collect()
    }
}
