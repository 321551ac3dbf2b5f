//! Findings that a task inherits from earlier tasks on the same branch.

use std::sync::Arc;

use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::ledger::Ledger;
use signoff_core::machine::Event;
use signoff_core::view::{LoopState, RunState, TaskRow};
use signoff_core::wire::LoopFact;

use super::Dispatcher;
use crate::error::EngineError;

impl Dispatcher<'_> {
    /// The open and disputed findings of those tasks.
    pub(super) fn inherited_findings(&self, run: RunId, loop_id: &LoopId) -> Result<Option<LoopFact>, EngineError> {
        let Some(root) = self.task_spec(run, loop_id).and_then(|spec| spec.continues) else {
            return Ok(None);
        };
        let own = self.runs.get(&run).and_then(|active| active.state.loops.get(loop_id)?.task);
        let mut loop_states = self.loops_on_branch(root, own)?;
        loop_states.sort_by_key(|(task, loop_state)| (loop_state.started, *task));
        let left = Ledger::from_earlier_tasks(
            loop_states.iter().map(|(task, loop_state)| (*task, &loop_state.machine.ledger)),
        );
        Ok((!left.is_empty()).then_some(LoopFact::Transitioned(Event::FindingsInherited { left })))
    }

    /// The started tasks on the branch of a task, except `own`.
    fn loops_on_branch(&self, root: TaskId, own: Option<TaskId>) -> Result<Vec<(TaskId, Arc<LoopState>)>, EngineError> {
        let is_on_it = |row: &TaskRow| row.id == root.0 || row.continues == Some(root.0);
        let mut found = Vec::new();
        for row in self.store.tasks()?.iter().filter(|row| is_on_it(row)) {
            let task = TaskId(row.id);
            let Some((run, loop_id)) = self.store.loop_for_task(task)?.filter(|_| own != Some(task)) else {
                continue;
            };
            let mut run_state = RunState::from_run_log(run, &self.store.log(run)?);
            let loop_state = run_state.loops.remove(&loop_id).filter(|loop_state| loop_state.started.is_some());
            found.extend(loop_state.map(|loop_state| (task, loop_state)));
        }
        Ok(found)
    }
}
