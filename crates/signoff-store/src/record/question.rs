//! Rows of the `questions` table.

use jiff::Timestamp;
use signoff_core::ids::{LoopId, QuestionId, RunId, TaskId};
use signoff_core::machine::Choice;

use super::Column;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QuestionRecord {
    /// The id that users see.
    pub id: u64,
    pub run: RunId,
    pub loop_id: LoopId,
    /// The number within the loop.
    pub number: QuestionId,
    pub task: Option<TaskId>,
    pub text: String,
    pub choices: Vec<Choice>,
    pub asked_at: Timestamp,
    pub closed_at: Option<Timestamp>,
    pub answer: Option<(Choice, String)>,
}

impl QuestionRecord {
    pub fn columns(&self) -> Vec<Column> {
        let choices: Vec<_> = self.choices.iter().map(|choice| choice.as_str()).collect();
        vec![
            ("run_id", self.run.0.into()),
            ("loop_id", self.loop_id.as_str().into()),
            ("number", self.number.0.into()),
            ("task_id", self.task.map(|task| task.0).into()),
            ("text", self.text.as_str().into()),
            ("choices", serde_json::json!(choices).to_string().into()),
            ("asked_at", self.asked_at.into()),
            ("closed_at", self.closed_at.into()),
            ("answer", self.answer.as_ref().map(|(choice, _)| choice.as_str()).into()),
            ("answered_by", self.answer.as_ref().map(|(_, by)| by.as_str()).into()),
        ]
    }
}
