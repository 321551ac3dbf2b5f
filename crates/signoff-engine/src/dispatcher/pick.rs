//! Which task of the queue is worked next.

use std::collections::{BTreeMap, BTreeSet};

use signoff_core::group::{self, Picking, Run, RunEffect, RunEvent, RunPolicy};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::Policy;
use signoff_core::task::TaskSpec;
use signoff_core::view::{Status, TaskRow};
use signoff_core::wire::{Fact, LoopFact, RunFact};
use signoff_core::workflow::Landing;
use signoff_store::{Store, StoreError};

use super::{Dispatcher, Driven};
use crate::error::EngineError;

/// So many tasks of the queue are looked at in one go.
const PAGE: usize = 64;

/// Facts, and what was asked for in the tasks they take.
type Picks = (Vec<Fact>, Vec<(TaskId, TaskSpec)>);

/// What a slot can be filled with.
enum Candidate {
    /// A task of the queue.
    Queued(TaskId),
    /// One that a tracker has, under a number of its own.
    Tracked(TaskId, Box<TaskSpec>),
}

impl Dispatcher<'_> {
    /// Fills the free slots of a run with tasks that are ready.
    pub(super) fn pick(&mut self, run: RunId) -> Result<(), EngineError> {
        let Some(board) = self.runs.get(&run).map(|driven| &driven.board) else { return Ok(()) };
        let Some(policy) = board.run_policy().cloned() else { return Ok(()) };
        if policy.supply.is_tracker() && board.machine.picking != Picking::Closed {
            self.ask_tracker(run, &policy.supply);
            return Ok(());
        }
        self.record_and_pick(run, Vec::new(), (board.machine.clone(), policy), None)
    }

    /// Records `first`, which make `machine` of the run, and in the same transaction the tasks that fill its free
    /// slots. Another program may be faster: then other tasks are chosen, as long as there are any. `offer` is what
    /// its tracker has.
    pub(super) fn record_and_pick(
        &mut self,
        run: RunId,
        first: Vec<Fact>,
        (machine, policy): (Run, RunPolicy),
        offer: Option<Vec<TaskSpec>>,
    ) -> Result<(), EngineError> {
        let before = group::outstanding(&self.runs[&run].board.machine);
        let mut offer = offer.unwrap_or_default();
        let numbers = match offer.len().min(machine.picks).min(self.room()) {
            0 => Vec::new(),
            wanted => self.store.reserve_tasks(wanted)?,
        };
        let specs = loop {
            let candidates = self.candidates(&machine, &policy, (&numbers, &offer))?;
            let (picks, specs) = self.picks(run, machine.clone(), &policy, candidates)?;
            match self.append(run, first.iter().cloned().chain(picks).collect()) {
                Err(EngineError::Store(StoreError::Taken(_))) => {}
                Err(EngineError::Store(StoreError::Claimed { id, .. })) => {
                    offer.retain(|spec| spec.tracked.as_ref().is_none_or(|tracked| tracked.id != id));
                }
                Err(error) => return Err(error),
                Ok(()) => break specs,
            }
        };
        if let Some(driven) = self.runs.get_mut(&run) {
            driven.board.specs.extend(specs);
        }
        if self.runs[&run].board.machine.picks > 0 {
            self.deferred.insert(run);
        }
        let is_pick = |wish: &RunEffect| matches!(wish, RunEffect::Pick { .. });
        self.wish(run, |wish| !is_pick(wish) && !before.contains(wish));
        Ok(())
    }

    /// The tasks that may fill the slots: none once no more are to be picked.
    fn candidates(
        &self,
        machine: &Run,
        policy: &RunPolicy,
        (numbers, offer): (&[TaskId], &[TaskSpec]),
    ) -> Result<Vec<Candidate>, EngineError> {
        if machine.picking == Picking::Closed {
            return Ok(Vec::new());
        }
        if policy.supply.is_tracker() {
            let tracked =
                |(task, spec): (&TaskId, &TaskSpec)| Candidate::Tracked(*task, Box::new(spec.clone()));
            return Ok(numbers.iter().zip(offer).map(tracked).collect());
        }
        let most = machine.picks.min(self.room());
        Ok(ready(&*self.store, &self.drive.only, most)?.into_iter().map(Candidate::Queued).collect())
    }

    /// How many more tasks may be worked. A run knows only its own; several may be driven.
    pub(super) fn room(&self) -> usize {
        let worked = |driven: &Driven| {
            let at_work = driven.at_work.keys().map(|(loop_id, _)| loop_id);
            at_work.chain(&driven.placing).chain(&driven.board.machine.called).collect::<BTreeSet<_>>().len()
        };
        self.shop.jobs.max(1).saturating_sub(self.runs.values().map(worked).sum())
    }

    /// What fills the free slots: tasks that are ready, and nothing where there are not enough.
    fn picks(
        &self,
        run: RunId,
        mut machine: Run,
        policy: &RunPolicy,
        candidates: Vec<Candidate>,
    ) -> Result<Picks, EngineError> {
        let (mut facts, mut specs) = Picks::default();
        if self.interrupt.is_some() || machine.picks == 0 {
            return Ok((facts, specs));
        }
        let closed = machine.picking == Picking::Closed;
        let room = if closed { machine.picks } else { self.room() };
        let mut candidates = candidates.into_iter();
        let mut taken = 0;
        while machine.picks > 0 && taken < room {
            taken += 1;
            let (event, own) = match candidates.next() {
                Some(Candidate::Queued(task)) => {
                    let spec = self.store.task_spec(task)?.ok_or(StoreError::NoTask(task))?;
                    let own = self.taken(task, &spec, policy)?;
                    specs.push((task, spec));
                    (RunEvent::TaskPicked { loop_id: loop_id(task) }, own)
                }
                Some(Candidate::Tracked(task, spec)) => {
                    (RunEvent::TaskPicked { loop_id: loop_id(task) }, self.claimed(run, task, spec))
                }
                None => (RunEvent::NothingToPick, Vec::new()),
            };
            facts.push(Fact::Run(RunFact::Moved(event.clone())));
            facts.extend(own);
            machine = group::step(machine, event, policy).0;
        }
        Ok((facts, specs))
    }

    /// The facts that make a task ours. In a run without groups a task is a group of its own, and waits for no other.
    fn taken(&self, task: TaskId, spec: &TaskSpec, run: &RunPolicy) -> Result<Vec<Fact>, EngineError> {
        let mut workflow = self.shop.settings.task_workflow(spec, &run.flags)?;
        if workflow.landing == Landing::Group && run.landing != Landing::Group {
            workflow.landing = run.landing;
        }
        let policy = Policy { no_ask: self.drive.no_ask, ..Policy::of(workflow) };
        let branch = self.branch(task, spec)?;
        let own = |fact| Fact::Loop(loop_id(task), fact);
        Ok(vec![
            own(LoopFact::Added { task, title: spec.title.clone(), branch }),
            own(LoopFact::Governed { policy: Box::new(policy) }),
        ])
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

/// The run that its first facts make, with the policy they give it.
pub(super) fn begun(facts: &[Fact]) -> Option<(Run, RunPolicy)> {
    let facts = || facts.iter().filter_map(|fact| if let Fact::Run(fact) = fact { Some(fact) } else { None });
    let opened =
        |fact: &RunFact| if let RunFact::Opened { policy, .. } = fact { Some(policy.clone()) } else { None };
    let moved = |fact: &RunFact| if let RunFact::Moved(event) = fact { Some(event.clone()) } else { None };
    let policy = facts().find_map(opened)?;
    Some((group::replay(facts().filter_map(moved), &policy), policy))
}

/// The queued tasks whose dependencies are through, in the order they are to be worked: at most so many.
pub fn ready(store: &dyn Store, only: &[TaskId], most: usize) -> Result<Vec<TaskId>, StoreError> {
    let mut known = BTreeMap::new();
    let mut found = Vec::new();
    let mut taken = Vec::new();
    let mut after = TaskId(0);
    loop {
        let page = if only.is_empty() { store.queued(after, PAGE)? } else { named(store, only)? };
        let last = page.last().map(|(task, _)| *task);
        for (task, depends_on) in page {
            if found.len() == most {
                return Ok(found);
            }
            if are_through(store, &depends_on, &mut known)? && has_its_branch(store, task, &mut taken)? {
                found.push(task);
            }
        }
        match last.filter(|_| only.is_empty()) {
            Some(last) => after = last,
            None => return Ok(found),
        }
    }
}

/// Whether nobody else works on the branch that a task goes on with. `taken` are the branches that others were
/// just given.
fn has_its_branch(store: &dyn Store, task: TaskId, taken: &mut Vec<u64>) -> Result<bool, StoreError> {
    let Some(root) = store.task(task)?.and_then(|row| row.continues) else { return Ok(true) };
    let at_work = |row: &TaskRow| match row.status {
        Status::InProgress | Status::Waiting | Status::Paused => true,
        Status::Pending
        | Status::Completed
        | Status::Failed
        | Status::Stuck
        | Status::Blocked
        | Status::Cancelled => false,
    };
    let same = |row: &&TaskRow| row.id == root || row.continues == Some(root);
    let busy = taken.contains(&root) || store.tasks()?.iter().filter(same).any(at_work);
    if !busy {
        taken.push(root);
    }
    Ok(!busy)
}

/// Those of the named tasks that are queued.
fn named(store: &dyn Store, only: &[TaskId]) -> Result<Vec<(TaskId, Vec<TaskId>)>, StoreError> {
    let mut queued = Vec::new();
    for task in only {
        let row = store.task(*task)?.filter(|row| row.status == Status::Pending && row.run_id.is_none());
        queued.extend(row.map(|row| (*task, row.depends_on.into_iter().map(TaskId).collect())));
    }
    Ok(queued)
}

fn are_through(
    store: &dyn Store,
    tasks: &[TaskId],
    known: &mut BTreeMap<TaskId, bool>,
) -> Result<bool, StoreError> {
    for task in tasks {
        let through = match known.get(task) {
            Some(through) => *through,
            None => *known.entry(*task).or_insert(store.task(*task)?.as_ref().is_some_and(is_through)),
        };
        if !through {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether others may build on a task.
pub fn is_through(row: &TaskRow) -> bool {
    let well =
        matches!(row.outcome.as_deref(), None | Some("approved" | "accepted" | "completed_with_issues"));
    row.status == Status::Completed && well
}
