//! Which runs need a person, and which tasks block them.

use super::ProjectSnapshot;
use crate::view::{RunRow, RunStatus, TaskRow, TaskStatus};

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
        self.tasks.iter().filter(|task| blocks(task, run)).collect()
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

fn blocks(task: &TaskRow, run: &RunRow) -> bool {
    let stopped = task.outcome.is_some_and(|outcome| outcome.needs_decision() || outcome.is_failure());
    task.run_id == Some(run.id) && (stopped || matches!(task.status, TaskStatus::Failed | TaskStatus::Stuck))
}
