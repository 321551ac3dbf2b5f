//! Rows of tasks, read and written. Three kinds of facts write to them: adding, assigning to a loop, and progress of the
//! loop.

use jiff::Timestamp;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::{FinalVerdict, OutcomeKind, Reason};
use signoff_core::review::Usage;
use signoff_core::task::{TaskType, TrackerRef};
use signoff_core::view::{LoopRow, TaskRow, TaskState, TaskStatus};

use super::read::to_u32;
use super::run::{dollars, non_empty};
use super::{Cell, CellReader, Column};
use crate::StoreError;

/// The columns of a task, in the order in which they are read.
pub(crate) const TASK_COLUMNS: [&str; 31] = [
    "id",
    "run_id",
    "title",
    "type",
    "status",
    "state",
    "outcome",
    "final_verdict",
    "reason",
    "auto_review",
    "review_cycle",
    "max_review_cycles",
    "branch",
    "approved_commit",
    "landed_commit",
    "run_commit",
    "base",
    "worktree",
    "phase",
    "iteration",
    "open_findings",
    "cost_usd",
    "cost_is_estimated",
    "input_tokens",
    "output_tokens",
    "depends_on",
    "continues",
    "tracker_id",
    "added_at",
    "started_at",
    "ended_at",
];

/// The columns that are set when a task is added.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskAdded {
    pub id: TaskId,
    /// The run whose log added it; `None` for the queue.
    pub run: Option<RunId>,
    pub title: String,
    pub kind: TaskType,
    pub auto_review: bool,
    pub max_review_cycles: Option<u32>,
    pub depends_on: Vec<TaskId>,
    pub continues: Option<TaskId>,
    pub tracked: Option<TrackerRef>,
    pub at: Timestamp,
}

impl TaskAdded {
    /// Its own columns, and the initial values of all others.
    pub fn columns(&self) -> Vec<Column> {
        let depends_on: Vec<_> = self.depends_on.iter().map(|task| task.0).collect();
        let mut columns = vec![
            ("run_id", self.run.map(|run| run.0).into()),
            ("loop_id", Cell::Null),
            ("branch", Cell::Null),
            ("title", self.title.as_str().into()),
            ("type", self.kind.as_str().into()),
            ("auto_review", self.auto_review.into()),
            ("max_review_cycles", self.max_review_cycles.into()),
            ("depends_on", serde_json::json!(depends_on).to_string().into()),
            ("continues", self.continues.map(|task| task.0).into()),
            ("tracker", self.tracked.as_ref().map(|tracked| tracked.tracker.as_str()).into()),
            ("tracker_id", self.tracked.as_ref().map(|tracked| tracked.id.as_str()).into()),
            ("added_at", self.at.into()),
        ];
        columns.extend(TaskProgress::initial(self.id).columns());
        columns
    }
}

/// The columns that are set when a loop starts a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskAssigned {
    pub id: TaskId,
    pub run: RunId,
    pub loop_id: LoopId,
    pub branch: String,
}

impl TaskAssigned {
    pub fn columns(&self) -> Vec<Column> {
        vec![
            ("run_id", self.run.0.into()),
            ("loop_id", self.loop_id.as_str().into()),
            ("branch", non_empty(&self.branch).into()),
        ]
    }
}

/// The columns that change while a task is worked on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskProgress {
    pub id: TaskId,
    pub status: TaskStatus,
    pub state: TaskState,
    pub outcome: Option<OutcomeKind>,
    pub final_verdict: Option<FinalVerdict>,
    pub reason: Option<Reason>,
    pub review_cycle: u32,
    /// The limit of its loop's gate; `None` keeps the value from when the task was added.
    pub max_review_cycles: Option<Option<u32>>,
    pub base: Option<String>,
    pub approved_commit: Option<String>,
    pub landed_commit: Option<String>,
    pub run_commit: Option<String>,
    pub worktree: String,
    pub phase: String,
    pub iteration: u32,
    pub open_findings: u32,
    pub usage: Usage,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

