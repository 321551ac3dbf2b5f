//! Rows of reviews, review issues and findings.

use jiff::Timestamp;
use signoff_core::ids::{FindingId, LoopId, RunId, TaskId};
use signoff_core::ledger::FindingState;
use signoff_core::review::{Finding, IntentSatisfied, Review, Usage};

use super::Column;
use super::run::dollars;

/// One review.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReviewRecord {
    pub id: String,
    pub run: RunId,
    pub loop_id: LoopId,
    /// `None` for checkpoint reviews.
    pub task: Option<TaskId>,
    pub at: Timestamp,
    pub review: Box<Review>,
    pub usage: Usage,
    pub pass: u32,
    pub phase: String,
    pub cycle: u32,
}

impl ReviewRecord {
    pub fn columns(&self) -> Vec<Column> {
        let review = &self.review;
        let satisfied = match review.intent_satisfied {
            IntentSatisfied::Yes => Some(true),
            IntentSatisfied::No => Some(false),
            IntentSatisfied::Unstated => None,
        };
        vec![
            ("run_id", self.run.0.into()),
            ("loop_id", self.loop_id.as_str().into()),
            ("task_id", self.task.map(|task| task.0).into()),
            ("passed", review.verdict.approves().into()),
            ("interpreted_intent", review.interpreted_intent.as_deref().into()),
            ("intent_satisfied", satisfied.into()),
            ("reviewed_at", self.at.into()),
            ("cost_usd", dollars(self.usage).into()),
            ("cost_is_estimated", self.usage.cost_is_estimated.into()),
            ("reviewer", review.reviewer.as_str().into()),
            ("verdict", review.verdict.as_str().into()),
            ("pass", self.pass.into()),
            ("phase", self.phase.as_str().into()),
            ("cycle", self.cycle.into()),
            ("commit_id", review.judged.commit.as_ref().map(|commit| commit.as_str()).into()),
            ("summary", review.summary.as_str().into()),
        ]
    }
}

/// A finding as one review reported it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IssueRecord {
    pub id: String,
    pub run: RunId,
    pub loop_id: LoopId,
    pub review: String,
    pub task: Option<TaskId>,
    pub finding: Finding,
    /// Its ledger entry and the state of that entry.
    pub entry: Option<(FindingId, FindingState)>,
}

impl IssueRecord {
    pub fn columns(&self) -> Vec<Column> {
        let of_loop = !self.loop_id.is_run_level();
        let own = || Some(self.finding.id.as_str()).filter(|id| !id.is_empty());
        let id = self.entry.as_ref().map(|(id, _)| id.as_str()).or_else(own);
        let mut columns = vec![
            ("run_id", self.run.0.into()),
            ("loop_id", of_loop.then_some(self.loop_id.as_str()).into()),
            ("loop_review_id", of_loop.then_some(self.review.as_str()).into()),
            ("task_id", self.task.map(|task| task.0).into()),
            ("state", self.entry.as_ref().map(|(_, state)| state_name(*state)).into()),
            ("finding_id", id.into()),
        ];
        columns.extend(finding_columns(&self.finding));
        columns
    }
}

/// A ledger entry of a loop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FindingRecord {
    pub run: RunId,
    pub loop_id: LoopId,
    pub id: FindingId,
    pub task: Option<TaskId>,
    pub state: FindingState,
    pub finding: Finding,
}

impl FindingRecord {
    pub fn columns(&self) -> Vec<Column> {
        let mut columns =
            vec![("task_id", self.task.map(|task| task.0).into()), ("state", state_name(self.state).into())];
        columns.extend(finding_columns(&self.finding));
        columns
    }
}

/// The columns that issues and findings share.
fn finding_columns(finding: &Finding) -> [Column; 6] {
    [
        ("file", finding.file.as_deref().into()),
        ("line", finding.line.into()),
        ("type", finding.kind.as_str().into()),
        ("severity", finding.severity.as_str().into()),
        ("description", finding.description.as_str().into()),
        ("suggestion", finding.suggestion.as_deref().into()),
    ]
}

fn state_name(state: FindingState) -> &'static str {
    match state {
        FindingState::Open => "open",
        FindingState::Fixed => "fixed",
        FindingState::Refuted => "refuted",
        FindingState::Deferred => "deferred",
        FindingState::OutOfScope => "out_of_scope",
    }
}
