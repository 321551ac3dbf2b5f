//! What runs need from a person, and their state.

use super::ProjectSnapshot;
use crate::group::RunOutcome;
use crate::ids::LoopId;
use crate::view::{RunRow, RunState, RunStatus, TaskRow, TaskState};
use crate::workflow::SLOTS_PRESET;

impl RunState {
    /// Whether the final review ended, or is under way, without an approval. That needs a person even if every task
    /// is approved.
    pub fn lacks_final_approval(&self) -> bool {
        self.loop_state(&LoopId::final_review()).is_some_and(|whole| whole.approved_commit().is_none())
    }

    /// The state of the run, if it ended like this. Cancelled tasks and tasks without review need no person.
    pub fn final_state(&self, outcome: RunOutcome) -> TaskState {
        let states = || self.rows().into_iter().filter(|row| row.task.is_some()).map(|row| row.state);
        let has_tasks = states().next().is_some();
        let all_cancelled = || has_tasks && states().all(|state| state == TaskState::Cancelled);
        match outcome {
            RunOutcome::Failed => TaskState::Failed,
            RunOutcome::Cancelled => TaskState::Cancelled,
            RunOutcome::Approved | RunOutcome::Attention if all_cancelled() => TaskState::Cancelled,
            RunOutcome::Approved => TaskState::Approved,
            RunOutcome::Attention if self.lacks_final_approval() => TaskState::NeedsYou,
            RunOutcome::Attention => {
                let combined = combined_state(states());
                // Some tasks were cancelled: the others are approved, but the run is not.
                if combined.is_approved() { TaskState::Cancelled } else { combined }
            }
        }
    }
}

/// What is left to do with the work of a run that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    OnDefaultBranch,
    /// All of it is approved and can land.
    Approved,
    /// Only some of it is approved and can land.
    PartlyApproved,
    /// A person can accept it in place of the final review.
    NotAccepted,
    /// The final review can be repeated, or a person can accept the work in its place.
    FinalReviewFailed,
    /// It failed before its final review, or was cancelled.
    Stopped,
}

impl RunEnd {
    /// `has_landed`: the work is in the default branch.
    pub fn new(run: &RunState, outcome: RunOutcome, has_landed: bool) -> Self {
        let lacks_approval = run.lacks_final_approval();
        match outcome {
            RunOutcome::Approved | RunOutcome::Attention if has_landed => Self::OnDefaultBranch,
            RunOutcome::Approved => Self::Approved,
            RunOutcome::Attention if lacks_approval => Self::NotAccepted,
            RunOutcome::Attention => Self::PartlyApproved,
            RunOutcome::Failed if lacks_approval => Self::FinalReviewFailed,
            RunOutcome::Failed | RunOutcome::Cancelled => Self::Stopped,
        }
    }
}

/// The combined state of finished tasks: approved only if all of them are. Cancelled tasks do not count.
fn combined_state(states: impl IntoIterator<Item = TaskState>) -> TaskState {
    let mut states: Vec<TaskState> = states.into_iter().collect();
    states.retain(|state| *state != TaskState::Cancelled);
    let any = |wanted: TaskState| states.contains(&wanted);
    match states.iter().copied().max() {
        None => TaskState::Cancelled,
        Some(TaskState::Failed) => TaskState::Failed,
        Some(_) if states.iter().all(|state| *state == TaskState::Landed) => TaskState::Landed,
        Some(_) if states.iter().all(|state| state.is_approved()) => TaskState::Approved,
        Some(_) if any(TaskState::NeedsYou) || any(TaskState::Rejected) => TaskState::NeedsYou,
        Some(_) => TaskState::Unreviewed,
    }
}

impl RunRow {
    /// Whether the run has groups, so that it needs an entry beside those of its tasks.
    pub fn has_groups(&self) -> bool {
        self.groups.is_some()
    }

    /// Whether the run fills slots. It needs an entry only for the command that resumes it.
    fn fills_slots(&self) -> bool {
        self.preset == SLOTS_PRESET
    }

    /// The state of the run. That of a completed run follows from its tasks.
    pub fn state(&self, tasks: &[TaskRow]) -> TaskState {
        match self.status {
            RunStatus::Running => TaskState::Working,
            RunStatus::Blocked => TaskState::Blocked,
            RunStatus::Failed => TaskState::Failed,
            RunStatus::Cancelled => TaskState::Cancelled,
            RunStatus::Completed => {
                combined_state(tasks.iter().filter(|task| task.run_id == Some(self.id)).map(TaskRow::state))
            }
        }
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
            needs_person || task.status.is_failure()
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
