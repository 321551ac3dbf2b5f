//! The decisions that a person can take about a task now.

use crate::machine::{OutcomeKind, Reason};
use crate::task::TaskType;
use crate::view::{TaskRow, TaskStatus};

/// Whether the task stopped and can resume.
pub fn can_be_retried(task: &TaskRow) -> bool {
    let stopped = matches!(task.status, TaskStatus::Failed | TaskStatus::Stuck)
        || task.outcome.is_some_and(OutcomeKind::needs_decision);
    let is_over =
        task.kind == TaskType::Review && matches!(task.reason, Some(Reason::GateFailed | Reason::NothingToReview));
    task.run_id.is_some() && stopped && !is_over && task.reason != Some(Reason::EditedByPerson)
}

/// Whether the task can still be cancelled.
pub fn can_be_cancelled(task: &TaskRow) -> bool {
    match task.status {
        TaskStatus::Pending
        | TaskStatus::InProgress
        | TaskStatus::Waiting
        | TaskStatus::Paused
        | TaskStatus::Blocked
        | TaskStatus::Failed
        | TaskStatus::Stuck => true,
        TaskStatus::Completed => task.outcome.is_some_and(OutcomeKind::needs_decision),
        TaskStatus::Cancelled => false,
    }
}

/// Whether a person can set the verdict, if no attempt writes to the worktree: a run has started the task.
pub fn can_be_edited(task: &TaskRow) -> bool {
    task.run_id.is_some() && !matches!(task.status, TaskStatus::Pending | TaskStatus::Cancelled)
}
