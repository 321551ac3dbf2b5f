//! How tasks, runs and whole invocations count for the exit code.

use std::collections::{BTreeMap, BTreeSet};

use super::unsettled;
use crate::group::{RunOutcome, RunStage};
use crate::ids::{RunId, TaskId};
use crate::machine::{Loop, OutcomeKind, Reason, Stage};
use crate::view::{QuestionRow, RunState, TaskRow, TaskState, TaskStatus};

/// How a task counts for the exit code. `Ord` goes from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskResult {
    /// Approved, or done where review was turned off.
    Done,
    /// A person is needed, or the work is unfinished.
    Attention,
    /// It failed, is stuck, or waits for a task that did not pass.
    Failed,
}

impl TaskResult {
    pub fn for_task(task: &TaskRow) -> Self {
        // Failed work never counts as done, whatever the status is.
        let failed = task.outcome.is_some_and(OutcomeKind::is_failure) || task.status == TaskStatus::Stuck;
        let state = task.state();
        if failed || matches!(state, TaskState::Failed | TaskState::Blocked) {
            Self::Failed
        } else if state.is_approved() || matches!(state, TaskState::Unreviewed | TaskState::Cancelled) {
            Self::Done
        } else {
            Self::Attention
        }
    }
}

/// What the end of a task says in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndKind {
    Approved,
    NotApproved,
    /// It failed, is stuck, or was cancelled.
    Broken,
}

impl EndKind {
    /// None if the task has not ended.
    pub fn for_task(task: &TaskRow) -> Option<Self> {
        match task.status {
            TaskStatus::Completed if task.outcome.is_some_and(OutcomeKind::is_approval) => Some(Self::Approved),
            TaskStatus::Completed => Some(Self::NotApproved),
            TaskStatus::Failed | TaskStatus::Stuck | TaskStatus::Cancelled => Some(Self::Broken),
            TaskStatus::Pending
            | TaskStatus::InProgress
            | TaskStatus::Waiting
            | TaskStatus::Paused
            | TaskStatus::Blocked => None,
        }
    }

    pub fn for_outcome(outcome: OutcomeKind) -> Self {
        match outcome {
            OutcomeKind::Approved | OutcomeKind::Accepted => Self::Approved,
            OutcomeKind::Failed | OutcomeKind::Stuck | OutcomeKind::Cancelled => Self::Broken,
            OutcomeKind::CompletedWithIssues
            | OutcomeKind::Exhausted
            | OutcomeKind::Discussion
            | OutcomeKind::NothingToReview
            | OutcomeKind::Rejected => Self::NotApproved,
        }
    }
}

/// How a review of existing work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewEnd {
    Approved,
    NotApproved,
    /// Not every reviewer gave a usable review.
    Inconclusive,
    NothingToReview,
}

impl ReviewEnd {
    pub fn for_loop(machine: &Loop) -> Self {
        let Stage::Done(ending) = &machine.stage else { return Self::NotApproved };
        match (ending.outcome.kind(), ending.reason) {
            (Some(OutcomeKind::Approved), _) => Self::Approved,
            (Some(OutcomeKind::NothingToReview), _) => Self::NothingToReview,
            (_, Some(Reason::UnclearReview | Reason::ReviewerFailed)) => Self::Inconclusive,
            (_, _) => Self::NotApproved,
        }
    }
}

impl TaskRow {
    /// Whether it has ended without the result that was wanted.
    pub fn ended_without_result(&self) -> bool {
        self.status.is_over() && TaskResult::for_task(self) != TaskResult::Done
    }
}

/// The tasks and questions of an invocation, and the flags it was called with.
#[derive(Debug, Clone, Copy)]
pub struct InvocationSummary<'a> {
    /// Only the tasks of this invocation, not all tasks of the repository.
    pub tasks: &'a [TaskRow],
    pub questions: &'a [QuestionRow],
    /// The last stage of the run, if there was one.
    pub run: Option<&'a RunStage>,
    pub no_ask: bool,
    pub interrupted: bool,
}

