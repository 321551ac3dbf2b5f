//! A replayed run: its log, and its state at the current point of the replay.

use signoff_core::ids::TaskId;
use signoff_core::view::Transition;
use signoff_core::wire::RecordedFact;
use signoff_store::Store;
use signoff_term::show::{RunHistory, TaskReport};

use crate::{CliError, ReadOnlyProject};

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
            Some(then) => row.with_progress(then),
            None => row,
        };
        Ok(Some(self.history.report(row, loop_id, Vec::new())))
    }
}
