//! What people are asked, with a button for each answer.

use maud::{Markup, html};
use signoff_core::view::QuestionRow;
use signoff_term::fit::cut;

use super::{frame, text};

/// A question; `back` is the page it stands on.
pub fn asked(question: &QuestionRow, back: &str) -> Markup {
    let id = format!("question-{}", text::segment(&question.id).replace('%', "."));
    let action = format!("/questions/{}/answer", text::segment(&question.id));
    html! {
        form.question method="post" action=(action) {
            (frame::back(back))
            p #(id) {
                @match question.task_id {
                    Some(task) => a href={ "/tasks/" (task) } { "#" (task) },
                    None => a href={ "/runs/" (question.run_id) } { "run " (question.run_id) },
                }
                " " (text::line(&question.text))
            }
            p.choices {
                @for choice in &question.choices {
                    button name="choice" value=(choice) aria-describedby=(id) { (said(choice)) }
                    " "
                }
            }
        }
    }
}

/// `Retry`.
fn said(choice: &str) -> String {
    let choice = cut(choice, 40);
    let mut chars = choice.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    text::spaced(&first.chain(chars).collect::<String>())
}
