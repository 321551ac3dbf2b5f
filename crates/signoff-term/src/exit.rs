//! The exit code, from what became of the tasks an invocation worked.

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::view::{QuestionRow, Status, TaskRow, TaskState};

/// How an invocation as a whole came out. `Ord` goes from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Everything requested is approved, or done where review was turned off.
    Done,
    /// A person is needed: a bound reached, a discussion, a question, a pause, work that was not finished.
    Attention,
    /// Something failed, is stuck, or blocks what comes after it.
    Failed,
}

/// What an invocation worked, and how it was called.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    /// The tasks of this invocation, not of the whole repository.
    pub tasks: &'a [TaskRow],
    pub questions: &'a [QuestionRow],
    /// Where the run stood in the end, if there was one.
    pub run: Option<&'a RunStage>,
    pub no_ask: bool,
    pub interrupted: bool,
}

impl Invocation<'_> {
    /// 0 everything requested is approved, 1 something failed, 3 a person is needed, 130 interrupted.
    pub fn code(&self) -> u8 {
        match self.standing() {
            _ if self.interrupted => 130,
            Standing::Failed => 1,
            Standing::Attention => 3,
            Standing::Done => 0,
        }
    }

    pub fn standing(&self) -> Standing {
        let tasks = self.tasks.iter().map(|task| self.of_own(task)).max().unwrap_or(Standing::Done);
        // A question is for people; where none may be asked it has stopped the work.
        let asked = match (self.questions.is_empty(), self.no_ask) {
            (true, _) => Standing::Done,
            (false, false) => Standing::Attention,
            (false, true) => Standing::Failed,
        };
        tasks.max(asked).max(self.run.map_or(Standing::Done, |stage| self.of_run(stage)))
    }

    /// What one task adds. A blocked one is worth as much as what it waits for.
    fn of_own(&self, task: &TaskRow) -> Standing {
        if task.state() != TaskState::Blocked {
            return of_task(task);
        }
        let in_run = |other: &TaskRow| other.run_id == task.run_id && task.run_id.is_some();
        self.in_the_way(|other| in_run(other) || task.depends_on.contains(&other.id))
    }

    /// The worst of the tasks that others wait for; failed where none of these is known.
    fn in_the_way(&self, is_waited_for: impl Fn(&TaskRow) -> bool) -> Standing {
        let ends = self.tasks.iter().filter(|task| task.state() != TaskState::Blocked && is_waited_for(task));
        ends.map(of_task).max().filter(|end| *end != Standing::Done).unwrap_or(Standing::Failed)
    }

    fn of_run(&self, stage: &RunStage) -> Standing {
        match stage {
            RunStage::Blocked { .. } => self.in_the_way(|_| true),
            RunStage::Done(RunOutcome::Failed) => Standing::Failed,
            RunStage::Done(RunOutcome::Attention)
                if self.tasks.iter().all(|task| task.state().is_approved()) =>
            {
                Standing::Attention
            }
            // Each task that is not approved counts by itself.
            RunStage::Done(RunOutcome::Attention | RunOutcome::Approved | RunOutcome::Cancelled)
            | RunStage::Queued
            | RunStage::Preparing
            | RunStage::Working { .. }
            | RunStage::Reviewing
            | RunStage::Landing(_) => Standing::Done,
        }
    }
}

/// What one task adds.
pub fn of_task(task: &TaskRow) -> Standing {
    // Whatever the status says: work that failed never passes for done.
    let failed = matches!(task.outcome.as_deref(), Some("failed" | "stuck")) || task.status == Status::Stuck;
    match task.state() {
        TaskState::Failed | TaskState::Blocked => Standing::Failed,
        _ if failed => Standing::Failed,
        TaskState::Queued
        | TaskState::Working
        | TaskState::Reviewing
        | TaskState::Fixing
        | TaskState::Landing
        | TaskState::Paused
        | TaskState::NeedsYou
        | TaskState::Rejected => Standing::Attention,
        TaskState::Approved | TaskState::Landed | TaskState::Unreviewed | TaskState::Cancelled => {
            Standing::Done
        }
    }
}
