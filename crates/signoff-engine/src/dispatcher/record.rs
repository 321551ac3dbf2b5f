//! Facts go into the log before anything follows from them.

use signoff_core::group::{self, RunEvent, Standing};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::{self, Event, Stage};
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
        let Some(driven) = self.runs.get(&run) else { return Ok(()) };
        let Some(worked) = driven.board.loops.get(loop_id) else { return Ok(()) };
        let Some(policy) = driven.board.policy(loop_id) else { return Ok(()) };
        let (next, effects) = machine::step(worked.state.clone(), event.clone(), policy);
        if next == worked.state {
            // Too late, or said twice.
            return Ok(());
        }
        if let Some(round) = worked.closed_round(&event, &next, policy) {
            self.write_artifact(run, loop_id, &round)?;
        }
        let driven = &self.runs[&run];
        let worked = &driven.board.loops[loop_id];
        self.summary.tasks.extend(worked.task);
        let own = |fact| Fact::Loop(loop_id.clone(), fact);
        let mut facts: Vec<Fact> = before.into_iter().chain([LoopFact::Moved(event)]).map(own).collect();
        facts.extend(self.launches(run, loop_id, (&next, &effects)).into_iter().map(own));
        let mut wishes: Vec<Todo> =
            effects.into_iter().map(|effect| Todo::Loop(run, loop_id.clone(), effect)).collect();
        let standing = Standing::of(&next);
        if standing != Standing::of(&worked.state)
            && let Some(policy) = driven.board.run_policy()
        {
            let moved = RunEvent::LoopMoved { loop_id: loop_id.clone(), standing };
            let (_, effects) = group::step(driven.board.machine.clone(), moved.clone(), policy);
            facts.push(Fact::Run(RunFact::Moved(moved)));
            wishes.extend(effects.into_iter().map(|effect| Todo::Run(run, effect)));
        }
        self.append(run, facts)?;
        self.todo.extend(wishes);
        self.give_up_worktree(run, loop_id);
        Ok(())
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
        let about = About { run, task: worked.task, spec: &spec, started };
        let (workflow, phase, cycle) = (&policy.workflow, round.phase, round.cycle);
        let name = artifact_name(&about, artifact::Gate { workflow, pass: round.pass, phase, cycle });
        artifact::write_merged(&self.shop.layout.reviews(), &name, &round.reviews, bar)
            .map_err(|error| EngineError::io("write the review", &self.shop.layout.reviews(), error))?;
        Ok(())
    }
}
