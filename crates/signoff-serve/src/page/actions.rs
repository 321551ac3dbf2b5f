//! The forms for a task: retry, set the verdict, cancel. Each is shown only if it applies.

use maud::{Markup, html};
use signoff_core::machine::FinalVerdict;
use signoff_core::view::inbox;
use signoff_term::show::{AttemptRow, TaskReport};

use super::frame;
use super::values::TypedFields;

/// Roles that never write to the worktree.
const READ_ONLY_ROLES: [&str; 2] = ["review", "check"];

/// Whether a user can set the verdict: no attempt is writing, or was writing when the program was killed.
fn can_be_edited(report: &TaskReport) -> bool {
    let writes = |attempt: &AttemptRow| attempt.outcome.is_none() && !READ_ONLY_ROLES.contains(&attempt.role.as_str());
    inbox::can_be_edited(&report.task) && !report.attempts.iter().any(writes)
}

/// All forms that apply now.
pub fn all(report: &TaskReport, typed: Option<&TypedFields>) -> Markup {
    let task = &report.task;
    let (id, back) = (task.id, format!("/tasks/{}", task.id));
    html! {
        div.actions {
            @if inbox::can_be_retried(task) { (retry(id, &back)) }
            @if can_be_edited(report) { (edit(id, &back, typed)) }
            @if inbox::can_be_cancelled(task) { (cancel(id, &back)) }
        }
    }
}

/// The form that resumes the task where it stopped.
pub fn retry(id: u64, back: &str) -> Markup {
    html! {
        form.action method="post" action={ "/tasks/" (id) "/retry" } {
            (frame::return_field(back))
            button { "Retry" span.unseen { " task " (id) } }
        }
    }
}

/// The form that cancels the task, behind a disclosure so that it takes two clicks.
fn cancel(id: u64, back: &str) -> Markup {
    html! {
        details.action #cancel {
            summary { "Cancel…" }
            form method="post" action={ "/tasks/" (id) "/cancel" } {
                (frame::return_field(back))
                p { "Its agents are stopped. Its branch stays." }
                button.danger { "Cancel task " (id) }
            }
        }
    }
}

fn edit(id: u64, back: &str, typed: Option<&TypedFields>) -> Markup {
    let action = format!("/tasks/{id}/edit");
    let typed = typed.filter(|typed| typed.action == action);
    let verdict = typed.map(|typed| typed.verdict.as_str());
    html! {
        details.action #edit open[typed.is_some()] {
            summary { "Set the verdict…" }
            form method="post" action=(action) {
                (frame::return_field(back))
                p {
                    label for="edit-verdict" { "Verdict" }
                    select #edit-verdict name="verdict" {
                        @for known in FinalVerdict::ALL.map(FinalVerdict::as_str) { option value=(known) selected[verdict == Some(known)] { (known) } }
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
