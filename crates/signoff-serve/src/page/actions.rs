//! What a person can do about a task: plain forms, each only where it makes sense.

use maud::{Markup, html};
use signoff_core::task::TaskType;
use signoff_core::view::{Status, TaskRow};
use signoff_term::show::{Attempt, Report};

use super::frame;
use super::values::Typed;

/// The verdicts a person can set.
const VERDICTS: [&str; 4] = ["APPROVED", "CHANGES_REQUESTED", "MAX_CYCLES_REACHED", "NEEDS_DISCUSSION"];

/// Whether it stopped where it could go on.
pub fn can_be_retried(task: &TaskRow) -> bool {
    let reason = task.reason.as_deref();
    let stopped = matches!(task.status, Status::Failed | Status::Stuck)
        || matches!(task.outcome.as_deref(), Some("exhausted" | "discussion" | "nothing_to_review"));
    let is_over =
        task.kind == TaskType::Review && matches!(reason, Some("gate_failed" | "nothing_to_review"));
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
        Status::Completed => {
            matches!(task.outcome.as_deref(), Some("exhausted" | "discussion" | "nothing_to_review"))
        }
        Status::Cancelled => false,
    }
}

/// Those who look and change nothing; of other roles some do.
const READERS: [&str; 2] = ["review", "check"];

/// Whether a person can say what its verdict is: not before a run has taken it up, and not while somebody writes, or was
/// writing when the program was killed.
fn can_be_edited(report: &Report) -> bool {
    let writes = |attempt: &Attempt| attempt.outcome.is_none() && !READERS.contains(&attempt.role.as_str());
    let task = &report.task;
    task.run_id.is_some()
        && !matches!(task.status, Status::Pending | Status::Cancelled)
        && !report.attempts.iter().any(writes)
}

/// All that can be done now.
pub fn all(report: &Report, typed: Option<&Typed>) -> Markup {
    let task = &report.task;
    let (id, back) = (task.id, format!("/tasks/{}", task.id));
    html! {
        div.actions {
            @if can_be_retried(task) { (retry(id, &back)) }
            @if can_be_edited(report) { (edit(id, &back, typed)) }
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

fn edit(id: u64, back: &str, typed: Option<&Typed>) -> Markup {
    let action = format!("/tasks/{id}/edit");
    let typed = typed.filter(|typed| typed.action == action);
    let verdict = typed.map(|typed| typed.verdict.as_str());
    html! {
        details.action #edit open[typed.is_some()] {
            summary { "Set the verdict…" }
            form method="post" action=(action) {
                (frame::back(back))
                p {
                    label for="edit-verdict" { "Verdict" }
                    select #edit-verdict name="verdict" {
                        @for known in VERDICTS { option value=(known) selected[verdict == Some(known)] { (known) } }
                    }
                }
                p {
                    label for="edit-reason" { "Why" }
                    input #edit-reason name="reason" type="text" autocomplete="off"
                        value=[typed.map(|typed| &typed.reason)];
                }
                button { "Set the verdict" }
            }
        }
    }
}
