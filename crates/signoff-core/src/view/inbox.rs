//! Decides what needs a person, and what the person can do about it. Every user interface renders this.

mod next_step;

use std::collections::{BTreeMap, BTreeSet};

pub use next_step::{Action, BlockingTask, NextStep};

use super::{RunRow, RunState, RunStatus, TaskRow, TaskState, TaskStatus};
use crate::ids::{LoopId, QuestionId};
use crate::machine::{FinalVerdict, Loop, OutcomeKind, Reason, Stage};
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

/// Whether a task waits for a rate limit.
fn is_rate_limited(task: &TaskRow) -> bool {
    task.status == TaskStatus::Paused && task.reason == Some(Reason::RateLimited)
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

/// Whether a task is over and approved, so that its work may land.
pub fn may_land(task: &TaskRow) -> bool {
    task.status == TaskStatus::Completed && task.final_verdict == Some(FinalVerdict::Approved)
}

/// Whether `signoff work` would start the task now.
pub fn can_begin(task: &TaskRow, tasks: &[TaskRow]) -> bool {
    if task.status != TaskStatus::Pending {
        return false;
    }
    // A run continues past cancelled tasks.
    let passed = |row: &TaskRow| task.run_id.is_some() && row.status == TaskStatus::Cancelled;
    let is_satisfied = |id: &u64| tasks.iter().any(|row| row.id == *id && (allows_dependents(row) || passed(row)));
    let held_up = |row: &TaskRow| {
        let busy = matches!(row.status, TaskStatus::Waiting | TaskStatus::InProgress | TaskStatus::Paused);
        row.run_id == task.run_id && busy
    };
    let in_turn = !task.is_plan_task() || !tasks.iter().any(held_up);
    in_turn && task.depends_on.iter().all(is_satisfied)
}

/// Whether the task stopped and can resume.
pub fn can_be_retried(task: &TaskRow) -> bool {
    let stopped = matches!(task.status, TaskStatus::Failed | TaskStatus::Stuck)
        || task.outcome.is_some_and(OutcomeKind::needs_decision);
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

/// Whether a person can set the verdict, if no attempt writes to the worktree: a run has started the task.
pub fn can_be_edited(task: &TaskRow) -> bool {
    task.run_id.is_some() && !matches!(task.status, TaskStatus::Pending | TaskStatus::Cancelled)
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
        match task.status {
            TaskStatus::Failed => Some(Self::Failed),
            TaskStatus::Stuck => Some(Self::Stuck),
            TaskStatus::Completed => task.outcome.and_then(Self::for_outcome),
            TaskStatus::Blocked => Some(Self::Blocked),
            TaskStatus::Paused => Some(Self::Paused),
            TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Waiting | TaskStatus::Cancelled => None,
        }
    }

    /// The urgency of a completed task with this outcome.
    pub fn for_outcome(outcome: OutcomeKind) -> Option<Self> {
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

impl RunState {
    /// Whether the final review ended, or is under way, without an approval. That needs a person even if every task
    /// is approved.
    pub fn lacks_final_approval(&self) -> bool {
        self.loop_state(&LoopId::final_review()).is_some_and(|whole| whole.approved_commit().is_none())
    }
}

/// What a loop needs from a person, for notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoopNeeds {
    pub question: Option<QuestionId>,
    /// It failed or is stuck, and no person ended it.
    pub stuck: bool,
    pub over_budget: bool,
}

impl LoopNeeds {
    pub fn for_loop(machine: Option<&Loop>) -> Self {
        let Some(machine) = machine else { return Self::default() };
        let stuck =
            matches!(&machine.stage, Stage::Done(ending) if ending.outcome.is_failure()) && !ended_by_person(machine);
        Self { question: machine.open_question(), stuck, over_budget: machine.pause_cause() == Some(Reason::Budget) }
    }
}

/// Whether a person ended the loop. That person needs no notification.
pub fn ended_by_person(machine: &Loop) -> bool {
    matches!(&machine.stage, Stage::Done(ending) if ending.reason.is_some_and(Reason::is_by_person))
}

/// The preset of slot runs.
const SLOTS: &str = "slots";

impl RunRow {
    /// Whether the run has groups, so that it needs an entry beside those of its tasks.
    pub fn has_groups(&self) -> bool {
        self.groups.is_some()
    }

    /// Whether the run fills slots. It needs an entry only for the command that resumes it.
    fn fills_slots(&self) -> bool {
        self.preset == SLOTS
    }

    /// Whether the run needs a person.
    pub fn needs_attention(&self) -> bool {
        self.has_groups() && (self.status == RunStatus::Blocked || self.failed_as_a_whole())
    }
}

impl<'a> ProjectSnapshot<'a> {
    /// Whether task lists have an entry for this run.
    pub fn lists_run(&self, run: &RunRow) -> bool {
        run.has_groups() || (run.fills_slots() && self.is_run_interrupted(run))
    }

    /// Whether the run has started but no process is working on it.
    pub fn is_run_interrupted(&self, run: &RunRow) -> bool {
        (run.has_groups() || run.fills_slots()) && run.status == RunStatus::Running && !self.driven.contains(&run.id)
    }

    /// The tasks that a person must resolve before the run can continue.
    pub fn blockers(&self, run: &RunRow) -> Vec<&'a TaskRow> {
        let is_stopped = |task: &TaskRow| {
            let needs_person = task.outcome.is_some_and(|outcome| outcome.needs_decision() || outcome.is_failure());
            needs_person || matches!(task.status, TaskStatus::Failed | TaskStatus::Stuck)
        };
        self.tasks.iter().filter(|task| task.run_id == Some(run.id) && is_stopped(task)).collect()
    }

    /// What a person has to resolve in a run.
    pub fn run_block(&self, run: &RunRow) -> Option<RunBlock<'a>> {
        let tasks = self.blockers(run);
        match run.failed_as_a_whole() {
            true if !tasks.is_empty() => Some(RunBlock::NotApproved { tasks }),
            // A run that failed in planning is planned again.
            true => Some(RunBlock::Failed { in_planning: run.groups == Some(0) }),
            false if run.status == RunStatus::Blocked => Some(RunBlock::Blocked { tasks }),
            false => None,
        }
    }
}

/// What stops a run until a person resolves it.
#[derive(Debug, Clone, PartialEq)]
pub enum RunBlock<'a> {
    /// It failed because of these tasks.
    NotApproved { tasks: Vec<&'a TaskRow> },
    /// It failed in planning or in its final review.
    Failed { in_planning: bool },
    /// A group waits for these tasks.
    Blocked { tasks: Vec<&'a TaskRow> },
}
