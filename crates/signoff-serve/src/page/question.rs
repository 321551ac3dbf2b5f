//! Questions to the user, with a button for each answer.

use maud::{Markup, html};
use signoff_core::view::{QuestionRow, TaskRow};
use signoff_term::fit::{count, cut};

use super::{frame, text};

/// The form of a question; `back` is the page that shows it. The task is named if it is one of `tasks`.
pub fn form(question: &QuestionRow, tasks: &[TaskRow], back: &str) -> Markup {
    let id = format!("question-{}", text::segment(&question.id).replace('%', "."));
    let action = format!("/questions/{}/answer", text::segment(&question.id));
    let about = tasks.iter().find(|task| Some(task.id) == question.task_id);
    // Do not link a page to itself.
    let is_here = question.task_id.is_some_and(|task| back == format!("/tasks/{task}"));
    html! {
        form.question method="post" action=(action) {
            (frame::return_field(back))
            @if let Some(task) = about { (subject(task)) }
            p #(id) {
                @if about.is_none() && !is_here { (subject_link(question)) " " }
                (text::line(&question.text))
            }
            p.choices {
                @for choice in &question.choices {
                    button name="choice" value=(choice) aria-describedby=(id) { (choice_label(choice)) }
                    " "
                }
            }
        }
    }
}

/// The task of the question, with its open findings.
fn subject(task: &TaskRow) -> Markup {
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

/// `Retry`.
fn choice_label(choice: &str) -> String {
    let choice = cut(choice, 40);
    let mut chars = choice.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    text::spaced(&first.chain(chars).collect::<String>())
}
