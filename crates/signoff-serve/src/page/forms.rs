//! All forms: the actions on a task, each shown only if it applies; the answer to a question; a new task.

use maud::{Markup, html};
use signoff_core::machine::FinalVerdict;
use signoff_core::task::TaskType;
use signoff_core::view::inbox::TaskActions;
use signoff_core::view::{QuestionRow, TaskRow};
use signoff_term::fit::{capitalized, count, truncate_line};
use signoff_term::show::TaskReport;

use super::frame::{self, PageFrame, PageSubject};
use super::text;
use super::{AddPage, PageNotice, TypedFields};

/// All forms that apply now.
pub fn actions(report: &TaskReport, typed: Option<&TypedFields>) -> Markup {
    let (id, back) = (report.task.id, format!("/tasks/{}", report.task.id));
    let possible = TaskActions::for_loop(&report.task, report.is_being_written);
    html! {
        div.actions {
            @if possible.retry { (retry(id, &back)) }
            @if possible.edit { (edit(id, &back, typed)) }
            @if possible.cancel { (cancel(id, &back)) }
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
                p { "Stops its agents, keeps its branch." }
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
                        @for option in FinalVerdict::ALL.iter().map(|verdict| verdict.into_str()) { option value=(option) selected[verdict == Some(option)] { (option) } }
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

/// The form of a question; `back` is the page that shows it. The task is named if it is one of `tasks`.
pub fn question(question: &QuestionRow, tasks: &[TaskRow], back: &str) -> Markup {
    let id = format!("question-{}", text::segment(&question.id).replace('%', "."));
    let action = format!("/questions/{}/answer", text::segment(&question.id));
    let task = tasks.iter().find(|task| Some(task.id) == question.task_id);
    // Do not link a page to itself.
    let is_here = question.task_id.is_some_and(|task| back == format!("/tasks/{task}"));
    html! {
        form.question method="post" action=(action) {
            (frame::return_field(back))
            @if let Some(task) = task { (question_task(task)) }
            p #(id) {
                @if task.is_none() && !is_here { (subject_link(question)) " " }
                (text::line(&question.text))
            }
            p.choices {
                @for choice in &question.choices {
                    button name="choice" value=(choice) aria-describedby=(id) { (text::spaced(&capitalized(&truncate_line(choice, 40)))) }
                    " "
                }
            }
        }
    }
}

/// The task of the question, with its open findings.
fn question_task(task: &TaskRow) -> Markup {
    html! {
        p.about {
            a.title href={ "/tasks/" (task.id) } { span.id { "#" (task.id) } " " (text::line(&task.title)) }
            @if task.open_findings > 0 {
                " " a href={ "/tasks/" (task.id) "#t" (task.id) "-findings" } {
                    (count(u64::from(task.open_findings), "open finding"))
                }
            }
        }
    }
}

fn subject_link(question: &QuestionRow) -> Markup {
    html! {
        @match question.task_id {
            Some(task) => a href={ "/tasks/" (task) } { "#" (task) },
            None => a href={ "/runs/" (question.run_id) } { "run " (question.run_id) },
        }
    }
}

/// `/add`: the form for a new task.
pub fn add_page(page: &AddPage, notice: Option<&PageNotice>) -> String {
    let body = html! {
        h1 { "Add a task" }
        (add_form(page))
    };
    PageFrame::new("Add a task", &page.project, PageSubject::Static, body).with_notice(notice).into_string()
}

fn add_form(page: &AddPage) -> Markup {
    html! {
        form.sheet method="post" action="/tasks" {
            p {
                label for="text" { "Task description" }
                textarea #text name="text" rows="8" required dir="auto" aria-describedby="text-hint" { (page.text) }
                span.hint #text-hint { "The first line is its title." }
            }
            (task_type(page))
            p.check {
                input #auto_review name="auto_review" type="checkbox" value="true" checked[page.auto_review];
                label for="auto_review" { "Review it until it is approved" }
            }
            p {
                label for="max_cycles" { "Maximum number of reviews" }
                input #max_cycles name="max_cycles" type="number" min="1" inputmode="numeric" value=(page.max_cycles)
                    aria-describedby="max_cycles-hint";
                span.hint #max_cycles-hint { "Empty: the configured limit." }
            }
            p {
                label for="depends_on" { "Depends on tasks" }
                input #depends_on name="depends_on" type="text" autocomplete="off" value=(page.depends_on)
                    aria-describedby="depends_on-hint";
                span.hint #depends_on-hint { "Their numbers, with commas between: 12, 15." }
            }
            button.primary { "Add the task" }
        }
    }
}

/// The type field. It offers only types that need no other task.
fn task_type(page: &AddPage) -> Markup {
    let kinds = [(TaskType::Implement, "Implement it"), (TaskType::Plan, "Write a plan, no code")];
    html! {
        p {
            label for="type" { "Type" }
            select #type name="type" {
                @for (kind, kind_label) in kinds {
                    option value=(kind.into_str()) selected[page.kind == kind.into_str()] { (kind_label) }
                }
            }
        }
    }
}
