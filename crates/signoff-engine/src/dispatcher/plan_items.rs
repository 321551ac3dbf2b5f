//! Rereads a plan when its first item is started, since it may have changed.

use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::{Effect, Event, Job};
use signoff_core::source::planner::PlannerAnswer;
use signoff_core::wire::LoopFact;

use super::{Dispatcher, DispatcherNotice};
use crate::attempt::{PlanLocation, starts_plan};
use crate::error::EngineError;

/// The job that may start the first plan item: on entering a phase or an item, or on a person's request.
pub(super) fn job_to_plan<'a>(event: &Event, enters: bool, effects: &'a [Effect]) -> Option<&'a Job> {
    let said = matches!(event, Event::PersonAnswered { .. } | Event::PersonRetried { .. });
    let spawned = effects.iter().find_map(|effect| match effect {
        Effect::Spawn(job) => Some(job),
        Effect::Kill { .. } | Effect::Ask(_) | Effect::Wait { .. } | Effect::AwaitLanding | Effect::Finish(_) => None,
    });
    spawned.filter(|_| enters || said)
}

impl Dispatcher<'_> {
    /// The facts of a changed plan for a job that starts the first item. `known` facts are not recorded yet.
    pub(super) fn changed_plan(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        job: &Job,
        known: &[LoopFact],
    ) -> Result<Vec<LoopFact>, EngineError> {
        let policy = self.runs.get(&run).and_then(|active| active.state.policy(loop_id));
        if !policy.is_some_and(|policy| starts_plan(job, policy)) {
            return Ok(Vec::new());
        }
        let Some(mut spec) = self.attempt_spec(run, loop_id, job.clone()) else { return Ok(Vec::new()) };
        for fact in known {
            if let LoopFact::Answered { answer: PlannerAnswer::Tasks(items), .. } = fact {
                spec.items.clone_from(items);
            } else if let LoopFact::Transitioned(Event::ItemsPlanned { count }) = fact {
                spec.machine.items = (*count).max(1);
            }
        }
        let at_work = self.runs.get(&run).into_iter().flat_map(|active| active.running.keys());
        let is_busy = at_work.into_iter().any(|(other, _)| other == loop_id);
        let place = if is_busy { PlanLocation::OnBranch } else { PlanLocation::InWorktree };
        let (mut facts, note) = self.backends.workspaces.reread_plan(&spec, place)?;
        if let Some(note) = note {
            self.renderer.show(&DispatcherNotice::Note(&note));
            facts.push(LoopFact::Noted { attempt: job.attempt, note });
        }
        Ok(facts)
    }
}
