//! What a task or its loop does, in one word: its state, which includes whether a person is needed and from which marks,
//! colours and exit codes follow; its status in the JSON interfaces; and its badge on the screen.

use serde::{Deserialize, Serialize};

use crate::ids::AttemptId;
use crate::machine::{Loop, Outcome, OutcomeKind, PauseReason, Stage};

/// The state of a task.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum TaskState {
    #[default]
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
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

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
    pub fn for_loop(machine: &Loop, blocked: bool) -> Self {
        let outcome = if let Stage::Done(ending) = &machine.stage { ending.outcome.kind() } else { None };
        let in_checkpoint = machine.checkpoint.is_some() && matches!(machine.stage, Stage::AwaitingLanding { .. });
        let activity = if in_checkpoint { Self::Reviewing } else { activity(&machine.stage) };
        Self::new(TaskStatus::for_loop(machine, blocked), outcome, activity)
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
        Stage::Waiting { interrupted_stage, .. } => activity(interrupted_stage),
        Stage::Done(ending) => awaiting(&ending.outcome),
    }
}

/// A loop that waits to land is approved only if its work is.
fn awaiting(outcome: &Outcome) -> TaskState {
    if outcome.is_approval() { TaskState::Approved } else { TaskState::Landing }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum TaskStatus {
    #[default]
    Pending,
    InProgress,
    Waiting,
    Paused,
    Completed,
    Failed,
    Stuck,
    /// Signed off, but its group waits for a person.
    Blocked,
    Cancelled,
}

impl TaskStatus {
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Whether the work has ended, with or without an approval.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Stuck | Self::Cancelled)
    }

    /// Whether the work ended because it failed or got stuck.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Stuck)
    }

    /// Returns the status of a loop. `blocked` is whether its group waits for a person.
    pub fn for_loop(machine: &Loop, blocked: bool) -> Self {
        match &machine.stage {
            _ if machine.is_paused() => Self::Paused,
            Stage::Queued => Self::Pending,
            Stage::Waiting { .. } => Self::Waiting,
            Stage::AwaitingLanding { .. } if blocked => Self::Blocked,
            Stage::Done(ending) => Self::ended(&ending.outcome),
            Stage::AwaitingLanding { .. }
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { .. }
            | Stage::Combining { .. }
            | Stage::Landing { .. } => Self::InProgress,
        }
    }

    /// The status shown in the prompts of other loops: a loop that only has to land is completed.
    pub fn for_other_loops(machine: &Loop) -> Self {
        if machine.is_signed_off() { Self::Completed } else { Self::for_loop(machine, false) }
    }

    fn ended(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Approved { .. }
            | Outcome::Accepted { .. }
            | Outcome::Unreviewed
            | Outcome::CompletedWithIssues
            | Outcome::Exhausted
            | Outcome::Discussion
            | Outcome::NothingToReview => Self::Completed,
            Outcome::Failed => Self::Failed,
            Outcome::Stuck => Self::Stuck,
            Outcome::Cancelled => Self::Cancelled,
        }
    }
}

/// A word that says what a loop is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "UPPERCASE")]
#[strum(const_into_str, serialize_all = "UPPERCASE")]
pub enum Badge {
    Wait,
    Spawn,
    Work,
    Review,
    Fix,
    Check,
    Land,
    Ask,
    Paused,
    Done,
    Stuck,
}

impl Badge {
    /// Returns the badge of a loop. `has_started` is whether an attempt's start is recorded; before that the attempt
    /// is being spawned.
    pub fn for_loop(machine: &Loop, has_started: impl Fn(AttemptId) -> bool) -> Self {
        if machine.is_paused() {
            return Self::Paused;
        }
        if machine.pause_reasons().contains(&PauseReason::Checkpoint) {
            return Self::Review;
        }
        let running = machine.running_attempts();
        let spawning = !running.is_empty() && !running.into_iter().any(has_started);
        match &machine.stage {
            Stage::Queued | Stage::AwaitingLanding { .. } => Self::Wait,
            Stage::Waiting { .. } => Self::Ask,
            Stage::Done(ending) if ending.outcome.is_failure() => Self::Stuck,
            Stage::Done(_) => Self::Done,
            Stage::Checking { .. } => Self::Check,
            Stage::Combining { .. } => Self::Fix,
            Stage::Landing { .. } => Self::Land,
            _ if spawning => Self::Spawn,
            Stage::Working { .. } | Stage::Researching { .. } => Self::Work,
            Stage::Reviewing(_) => Self::Review,
            Stage::Fixing { .. } => Self::Fix,
        }
    }
}
