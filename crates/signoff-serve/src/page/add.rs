//! The page with the form for a new task.

use maud::{Markup, html};
use signoff_core::task::TaskType;

use super::frame::{PageFrame, PageSubject};
use super::values::{AddPage, PageNotice};

pub fn page(page: &AddPage, notice: Option<&PageNotice>) -> String {
    let body = html! {
        h1 { "Add a task" }
        (form(page))
    };
    PageFrame {
        title: "Add a task",
        project: &page.project,
        subject: PageSubject::Static,
        notice,
        attention_count: None,
        body,
    }
    .into_string()
}

fn form(page: &AddPage) -> Markup {
    html! {
        form.sheet method="post" action="/tasks" {
            p {
                label for="text" { "What is to be done" }
                textarea #text name="text" rows="8" required dir="auto" aria-describedby="text-hint" { (page.text) }
                span.hint #text-hint { "The first line is its title." }
            }
            (kind(page))
            p.check {
                input #auto_review name="auto_review" type="checkbox" value="true" checked[page.auto_review];
                label for="auto_review" { "Review it until it is approved" }
            }
            p {
                label for="max_cycles" { "Reviews at most" }
                input #max_cycles name="max_cycles" type="number" min="1" inputmode="numeric" value=(page.max_cycles)
                    aria-describedby="max_cycles-hint";
                span.hint #max_cycles-hint { "Empty: the configured limit." }
            }
            p {
                label for="depends_on" { "After the tasks" }
                input #depends_on name="depends_on" type="text" autocomplete="off" value=(page.depends_on)
                    aria-describedby="depends_on-hint";
                span.hint #depends_on-hint { "Their numbers, with commas between: 12, 15." }
            }
            button.primary { "Add the task" }
        }
    }
}

/// The type field. It offers only types that need no other task.
fn kind(page: &AddPage) -> Markup {
    let kinds = [(TaskType::Implement, "Implement it"), (TaskType::Plan, "Write a plan, no code")];
    html! {
        p {
            label for="type" { "Type" }
            select #type name="type" {
                @for (kind, kind_label) in kinds {
                    option value=(kind.as_str()) selected[page.kind == kind.as_str()] { (kind_label) }
                }
            }
        }
    }
}
