//! Rows of runs, loops and questions.

use jiff::Timestamp;
use signoff_core::ids::{LoopId, QuestionId, RunId, TaskId};
use signoff_core::machine::{Choice, OutcomeKind, Reason};
use signoff_core::review::Usage;
use signoff_core::view::RunStatus;

use super::Column;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunRecord {
    pub id: RunId,
    pub preset: String,
    pub status: RunStatus,
    /// Whether the run has work left.
    pub open: bool,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub usage: Usage,
    pub stage: &'static str,
    pub group: Option<u64>,
    pub groups: Option<u64>,
    pub branch: Option<String>,
    pub specification: Option<String>,
}

impl RunRecord {
    pub fn columns(&self) -> Vec<Column> {
        vec![
            ("preset", self.preset.as_str().into()),
            ("status", self.status.as_str().into()),
            ("open", self.open.into()),
            ("started_at", self.started_at.into()),
            ("ended_at", self.ended_at.into()),
            ("cost_usd", dollars(self.usage).into()),
            ("cost_is_estimated", self.usage.cost_is_estimated.into()),
            ("input_tokens", self.usage.input_tokens.into()),
            ("output_tokens", self.usage.output_tokens.into()),
            ("stage", self.stage.into()),
            ("group_number", self.group.into()),
            ("group_count", self.groups.into()),
            ("branch", self.branch.as_deref().into()),
            ("specification", self.specification.as_deref().into()),
        ]
    }
}

/// The cost in dollars.
pub(crate) fn dollars(usage: Usage) -> f64 {
    usage.cost_micro_usd as f64 / 1_000_000.0
}

/// The text, or `None` if it is empty.
pub(crate) fn non_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoopRecord {
    pub run: RunId,
    pub id: LoopId,
    pub task: Option<TaskId>,
    pub status: &'static str,
    pub review_status: &'static str,
    pub last_review: Option<String>,
    pub title: String,
    pub branch: String,
    pub worktree: String,
    pub phase: String,
    pub pass: u32,
    pub cycle: u32,
    pub iteration: u32,
    pub last_checkpoint: u32,
    pub fixes: u32,
    pub head: String,
    pub outcome: Option<OutcomeKind>,
    pub reason: Option<Reason>,
    pub usage: Usage,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

impl LoopRecord {
    pub fn columns(&self) -> Vec<Column> {
        vec![
            ("task_id", self.task.map(|task| task.0).into()),
            ("status", self.status.into()),
            ("iteration", self.iteration.into()),
            ("last_checkpoint_review_at", self.last_checkpoint.into()),
            ("review_status", self.review_status.into()),
            ("last_review_id", self.last_review.as_deref().into()),
            ("revision_attempts", self.fixes.into()),
            ("worktree_path", non_empty(&self.worktree).into()),
            ("title", self.title.as_str().into()),
            ("branch", non_empty(&self.branch).into()),
            ("phase", self.phase.as_str().into()),
            ("pass", self.pass.into()),
            ("cycle", self.cycle.into()),
            ("head_commit", non_empty(&self.head).into()),
            ("outcome", self.outcome.map(OutcomeKind::as_str).into()),
            ("reason", self.reason.map(Reason::code).into()),
            ("cost_usd", dollars(self.usage).into()),
            ("cost_is_estimated", self.usage.cost_is_estimated.into()),
            ("started_at", self.started_at.into()),
            ("ended_at", self.ended_at.into()),
        ]
    }
}

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
