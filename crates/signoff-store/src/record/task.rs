//! Rows of tasks. Three kinds of facts write to them: adding, assigning to a loop, and progress of the loop.

use jiff::Timestamp;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::review::Usage;
use signoff_core::task::{TaskType, TrackerRef};
use signoff_core::view::{TaskState, TaskStatus};

use super::run::{dollars, non_empty};
use super::{Cell, Column};

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
    pub outcome: Option<&'static str>,
    pub final_verdict: Option<&'static str>,
    pub reason: Option<String>,
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

    pub fn columns(&self) -> Vec<Column> {
        let mut columns = vec![
            ("status", self.status.as_str().into()),
            ("state", self.state.as_str().into()),
            ("outcome", self.outcome.into()),
            ("final_verdict", self.final_verdict.into()),
            ("reason", self.reason.as_deref().into()),
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
