//! A question as displayed to a person.

use serde::Serialize;

use crate::ids::{QuestionId, ReviewerName, TaskId};
use crate::machine::{Choice, Loop, QuestionTopic, Reason, Stage};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuestionView {
    pub id: QuestionId,
    pub task_id: Option<TaskId>,
    pub text: String,
    pub choices: Vec<Choice>,
}

impl QuestionView {
    /// `id` is the number within the run; loops number their questions separately.
    pub fn for_loop(this: &Loop, id: QuestionId, task_id: Option<TaskId>) -> Option<Self> {
        let Stage::Waiting { question, .. } = &this.stage else { return None };
        let text = text(&question.about, this.review_number());
        Some(Self { id, task_id, text, choices: question.choices.clone() })
    }
}

fn text(about: &QuestionTopic, cycle: u32) -> String {
    match about {
        QuestionTopic::PartialReview { missing } => {
            format!("{} gave no usable review; the others did. Retry, proceed without, or stop?", names(missing))
        }
        QuestionTopic::UnclearReview { missing } => {
            format!("The answer of {} could not be understood. Retry, proceed without it, or stop?", names(missing))
        }
        QuestionTopic::NoReview { missing } => {
            format!("No review could be had from {}. Retry, skip the review, or stop?", names(missing))
        }
        QuestionTopic::Exhausted(reason) => {
            format!("{}. One more fix and review, proceed with the findings open, or stop?", bound(*reason, cycle))
        }
        QuestionTopic::FixerFailed => "The fixer failed. Retry or stop?".to_owned(),
        QuestionTopic::ImplementerFailed => "The implementer failed. Retry or stop?".to_owned(),
        QuestionTopic::Discussion { by } => {
            format!("{} wants to discuss the work. Have it fixed, proceed, or stop?", names(by))
        }
    }
}

fn names(reviewers: &[ReviewerName]) -> String {
    reviewers.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" and ")
}

fn bound(reason: Reason, cycle: u32) -> String {
    let descriptions = [
        (Reason::SameFinding, "The same finding keeps coming back"),
        (Reason::NoopFix, "The last fix changed nothing"),
        (Reason::FixerFailed, "The fixer kept failing"),
    ];
    match descriptions.into_iter().find(|(known, _)| *known == reason) {
        Some((_, text)) => text.to_owned(),
        None if cycle == 1 => "1 review did not lead to approval".to_owned(),
        None => format!("{cycle} reviews did not lead to approval"),
    }
}
