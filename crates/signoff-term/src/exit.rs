//! The exit code, from what became of the tasks an invocation worked.

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::view::{QuestionRow, Status, TaskRow};

/// How an invocation as a whole came out. `Ord` goes from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Finished, nothing to look at.
    Done,
    /// Nothing failed, but somebody should look: a bound reached, a discussion, a question, a pause.
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
    pub strict: bool,
    pub no_ask: bool,
    pub interrupted: bool,
}

impl Invocation<'_> {
    /// 0 finished, 1 something failed, 3 something needs attention and `--strict`, 130 interrupted.
    pub fn code(&self) -> u8 {
        match self.standing() {
            _ if self.interrupted => 130,
            Standing::Failed => 1,
            Standing::Attention if self.strict => 3,
            Standing::Attention | Standing::Done => 0,
        }
    }

    pub fn standing(&self) -> Standing {
        let tasks = self.tasks.iter().map(of_task).max().unwrap_or(Standing::Done);
        // A question is for people; where none may be asked it has stopped the work.
        let asked = match (self.questions.is_empty(), self.no_ask) {
            (true, _) => Standing::Done,
            (false, false) => Standing::Attention,
            (false, true) => Standing::Failed,
        };
        tasks.max(asked).max(self.run.map_or(Standing::Done, |stage| self.of_run(stage)))
    }

    fn of_run(&self, stage: &RunStage) -> Standing {
        match stage {
            RunStage::Blocked { .. } | RunStage::Done(RunOutcome::Failed) => Standing::Failed,
            RunStage::Done(RunOutcome::Attention) if self.tasks.iter().all(is_approved) => {
                Standing::Attention
            }
            // What is not approved speaks for itself: work that nobody was asked to review needs no look.
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
    let told = match task.outcome.as_deref() {
        Some("failed" | "stuck") => Standing::Failed,
        Some("exhausted" | "discussion" | "completed_with_issues" | "nothing_to_review") => {
            Standing::Attention
        }
        Some(_) | None => Standing::Done,
    };
    let status = match task.status {
        Status::Failed | Status::Stuck | Status::Blocked => Standing::Failed,
        Status::Pending | Status::InProgress | Status::Waiting | Status::Paused => Standing::Attention,
        Status::Completed => told,
        Status::Cancelled => Standing::Done,
    };
    // Whatever the status says: work that failed never passes for done.
    if told == Standing::Failed { told } else { status }
}

fn is_approved(task: &TaskRow) -> bool {
    matches!(task.outcome.as_deref(), Some("approved" | "accepted"))
}
