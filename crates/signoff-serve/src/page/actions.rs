//! What a person can do about a task: plain forms, each only where it makes sense.

use maud::{Markup, html};
use signoff_core::task::TaskType;
use signoff_core::view::{Status, TaskRow};

use super::frame;

/// The verdicts a person can set.
const VERDICTS: [&str; 4] = ["APPROVED", "CHANGES_REQUESTED", "MAX_CYCLES_REACHED", "NEEDS_DISCUSSION"];

/// Whether it stopped where it could go on.
pub fn can_be_retried(task: &TaskRow) -> bool {
    let reason = task.reason.as_deref();
    let stopped = matches!(task.status, Status::Failed | Status::Stuck)
        || matches!(task.outcome.as_deref(), Some("exhausted" | "discussion"));
    let is_over = task.kind == TaskType::Review && reason == Some("gate_failed");
    task.run_id.is_some() && stopped && !is_over && reason != Some("edited_by_person")
}

/// Whether there is still something to call off.
fn can_be_cancelled(task: &TaskRow) -> bool {
    match task.status {
        Status::Pending
        | Status::InProgress
        | Status::Waiting
        | Status::Paused
        | Status::Blocked
        | Status::Failed
        | Status::Stuck => true,
        Status::Completed => matches!(task.outcome.as_deref(), Some("exhausted" | "discussion")),
        Status::Cancelled => false,
    }
}

/// Whether a person can say what its verdict is: not before a run has taken it up.
fn can_be_edited(task: &TaskRow) -> bool {
    task.run_id.is_some() && !matches!(task.status, Status::Pending | Status::Cancelled)
}

/// All that can be done now.
pub fn all(task: &TaskRow) -> Markup {
    let (id, back) = (task.id, format!("/tasks/{}", task.id));
    let edited = can_be_edited(task);
    html! {
        div.actions {
            @if can_be_retried(task) { (retry(id, &back)) }
            @if edited { (edit(id, &back)) }
            @if can_be_cancelled(task) { (cancel(id, &back)) }
        }
    }
}

/// One more go, from where it stopped.
pub fn retry(id: u64, back: &str) -> Markup {
    html! {
        form.action method="post" action={ "/tasks/" (id) "/retry" } {
            (frame::back(back))
            button { "Retry" span.unseen { " task " (id) } }
        }
    }
}

/// Calling it off takes two steps.
fn cancel(id: u64, back: &str) -> Markup {
    html! {
        details.action #cancel {
            summary { "Cancel…" }
            form method="post" action={ "/tasks/" (id) "/cancel" } {
                (frame::back(back))
                p { "Its agents are stopped. Its branch stays." }
                button.danger { "Cancel task " (id) }
            }
        }
    }
}

fn edit(id: u64, back: &str) -> Markup {
    html! {
        details.action #edit {
            summary { "Set the verdict…" }
            form method="post" action={ "/tasks/" (id) "/edit" } {
                (frame::back(back))
                p {
                    label for="edit-verdict" { "Verdict" }
                    select #edit-verdict name="verdict" {
                        @for verdict in VERDICTS { option value=(verdict) { (verdict) } }
                    }
                }
                p {
                    label for="edit-reason" { "Why" }
                    input #edit-reason name="reason" type="text" autocomplete="off";
                }
                button { "Set the verdict" }
            }
        }
    }
}
