//! Runs that take their tasks from a tracker: asking it, claiming and closing there, away from the dispatcher.

use std::collections::BTreeSet;

use signoff_core::config::Expected;
use signoff_core::group::{Picking, RunEvent, RunPolicy, Supply};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::Event;
use signoff_core::task::{TaskSpec, Tracked};
use signoff_core::wire::Fact;
use signoff_core::workflow::Landing;

use super::pick::loop_id;
use super::{Dispatcher, Input, Notice};
use crate::error::EngineError;
use crate::failpoint;
use crate::open;
use crate::tracker::{self, Claim, Tracker};

/// What is under way between a run and its tracker.
#[derive(Debug, Default)]
pub(super) struct Tracking {
    /// It is being asked what is ready.
    asking: bool,
    /// Something was closed since it was asked, and may have made others ready.
    outdated: bool,
    /// It failed to say: in this drive it is not asked again.
    broken: bool,
    /// The loops whose tasks are being closed.
    closing: BTreeSet<LoopId>,
    /// What others have, so that it is not tried again and again.
    refused: BTreeSet<String>,
    /// Loops that an earlier drive may have claimed already.
    again: BTreeSet<LoopId>,
}

impl Tracking {
    pub(super) fn is_still(&self) -> bool {
        !self.asking && self.closing.is_empty()
    }
}

/// A task that is to be claimed before its loop begins.
pub(super) struct Claiming {
    run: RunId,
    loop_id: LoopId,
    tracker: Tracker,
    id: String,
    again: bool,
}

impl Claiming {
    /// Claims it, and tells what the tracker says it comes after; what the dispatcher has to hear if that does not make
    /// it ours.
    pub(super) fn claim(self) -> Result<Vec<String>, Box<Input>> {
        let Self { run, loop_id, tracker, id, again } = self;
        let claim = tracker.claim(&id, again);
        failpoint::pass("claimed");
        match claim {
            Ok(Claim::Ours(after)) => Ok(after),
            Ok(Claim::Gone(why)) => Err(Box::new(Input::Lost { run, loop_id, id, why })),
            Err(error) => Err(Box::new(Input::Placed { run, loop_id, result: Err(error.into()) })),
        }
    }
}

