//! Calls a run's tracker in the background: asks for tasks, claims and closes them.

use std::collections::BTreeSet;

use signoff_core::group::{Picking, RunEvent, RunPolicy, TaskSource};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::Event;
use signoff_core::settings::ExpectedReviews;
use signoff_core::task::{TaskSpec, TrackerRef};
use signoff_core::wire::Fact;
use signoff_core::workflow::Landing;

use super::pick::{PickStart, loop_id};
use super::{Dispatcher, DispatcherInput, DispatcherNotice};
use crate::error::EngineError;
use crate::failpoint;
use crate::start_run;
use crate::tracker::{self, ClaimResult, Tracker};

/// State of the calls to a run's tracker.
#[derive(Debug, Default)]
pub(super) struct TrackerState {
    /// A request for ready tasks is running.
    asking: bool,
    /// A task was closed during the request, which may have made others ready.
    must_refetch: bool,
    /// A request failed; no more are made in this process.
    request_failed: bool,
    /// The loops whose tasks are being closed.
    closing: BTreeSet<LoopId>,
    /// Tasks that other users have, to avoid retries.
    refused: BTreeSet<String>,
    /// Loops that an earlier process may have claimed.
    claimed_before: BTreeSet<LoopId>,
}

impl TrackerState {
    pub(super) fn is_idle(&self) -> bool {
        !self.asking && self.closing.is_empty()
    }
}

/// A task to claim before its loop starts.
pub(super) struct PendingClaim {
    run: RunId,
    loop_id: LoopId,
    tracker: Tracker,
    id: String,
    may_be_claimed: bool,
}

impl PendingClaim {
    /// Claims the task. Returns the ids of its blockers, or the input for the dispatcher if the claim failed.
    pub(super) fn claim(self) -> Result<Vec<String>, Box<DispatcherInput>> {
        let Self { run, loop_id, tracker, id, may_be_claimed } = self;
        let claim = tracker.claim(&id, may_be_claimed);
        failpoint::pass("claimed");
        match claim {
            Ok(ClaimResult::Ours(after)) => Ok(after),
            Ok(ClaimResult::Unavailable(reason)) => {
                Err(Box::new(DispatcherInput::ClaimLost { run, loop_id, id, reason }))
            }
            Err(error) => Err(Box::new(DispatcherInput::WorkspaceCreated { run, loop_id, result: Err(error.into()) })),
        }
    }
}