impl InvocationSummary<'_> {
    pub fn result(&self) -> TaskResult {
        let tasks = self.tasks.iter().map(|task| self.own_task_result(task)).max().unwrap_or(TaskResult::Done);
        // With `--no-ask` an open question has stopped the work.
        let asked = match (self.questions.is_empty(), self.no_ask) {
            (true, _) => TaskResult::Done,
            (false, false) => TaskResult::Attention,
            (false, true) => TaskResult::Failed,
        };
        tasks.max(asked).max(self.run.map_or(TaskResult::Done, |stage| self.run_result(stage)))
    }

    /// The result of one task. A blocked task has the result of the tasks that block it.
    fn own_task_result(&self, task: &TaskRow) -> TaskResult {
        if task.state() != TaskState::Blocked {
            return TaskResult::for_task(task);
        }
        let in_run = |other: &TaskRow| other.run_id == task.run_id && task.run_id.is_some();
        self.worst_blocker(|other| in_run(other) || task.depends_on.contains(&other.id))
    }

    /// The worst result of the blocking tasks; `Failed` if none of them is known.
    fn worst_blocker(&self, is_blocker: impl Fn(&TaskRow) -> bool) -> TaskResult {
        let ends = self.tasks.iter().filter(|task| task.state() != TaskState::Blocked && is_blocker(task));
        ends.map(TaskResult::for_task).max().filter(|end| *end != TaskResult::Done).unwrap_or(TaskResult::Failed)
    }

    fn run_result(&self, stage: &RunStage) -> TaskResult {
        match stage {
            RunStage::Blocked { .. } => self.worst_blocker(|_| true),
            RunStage::Done(RunOutcome::Failed) => TaskResult::Failed,
            RunStage::Done(RunOutcome::Attention) if self.tasks.iter().all(|task| task.state().is_approved()) => {
                TaskResult::Attention
            }
            // Each task that is not approved counts by itself.
            RunStage::Done(RunOutcome::Attention | RunOutcome::Approved | RunOutcome::Cancelled)
            | RunStage::Queued
            | RunStage::Preparing
            | RunStage::Working { .. }
            | RunStage::Reviewing
            | RunStage::Landing(_) => TaskResult::Done,
        }
    }
}

/// The tasks that an invocation is about.
#[derive(Debug, Clone, Copy)]
pub enum InvocationScope<'a> {
    Tasks(&'a [TaskId]),
    Runs(&'a BTreeSet<u64>),
    Everything,
}

impl<'a> InvocationScope<'a> {
    /// The named tasks, or everything if none is named.
    pub fn named(tasks: &'a [TaskId]) -> Self {
        if tasks.is_empty() { Self::Everything } else { Self::Tasks(tasks) }
    }

    /// The tasks that count for the exit code: named tasks, those in `changed`, and in the scope those that are
    /// unfinished or need a person.
    pub fn counted(self, tasks: &[TaskRow], changed: &BTreeSet<TaskId>) -> Vec<TaskRow> {
        let unsettled = unsettled(tasks);
        let is_open = |task: &TaskRow| !task.status.is_over() || unsettled.contains(&task.id);
        let selected = |task: &TaskRow| match self {
            Self::Tasks(named) => named.contains(&TaskId(task.id)),
            Self::Runs(runs) => task.run_id.is_some_and(|run| runs.contains(&run)) && is_open(task),
            Self::Everything => is_open(task),
        };
        let counts = |task: &&TaskRow| changed.contains(&TaskId(task.id)) || selected(task);
        tasks.iter().filter(counts).cloned().collect()
    }
}

/// The runs that a process worked on, and the tasks that it changed.
#[derive(Debug, Clone, Copy)]
pub struct WorkedRuns<'a> {
    pub runs: &'a BTreeMap<RunId, RunState>,
    pub changed: &'a BTreeSet<TaskId>,
}

impl<'a> WorkedRuns<'a> {
    /// The stage of a stopped run that counts for the exit code. `tasks` are those that count. A run that was already
    /// blocked does not count, nor does one that is stopped by a task of `others` that did not change.
    pub fn stopped_stage(&self, tasks: &[TaskRow], others: &[TaskRow]) -> Option<&'a RunStage> {
        let has_changed = |row: &TaskRow| self.changed.contains(&TaskId(row.id));
        let counts = |run: RunId| {
            let of_run = |row: &&TaskRow| row.run_id == Some(run.0);
            let moved = tasks.iter().filter(of_run).any(has_changed);
            self.changed.is_empty()
                || moved && !others.iter().filter(of_run).any(|row| !has_changed(row) && row.ended_without_result())
        };
        let states: Vec<&RunState> =
            self.runs.iter().filter(|(run, _)| counts(**run)).map(|(_, state)| state).collect();
        let has_stopped =
            |stage: &RunStage| matches!(stage, RunStage::Blocked { .. } | RunStage::Done(RunOutcome::Failed));
        let lacks_approval = |state: &RunState| {
            matches!(state.stage(), RunStage::Done(RunOutcome::Attention)) && state.lacks_final_approval()
        };
        let stopped = states.iter().find(|state| has_stopped(state.stage()));
        stopped.or_else(|| states.iter().find(|state| lacks_approval(state))).map(|state| state.stage())
    }
}