impl Dispatcher<'_> {
    /// Opens a run and fills its slots with what its tracker was just heard to have.
    pub(super) fn open_for_tracker(
        &mut self,
        run: RunId,
        facts: Vec<Fact>,
        policy: RunPolicy,
    ) -> Result<(), EngineError> {
        self.append(run, facts)?;
        match (self.drive.offer.take(), self.runs.get(&run).map(|driven| driven.board.machine.clone())) {
            (Some(offer), Some(machine)) => {
                self.record_and_pick(run, Vec::new(), (machine, policy), Some(offer))
            }
            (Some(_) | None, _) => self.pick(run),
        }
    }

    /// Asks what is ready, once for all free slots.
    pub(super) fn ask_tracker(&mut self, run: RunId, supply: &Supply) {
        let room = self.room();
        let Some(driven) = self.runs.get_mut(&run) else { return };
        let tracking = &mut driven.tracking;
        if self.interrupt.is_some() || tracking.asking || tracking.broken {
            return;
        }
        if room == 0 {
            self.deferred.insert(run);
            return;
        }
        tracking.asking = true;
        let (tracker, store, tell) = (self.shop.tracker(supply), self.store.clone(), self.tell.clone());
        tokio::task::spawn_blocking(move || {
            let result = tracker::offer(&tracker, &*store).map(|offer| offer.ready);
            tell.send(Input::Offered { run, result }).ok();
        });
    }

    /// Fills the free slots with what the tracker has.
    pub(super) fn offered(
        &mut self,
        run: RunId,
        result: Result<Vec<TaskSpec>, EngineError>,
    ) -> Result<(), EngineError> {
        let Some(driven) = self.runs.get_mut(&run) else { return Ok(()) };
        driven.tracking.asking = false;
        let outdated = std::mem::take(&mut driven.tracking.outdated);
        let refused = &driven.tracking.refused;
        // A tracker that keeps nothing closed would have us do the same for ever, and what a person called off is open
        // there again: a run does it once.
        let had: BTreeSet<&str> =
            driven.board.specs.values().filter_map(|spec| Some(spec.tracked.as_ref()?.id.as_str())).collect();
        let is_free = |one: &Tracked| !refused.contains(&one.id) && !had.contains(one.id.as_str());
        let free = |spec: &TaskSpec| spec.tracked.as_ref().is_some_and(is_free);
        match result {
            Ok(mut offer) => {
                offer.retain(free);
                let (machine, policy) = (driven.board.machine.clone(), driven.board.run_policy().cloned());
                let Some(policy) = policy else { return Ok(()) };
                if outdated && offer.len() < machine.picks {
                    return self.pick(run);
                }
                self.record_and_pick(run, Vec::new(), (machine, policy), Some(offer))
            }
            Err(error) => {
                // What is at work goes on; the slots stay free until the run is taken up again.
                driven.tracking.broken = true;
                self.summary.troubles.push(error);
                Ok(())
            }
        }
    }

    /// The facts that make what a tracker has a task of ours, worked as the run says.
    pub(super) fn claimed(&self, run: RunId, task: TaskId, spec: Box<TaskSpec>) -> Vec<Fact> {
        let policy = self.runs.get(&run).and_then(|driven| driven.board.policy(&loop_id(task)));
        let expected = policy.map(|policy| Expected::of(&policy.workflow)).unwrap_or_default();
        let branch = spec.branch(task);
        open::added((task, *spec), branch, expected).into()
    }

    /// What is to be claimed before a loop begins; none where there is nobody to tell.
    pub(super) fn claiming(&self, run: RunId, loop_id: &LoopId) -> Option<Claiming> {
        let driven = self.runs.get(&run)?;
        let supply = &driven.board.run_policy()?.supply;
        let id = self.tracked_id(run, loop_id).filter(|_| supply.is_told())?;
        let (tracker, again) = (self.shop.tracker(supply), driven.tracking.again.contains(loop_id));
        Some(Claiming { run, loop_id: loop_id.clone(), tracker, id, again })
    }

    fn tracked_id(&self, run: RunId, loop_id: &LoopId) -> Option<String> {
        Some(self.spec(run, loop_id)?.tracked?.id)
    }

    /// A killed program may have claimed what it was about to begin.
    pub(super) fn remember_called(&mut self, run: RunId) {
        if let Some(driven) = self.runs.get_mut(&run) {
            driven.tracking.again = driven.board.machine.called.clone();
        }
    }

    /// Somebody else has it: our task is called off, and its slot is free.
    pub(super) fn lost_to_others(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        (id, why): (String, String),
    ) -> Result<(), EngineError> {
        self.renderer.take(&Notice::Note(&format!("{id} is left to others: {why}")));
        self.summary.lost += 1;
        if let Some(driven) = self.runs.get_mut(&run) {
            driven.placing.remove(loop_id);
            driven.tracking.refused.insert(id);
        }
        let cancelled = Event::Cancelled { by: "its tracker".to_owned() };
        self.loop_event(run, loop_id, cancelled, Vec::new())
    }

    /// Gives the tracker a task back that was claimed and not worked on.
    pub(super) fn give_back(&mut self, run: RunId, loop_id: &LoopId) {
        let Some(id) = self.tracked_id(run, loop_id) else { return };
        let Some(policy) = self.runs.get(&run).and_then(|driven| driven.board.run_policy()) else { return };
        let (tracker, tell) = (self.shop.tracker(&policy.supply), self.tell.clone());
        self.chores.spawn_blocking(move || {
            let note = match tracker.give_back(&id) {
                Ok(None) => return,
                Ok(Some(why)) => format!("{id} is left to others: {why}"),
                Err(error) => format!("{id} could not be given back: {error}"),
            };
            tell.send(Input::Note(note)).ok();
        });
    }

    /// Tells the tracker that a task is done.
    pub(super) fn close(&mut self, run: RunId, loop_id: LoopId) {
        let Some(id) = self.tracked_id(run, &loop_id) else { return };
        let Some(driven) = self.runs.get_mut(&run) else { return };
        let Some(policy) = driven.board.run_policy() else { return };
        let own = driven.board.loops.get(&loop_id).map(|worked| worked.branch.clone()).unwrap_or_default();
        let branch = if policy.landing == Landing::None { own } else { run.branch() };
        let reason = format!("done by signoff: task {loop_id} of run {run}, on the branch {branch}");
        let (tracker, tell) = (self.shop.tracker(&policy.supply), self.tell.clone());
        driven.tracking.closing.insert(loop_id.clone());
        tokio::task::spawn_blocking(move || {
            let result = tracker.close(&id, &reason).map_err(EngineError::from);
            failpoint::pass("closed");
            tell.send(Input::Closed { run, loop_id, result }).ok();
        });
    }

    pub(super) fn closed(
        &mut self,
        run: RunId,
        loop_id: LoopId,
        result: Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let Some(driven) = self.runs.get_mut(&run) else { return Ok(()) };
        driven.tracking.closing.remove(&loop_id);
        driven.tracking.outdated |= driven.tracking.asking;
        match result {
            Ok(()) => self.run_event(run, RunEvent::TaskClosed { loop_id }, Vec::new())?,
            Err(error) => self.trouble(run, &loop_id, error),
        }
        let wanted = self.runs.get(&run).map_or(0, |driven| driven.board.machine.picks);
        if wanted > 0 { self.pick(run) } else { Ok(()) }
    }

    /// An agent says that there are no more tasks: no new one is picked. What is at work goes on.
    pub(super) fn stop_picking(&mut self, run: RunId) -> Result<(), EngineError> {
        let picking = |driven: &super::Driven| driven.board.machine.picking != Picking::Closed;
        if self.runs.get(&run).is_some_and(picking) {
            let said = "An agent says that there are no more tasks: no new one is picked";
            self.renderer.take(&Notice::Note(said));
        }
        self.run_event(run, RunEvent::PickingStopped, Vec::new())
    }
}
