//! Why a task or a loop needs a person, and how a task counts for the exit code.

use crate::ids::QuestionId;
use crate::machine::{Loop, Outcome, OutcomeKind, Reason, Stage};
use crate::view::{TaskRow, TaskState, TaskStatus};

/// Why a task needs a person, most urgent first. Tasks with an open question are listed by their question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    Failed,
    Stuck,
    /// A limit was reached.
    Exhausted,
    Discussion,
    /// It ended without approval, or with nothing to approve.
    NotApproved,
    Blocked,
    Paused,
}

impl Urgency {
    /// None if the task needs no person, or is listed by its question.
    pub fn for_task(task: &TaskRow) -> Option<Self> {
        match task.status {
            TaskStatus::Failed => Some(Self::Failed),
            TaskStatus::Stuck => Some(Self::Stuck),
            TaskStatus::Completed => task.outcome.and_then(Self::for_completed),
            TaskStatus::Blocked => Some(Self::Blocked),
            TaskStatus::Paused => Some(Self::Paused),
            TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Waiting | TaskStatus::Cancelled => None,
        }
    }

    fn for_completed(outcome: OutcomeKind) -> Option<Self> {
        match outcome {
            OutcomeKind::Exhausted => Some(Self::Exhausted),
            OutcomeKind::Discussion => Some(Self::Discussion),
            OutcomeKind::CompletedWithIssues | OutcomeKind::NothingToReview => Some(Self::NotApproved),
            OutcomeKind::Approved
            | OutcomeKind::Accepted
            | OutcomeKind::Failed
            | OutcomeKind::Stuck
            | OutcomeKind::Cancelled
            | OutcomeKind::Rejected => None,
        }
    }
}

/// How a task counts for the exit code. `Ord` goes from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskResult {
    /// Approved, or done where review was turned off.
    Done,
    /// A person is needed, or the work is unfinished.
    Attention,
    /// It failed, is stuck, or waits for a task that did not pass.
    Failed,
}

impl TaskResult {
    pub fn for_task(task: &TaskRow) -> Self {
        // Failed work never counts as done, whatever the status is.
        let failed = task.outcome.is_some_and(OutcomeKind::is_failure) || task.status == TaskStatus::Stuck;
        match task.state() {
            TaskState::Failed | TaskState::Blocked => Self::Failed,
            _ if failed => Self::Failed,
            TaskState::Queued
            | TaskState::Working
            | TaskState::Reviewing
            | TaskState::Fixing
            | TaskState::Landing
            | TaskState::Paused
            | TaskState::NeedsYou
            | TaskState::Rejected => Self::Attention,
            TaskState::Approved | TaskState::Landed | TaskState::Unreviewed | TaskState::Cancelled => Self::Done,
        }
    }
}

/// What a loop needs from a person, for notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoopNeeds {
    pub question: Option<QuestionId>,
    /// It failed or is stuck, and no person ended it.
    pub stuck: bool,
    pub over_budget: bool,
}

impl LoopNeeds {
    pub fn for_loop(this: Option<&Loop>) -> Self {
        let Some(this) = this else { return Self::default() };
        let failed = |outcome: &Outcome| outcome.kind().is_some_and(OutcomeKind::is_failure);
        let stuck = matches!(&this.stage, Stage::Done(ending) if failed(&ending.outcome)) && !ended_by_person(this);
        Self { question: this.open_question(), stuck, over_budget: this.pause_cause() == Some(Reason::Budget) }
    }
}

/// Whether a person ended the loop, who thus needs no notification.
pub fn ended_by_person(this: &Loop) -> bool {
    matches!(&this.stage, Stage::Done(ending) if ending.reason.is_some_and(Reason::is_of_person))
}
