//! Picks the next tasks of the queue or the tracker.

use signoff_core::view::inbox;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use signoff_core::group::{self, Picking, Run, RunEffect, RunEvent, RunPolicy};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::Policy;
use signoff_core::task::TaskSpec;
use signoff_core::view::{TaskRow, TaskStatus};
use signoff_core::wire::{Fact, LoopFact, RunFact};
use signoff_core::workflow::Landing;
use signoff_store::{Store, StoreError};

use super::{ActiveRun, Dispatcher};
use crate::error::EngineError;
use crate::start_run::NumberedTask;

/// Number of queued tasks per query.
const PAGE_SIZE: usize = 64;

/// Facts that add tasks to a run.
#[derive(Default)]
struct PickedTasks {
    facts: Vec<Fact>,
    tasks: Vec<NumberedTask>,
}

/// Facts to record before tasks are picked, and the run that they lead to.
pub(super) struct PickStart {
    pub facts: Vec<Fact>,
    pub machine: Run,
    pub policy: RunPolicy,
}

impl Dispatcher<'_> {
    /// Fills the free slots of a run with ready tasks.
    pub(super) fn pick(&mut self, run: RunId) -> Result<(), EngineError> {
        let Some(run_state) = self.runs.get(&run).map(|active| &active.state) else { return Ok(()) };
        let Some(policy) = run_state.run_policy().cloned() else { return Ok(()) };
        if policy.task_source.is_tracker() && run_state.machine.picking != Picking::Closed {
            self.ask_tracker(run, &policy.task_source);
            return Ok(());
        }
        let start = PickStart { facts: Vec::new(), machine: run_state.machine.clone(), policy };
        self.record_and_pick(run, start, Vec::new())
    }

    /// Records facts, and in the same transaction the tasks that fill the free slots. If another process takes one of
    /// them first, others are chosen while there are any. `offer` are the tracker's tasks.
    pub(super) fn record_and_pick(
        &mut self,
        run: RunId,
        PickStart { facts, machine, policy }: PickStart,
        mut offer: Vec<TaskSpec>,
    ) -> Result<(), EngineError> {
        let before = group::outstanding(&self.runs[&run].state.machine);
        let numbers = match offer.len().min(machine.picks).min(self.free_slots()) {
            0 => Vec::new(),
            wanted => self.store.reserve_tasks(wanted)?,
        };
        let picked = loop {
            let candidates = self.candidates(&machine, &policy, &numbers, &offer)?;
            let picked = self.pick_facts(run, machine.clone(), &policy, candidates)?;
            match self.append(run, facts.iter().cloned().chain(picked.facts).collect()) {
                Err(EngineError::Store(StoreError::TaskTaken(_))) => {}
                Err(EngineError::Store(StoreError::IssueClaimed { id, .. })) => {
                    offer.retain(|spec| spec.tracker.as_ref().is_none_or(|tracked| tracked.id != id));
                }
                Err(error) => return Err(error),
                Ok(()) => break picked.tasks,
            }
        };
        if let Some(active) = self.runs.get_mut(&run) {
            active.state.specs.extend(picked.into_iter().map(|NumberedTask { task, spec }| (task, Arc::new(spec))));
        }
        if self.runs[&run].state.machine.picks > 0 {
            self.deferred.insert(run);
        }
        let is_pick = |effect: &RunEffect| matches!(effect, RunEffect::Pick { .. });
        self.queue_new_effects(run, |effect| !is_pick(effect) && !before.contains(effect));
        Ok(())
    }

    /// The tasks that may fill the slots; none if picking has ended.
    fn candidates(
        &self,
        machine: &Run,
        policy: &RunPolicy,
        numbers: &[TaskId],
        offer: &[TaskSpec],
    ) -> Result<Vec<NumberedTask>, EngineError> {
        if machine.picking == Picking::Closed {
            return Ok(Vec::new());
        }
        if policy.task_source.is_tracker() {
            let numbered = numbers.iter().copied().zip(offer.iter().cloned());
            return Ok(numbered.map(|(task, spec)| NumberedTask { task, spec }).collect());
        }
        let max = machine.picks.min(self.free_slots());
        let numbered = |task| {
            let spec = self.store.task_spec(task)?.ok_or(StoreError::NoTask(task))?;
            Ok(NumberedTask { task, spec })
        };
        ready(&*self.store, &self.options.only, max)?.into_iter().map(numbered).collect()
    }

    /// Number of free slots. Several runs may share them.
    pub(super) fn free_slots(&self) -> usize {
        let worked = |active: &ActiveRun| {
            let at_work = active.running.keys().map(|(loop_id, _)| loop_id);
            at_work
                .chain(&active.creating_workspaces)
                .chain(&active.state.machine.starting)
                .collect::<BTreeSet<_>>()
                .len()
        };
        self.ctx.jobs.max(1).saturating_sub(self.runs.values().map(worked).sum())
    }

    /// The facts that fill the free slots with ready tasks, or record that there are not enough.
    fn pick_facts(
        &self,
        run: RunId,
        mut machine: Run,
        policy: &RunPolicy,
        candidates: Vec<NumberedTask>,
    ) -> Result<PickedTasks, EngineError> {
        let mut picked = PickedTasks::default();
        if self.interrupt.is_some() || machine.picks == 0 {
            return Ok(picked);
        }
        let closed = machine.picking == Picking::Closed;
        let room = if closed { machine.picks } else { self.free_slots() };
        let mut candidates = candidates.into_iter();
        let mut taken = 0;
        while machine.picks > 0 && taken < room {
            taken += 1;
            let (event, own) = match candidates.next() {
                Some(NumberedTask { task, spec }) => {
                    let own = if policy.task_source.is_tracker() {
                        self.tracked_task_facts(run, task, spec.clone())
                    } else {
                        self.task_facts(task, &spec, policy)?
                    };
                    picked.tasks.push(NumberedTask { task, spec });
                    (RunEvent::TaskPicked { loop_id: loop_id(task) }, own)
                }
                None => (RunEvent::NothingToPick, Vec::new()),
            };
            picked.facts.push(Fact::Run(RunFact::Transitioned(event.clone())));
            picked.facts.extend(own);
            machine = group::step(machine, event, policy).0;
        }
        Ok(picked)
    }

    /// The facts that take a task. In a run without groups, a task is its own group.
    fn task_facts(&self, task: TaskId, spec: &TaskSpec, run: &RunPolicy) -> Result<Vec<Fact>, EngineError> {
        let mut workflow = self.ctx.settings.task_workflow(spec, &run.flags)?;
        if workflow.landing == Landing::Group && run.landing != Landing::Group {
            workflow.landing = run.landing;
        }
        let policy = Policy { no_ask: self.options.no_ask, ..Policy::new(workflow) };
        let branch = self.branch(task, spec)?;
        let own = |fact| Fact::Loop(loop_id(task), fact);
        Ok(vec![
            own(LoopFact::Added { task, title: spec.title.clone(), branch }),
            own(LoopFact::PolicySet { policy: Box::new(policy) }),
        ])
    }

    /// The branch of a task: its own, or the one that it continues.
    fn branch(&self, task: TaskId, spec: &TaskSpec) -> Result<String, EngineError> {
        let continued = spec.continues.map(|before| self.store.task(before)).transpose()?.flatten();
        Ok(continued.and_then(|row| row.branch).unwrap_or_else(|| spec.branch(task)))
    }
}

