//! Decides what needs a person, and what the person can do about it. Every user interface renders this.

mod action;
mod decisions;
mod need;
mod next_step;
mod runs;

use std::collections::{BTreeMap, BTreeSet};

pub use action::Action;
pub use decisions::{can_be_cancelled, can_be_edited, can_be_retried};
pub use need::{LoopNeeds, TaskResult, Urgency, ended_by_person};
pub use next_step::{NextStep, Unblock};
pub use runs::RunBlock;

use super::{RunRow, TaskRow, TaskStatus};
use crate::machine::Reason;

/// All tasks, the unfinished runs, and which runs have a running process.
#[derive(Debug, Clone, Copy)]
pub struct ProjectSnapshot<'a> {
    pub tasks: &'a [TaskRow],
    /// Runs that are not finished.
    pub runs: &'a [RunRow],
    /// Ids of the runs that a process is working on now.
    pub driven: &'a BTreeSet<u64>,
}

impl ProjectSnapshot<'_> {
    fn is_driven(&self, task: &TaskRow) -> bool {
        task.run_id.is_some_and(|run| self.driven.contains(&run))
    }

    /// Whether a task is in progress but no process is working on its run.
    pub fn is_interrupted(&self, task: &TaskRow) -> bool {
        task.status == TaskStatus::InProgress && !self.is_driven(task)
    }

    /// Whether a task waits for a rate limit and a running process will resume it.
    fn resumes_by_itself(&self, task: &TaskRow) -> bool {
        is_rate_limited(task) && self.is_driven(task)
    }

    /// The run of a task, if that run has groups.
    fn group_run_of(&self, task: &TaskRow) -> Option<&RunRow> {
        self.runs.iter().find(|run| run.has_groups() && task.run_id == Some(run.id))
    }

    /// The run to list instead of this interrupted task.
    pub fn interrupted_run_of(&self, task: &TaskRow) -> Option<&RunRow> {
        self.runs.iter().find(|run| self.lists_run(run) && task.run_id == Some(run.id))
    }

    /// Whether a person rejected a task of the run.
    fn has_rejected_task(&self, run: &RunRow) -> bool {
        self.tasks.iter().any(|task| task.run_id == Some(run.id) && task.is_refused_by_person())
    }

    /// Whether the entry of the run already covers this task.
    fn is_covered_by_run(&self, task: &TaskRow) -> bool {
        task.status == TaskStatus::Blocked && self.group_run_of(task).is_some()
    }
}

/// Tasks by section. Tasks that need no entry are in none of them.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxTasks<'a> {
    /// Tasks that need a person, most urgent first. Tasks with an open question are listed by their question.
    pub needs_attention: Vec<&'a TaskRow>,
    /// In progress, but no process is working on them.
    pub interrupted: Vec<&'a TaskRow>,
    pub running: Vec<&'a TaskRow>,
}

impl<'a> InboxTasks<'a> {
    pub fn new(snapshot: &ProjectSnapshot<'a>) -> Self {
        let tasks = snapshot.tasks;
        let latest = latest(tasks);
        // A person's decision about a task counts even if a later task continued its branch.
        let is_open = |task: &&TaskRow| {
            task.is_refused_by_person() || latest.get(&root(task)).is_none_or(|latest| *latest <= task.id)
        };
        let needs_entry = |task: &&TaskRow| !snapshot.is_covered_by_run(task) && !snapshot.resumes_by_itself(task);
        let urgent = tasks.iter().filter(is_open).filter(needs_entry);
        let mut attention: Vec<_> = urgent.filter_map(|task| Some((Urgency::for_task(task)?, task))).collect();
        attention.sort_by_key(|(urgency, task)| (*urgency, task.id));
        let taken_up = |task: &TaskRow| task.status == TaskStatus::InProgress && !snapshot.is_interrupted(task);
        let runs = |task: &&TaskRow| taken_up(task) || snapshot.resumes_by_itself(task);
        Self {
            needs_attention: attention.into_iter().map(|(_, task)| task).collect(),
            interrupted: tasks.iter().filter(|task| snapshot.is_interrupted(task)).collect(),
            running: tasks.iter().filter(runs).collect(),
        }
    }
}

/// Ids of the tasks that need a person, without those that a later task continues.
pub fn unsettled(tasks: &[TaskRow]) -> BTreeSet<u64> {
    let driven = BTreeSet::new();
    let sorted = InboxTasks::new(&ProjectSnapshot { tasks, runs: &[], driven: &driven });
    sorted.needs_attention.iter().map(|row| row.id).collect()
}

/// The task that this task continues, or itself.
fn root(task: &TaskRow) -> u64 {
    task.continues.unwrap_or(task.id)
}

/// The last task of each branch; it has the current result of the work.
fn latest(tasks: &[TaskRow]) -> BTreeMap<u64, u64> {
    let mut latest = BTreeMap::new();
    for task in tasks.iter().filter(|task| task.status != TaskStatus::Cancelled) {
        let last = latest.entry(root(task)).or_insert(task.id);
        *last = task.id.max(*last);
    }
    latest
}

/// Whether a task waits for a rate limit.
fn is_rate_limited(task: &TaskRow) -> bool {
    task.status == TaskStatus::Paused && task.reason == Some(Reason::RateLimited)
}

/// Whether `signoff work` would start the task now.
pub fn can_begin(task: &TaskRow, tasks: &[TaskRow]) -> bool {
    if task.status != TaskStatus::Pending {
        return false;
    }
    let is_complete = |row: &TaskRow| {
        row.status == TaskStatus::Completed && !row.outcome.is_some_and(|outcome| outcome.needs_decision())
    };
    // A run continues past cancelled tasks.
    let passed = |row: &TaskRow| task.run_id.is_some() && row.status == TaskStatus::Cancelled;
    let is_satisfied = |id: &u64| tasks.iter().any(|row| row.id == *id && (is_complete(row) || passed(row)));
    let held_up = |row: &TaskRow| {
        let busy = matches!(row.status, TaskStatus::Waiting | TaskStatus::InProgress | TaskStatus::Paused);
        row.run_id == task.run_id && busy
    };
    let in_turn = !task.is_plan_task() || !tasks.iter().any(held_up);
    in_turn && task.depends_on.iter().all(is_satisfied)
}
