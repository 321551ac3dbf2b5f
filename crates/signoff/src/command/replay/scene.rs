//! What a task looked like at a moment of its run.

use signoff_core::ids::{LoopId, TaskId};
use signoff_core::view::{LoopView, RunView, TaskRow};
use signoff_core::wire::{Fact, LoopFact, Recorded};
use signoff_store::Store;
use signoff_term::show::{Report, concerning};

use crate::desk::Desk;
use crate::failure::Failure;

/// A run that is shown again.
pub struct Scene {
    pub desk: Desk,
    pub log: Vec<Recorded>,
}

impl Scene {
    /// Everything told of a task by so many facts; none if they do not know it.
    pub fn report(&self, task: TaskId, shown: usize) -> Result<Option<Report>, Failure> {
        let so_far = self.log.get(..shown).unwrap_or_default();
        let Some(loop_id) = so_far.iter().find_map(|recorded| loop_of(recorded, task)) else {
            return Ok(None);
        };
        let Some(row) = self.desk.store.task(task)? else { return Ok(None) };
        let own = concerning(so_far, loop_id);
        let row = match RunView::of(&own).row(loop_id) {
            Some(then) => as_then(row, then),
            None => row,
        };
        Ok(Some(Report::of(row, &own, loop_id, Vec::new())))
    }
}

fn loop_of(recorded: &Recorded, wanted: TaskId) -> Option<&LoopId> {
    match &recorded.fact {
        Fact::Loop(loop_id, LoopFact::Added { task, .. }) if *task == wanted => Some(loop_id),
        Fact::Loop(..) | Fact::Run(_) | Fact::Task(..) => None,
    }
}

/// The table knows how a task stands today.
fn as_then(row: TaskRow, then: LoopView) -> TaskRow {
    TaskRow {
        status: then.status,
        outcome: then.outcome.map(str::to_owned),
        final_verdict: then.final_verdict.map(|verdict| verdict.word().to_owned()),
        reason: then.reason.map(|reason| reason.word()),
        review_cycle: then.cycle,
        phase: Some(then.phase),
        iteration: then.iteration,
        open_findings: u32::try_from(then.open_findings).unwrap_or(u32::MAX),
        cost_usd: then.usage.cost_micro_usd as f64 / 1_000_000.0,
        cost_is_estimated: then.usage.cost_is_estimated,
        input_tokens: then.usage.input_tokens,
        output_tokens: then.usage.output_tokens,
        wait: then.wait,
        place: then.place,
        ..row
    }
}
