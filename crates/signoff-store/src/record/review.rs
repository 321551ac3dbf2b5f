//! Reviews, what they found, and where each finding stands.

use jiff::Timestamp;
use signoff_core::ids::{FindingId, LoopId, RunId, TaskId};
use signoff_core::ledger::State;
use signoff_core::review::{Finding, IntentSatisfied, Review, Usage};

use super::Column;
use super::run::dollars;

/// One reviewer's answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReviewRecord {
    pub id: String,
    pub run: RunId,
    pub loop_id: LoopId,
    /// None for a checkpoint's.
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
            ("verdict", review.verdict.word().into()),
            ("pass", self.pass.into()),
            ("phase", self.phase.as_str().into()),
            ("cycle", self.cycle.into()),
            ("commit_id", review.judged.commit.as_ref().map(|commit| commit.as_str()).into()),
            ("summary", review.summary.as_str().into()),
        ]
    }
}

/// A finding as one review put it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IssueRecord {
    pub id: String,
    pub run: RunId,
    pub loop_id: LoopId,
    pub review: String,
    pub task: Option<TaskId>,
    pub finding: Finding,
    /// Where it went in the ledger, and how it stands there.
    pub entry: Option<(FindingId, State)>,
}

impl IssueRecord {
    pub fn columns(&self) -> Vec<Column> {
        let of_loop = !self.loop_id.serves_the_run();
        let own = || Some(self.finding.id.as_str()).filter(|id| !id.is_empty());
        let id = self.entry.as_ref().map(|(id, _)| id.as_str()).or_else(own);
        let mut columns = vec![
            ("run_id", self.run.0.into()),
            ("loop_id", of_loop.then_some(self.loop_id.as_str()).into()),
            ("loop_review_id", of_loop.then_some(self.review.as_str()).into()),
            ("task_id", self.task.map(|task| task.0).into()),
            ("state", self.entry.as_ref().map(|(_, state)| word(*state)).into()),
            ("finding_id", id.into()),
        ];
        columns.extend(said(&self.finding));
        columns
    }
}

/// A finding of a loop's ledger.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FindingRecord {
    pub run: RunId,
    pub loop_id: LoopId,
    pub id: FindingId,
    pub task: Option<TaskId>,
    pub state: State,
    pub finding: Finding,
}

impl FindingRecord {
    pub fn columns(&self) -> Vec<Column> {
        let mut columns =
            vec![("task_id", self.task.map(|task| task.0).into()), ("state", word(self.state).into())];
        columns.extend(said(&self.finding));
        columns
    }
}

/// What a finding says.
fn said(finding: &Finding) -> [Column; 6] {
    [
        ("file", finding.file.as_deref().into()),
        ("line", finding.line.into()),
        ("type", finding.kind.as_str().into()),
        ("severity", finding.severity.word().into()),
        ("description", finding.description.as_str().into()),
        ("suggestion", finding.suggestion.as_deref().into()),
    ]
}

fn word(state: State) -> &'static str {
    match state {
        State::Open => "open",
        State::Fixed => "fixed",
        State::Refuted => "refuted",
        State::Deferred => "deferred",
        State::OutOfScope => "out_of_scope",
    }
}
