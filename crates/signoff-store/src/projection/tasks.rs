//! Rows of tasks. Three kinds of facts write to them: adding, assigning to a loop, and progress of the loop.

use jiff::Timestamp;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::{Loop, OutcomeKind, Reason};
use signoff_core::view::{LoopRow, TaskRow, TaskState, TaskStatus, is_run_branch};
use signoff_core::wire::{QUEUE, TaskFact};

use super::rows::non_empty;
use super::{LoopTracker, Projector};
use crate::record::{Cell, Column, RowWrite, TableName, TableRow, task_progress};

fn write_row(id: TaskId, mode: RowWrite, columns: Vec<Column>) -> TableRow {
    TableRow { table: TableName::Tasks, mode, key: vec![id.0.into()], columns }
}

/// The row for a fact about a task, from the queue's log or a run's log.
pub(crate) fn task_row(run: RunId, at: Timestamp, id: TaskId, fact: &TaskFact) -> TableRow {
    let (spec, auto_review, max_review_cycles) = match fact {
        TaskFact::Added { spec, auto_review, max_review_cycles } => (spec, *auto_review, *max_review_cycles),
        TaskFact::Withdrawn { .. } => {
            let withdrawn = TaskRow {
                state: TaskState::Cancelled,
                outcome: Some(OutcomeKind::Cancelled),
                reason: Some(Reason::CancelledByPerson),
                ended_at: Some(at.to_string()),
                ..TaskRow::new(id.0, "", TaskStatus::Cancelled)
            };
            return write_row(id, RowWrite::Update, task_progress(&withdrawn));
        }
    };
    let depends_on: Vec<_> = spec.depends_on.iter().map(|task| task.0).collect();
    let tracked = spec.tracker.as_ref();
    let mut columns = vec![
        ("run_id", Some(run.0).filter(|_| run != QUEUE).into()),
        ("loop_id", Cell::Null),
        ("branch", Cell::Null),
        ("title", spec.title.as_str().into()),
        ("type", spec.kind.into_str().into()),
        ("auto_review", auto_review.into()),
        ("max_review_cycles", max_review_cycles.into()),
        ("depends_on", serde_json::json!(depends_on).to_string().into()),
        ("continues", spec.continues.map(|task| task.0).into()),
        ("tracker", tracked.map(|tracked| tracked.tracker.as_str()).into()),
        ("tracker_id", tracked.map(|tracked| tracked.id.as_str()).into()),
        ("added_at", at.into()),
    ];
    columns.extend(task_progress(&TaskRow::new(id.0, &spec.title, TaskStatus::Pending)));
    write_row(id, RowWrite::Insert, columns)
}

/// The columns that are set when a loop starts a task.
pub(super) fn assigned_row(run: RunId, loop_id: &LoopId, id: TaskId, branch: &str) -> TableRow {
    let columns =
        vec![("run_id", run.0.into()), ("loop_id", loop_id.as_str().into()), ("branch", non_empty(branch).into())];
    write_row(id, RowWrite::Update, columns)
}

impl Projector {
    /// The progress of the loop that works on the task.
    pub(super) fn progress_row(&self, id: TaskId, row: &LoopRow, tracker: &LoopTracker) -> TableRow {
        let state = self.run_state.loop_state(&row.id);
        let approved = state.and_then(Loop::approved_commit).map(|commit| commit.as_str().to_owned());
        let landed =
            self.run_state.loops.get(&row.id).and_then(|state| state.current_landing()).map(ToString::to_string);
        let on_run = self.run_state.lands_on_run(&row.id);
        let shared = approved.clone().filter(|_| is_run_branch(&row.branch));
        let progress = TaskRow {
            state: row.state,
            base: row.base.as_ref().map(|commit| commit.as_str().to_owned()),
            worktree: Some(row.worktree.clone()),
            landed_commit: landed.clone().filter(|_| !on_run),
            run_commit: landed.filter(|_| on_run).or(shared),
            approved_commit: approved,
            started_at: tracker.started_at.map(|at| at.to_string()),
            ended_at: tracker.ended_at.map(|at| at.to_string()),
            ..TaskRow::new(id.0, "", row.status).with_progress(row.clone())
        };
        let mut columns = task_progress(&progress);
        // The limit of the loop's gate.
        columns.push(("max_review_cycles", row.max_cycles.into()));
        write_row(id, RowWrite::Update, columns)
    }
}
