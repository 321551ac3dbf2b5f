//! The state of a task in one word, including whether a person is needed. Marks, colours and exit codes follow from
//! it.

use serde::{Deserialize, Serialize};

use super::TaskStatus;
use crate::machine::{Loop, Outcome, OutcomeKind, Stage};

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    Queued,
    Working,
    Reviewing,
    Fixing,
    Landing,
    /// Paused by a budget cap or a rate limit.
    Paused,
    /// Waits for a task that failed, is stuck or was cancelled.
    Blocked,
    /// A person has to decide.
    NeedsYou,
    /// Approved, but not in the default branch.
    Approved,
    /// In the default branch.
    Landed,
    /// Done with review turned off.
    Unreviewed,
    /// A person rejected it for good.
    Rejected,
    Failed,
    Cancelled,
}

impl TaskState {
    pub const ALL: [Self; 14] = [
        Self::Queued,
        Self::Working,
        Self::Reviewing,
        Self::Fixing,
        Self::Landing,
        Self::Paused,
        Self::Blocked,
        Self::NeedsYou,
        Self::Approved,
        Self::Landed,
        Self::Unreviewed,
        Self::Rejected,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The name in the JSON interfaces and in the tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Working => "working",
            Self::Reviewing => "reviewing",
            Self::Fixing => "fixing",
            Self::Landing => "landing",
            Self::Paused => "paused",
            Self::Blocked => "blocked",
            Self::NeedsYou => "needs_you",
            Self::Approved => "approved",
            Self::Landed => "landed",
            Self::Unreviewed => "unreviewed",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// The mark in front of a task. Only approved work gets `✓`.
    pub fn mark(self) -> char {
        match self {
            Self::Queued => '·',
            Self::Working | Self::Reviewing | Self::Fixing | Self::Landing => '→',
            Self::Paused => '‖',
            Self::Blocked => '▪',
            Self::NeedsYou => '!',
            Self::Approved | Self::Landed => '✓',
            Self::Unreviewed => '○',
            Self::Rejected | Self::Failed => '✗',
            Self::Cancelled => '-',
        }
    }

    /// Whether reviewers or a person approved the work.
    pub fn is_approved(self) -> bool {
        matches!(self, Self::Approved | Self::Landed)
    }

    /// Whether the task is being worked on, or is about to land without a person.
    pub fn is_at_work(self) -> bool {
        matches!(self, Self::Working | Self::Reviewing | Self::Fixing | Self::Landing)
    }

    /// Computes the state from a task's status and outcome. `activity` is what its loop does, for statuses that do
    /// not say it; other states are ignored.
    pub fn new(status: TaskStatus, outcome: Option<OutcomeKind>, activity: Self) -> Self {
        match status {
            TaskStatus::Pending => Self::Queued,
            TaskStatus::InProgress if activity.is_at_work() || activity.is_approved() => activity,
            TaskStatus::InProgress => Self::Working,
            TaskStatus::Waiting | TaskStatus::Stuck => Self::NeedsYou,
            TaskStatus::Paused => Self::Paused,
            TaskStatus::Blocked if activity.is_approved() => activity,
            TaskStatus::Blocked => Self::Blocked,
            TaskStatus::Failed if outcome == Some(OutcomeKind::Rejected) => Self::Rejected,
            TaskStatus::Failed => Self::Failed,
            TaskStatus::Cancelled => Self::Cancelled,
            TaskStatus::Completed => Self::completed(outcome),
        }
    }

    fn completed(outcome: Option<OutcomeKind>) -> Self {
        match outcome {
            Some(outcome) if outcome.is_approval() => Self::Approved,
            None => Self::Unreviewed,
            Some(OutcomeKind::Rejected) => Self::Rejected,
            Some(_) => Self::NeedsYou,
        }
    }

    /// The state of a loop. `blocked` is whether its group waits for a person.
    pub fn for_loop(this: &Loop, blocked: bool) -> Self {
        let outcome = if let Stage::Done(ending) = &this.stage { ending.outcome.kind() } else { None };
        let looked_at = this.checkpoint.is_some() && matches!(this.stage, Stage::AwaitingLanding { .. });
        let activity = if looked_at { Self::Reviewing } else { activity(&this.stage) };
        Self::new(TaskStatus::for_loop(this, blocked), outcome, activity)
    }
}

/// The activity of a loop that has not ended.
fn activity(stage: &Stage) -> TaskState {
    match stage {
        Stage::Queued => TaskState::Queued,
        Stage::Working { .. } | Stage::Researching { .. } => TaskState::Working,
        Stage::Checking { .. } | Stage::Reviewing(_) => TaskState::Reviewing,
        Stage::Fixing { .. } | Stage::Combining { .. } => TaskState::Fixing,
        Stage::AwaitingLanding { outcome, .. } => awaiting(outcome),
        Stage::Landing { .. } => TaskState::Landing,
        Stage::Waiting { asked, .. } => activity(asked),
        Stage::Done(ending) => awaiting(&ending.outcome),
    }
}

/// A loop that waits to land is approved only if its work is.
fn awaiting(outcome: &Outcome) -> TaskState {
    if outcome.is_approval() { TaskState::Approved } else { TaskState::Landing }
}
