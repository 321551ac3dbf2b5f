//! A run as a whole, ready to be shown.

use jiff::Timestamp;
use serde::Serialize;

use super::RunView;
use crate::group::{Run, RunStage, Standing};
use crate::ids::{LoopId, RunId, TaskId};
use crate::machine::{Outcome, Reason};
use crate::review::Usage;

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overview {
    pub run: Option<RunId>,
    pub stage: RunStage,
    /// Of how many groups, where its tasks are worked in groups.
    pub groups: Option<usize>,
    pub tasks: Counts,
    /// The task that lands now.
    pub landing: Option<TaskId>,
    /// What a blocked group waits for.
    pub blocked_by: Vec<Blocker>,
    /// The branch on which its tasks come together.
    pub branch: Option<String>,
    pub usage: Usage,
    pub since: Option<Timestamp>,
}

/// Its tasks, each counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Not begun.
    pub to_come: usize,
    pub at_work: usize,
    /// A person is asked.
    pub waiting: usize,
    /// Signed off, on their way into the run's branch.
    pub signed_off: usize,
    pub done: usize,
    /// Only a person can resolve them.
    pub stuck: usize,
    pub cancelled: usize,
}

/// A loop that only a person can resolve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blocker {
    pub id: LoopId,
    pub task: Option<TaskId>,
    pub reason: Option<Reason>,
}

impl Overview {
    pub(super) fn of(view: &RunView, machine: &Run) -> Self {
        let by = if let RunStage::Blocked { by, .. } = &machine.stage { by.as_slice() } else { &[] };
        let landing = machine.landing.as_ref().and_then(|loop_id| view.row(loop_id)?.task);
        Self {
            run: view.run,
            stage: machine.stage.clone(),
            groups: view.groups(),
            tasks: Counts::of(machine.loops.values()),
            landing,
            blocked_by: by.iter().map(|loop_id| Blocker::of(view, loop_id)).collect(),
            branch: view.branch(),
            usage: view.usage(),
            since: view.started_at,
        }
    }
}

impl Blocker {
    fn of(view: &RunView, loop_id: &LoopId) -> Self {
        let row = view.row(loop_id);
        let (task, reason) = row.map(|row| (row.task, row.reason)).unwrap_or_default();
        Self { id: loop_id.clone(), task, reason }
    }
}

impl Counts {
    fn of<'a>(standings: impl Iterator<Item = &'a Standing>) -> Self {
        let mut counts = Self::default();
        for standing in standings {
            *counts.place(standing) += 1;
        }
        counts
    }

    fn place(&mut self, standing: &Standing) -> &mut usize {
        match standing {
            Standing::Queued => &mut self.to_come,
            Standing::Active | Standing::AtCheckpoint => &mut self.at_work,
            Standing::Waiting => &mut self.waiting,
            Standing::Ready | Standing::Landing => &mut self.signed_off,
            Standing::Ended(Outcome::Cancelled) => &mut self.cancelled,
            Standing::Ended(outcome) if outcome.carries_on() => &mut self.done,
            Standing::Ended(_) => &mut self.stuck,
        }
    }

    /// Those that are not over.
    pub fn open(&self) -> usize {
        self.to_come + self.at_work + self.waiting + self.signed_off
    }

    /// All of them.
    pub fn all(&self) -> usize {
        let Self { to_come, at_work, waiting, signed_off, done, stuck, cancelled } = *self;
        to_come + at_work + waiting + signed_off + done + stuck + cancelled
    }
}
