//! Which task of the queue is worked next.

use std::collections::{BTreeMap, BTreeSet};

use signoff_core::config::TaskFlags;
use signoff_core::group::RunEvent;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::Policy;
use signoff_core::task::TaskSpec;
use signoff_core::view::{Status, TaskRow};
use signoff_core::wire::{Fact, LoopFact};
use signoff_store::{Store, StoreError};

use super::{Dispatcher, Driven};
use crate::error::EngineError;

impl Dispatcher<'_> {
    /// Takes the next task that is ready. Another program may be faster: then the one after it.
    pub(super) fn pick(&mut self, run: RunId) -> Result<(), EngineError> {
        if self.interrupt.is_some() {
            return Ok(());
        }
        if !self.has_room() {
            self.deferred.insert(run);
            return Ok(());
        }
        for (task, spec) in ready(&*self.store, &self.drive.only)? {
            match self.take_task(run, task, &spec) {
                Err(EngineError::Store(StoreError::Taken(_))) => {}
                taken => return taken,
            }
        }
        self.run_event(run, RunEvent::NothingToPick, Vec::new())
    }

    /// Whether fewer tasks are worked than may be at once. A run knows only its own; several may be driven.
    pub(super) fn has_room(&self) -> bool {
        let worked = |driven: &Driven| {
            let at_work = driven.at_work.keys().map(|(loop_id, _)| loop_id);
            at_work.chain(&driven.placing).collect::<BTreeSet<_>>().len()
        };
        self.runs.values().map(worked).sum::<usize>() < self.shop.jobs.max(1)
    }

    fn take_task(&mut self, run: RunId, task: TaskId, spec: &TaskSpec) -> Result<(), EngineError> {
        let loop_id = loop_id(task);
        let workflow = self.shop.settings.task_workflow(spec, &TaskFlags::default())?;
        let policy = Policy { workflow, no_ask: self.drive.no_ask };
        let own = |fact| Fact::Loop(loop_id.clone(), fact);
        let facts = vec![
            own(LoopFact::Added { task, title: spec.title.clone(), branch: self.branch(task, spec)? }),
            own(LoopFact::Governed { policy: Box::new(policy) }),
        ];
        self.run_event(run, RunEvent::TaskPicked { loop_id: loop_id.clone() }, facts)
    }

    /// The branch a task is worked on: its own, or the one it goes on with.
    fn branch(&self, task: TaskId, spec: &TaskSpec) -> Result<String, EngineError> {
        let continued = spec.continues.map(|before| self.store.task(before)).transpose()?.flatten();
        Ok(continued.and_then(|row| row.branch).unwrap_or_else(|| spec.branch(task)))
    }
}

/// A task's loop bears its number.
pub fn loop_id(task: TaskId) -> LoopId {
    LoopId::new(task.to_string())
}

/// The queued tasks whose dependencies are through, in the order they are to be worked.
pub fn ready(store: &dyn Store, only: &[TaskId]) -> Result<Vec<(TaskId, TaskSpec)>, StoreError> {
    let queued = store.queued()?;
    if queued.is_empty() {
        return Ok(queued);
    }
    let depends = queued.iter().any(|(_, spec)| !spec.depends_on.is_empty());
    let rows: BTreeMap<u64, TaskRow> =
        if depends { store.tasks()?.into_iter().map(|row| (row.id, row)).collect() } else { BTreeMap::new() };
    let through = |task: &TaskId| rows.get(&task.0).is_some_and(is_through);
    let wanted = |task: TaskId| only.is_empty() || only.contains(&task);
    let mut ready: Vec<_> = queued
        .into_iter()
        .filter(|(task, spec)| wanted(*task) && spec.depends_on.iter().all(through))
        .collect();
    if !only.is_empty() {
        ready.sort_by_key(|(task, _)| only.iter().position(|one| one == task));
    }
    Ok(ready)
}

/// Whether others may build on a task.
pub fn is_through(row: &TaskRow) -> bool {
    let well =
        matches!(row.outcome.as_deref(), None | Some("approved" | "accepted" | "completed_with_issues"));
    row.status == Status::Completed && well
}
