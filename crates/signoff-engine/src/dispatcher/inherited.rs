//! What a task takes over from earlier tasks on the branch it goes on with.

use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::ledger::Ledger;
use signoff_core::machine::Event;
use signoff_core::view::TaskRow;
use signoff_core::wire::LoopFact;

use super::Dispatcher;
use crate::board::{Board, Worked};
use crate::error::EngineError;

impl Dispatcher<'_> {
    /// The open and disputed findings of those tasks, if there are any.
    pub(super) fn inherited(&self, run: RunId, loop_id: &LoopId) -> Result<Option<LoopFact>, EngineError> {
        let Some(root) = self.spec(run, loop_id).and_then(|spec| spec.continues) else { return Ok(None) };
        let own = self.runs.get(&run).and_then(|driven| driven.board.loops.get(loop_id)?.task);
        let mut worked = self.worked_on_branch(root, own)?;
        worked.sort_by_key(|(task, worked)| (worked.started, *task));
        let left = Ledger::left_by(worked.iter().map(|(task, worked)| (*task, &worked.state.ledger)));
        Ok((!left.is_empty()).then_some(LoopFact::Moved(Event::FindingsInherited { left })))
    }

    /// The tasks on the branch of a task that were started, but for one.
    fn worked_on_branch(
        &self,
        root: TaskId,
        own: Option<TaskId>,
    ) -> Result<Vec<(TaskId, Worked)>, EngineError> {
        let is_on_it = |row: &TaskRow| row.id == root.0 || row.continues == Some(root.0);
        let mut found = Vec::new();
        for row in self.store.tasks()?.iter().filter(|row| is_on_it(row)) {
            let task = TaskId(row.id);
            let Some((run, loop_id)) = self.store.loop_of(task)?.filter(|_| own != Some(task)) else {
                continue;
            };
            let mut board = Board::of(run, &self.store.log(run)?);
            let worked = board.loops.remove(&loop_id).filter(|worked| worked.started.is_some());
            found.extend(worked.map(|worked| (task, worked)));
        }
        Ok(found)
    }
}
