//! Computes the exit code from the results of the tasks of an invocation.

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::view::inbox::TaskResult;
use signoff_core::view::{QuestionRow, TaskRow, TaskState};

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
            TaskResult::Failed => 1,
            TaskResult::Attention => 3,
            TaskResult::Done => 0,
        }
    }

    pub fn result(&self) -> TaskResult {
        let tasks = self.tasks.iter().map(|task| self.own_task_result(task)).max().unwrap_or(TaskResult::Done);
        // With `--no-ask` an open question has stopped the work.
        let question_result = match (self.questions.is_empty(), self.no_ask) {
            (true, _) => TaskResult::Done,
            (false, false) => TaskResult::Attention,
            (false, true) => TaskResult::Failed,
        };
        tasks.max(question_result).max(self.run.map_or(TaskResult::Done, |stage| self.run_result(stage)))
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