impl TaskProgress {
    /// The initial progress of a new task.
    pub fn initial(id: TaskId) -> Self {
        Self {
            id,
            status: TaskStatus::Pending,
            state: TaskState::Queued,
            outcome: None,
            final_verdict: None,
            reason: None,
            review_cycle: 0,
            max_review_cycles: None,
            base: None,
            approved_commit: None,
            landed_commit: None,
            run_commit: None,
            worktree: String::new(),
            phase: String::new(),
            iteration: 0,
            open_findings: 0,
            usage: Usage::default(),
            started_at: None,
            ended_at: None,
        }
    }

    /// The progress of the loop that works on the task.
    pub fn for_loop(id: TaskId, row: &LoopRow) -> Self {
        Self {
            status: row.status,
            state: row.state,
            outcome: row.outcome,
            final_verdict: row.final_verdict,
            reason: row.reason,
            review_cycle: row.cycle,
            max_review_cycles: Some(row.max_cycles),
            base: row.base.as_ref().map(|commit| commit.as_str().to_owned()),
            worktree: row.worktree.clone(),
            phase: row.phase.clone(),
            iteration: row.iteration,
            open_findings: u32::try_from(row.open_findings).unwrap_or(u32::MAX),
            usage: row.usage,
            ..Self::initial(id)
        }
    }

    pub fn columns(&self) -> Vec<Column> {
        let mut columns = vec![
            ("status", self.status.as_str().into()),
            ("state", self.state.as_str().into()),
            ("outcome", self.outcome.map(OutcomeKind::as_str).into()),
            ("final_verdict", self.final_verdict.map(FinalVerdict::as_str).into()),
            ("reason", self.reason.map(Reason::code).into()),
            ("review_cycle", self.review_cycle.into()),
            ("base", self.base.as_deref().into()),
            ("approved_commit", self.approved_commit.as_deref().into()),
            ("landed_commit", self.landed_commit.as_deref().into()),
            ("run_commit", self.run_commit.as_deref().into()),
            ("worktree", non_empty(&self.worktree).into()),
            ("phase", non_empty(&self.phase).into()),
            ("iteration", self.iteration.into()),
            ("open_findings", self.open_findings.into()),
            ("cost_usd", dollars(self.usage).into()),
            ("cost_is_estimated", self.usage.cost_is_estimated.into()),
            ("input_tokens", self.usage.input_tokens.into()),
            ("output_tokens", self.usage.output_tokens.into()),
            ("started_at", self.started_at.into()),
            ("ended_at", self.ended_at.into()),
        ];
        columns.extend(self.max_review_cycles.map(|most| ("max_review_cycles", most.into())));
        columns
    }
}

impl<F: FnMut() -> Result<Cell, StoreError>> CellReader<F> {
    pub fn task(mut self) -> Result<TaskRow, StoreError> {
        Ok(TaskRow {
            id: self.number()?,
            run_id: self.maybe_number()?,
            title: self.text()?,
            kind: self.keyword(TaskType::parse)?,
            status: self.keyword(TaskStatus::parse)?,
            state: self.keyword(TaskState::parse)?,
            outcome: self.maybe_keyword(OutcomeKind::parse)?,
            final_verdict: self.maybe_keyword(FinalVerdict::parse)?,
            reason: self.known_keyword(Reason::parse)?,
            auto_review: self.number()? != 0,
            review_cycle: self.small_number()?,
            max_review_cycles: self.maybe_number()?.map(to_u32).transpose()?,
            branch: self.maybe_text()?,
            approved_commit: self.maybe_text()?,
            landed_commit: self.maybe_text()?,
            run_commit: self.maybe_text()?,
            base: self.maybe_text()?,
            worktree: self.maybe_text()?,
            phase: self.maybe_text()?,
            iteration: self.small_number()?,
            open_findings: self.small_number()?,
            cost_usd: self.real()?,
            cost_is_estimated: self.number()? != 0,
            input_tokens: self.number()?,
            output_tokens: self.number()?,
            depends_on: self.list()?,
            continues: self.maybe_number()?,
            tracker_id: self.maybe_text()?,
            parent: None,
            added_at: self.text()?,
            started_at: self.maybe_text()?,
            ended_at: self.maybe_text()?,
            wait: None,
            progress: None,
        }
        .with_current_state())
    }
}
