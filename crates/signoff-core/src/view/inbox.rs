//! Decides what needs a person, and what the person can do about it. Every user interface renders this.

mod attention;
mod dependencies;
mod needs;
mod next_step;
mod result;
mod runs;

use std::collections::{BTreeMap, BTreeSet};

pub use attention::{Attention, InboxHints, RowHint};
pub use dependencies::{
    TaskIndex, allows_dependents, blocking_task, blocks_dependents, can_begin, is_under_way, mark_blocked,
};
pub use needs::{LoopNeeds, RunNeeds, end_is_news};
pub use next_step::{Action, BlockingTask, NextStep};
pub use result::{EndKind, InvocationScope, InvocationSummary, ReviewEnd, TaskResult, WorkedRuns};
pub use runs::{RunBlock, RunEnd};

use super::{LoopRow, RunRow, TaskRow, TaskStatus};
use crate::ledger::FindingState;
use crate::machine::{FinalVerdict, OutcomeKind, Reason};
use crate::task::TaskType;

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
        is_interrupted(task, self.is_driven(task))
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
        // The entry of a run covers the tasks that its group blocks.
        let is_covered = |task: &TaskRow| task.status == TaskStatus::Blocked && snapshot.group_run_of(task).is_some();
        let needs_entry = |task: &&TaskRow| !is_covered(task) && !snapshot.resumes_by_itself(task);
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

/// Whether a task is in progress but no process is working on its run. `driven`: one is.
pub fn is_interrupted(task: &TaskRow, driven: bool) -> bool {
    task.status == TaskStatus::InProgress && !driven
}

/// Whether a task waits for a rate limit.
fn is_rate_limited(task: &TaskRow) -> bool {
    task.status == TaskStatus::Paused && task.reason == Some(Reason::RateLimited)
}

/// Whether a task is over and approved, so that its work may land.
pub fn may_land(task: &TaskRow) -> bool {
    task.status == TaskStatus::Completed && task.final_verdict == Some(FinalVerdict::Approved)
}

/// Whether a task is approved and lands when all of its group are.
pub fn waits_for_its_group(task: &TaskRow) -> bool {
    task.status != TaskStatus::Completed && task.state().is_approved()
}

/// Whether the task stopped and can resume.
pub fn can_be_retried(task: &TaskRow) -> bool {
    let stopped = task.status.is_failure() || task.outcome.is_some_and(OutcomeKind::needs_decision);
    task.run_id.is_some()
        && stopped
        && FinishedReview::for_task(task).is_none()
        && task.reason != Some(Reason::EditedByPerson)
}

/// A review task whose answer is final: a retry has nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishedReview {
    NothingToReview,
    /// It did not approve.
    NotApproved,
}

impl FinishedReview {
    pub fn for_task(task: &TaskRow) -> Option<Self> {
        let reason = task.reason.filter(|_| task.kind == TaskType::Review)?;
        let endings = [(Reason::NothingToReview, Self::NothingToReview), (Reason::GateFailed, Self::NotApproved)];
        endings.into_iter().find(|(known, _)| *known == reason).map(|(_, ending)| ending)
    }
}

/// Whether the task can still be cancelled.
pub fn can_be_cancelled(task: &TaskRow) -> bool {
    let is_settled = || !task.outcome.is_some_and(OutcomeKind::needs_decision);
    !(task.status == TaskStatus::Cancelled || task.status == TaskStatus::Completed && is_settled())
}

/// Whether a person can set the verdict, if no attempt writes to the worktree: the task has started.
pub fn can_be_edited(task: &TaskRow) -> bool {
    // Only a task that has started has a base.
    task.run_id.is_some() && task.base.is_some()
}

/// Whether a person can dispute a finding in this state: a later review could report it as open.
pub fn can_be_disputed(state: FindingState) -> bool {
    !state.is_settled()
}

/// What a person can do with a task, as far as its row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskActions {
    pub retry: bool,
    pub cancel: bool,
    pub edit: bool,
}

impl TaskActions {
    pub fn for_task(task: &TaskRow) -> Self {
        Self { retry: can_be_retried(task), cancel: can_be_cancelled(task), edit: can_be_edited(task) }
    }

    /// The same if it is known whether an attempt writes to the worktree. A verdict would judge unfinished work.
    pub fn for_loop(task: &TaskRow, is_being_written: bool) -> Self {
        let actions = Self::for_task(task);
        Self { edit: actions.edit && !is_being_written, ..actions }
    }
}

/// Why a task needs a person, most urgent first. Tasks with an open question are listed by their question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    Failed,
    Stuck,
    /// A limit was reached.
    Exhausted,
    Discussion,
    /// It ended without approval, or with nothing to approve.
    NotApproved,
    Blocked,
    Paused,
}

impl Urgency {
    /// None if the task needs no person, or is listed by its question.
    pub fn for_task(task: &TaskRow) -> Option<Self> {
        Self::new(task.status, task.outcome)
    }

    fn new(status: TaskStatus, outcome: Option<OutcomeKind>) -> Option<Self> {
        match status {
            TaskStatus::Failed => Some(Self::Failed),
            TaskStatus::Stuck => Some(Self::Stuck),
            TaskStatus::Completed => outcome.and_then(Self::for_outcome),
            TaskStatus::Blocked => Some(Self::Blocked),
            TaskStatus::Paused => Some(Self::Paused),
            TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Waiting | TaskStatus::Cancelled => None,
        }
    }

    /// The urgency of a loop, which may have no task.
    pub fn for_loop(row: &LoopRow) -> Option<Self> {
        Self::new(row.status, row.outcome)
    }

    /// The urgency of a completed task with this outcome.
    fn for_outcome(outcome: OutcomeKind) -> Option<Self> {
        match outcome {
            OutcomeKind::Exhausted => Some(Self::Exhausted),
            OutcomeKind::Discussion => Some(Self::Discussion),
            OutcomeKind::CompletedWithIssues | OutcomeKind::NothingToReview => Some(Self::NotApproved),
            OutcomeKind::Approved
            | OutcomeKind::Accepted
            | OutcomeKind::Failed
            | OutcomeKind::Stuck
            | OutcomeKind::Cancelled
            | OutcomeKind::Rejected => None,
        }
    }
}

/// Whether a task has ended and a person has to decide about it, because a retry would not help.
pub fn awaits_decision(task: &TaskRow) -> bool {
    match Urgency::for_task(task) {
        Some(Urgency::Failed | Urgency::Stuck) => task.is_refused_by_person(),
        Some(Urgency::Exhausted | Urgency::Discussion | Urgency::NotApproved) => true,
        Some(Urgency::Blocked | Urgency::Paused) | None => false,
    }
}
