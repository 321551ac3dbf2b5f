//! A run as a row of a list, and its progress as a whole.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::RunState;
use crate::group::{LoopStatus, Run, RunOutcome, RunStage, RunStageKind};
use crate::ids::{LoopId, RunId, TaskId};
use crate::machine::{Outcome, Reason};
use crate::review::Usage;

/// One run, as stored in the tables and printed by `status --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunRow {
    pub id: u64,
    pub preset: String,
    /// The name of the specification's file. None for a run of single tasks.
    pub specification: Option<String>,
    pub status: RunStatus,
    pub stage: RunStageKind,
    /// The number of the group that is worked or blocked, from 1.
    pub group: Option<u64>,
    /// The number of groups; 0 before planning, none if tasks are not worked in groups.
    pub groups: Option<u64>,
    /// The branch that its tasks share.
    pub branch: Option<String>,
    pub cost_usd: f64,
    /// The cost is at least partly estimated from list prices; omitted if it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
}

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum RunStatus {
    Running,
    /// A group waits for a person.
    Blocked,
    Completed,
    Failed,
    Cancelled,
}

impl RunStatus {
    pub fn for_stage(stage: &RunStage) -> Self {
        match stage {
            RunStage::Blocked { .. } => Self::Blocked,
            RunStage::Done(RunOutcome::Approved | RunOutcome::Attention) => Self::Completed,
            RunStage::Done(RunOutcome::Failed) => Self::Failed,
            RunStage::Done(RunOutcome::Cancelled) => Self::Cancelled,
            RunStage::Queued
            | RunStage::Preparing
            | RunStage::Working { .. }
            | RunStage::Reviewing
            | RunStage::Landing(_) => Self::Running,
        }
    }
}

impl RunRow {
    /// Whether the run itself failed, in planning or in the final review, independent of its tasks.
    pub fn failed_as_a_whole(&self) -> bool {
        self.status == RunStatus::Failed && self.groups.is_some()
    }
}

/// The progress of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunOverview {
    pub run: RunId,
    pub stage: RunStage,
    /// The number of groups, if its tasks are worked in groups.
    pub groups: Option<usize>,
    pub tasks: RunTaskCounts,
    /// The task that is landing.
    pub landing: Option<TaskId>,
    /// The loops that block the group.
    pub blocked_by: Vec<Blocker>,
    /// The branch that its tasks share.
    pub branch: Option<String>,
    pub usage: Usage,
    pub since: Option<Timestamp>,
}

/// The number of tasks in each status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RunTaskCounts {
    /// Not started.
    pub to_come: usize,
    pub at_work: usize,
    /// Waiting for a person.
    pub waiting: usize,
    /// Signed off and about to land on the run's branch.
    pub signed_off: usize,
    pub done: usize,
    /// Only a person can resolve these.
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

impl RunOverview {
    pub(super) fn new(view: &RunState, machine: &Run) -> Self {
        let by = if let RunStage::Blocked { by, .. } = &machine.stage { by.as_slice() } else { &[] };
        let landing = machine.landing.as_ref().and_then(|loop_id| view.row(loop_id)?.task);
        Self {
            run: view.run,
            stage: machine.stage.clone(),
            groups: view.groups(),
            tasks: RunTaskCounts::from_statuses(machine.loops.values()),
            landing,
            blocked_by: by.iter().map(|loop_id| Blocker::new(view, loop_id)).collect(),
            branch: view.branch(),
            usage: view.usage(),
            since: view.started_at,
        }
    }
}

impl Blocker {
    fn new(view: &RunState, loop_id: &LoopId) -> Self {
        let row = view.row(loop_id);
        let (task, reason) = row.map(|row| (row.task, row.reason)).unwrap_or_default();
        Self { id: loop_id.clone(), task, reason }
    }
}

impl RunTaskCounts {
    fn from_statuses<'a>(statuses: impl Iterator<Item = &'a LoopStatus>) -> Self {
        let mut counts = Self::default();
        for status in statuses {
            *counts.counter_mut(status) += 1;
        }
        counts
    }

    fn counter_mut(&mut self, status: &LoopStatus) -> &mut usize {
        match status {
            LoopStatus::Queued => &mut self.to_come,
            LoopStatus::Active | LoopStatus::AtCheckpoint => &mut self.at_work,
            LoopStatus::Waiting => &mut self.waiting,
            LoopStatus::Ready | LoopStatus::Landing => &mut self.signed_off,
            LoopStatus::Ended(Outcome::Cancelled) => &mut self.cancelled,
            LoopStatus::Ended(outcome) if outcome.is_completed() => &mut self.done,
            LoopStatus::Ended(_) => &mut self.stuck,
        }
    }

    /// The number of unfinished tasks.
    pub fn open(&self) -> usize {
        self.to_come + self.at_work + self.waiting + self.signed_off
    }

    /// The number of all tasks.
    pub fn all(&self) -> usize {
        let Self { to_come, at_work, waiting, signed_off, done, stuck, cancelled } = *self;
        to_come + at_work + waiting + signed_off + done + stuck + cancelled
    }
}
