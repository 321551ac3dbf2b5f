//! Information about tasks that is not in their logs: which runs are interrupted, and which tasks need a person.

use std::collections::{BTreeMap, BTreeSet};

use signoff_core::ids::{RunId, TaskId};
use signoff_core::view::inbox::{InboxTasks, NextStep, ProjectSnapshot};
use signoff_core::view::{TaskRow, TaskStatus};

/// The content of the inbox (`signoff` without a command), so that the UI shows the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InboxHints {
    /// Unfinished runs that no process is working on.
    pub interrupted: BTreeSet<RunId>,
    /// The command to type next, for each task that needs a person.
    next_commands: BTreeMap<TaskId, String>,
    /// Stopped tasks that need no person.
    settled: BTreeSet<TaskId>,
}

impl InboxHints {
    pub fn new(snapshot: &ProjectSnapshot<'_>, interrupted: BTreeSet<RunId>) -> Self {
        let InboxTasks { needs_attention: troubled, interrupted: left, .. } = InboxTasks::new(snapshot);
        let needing = troubled.into_iter().chain(left);
        let needs: BTreeMap<_, _> =
            needing.map(|task| (TaskId(task.id), NextStep::for_task(task, snapshot).to_string())).collect();
        // Only stopped tasks can be settled: an active task may need a person before the next update.
        let stopped = snapshot.tasks.iter().filter(|task| has_stopped(task)).map(|task| TaskId(task.id));
        let settled = stopped.filter(|task| !needs.contains_key(task)).collect();
        Self { interrupted, next_commands: needs, settled }
    }

    /// The command to type next, if the task needs a person.
    pub fn next_command(&self, task: Option<TaskId>) -> Option<&str> {
        self.next_commands.get(&task?).map(String::as_str)
    }

    pub fn is_settled(&self, task: Option<TaskId>) -> bool {
        task.is_some_and(|task| self.settled.contains(&task))
    }
}

fn has_stopped(task: &TaskRow) -> bool {
    match task.status {
        TaskStatus::Paused | TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Stuck | TaskStatus::Cancelled => {
            true
        }
        TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Waiting | TaskStatus::Blocked => false,
    }
}
