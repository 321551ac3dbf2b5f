//! How tasks stand by what the logs alone do not tell: who works on them, and what came after them.

use std::collections::{BTreeMap, BTreeSet};

use signoff_core::ids::{RunId, TaskId};
use signoff_core::view::{Status, TaskRow};

use crate::attention::{self, Scene, Sorted};

/// What `signoff` alone would say about all tasks, for a screen that must not say anything else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standings {
    /// The runs in which something is left to do, and that no program works on now.
    pub left: BTreeSet<RunId>,
    /// What to type about each task that needs somebody.
    needs: BTreeMap<TaskId, String>,
    /// Tasks that look as if they needed somebody, and do not.
    settled: BTreeSet<TaskId>,
}

impl Standings {
    pub fn of(scene: &Scene<'_>, left_runs: BTreeSet<RunId>) -> Self {
        let Sorted { troubled, left, .. } = Sorted::of(scene);
        let needing = troubled.into_iter().chain(left);
        let needs: BTreeMap<_, _> =
            needing.map(|task| (TaskId(task.id), attention::next(task, scene))).collect();
        // Only what has stopped can be settled: what is at work may need somebody before this is told anew.
        let stopped = scene.tasks.iter().filter(|task| has_stopped(task)).map(|task| TaskId(task.id));
        let settled = stopped.filter(|task| !needs.contains_key(task)).collect();
        Self { left: left_runs, needs, settled }
    }

    /// What to type about a task, if it needs somebody.
    pub fn next(&self, task: Option<TaskId>) -> Option<&str> {
        self.needs.get(&task?).map(String::as_str)
    }

    pub fn is_settled(&self, task: Option<TaskId>) -> bool {
        task.is_some_and(|task| self.settled.contains(&task))
    }
}

fn has_stopped(task: &TaskRow) -> bool {
    match task.status {
        Status::Paused | Status::Completed | Status::Failed | Status::Stuck | Status::Cancelled => true,
        Status::Pending | Status::InProgress | Status::Waiting | Status::Blocked => false,
    }
}
