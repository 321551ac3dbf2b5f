//! What the rows of runs need from a person: from their log, corrected by the inbox, which knows all tasks.

use std::collections::{BTreeMap, BTreeSet};

use super::{Action, InboxTasks, NextStep, ProjectSnapshot, Urgency};
use crate::ids::{RunId, TaskId};
use crate::view::{Badge, LoopRow, TaskState, TaskStatus};

/// What a row needs from a person, most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attention {
    /// It asks a question.
    Asking,
    /// It failed or is stuck.
    Stuck,
    /// It ended, but not approved.
    NotApproved,
    /// It started, but no process is working on it.
    Interrupted,
    Paused,
}

impl Attention {
    /// What a loop needs according to its own log.
    pub fn for_loop(row: &LoopRow) -> Option<Self> {
        match row.badge {
            Badge::Ask => return Some(Self::Asking),
            // A checkpoint reviews it meanwhile.
            Badge::Review => return None,
            Badge::Wait
            | Badge::Spawn
            | Badge::Work
            | Badge::Fix
            | Badge::Check
            | Badge::Land
            | Badge::Paused
            | Badge::Done
            | Badge::Stuck => {}
        }
        Some(match Urgency::for_loop(row)? {
            Urgency::Failed | Urgency::Stuck => Self::Stuck,
            Urgency::Exhausted | Urgency::Discussion | Urgency::NotApproved => Self::NotApproved,
            Urgency::Paused => Self::Paused,
            // The tasks that block its group are listed instead.
            Urgency::Blocked => return None,
        })
    }

    /// The state of a row that needs this. An approval that is void is not shown as one.
    pub fn state(self, own: TaskState) -> TaskState {
        if own.is_approved() { TaskState::NeedsYou } else { own }
    }
}

/// What a row needs, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowHint {
    pub attention: Option<Attention>,
    /// None if the inbox does not list the row.
    pub next: Option<NextStep>,
}

/// The content of the inbox by task, for rows that show the log of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InboxHints {
    /// Unfinished runs that no process is working on.
    pub interrupted: BTreeSet<RunId>,
    /// What to do next, for each task that needs a person.
    next_steps: BTreeMap<TaskId, NextStep>,
    /// Stopped tasks that need no person: a later task continues their work, or they resume by themselves.
    settled: BTreeSet<TaskId>,
}

impl InboxHints {
    pub fn new(snapshot: &ProjectSnapshot<'_>, interrupted: BTreeSet<RunId>) -> Self {
        let InboxTasks { needs_attention, interrupted: interrupted_tasks, .. } = InboxTasks::new(snapshot);
        let needing = needs_attention.into_iter().chain(interrupted_tasks);
        let next_steps: BTreeMap<_, _> =
            needing.map(|task| (TaskId(task.id), NextStep::for_task(task, snapshot))).collect();
        // Only stopped tasks can be settled: an active task may need a person before the next update.
        let has_stopped = |status: TaskStatus| status == TaskStatus::Paused || status.is_over();
        let stopped = snapshot.tasks.iter().filter(|task| has_stopped(task.status)).map(|task| TaskId(task.id));
        let settled = stopped.filter(|task| !next_steps.contains_key(task)).collect();
        Self { interrupted, next_steps, settled }
    }

    /// The hint for the row of a loop. `driven`: a process works on its run.
    pub fn for_loop(&self, row: &LoopRow, driven: bool) -> RowHint {
        let next = row.task.and_then(|task| self.next_steps.get(&task)).cloned();
        if !driven && row.status == TaskStatus::InProgress {
            let resume = row.task.is_none().then_some(NextStep::Do(Action::ResumeRun(Some(row.run.0))));
            return RowHint { attention: Some(Attention::Interrupted), next: next.or(resume) };
        }
        // A loop at work may have moved since the inbox was read.
        let is_idle = matches!(row.badge, Badge::Wait | Badge::Done);
        let is_settled = row.task.is_some_and(|task| self.settled.contains(&task));
        let attention = match Attention::for_loop(row) {
            Some(Attention::Stuck | Attention::NotApproved | Attention::Paused) if is_settled => None,
            None if is_idle && next.is_some() => Some(Attention::NotApproved),
            own => own,
        };
        RowHint { attention, next }
    }

    /// The hint for a task without a run.
    pub fn for_queued(&self, task: TaskId) -> RowHint {
        let next = self.next_steps.get(&task).cloned();
        RowHint { attention: next.is_some().then_some(Attention::NotApproved), next }
    }
}
