//! Records facts before their effects start.

use std::sync::Arc;

use signoff_core::group::{self, LoopStatus, RunEvent};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::{self, Event, Loop, Stage};
use signoff_core::review::Finding;
use signoff_core::view::{LoopState, ReviewRound};
use signoff_core::wire::{Fact, LoopFact, RunFact};

use super::effects::LaunchState;
use super::{Dispatcher, DispatcherNotice, PendingEffect, loop_start};
use crate::artifact;
use crate::attempt_spec::{ArtifactSubject, artifact_name};
use crate::clock;
use crate::error::EngineError;
use crate::failpoint;

/// An event of a loop, and what is recorded in the same transaction.
pub(super) struct LoopEventRecord {
    pub event: Event,
    /// Facts of the loop before the event.
    pub before: Vec<LoopFact>,
    /// Events of the run after it.
    pub run_events: Vec<RunEvent>,
}

impl Dispatcher<'_> {
    /// Records an event of a loop and queues its effects.
    pub(super) fn loop_event(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        event: Event,
        before: Vec<LoopFact>,
    ) -> Result<(), EngineError> {
        self.loop_event_and(run, loop_id, LoopEventRecord { event, before, run_events: Vec::new() })
    }

    /// Like `loop_event`, with events of the run.
    pub(super) fn loop_event_and(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        LoopEventRecord { event, mut before, run_events }: LoopEventRecord,
    ) -> Result<(), EngineError> {
        let Some(active) = self.runs.get(&run) else { return Ok(()) };
        let Some(loop_state) = active.state.loops.get(loop_id) else { return Ok(()) };
        let Some(policy) = active.state.policy(loop_id) else { return Ok(()) };
        // The facts before it may change the same machine.
        let earlier =
            before.iter().filter_map(|fact| if let LoopFact::Transitioned(event) = fact { Some(event) } else { None });
        let state = earlier
            .fold(Loop::clone(&loop_state.machine), |state, event| machine::step(state, event.clone(), policy).0);
        let sessions = loop_state.sessions_after(&before, &event, &state);
        let (next, effects) = machine::step(state, event.clone(), policy);
        if next == *loop_state.machine && run_events.is_empty() {
            // The event is outdated or a duplicate.
            return Ok(());
        }
        if let Some(round) = loop_state.closed_round(&event, &next, policy) {
            let still_open = round.still_open(Loop::clone(&loop_state.machine), &next, policy);
            self.write_artifact(run, loop_id, &round, still_open)?;
        }
        let enters = loop_state.machine.position != next.position;
        if let Some(job) = loop_start::job_to_plan(&event, enters, &effects) {
            before.extend(self.changed_plan(run, loop_id, job, &before)?);
        }
        let active = &self.runs[&run];
        let loop_state = &active.state.loops[loop_id];
        self.summary.tasks.extend(loop_state.task);
        let own = |fact| Fact::Loop(loop_id.clone(), fact);
        let spent = self.attempt_spent(run, loop_id, &event);
        let mut facts: Vec<Fact> = before.into_iter().chain([LoopFact::Transitioned(event)]).map(own).collect();
        let launching = LaunchState { machine: &next, sessions: &sessions };
        facts.extend(self.launches(run, loop_id, &effects, launching).into_iter().map(own));
        let mut pending: Vec<PendingEffect> =
            effects.into_iter().map(|effect| PendingEffect::Loop(run, loop_id.clone(), effect)).collect();
        let status = LoopStatus::for_loop(&next);
        let status_changed = status != LoopStatus::for_loop(&loop_state.machine) && loop_id.affects_run_state();
        let status_changed = status_changed.then(|| RunEvent::LoopStatusChanged { loop_id: loop_id.clone(), status });
        let part_ended = loop_id.is_run_level() && next.is_done();
        let (run_facts, effects) = self.run_facts(run, status_changed.into_iter().chain(spent).chain(run_events));
        facts.extend(run_facts);
        pending.extend(effects);
        let new_phase = next.position != loop_state.machine.position || loop_state.machine.stage == Stage::Queued;
        if new_phase {
            failpoint::pass("phase");
        }
        self.append(run, facts)?;
        if new_phase {
            failpoint::pass("phased");
        }
        self.pending_effects.extend(pending);
        self.release_worktree(run, loop_id);
        self.remove_parallel_worktrees(run, loop_id)?;
        if part_ended { self.part_ended(run, loop_id) } else { Ok(()) }
    }

    /// The events that change the run, and their effects.
    fn run_facts(&self, run: RunId, events: impl Iterator<Item = RunEvent>) -> (Vec<Fact>, Vec<PendingEffect>) {
        let run_state = &self.runs[&run].state;
        let (mut facts, mut pending) = (Vec::new(), Vec::new());
        let Some(policy) = run_state.run_policy() else { return (facts, pending) };
        let mut machine = run_state.machine.clone();
        for event in events {
            let (next, effects) = group::step(machine.clone(), event.clone(), policy);
            if next != machine {
                facts.push(Fact::Run(RunFact::Transitioned(event)));
                pending.extend(effects.into_iter().map(|effect| PendingEffect::Run(run, effect)));
                machine = next;
            }
        }
        (facts, pending)
    }

    /// The event that checks whether a checkpoint is due, after a writer that ended without completing.
    fn attempt_spent(&self, run: RunId, loop_id: &LoopId, event: &Event) -> Option<RunEvent> {
        let run_state = &self.runs[&run].state;
        run_state.run_policy()?.checkpoint_interval?;
        if loop_id.is_run_level() || !run_state.loops.get(loop_id)?.machine.is_incomplete_end(event) {
            return None;
        }
        let since = |(loop_id, loop_state): (&LoopId, &Arc<LoopState>)| {
            (loop_id.clone(), loop_state.machine.attempts_since_checkpoint())
        };
        let tasks = run_state.loops.iter().filter(|(loop_id, _)| !loop_id.is_run_level());
        Some(RunEvent::AttemptSpent { since_checkpoint: tasks.map(since).collect() })
    }

    /// Releases the worktree of a loop without running agents.
    pub(super) fn release_worktree(&mut self, run: RunId, loop_id: &LoopId) {
        let Some(active) = self.runs.get_mut(&run) else { return };
        let ended = |loop_state: &LoopState| matches!(loop_state.machine.stage, Stage::Done(_) | Stage::Waiting { .. });
        let idle = active.state.loops.get(loop_id).is_some_and(|loop_state| ended(loop_state));
        if idle && !active.running.keys().any(|(other, _)| other == loop_id) {
            active.locks.remove(loop_id);
        }
    }

    /// Records an event of a run and queues its effects.
    pub(super) fn run_event(&mut self, run: RunId, event: RunEvent, after: Vec<Fact>) -> Result<(), EngineError> {
        let Some(active) = self.runs.get(&run) else { return Ok(()) };
        let Some(policy) = active.state.run_policy() else { return Ok(()) };
        let (next, effects) = group::step(active.state.machine.clone(), event.clone(), policy);
        if next == active.state.machine {
            return Ok(());
        }
        let facts = [Fact::Run(RunFact::Transitioned(event))].into_iter().chain(after).collect();
        self.append(run, facts)?;
        self.pending_effects.extend(effects.into_iter().map(|effect| PendingEffect::Run(run, effect)));
        Ok(())
    }

    /// Appends facts to the log, and shows them. The store applies them to the state of the run.
    pub(super) fn append(&mut self, run: RunId, facts: Vec<Fact>) -> Result<(), EngineError> {
        let Some(active) = self.runs.get_mut(&run) else { return Ok(()) };
        failpoint::pass("append");
        let transitions = self.store.append_to(&mut active.state, &active.lease, clock::now(), &facts)?;
        failpoint::pass("appended");
        for transition in &transitions {
            self.renderer.show(&DispatcherNotice::Recorded(transition));
        }
        Ok(())
    }

    /// Writes the merged review before the log records the end of the cycle, so that it is never missing.
    fn write_artifact(
        &self,
        run: RunId,
        loop_id: &LoopId,
        round: &ReviewRound,
        still_open: Vec<Finding>,
    ) -> Result<(), EngineError> {
        let active = &self.runs[&run];
        let (Some(loop_state), Some(policy)) = (active.state.loops.get(loop_id), active.state.policy(loop_id)) else {
            return Ok(());
        };
        let bar = policy.workflow.phases.get(round.phase).and_then(|phase| phase.policy());
        let Some(bar) = bar.map(|gate_policy| gate_policy.gate.fail_on) else { return Ok(()) };
        let spec = self.task_spec(run, loop_id).unwrap_or_default();
        let started = loop_state.started.unwrap_or_else(clock::now);
        let reviewed = loop_id.checkpoint_target().and_then(|(of, _)| active.state.loops.get(&of));
        let task = reviewed.unwrap_or(loop_state).task;
        let started = reviewed.and_then(|loop_state| loop_state.started).unwrap_or(started);
        let about = ArtifactSubject { run, loop_id, task, spec: &spec, started };
        let (workflow, phase, cycle) = (&policy.workflow, round.phase, round.cycle);
        let name = artifact_name(&about, artifact::GateReview { workflow, pass: round.pass, phase, cycle });
        artifact::write_merged(&self.ctx.layout.reviews(), &name, &round.reviews, bar, still_open)
            .map_err(|error| EngineError::io("write the review", &self.ctx.layout.reviews(), error))?;
        Ok(())
    }
}