/// The loop of a task has the same number.
pub fn loop_id(task: TaskId) -> LoopId {
    LoopId::new(task.to_string())
}

/// The state and policy of a run after its first facts.
pub(super) fn initial_state(facts: &[Fact]) -> Option<(Run, RunPolicy)> {
    let facts = || facts.iter().filter_map(|fact| if let Fact::Run(fact) = fact { Some(fact) } else { None });
    let opened = |fact: &RunFact| if let RunFact::Opened { policy, .. } = fact { Some(policy.clone()) } else { None };
    let run_event = |fact: &RunFact| if let RunFact::Transitioned(event) = fact { Some(event.clone()) } else { None };
    let policy = facts().find_map(opened)?;
    Some((group::replay(facts().filter_map(run_event), &policy), policy))
}

/// The queued tasks whose dependencies are done, in the order of the queue; at max `max`.
pub fn ready(store: &dyn Store, only: &[TaskId], max: usize) -> Result<Vec<TaskId>, StoreError> {
    let mut known = BTreeMap::new();
    let mut found = Vec::new();
    let mut taken = Vec::new();
    let mut after = TaskId(0);
    loop {
        let page = if only.is_empty() { store.queued(after, PAGE_SIZE)? } else { named(store, only)? };
        let last = page.last().map(|(task, _)| *task);
        for (task, depends_on) in page {
            if found.len() == max {
                return Ok(found);
            }
            if are_satisfied(store, &depends_on, &mut known)? && branch_is_free(store, task, &mut taken)? {
                found.push(task);
            }
        }
        match last.filter(|_| only.is_empty()) {
            Some(last) => after = last,
            None => return Ok(found),
        }
    }
}

/// Whether no other task works on the branch that a task continues. `taken` are branches that were just assigned.
fn branch_is_free(store: &dyn Store, task: TaskId, taken: &mut Vec<u64>) -> Result<bool, StoreError> {
    let Some(root) = store.task(task)?.and_then(|row| row.continues) else { return Ok(true) };
    let same = |row: &&TaskRow| row.id == root || row.continues == Some(root);
    let busy = taken.contains(&root) || store.tasks()?.iter().filter(same).any(inbox::is_under_way);
    if !busy {
        taken.push(root);
    }
    Ok(!busy)
}

/// The named tasks that are queued.
fn named(store: &dyn Store, only: &[TaskId]) -> Result<Vec<(TaskId, Vec<TaskId>)>, StoreError> {
    let mut queued = Vec::new();
    for task in only {
        let row = store.task(*task)?.filter(|row| row.status == TaskStatus::Pending && row.run_id.is_none());
        queued.extend(row.map(|row| (*task, row.depends_on.into_iter().map(TaskId).collect())));
    }
    Ok(queued)
}

fn are_satisfied(store: &dyn Store, tasks: &[TaskId], known: &mut BTreeMap<TaskId, bool>) -> Result<bool, StoreError> {
    for task in tasks {
        let through = match known.get(task) {
            Some(through) => *through,
            None => *known.entry(*task).or_insert(store.task(*task)?.as_ref().is_some_and(inbox::allows_dependents)),
        };
        if !through {
            return Ok(false);
        }
    }
    Ok(true)
}
