//! A replayed run: its log, and its state at the current point of the replay.

use signoff_core::ids::TaskId;
use signoff_core::view::{LoopRow, TaskRow, Transition};
use signoff_core::wire::RecordedFact;
use signoff_store::Store;
use signoff_term::show::{RunHistory, TaskReport};

use crate::error::CliError;
use crate::project::ReadOnlyProject;

/// A replayed run.
pub struct ReplayedRun {
    project: ReadOnlyProject,
    pub log: Vec<RecordedFact>,
    /// The number of facts that are replayed.
    pub applied: usize,
    history: RunHistory,
}

impl ReplayedRun {
    pub fn new(project: ReadOnlyProject, log: Vec<RecordedFact>) -> Self {
        Self { project, log, applied: 0, history: RunHistory::default() }
    }

    /// Whether all facts are replayed.
    pub fn is_over(&self) -> bool {
        self.applied == self.log.len()
    }

    /// Replays the facts up to this one.
    pub fn advance(&mut self, until: usize) -> Vec<Transition> {
        let next = self.log.get(self.applied..until).unwrap_or_default();
        self.applied += next.len();
        next.iter().map(|recorded| self.history.apply(recorded.clone())).collect()
    }

    /// The report of a task so far; `None` if the replayed facts do not mention it.
    pub fn report(&self, task: TaskId) -> Result<Option<TaskReport>, CliError> {
        let state = &self.history.state;
        let own = state.loops.iter().find(|(_, loop_state)| loop_state.task == Some(task));
        let Some((loop_id, _)) = own else { return Ok(None) };
        let Some(row) = self.project.store.task(task)? else { return Ok(None) };
        let row = match state.row(loop_id) {
            Some(then) => row_at(row, then),
            None => row,
        };
        Ok(Some(self.history.report(row, loop_id, Vec::new())))
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
