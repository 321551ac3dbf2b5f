//! Facts go into the log before anything follows from them.

use signoff_core::group::{self, RunEvent, Standing};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::{self, Event, Stage};
use signoff_core::review::Finding;
use signoff_core::wire::{Fact, LoopFact, RunFact};

use super::{Dispatcher, Notice, Todo};
use crate::artifact;
use crate::assignment::{About, artifact_name};
use crate::board::Worked;
use crate::clock;
use crate::error::EngineError;
use crate::failpoint;

impl Dispatcher<'_> {
    /// Records what happened to a loop, and wishes for what follows.
    pub(super) fn loop_event(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        event: Event,
        before: Vec<LoopFact>,
    ) -> Result<(), EngineError> {
        self.loop_event_and(run, loop_id, (event, before), Vec::new())
    }

    /// The same with what the run is told besides, in one transaction.
    pub(super) fn loop_event_and(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        (event, before): (Event, Vec<LoopFact>),
        also: Vec<RunEvent>,
    ) -> Result<(), EngineError> {
        let Some(driven) = self.runs.get(&run) else { return Ok(()) };
        let Some(worked) = driven.board.loops.get(loop_id) else { return Ok(()) };
        let Some(policy) = driven.board.policy(loop_id) else { return Ok(()) };
        // What is put on record before it may be of the same machine.
        let earlier = before
            .iter()
            .filter_map(|fact| if let LoopFact::Moved(event) = fact { Some(event) } else { None });
        let state =
            earlier.fold(worked.state.clone(), |state, event| machine::step(state, event.clone(), policy).0);
        let sessions = worked.sessions_after(&before, &event, &state);
        let (next, effects) = machine::step(state, event.clone(), policy);
        if next == worked.state && also.is_empty() {
            // Too late, or said twice.
            return Ok(());
        }
        if let Some(round) = worked.closed_round(&event, &next, policy) {
            let still_open = round.still_open(worked.state.clone(), &next, policy);
            self.write_artifact(run, loop_id, &round, still_open)?;
        }
        let before = self.with_plan((run, loop_id), &event, (&next, &effects), before)?;
        let driven = &self.runs[&run];
        let worked = &driven.board.loops[loop_id];
        self.summary.tasks.extend(worked.task);
        let own = |fact| Fact::Loop(loop_id.clone(), fact);
        let spent = self.spent(run, loop_id, &event);
        let mut facts: Vec<Fact> = before.into_iter().chain([LoopFact::Moved(event)]).map(own).collect();
        facts.extend(self.launches(run, loop_id, (&next, &effects), &sessions).into_iter().map(own));
        let mut wishes: Vec<Todo> =
            effects.into_iter().map(|effect| Todo::Loop(run, loop_id.clone(), effect)).collect();
        let standing = Standing::of(&next);
        let moved = standing != Standing::of(&worked.state) && loop_id.moves_the_run();
        let moved = moved.then(|| RunEvent::LoopMoved { loop_id: loop_id.clone(), standing });
        let part_ended = loop_id.serves_the_run() && next.is_done();
        let (told, effects) = self.told(run, moved.into_iter().chain(spent).chain(also));
        facts.extend(told);
        wishes.extend(effects);
        let new_phase = next.at != worked.state.at || worked.state.stage == Stage::Queued;
        if new_phase {
            failpoint::pass("phase");
        }
        self.append(run, facts)?;
        if new_phase {
            failpoint::pass("phased");
        }
        self.todo.extend(wishes);
        self.give_up_worktree(run, loop_id);
        self.clear_apart(run, loop_id)?;
        if part_ended { self.part_ended(run, loop_id) } else { Ok(()) }
    }

    /// What a run is told, as far as it changes anything, and what follows.
    fn told(&self, run: RunId, events: impl Iterator<Item = RunEvent>) -> (Vec<Fact>, Vec<Todo>) {
        let board = &self.runs[&run].board;
        let (mut facts, mut wishes) = (Vec::new(), Vec::new());
        let Some(policy) = board.run_policy() else { return (facts, wishes) };
        let mut machine = board.machine.clone();
        for event in events {
            let (next, effects) = group::step(machine.clone(), event.clone(), policy);
            if next != machine {
                facts.push(Fact::Run(RunFact::Moved(event)));
                wishes.extend(effects.into_iter().map(|effect| Todo::Run(run, effect)));
                machine = next;
            }
        }
        (facts, wishes)
    }

    /// An attempt to write that ended without completing: whether a checkpoint is due is looked at then.
    fn spent(&self, run: RunId, loop_id: &LoopId, event: &Event) -> Option<RunEvent> {
        let board = &self.runs[&run].board;
        board.run_policy()?.checkpoint_interval?;
        if loop_id.serves_the_run() || !board.loops.get(loop_id)?.state.is_spent_by(event) {
            return None;
        }
        let since =
            |(loop_id, worked): (&LoopId, &Worked)| (loop_id.clone(), worked.state.since_checkpoint());
        let tasks = board.loops.iter().filter(|(loop_id, _)| !loop_id.serves_the_run());
        Some(RunEvent::AttemptSpent { since_checkpoint: tasks.map(since).collect() })
    }

    /// A loop at which nobody works needs its worktree no longer.
    pub(super) fn give_up_worktree(&mut self, run: RunId, loop_id: &LoopId) {
        let Some(driven) = self.runs.get_mut(&run) else { return };
        let ended = |worked: &Worked| matches!(worked.state.stage, Stage::Done(_) | Stage::Waiting { .. });
        let idle = driven.board.loops.get(loop_id).is_some_and(ended);
        if idle && !driven.at_work.keys().any(|(other, _)| other == loop_id) {
            driven.occupied.remove(loop_id);
        }
    }

    /// Records what happened to a run, and wishes for what follows.
    pub(super) fn run_event(
        &mut self,
        run: RunId,
        event: RunEvent,
        after: Vec<Fact>,
    ) -> Result<(), EngineError> {
        let Some(driven) = self.runs.get(&run) else { return Ok(()) };
        let Some(policy) = driven.board.run_policy() else { return Ok(()) };
        let (next, effects) = group::step(driven.board.machine.clone(), event.clone(), policy);
        if next == driven.board.machine {
            return Ok(());
        }
        let facts = [Fact::Run(RunFact::Moved(event))].into_iter().chain(after).collect();
        self.append(run, facts)?;
        self.todo.extend(effects.into_iter().map(|effect| Todo::Run(run, effect)));
        Ok(())
    }

    /// Makes facts durable, then takes them in and shows them.
    pub(super) fn append(&mut self, run: RunId, facts: Vec<Fact>) -> Result<(), EngineError> {
        let Some(driven) = self.runs.get_mut(&run) else { return Ok(()) };
        failpoint::pass("append");
        let recorded = self.store.append(&driven.lease, clock::now(), &facts)?;
        failpoint::pass("appended");
        for one in &recorded {
            driven.board.take(one);
            self.renderer.take(&Notice::Recorded(one));
        }
        Ok(())
    }

    /// The merged review is a file before the log says that the round is over, so it is never missing.
    fn write_artifact(
        &self,
        run: RunId,
        loop_id: &LoopId,
        round: &crate::board::Round,
        still_open: Vec<Finding>,
    ) -> Result<(), EngineError> {
        let driven = &self.runs[&run];
        let (Some(worked), Some(policy)) = (driven.board.loops.get(loop_id), driven.board.policy(loop_id))
        else {
            return Ok(());
        };
        let bar = policy.workflow.phases.get(round.phase).and_then(|phase| phase.judge());
        let Some(bar) = bar.map(|judge| judge.gate.fail_on) else { return Ok(()) };
        let spec = self.spec(run, loop_id).unwrap_or_default();
        let started = worked.started.unwrap_or_else(clock::now);
        let looked_at = loop_id.of_checkpoint().and_then(|(of, _)| driven.board.loops.get(&of));
        let task = looked_at.unwrap_or(worked).task;
        let started = looked_at.and_then(|of| of.started).unwrap_or(started);
        let about = About { run, loop_id, task, spec: &spec, started };
        let (workflow, phase, cycle) = (&policy.workflow, round.phase, round.cycle);
        let name = artifact_name(&about, artifact::Gate { workflow, pass: round.pass, phase, cycle });
        artifact::write_merged(&self.shop.layout.reviews(), &name, (&round.reviews, bar), still_open)
            .map_err(|error| EngineError::io("write the review", &self.shop.layout.reviews(), error))?;
        Ok(())
    }
}
