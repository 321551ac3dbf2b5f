//! A plan is worked as it is when its first task is begun, whoever changed it last.

use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::{Effect, Event, Job, Loop};
use signoff_core::source::planner::Planned;
use signoff_core::wire::LoopFact;

use super::{Dispatcher, Notice};
use crate::attempt::{Lies, found_changed, is_first};
use crate::error::EngineError;

impl Dispatcher<'_> {
    /// What is put on record before an event, with the plan as it is where the first task of that is begun with it: for
    /// the first time, or again because a person says so.
    pub(super) fn with_plan(
        &mut self,
        (run, loop_id): (RunId, &LoopId),
        event: &Event,
        (next, effects): (&Loop, &[Effect]),
        mut before: Vec<LoopFact>,
    ) -> Result<Vec<LoopFact>, EngineError> {
        let worked = self.runs.get(&run).and_then(|driven| driven.board.loops.get(loop_id));
        let enters = worked.is_some_and(|worked| worked.state.at != next.at);
        let said = matches!(event, Event::PersonAnswered { .. } | Event::PersonRetried { .. });
        let spawned = effects.iter().find_map(|effect| match effect {
            Effect::Spawn(job) => Some(job),
            Effect::Kill { .. }
            | Effect::Ask(_)
            | Effect::Wait { .. }
            | Effect::AwaitLanding
            | Effect::Finish(_) => None,
        });
        if let Some(job) = spawned.filter(|_| enters || said) {
            let found = self.found_plan(run, loop_id, job, &before)?;
            before.extend(found);
        }
        Ok(before)
    }

    /// What is to be put on record of the plan before a job that begins with its first task, after what is known to be.
    pub(super) fn found_plan(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        job: &Job,
        known: &[LoopFact],
    ) -> Result<Vec<LoopFact>, EngineError> {
        let policy = self.runs.get(&run).and_then(|driven| driven.board.policy(loop_id));
        if !policy.is_some_and(|policy| is_first(job, policy)) {
            return Ok(Vec::new());
        }
        let Some(mut task) = self.assignment(run, loop_id, job.clone()) else { return Ok(Vec::new()) };
        for fact in known {
            if let LoopFact::Answered { answer: Planned::Tasks(items), .. } = fact {
                task.items.clone_from(items);
            } else if let LoopFact::Moved(Event::ItemsPlanned { count }) = fact {
                task.state.items = (*count).max(1);
            }
        }
        let at_work = self.runs.get(&run).into_iter().flat_map(|driven| driven.at_work.keys());
        let is_busy = at_work.into_iter().any(|(other, _)| other == loop_id);
        let place = if is_busy { Lies::OnBranch } else { Lies::InWorktree };
        let (mut facts, note) = found_changed(&self.shop, &task, place)?;
        if let Some(note) = note {
            self.renderer.take(&Notice::Note(&note));
            facts.push(LoopFact::Noted { attempt: job.attempt, note });
        }
        Ok(facts)
    }
}
