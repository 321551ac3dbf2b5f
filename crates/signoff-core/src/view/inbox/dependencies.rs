//! Which tasks wait for other tasks.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::OutcomeKind;
use crate::view::{TaskRow, TaskStatus};

/// Whether a task has started and has not ended. No other task may work on its branch.
pub fn is_under_way(task: &TaskRow) -> bool {
    matches!(task.status, TaskStatus::Waiting | TaskStatus::InProgress | TaskStatus::Paused)
}

/// Whether a task is done, so that other tasks can build on it.
pub fn allows_dependents(task: &TaskRow) -> bool {
    let allows = |outcome: OutcomeKind| outcome.is_approval() || outcome == OutcomeKind::CompletedWithIssues;
    task.status == TaskStatus::Completed && task.outcome.is_none_or(allows)
}

/// Whether a task is over, and other tasks cannot build on it.
pub fn blocks_dependents(task: &TaskRow) -> bool {
    task.status.is_over() && !allows_dependents(task)
}

/// Whether a task need not wait for this dependency. A run continues past cancelled tasks; a queued task does not.
fn is_met(task: &TaskRow, dependency: &TaskRow) -> bool {
    allows_dependents(dependency) || task.run_id.is_some() && dependency.status == TaskStatus::Cancelled
}

/// Tasks by their number.
#[derive(Debug, Clone)]
pub struct TaskIndex<'a>(BTreeMap<u64, &'a TaskRow>);

impl<'a> TaskIndex<'a> {
    pub fn new(tasks: &'a [TaskRow]) -> Self {
        Self(tasks.iter().map(|task| (task.id, task)).collect())
    }

    /// The tasks that a pending task waits for. Unknown tasks are not among them.
    pub fn unmet_dependencies(&self, task: &TaskRow) -> Vec<u64> {
        if task.status != TaskStatus::Pending {
            return Vec::new();
        }
        let known = task.depends_on.iter().filter_map(|id| self.0.get(id));
        known.filter(|dependency| !is_met(task, dependency)).map(|dependency| dependency.id).collect()
    }
}

/// Whether `signoff work` would start the task now.
pub fn can_begin(task: &TaskRow, tasks: &[TaskRow]) -> bool {
    if task.status != TaskStatus::Pending {
        return false;
    }
    let is_satisfied = |id: &u64| tasks.iter().any(|row| row.id == *id && is_met(task, row));
    let held_up = |row: &TaskRow| row.run_id == task.run_id && is_under_way(row);
    let in_turn = !task.is_plan_task() || !tasks.iter().any(held_up);
    in_turn && task.depends_on.iter().all(is_satisfied)
}

/// Sets the status of pending tasks that cannot start until a person acts: they depend on a task that did not pass, or
/// their run is blocked. Tasks depend only on earlier tasks, which are before them in `tasks`.
pub fn mark_blocked(tasks: &mut [TaskRow], blocked_runs: &BTreeSet<u64>) {
    let blocking = |row: &&TaskRow| blocks_dependents(row);
    // The value is whether a run continues past the task.
    let mut blocking: BTreeMap<u64, bool> =
        tasks.iter().filter(blocking).map(|row| (row.id, row.status == TaskStatus::Cancelled)).collect();
    for row in tasks.iter_mut().filter(|row| row.status == TaskStatus::Pending) {
        let stops = |id: &u64| blocking.get(id).is_some_and(|is_cancelled| !is_cancelled || row.run_id.is_none());
        if row.depends_on.iter().any(stops) || row.run_id.is_some_and(|run| blocked_runs.contains(&run)) {
            row.status = TaskStatus::Blocked;
            blocking.insert(row.id, false);
        }
    }
}

/// The task that keeps a blocked task from starting: the first one in its chain of dependencies that did not pass. It
/// is the task itself if its run is blocked.
pub fn blocking_task<'a>(blocked: &'a TaskRow, tasks: &'a [TaskRow]) -> &'a TaskRow {
    let mut task = blocked;
    let blocks = |row: &TaskRow| row.status == TaskStatus::Blocked || blocks_dependents(row);
    while let Some(next) = tasks.iter().find(|row| task.depends_on.contains(&row.id) && blocks(row)) {
        task = next;
        if task.status != TaskStatus::Blocked {
            break;
        }
    }
    task
}
