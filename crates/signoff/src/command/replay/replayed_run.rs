//! The state of a task at a point of a replayed run.

use signoff_core::ids::{LoopId, TaskId};
use signoff_core::view::{LoopRow, RunView, TaskRow};
use signoff_core::wire::{Fact, LoopFact, RecordedFact};
use signoff_store::Store;
use signoff_term::show::{TaskReport, events_of_loop};

use crate::error::CliError;
use crate::project::ReadOnlyProject;

/// A replayed run.
pub struct ReplayedRun {
    pub project: ReadOnlyProject,
    pub log: Vec<RecordedFact>,
}

impl ReplayedRun {
    /// The report of a task after the first `shown` facts; `None` if they do not mention it.
    pub fn report(&self, task: TaskId, shown: usize) -> Result<Option<TaskReport>, CliError> {
        let so_far = self.log.get(..shown).unwrap_or_default();
        let Some(loop_id) = so_far.iter().find_map(|recorded| loop_of(recorded, task)) else {
            return Ok(None);
        };
        let Some(row) = self.project.store.task(task)? else { return Ok(None) };
        let own = events_of_loop(so_far, loop_id);
        let row = match RunView::from_log(&own).row(loop_id) {
            Some(then) => row_at(row, then),
            None => row,
        };
        Ok(Some(TaskReport::from_log(row, &own, loop_id, Vec::new())))
    }
}

fn loop_of(recorded: &RecordedFact, wanted: TaskId) -> Option<&LoopId> {
    match &recorded.fact {
        Fact::Loop(loop_id, LoopFact::Added { task, .. }) if *task == wanted => Some(loop_id),
        Fact::Loop(..) | Fact::Run(_) | Fact::Task(..) => None,
    }
}

/// Replaces the current state of a row by the state at that time.
fn row_at(row: TaskRow, then: LoopRow) -> TaskRow {
    TaskRow {
        status: then.status,
        outcome: then.outcome.map(str::to_owned),
        final_verdict: then.final_verdict.map(|verdict| verdict.as_str().to_owned()),
        reason: then.reason.map(|reason| reason.code()),
        review_cycle: then.cycle,
        phase: Some(then.phase),
        iteration: then.iteration,
        open_findings: u32::try_from(then.open_findings).unwrap_or(u32::MAX),
        cost_usd: then.usage.cost_micro_usd as f64 / 1_000_000.0,
        cost_is_estimated: then.usage.cost_is_estimated,
        input_tokens: then.usage.input_tokens,
        output_tokens: then.usage.output_tokens,
        wait: then.wait,
        progress: then.progress,
        ..row
    }
}
