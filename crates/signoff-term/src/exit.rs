//! Computes the exit code from the results of the tasks of an invocation.

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::view::{QuestionRow, TaskRow, TaskState, TaskStatus};

/// The overall result of an invocation. `Ord` goes from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InvocationResult {
    /// Everything requested is approved, or done where review was turned off.
    Done,
    /// A person is needed: a limit reached, a discussion, a question, a pause, or unfinished work.
    Attention,
    /// Something failed, is stuck, or blocks what comes after it.
    Failed,
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
    /// 0 everything requested is approved, 1 something failed, 3 a person is needed, 130 interrupted.
    pub fn code(&self) -> u8 {
        match self.result() {
            _ if self.interrupted => 130,
            InvocationResult::Failed => 1,
            InvocationResult::Attention => 3,
            InvocationResult::Done => 0,
        }
    }

    pub fn result(&self) -> InvocationResult {
        let tasks = self.tasks.iter().map(|task| self.own_task_result(task)).max().unwrap_or(InvocationResult::Done);
        // With `--no-ask` an open question has stopped the work.
        let asked = match (self.questions.is_empty(), self.no_ask) {
            (true, _) => InvocationResult::Done,
            (false, false) => InvocationResult::Attention,
            (false, true) => InvocationResult::Failed,
        };
        tasks.max(asked).max(self.run.map_or(InvocationResult::Done, |stage| self.run_result(stage)))
    }

    /// The result of one task. A blocked task has the result of the tasks that block it.
    fn own_task_result(&self, task: &TaskRow) -> InvocationResult {
        if task.state() != TaskState::Blocked {
            return task_result(task);
        }
        let in_run = |other: &TaskRow| other.run_id == task.run_id && task.run_id.is_some();
        self.worst_blocker(|other| in_run(other) || task.depends_on.contains(&other.id))
    }

    /// The worst result of the blocking tasks; `Failed` if none of them is known.
    fn worst_blocker(&self, is_blocker: impl Fn(&TaskRow) -> bool) -> InvocationResult {
        let ends = self.tasks.iter().filter(|task| task.state() != TaskState::Blocked && is_blocker(task));
        ends.map(task_result).max().filter(|end| *end != InvocationResult::Done).unwrap_or(InvocationResult::Failed)
    }

    fn run_result(&self, stage: &RunStage) -> InvocationResult {
        match stage {
            RunStage::Blocked { .. } => self.worst_blocker(|_| true),
            RunStage::Done(RunOutcome::Failed) => InvocationResult::Failed,
            RunStage::Done(RunOutcome::Attention) if self.tasks.iter().all(|task| task.state().is_approved()) => {
                InvocationResult::Attention
            }
            // Each task that is not approved counts by itself.
            RunStage::Done(RunOutcome::Attention | RunOutcome::Approved | RunOutcome::Cancelled)
            | RunStage::Queued
            | RunStage::Preparing
            | RunStage::Working { .. }
            | RunStage::Reviewing
            | RunStage::Landing(_) => InvocationResult::Done,
        }
    }
}

/// The result of one task.
pub fn task_result(task: &TaskRow) -> InvocationResult {
    // Failed work never counts as done, whatever the status is.
    let failed = matches!(task.outcome.as_deref(), Some("failed" | "stuck")) || task.status == TaskStatus::Stuck;
    match task.state() {
        TaskState::Failed | TaskState::Blocked => InvocationResult::Failed,
        _ if failed => InvocationResult::Failed,
        TaskState::Queued
        | TaskState::Working
        | TaskState::Reviewing
        | TaskState::Fixing
        | TaskState::Landing
        | TaskState::Paused
        | TaskState::NeedsYou
        | TaskState::Rejected => InvocationResult::Attention,
        TaskState::Approved | TaskState::Landed | TaskState::Unreviewed | TaskState::Cancelled => {
            InvocationResult::Done
        }
    }
}