impl Dispatcher<'_> {
    /// Opens a run and fills its slots with the tasks that its tracker has just offered.
    pub(super) fn open_for_tracker(
        &mut self,
        run: RunId,
        facts: Vec<Fact>,
        policy: RunPolicy,
    ) -> Result<(), EngineError> {
        self.append(run, facts)?;
        match (self.options.offer.take(), self.runs.get(&run).map(|active| active.state.machine.clone())) {
            (Some(offer), Some(machine)) => {
                self.record_and_pick(run, PickStart { facts: Vec::new(), machine, policy }, offer)
            }
            (Some(_) | None, _) => self.pick(run),
        }
    }

    /// Asks for ready tasks, once for all free slots.
    pub(super) fn ask_tracker(&mut self, run: RunId, source: &TaskSource) {
        let room = self.free_slots();
        let Some(active) = self.runs.get_mut(&run) else { return };
        let tracking = &mut active.tracking;
        if self.interrupt.is_some() || tracking.asking || tracking.request_failed {
            return;
        }
        if room == 0 {
            self.deferred.insert(run);
            return;
        }
        tracking.asking = true;
        let (tracker, store, sender) = (self.ctx.tracker(source), self.store.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            let result = tracker::fetch_offer(&tracker, &*store).map(|offer| offer.ready);
            sender.send(DispatcherInput::Offered { run, result }).ok();
        });
    }

    /// Fills the free slots with the tracker's tasks.
    pub(super) fn tracker_answered(
        &mut self,
        run: RunId,
        result: Result<Vec<TaskSpec>, EngineError>,
    ) -> Result<(), EngineError> {
        let Some(active) = self.runs.get_mut(&run) else { return Ok(()) };
        active.tracking.asking = false;
        let must_refetch = std::mem::take(&mut active.tracking.must_refetch);
        let refused = &active.tracking.refused;
        // A run takes each task once: the tracker may not keep tasks closed, and cancelled tasks are open again there.
        let had: BTreeSet<&str> =
            active.state.specs.values().filter_map(|spec| Some(spec.tracker.as_ref()?.id.as_str())).collect();
        let is_free = |one: &TrackerRef| !refused.contains(&one.id) && !had.contains(one.id.as_str());
        let free = |spec: &TaskSpec| spec.tracker.as_ref().is_some_and(is_free);
        match result {
            Ok(mut offer) => {
                offer.retain(free);
                let (machine, policy) = (active.state.machine.clone(), active.state.run_policy().cloned());
                let Some(policy) = policy else { return Ok(()) };
                if must_refetch && offer.len() < machine.picks {
                    return self.pick(run);
                }
                self.record_and_pick(run, PickStart { facts: Vec::new(), machine, policy }, offer)
            }
            Err(error) => {
                // Running tasks continue; the slots stay free until the run is resumed.
                active.tracking.request_failed = true;
                self.summary.errors.push(error);
                Ok(())
            }
        }
    }

    /// The facts that add a tracker's task to the run.
    pub(super) fn tracked_task_facts(&self, run: RunId, task: TaskId, spec: TaskSpec) -> Vec<Fact> {
        let policy = self.policy(run, &loop_id(task));
        let expected = policy.map(|policy| ExpectedReviews::from_workflow(&policy.workflow)).unwrap_or_default();
        let branch = spec.branch(task);
        start_run::task_added(task, spec, branch, expected).into()
    }

    /// The claim to make before a loop starts; `None` if the tracker is read-only.
    pub(super) fn pending_claim(&self, run: RunId, loop_id: &LoopId) -> Option<PendingClaim> {
        let active = self.runs.get(&run)?;
        let source = &active.state.run_policy()?.task_source;
        let id = self.tracked_id(run, loop_id).filter(|_| source.closes_tasks())?;
        let (tracker, may_be_claimed) = (self.ctx.tracker(source), active.tracking.claimed_before.contains(loop_id));
        Some(PendingClaim { run, loop_id: loop_id.clone(), tracker, id, may_be_claimed })
    }

    fn tracked_id(&self, run: RunId, loop_id: &LoopId) -> Option<String> {
        Some(self.task_spec(run, loop_id)?.tracker?.id)
    }

    /// A killed process may have claimed the tasks that it was about to start.
    pub(super) fn mark_claimed_before(&mut self, run: RunId) {
        if let Some(active) = self.runs.get_mut(&run) {
            active.tracking.claimed_before = active.state.machine.starting.clone();
        }
    }

    /// Cancels a task that another user has claimed, and frees its slot.
    pub(super) fn claim_lost(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        id: String,
        reason: &str,
    ) -> Result<(), EngineError> {
        self.renderer.show(&DispatcherNotice::Note(&format!("skipped {id}: {reason}")));
        self.summary.lost += 1;
        if let Some(active) = self.runs.get_mut(&run) {
            active.creating_workspaces.remove(loop_id);
            active.tracking.refused.insert(id);
        }
        let cancelled = Event::Cancelled { by: "its tracker".to_owned() };
        self.loop_event(run, loop_id, cancelled, Vec::new())
    }

    /// Gives a claimed task back to the tracker.
    pub(super) fn give_back(&mut self, run: RunId, loop_id: &LoopId) {
        let Some(id) = self.tracked_id(run, loop_id) else { return };
        let Some(policy) = self.runs.get(&run).and_then(|active| active.state.run_policy()) else { return };
        let (tracker, sender) = (self.ctx.tracker(&policy.task_source), self.sender.clone());
        self.cleanup_jobs.spawn_blocking(move || {
            let note = match tracker.give_back(&id) {
                Ok(None) => return,
                Ok(Some(reason)) => format!("skipped {id}: {reason}"),
                Err(error) => format!("{id} could not be released: {error}"),
            };
            sender.send(DispatcherInput::Note(note)).ok();
        });
    }

    /// Closes a task in the tracker.
    pub(super) fn close_task(&mut self, run: RunId, loop_id: LoopId) {
        let Some(id) = self.tracked_id(run, &loop_id) else { return };
        let Some(active) = self.runs.get_mut(&run) else { return };
        let Some(policy) = active.state.run_policy() else { return };
        let own = active.state.loops.get(&loop_id).map(|loop_state| loop_state.branch.clone()).unwrap_or_default();
        let branch = if policy.landing == Landing::None { own } else { run.branch() };
        let reason = format!("done by signoff: task {loop_id} of run {run}, on the branch {branch}");
        let (tracker, sender) = (self.ctx.tracker(&policy.task_source), self.sender.clone());
        active.tracking.closing.insert(loop_id.clone());
        tokio::task::spawn_blocking(move || {
            let result = tracker.close(&id, &reason).map_err(EngineError::from);
            failpoint::pass("closed");
            sender.send(DispatcherInput::Closed { run, loop_id, result }).ok();
        });
    }

    pub(super) fn task_closed(
        &mut self,
        run: RunId,
        loop_id: LoopId,
        result: Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let Some(active) = self.runs.get_mut(&run) else { return Ok(()) };
        active.tracking.closing.remove(&loop_id);
        active.tracking.must_refetch |= active.tracking.asking;
        match result {
            Ok(()) => self.run_event(run, RunEvent::TaskClosed { loop_id }, Vec::new())?,
            Err(error) => self.record_error(run, &loop_id, error),
        }
        let wanted = self.runs.get(&run).map_or(0, |active| active.state.machine.picks);
        if wanted > 0 { self.pick(run) } else { Ok(()) }
    }

    /// Stops picking new tasks because an agent reports that none are left. Running tasks continue.
    pub(super) fn stop_picking(&mut self, run: RunId) -> Result<(), EngineError> {
        let picking = |active: &super::ActiveRun| active.state.machine.picking != Picking::Closed;
        if self.runs.get(&run).is_some_and(picking) {
            let note = "an agent reports that no tasks are left; no new task is started";
            self.renderer.show(&DispatcherNotice::Note(note));
        }
        self.run_event(run, RunEvent::PickingStopped, Vec::new())
    }
}
