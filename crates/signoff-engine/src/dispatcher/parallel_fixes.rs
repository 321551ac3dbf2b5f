//! Removes the worktrees of parallel fixes when they are not needed any more.

use signoff_core::ids::{LoopId, RunId};
use signoff_core::view::Workspace;
use signoff_core::wire::{Fact, LoopFact};

use super::{Dispatcher, DispatcherNotice};
use crate::error::EngineError;
use crate::workspace::parallel_fixes::{ParallelNeed, allows_parallel_fixes};

impl Dispatcher<'_> {
    /// Finds worktrees for parallel fixes that a killed process left.
    pub(super) fn find_parallel_worktrees(&mut self, run: RunId, loop_id: &LoopId) -> Result<(), EngineError> {
        let Some(active) = self.runs.get_mut(&run) else { return Ok(()) };
        if !active.state.policy(loop_id).is_some_and(allows_parallel_fixes) {
            return Ok(());
        }
        active.with_parallel_fixes.insert(loop_id.clone());
        self.remove_parallel_worktrees(run, loop_id)
    }

    /// Removes the worktrees of a loop's parallel fixes, once no fixer runs there or will run there.
    pub(super) fn remove_parallel_worktrees(&mut self, run: RunId, loop_id: &LoopId) -> Result<(), EngineError> {
        let Some(active) = self.runs.get_mut(&run) else { return Ok(()) };
        let at_work = active.running.keys().any(|(other, _)| other == loop_id);
        if at_work || !active.with_parallel_fixes.contains(loop_id) {
            return Ok(());
        }
        let Some(loop_state) = active.state.loops.get(loop_id) else { return Ok(()) };
        let (needed, workspace) = (ParallelNeed::for_stage(&loop_state.machine.stage), loop_state.workspace.clone());
        if needed == ParallelNeed::All {
            return Ok(());
        }
        active.with_parallel_fixes.remove(loop_id);
        // List them now: new ones may be created soon.
        let workspaces = self.backends.workspaces.clone();
        let beside = |workspace: Workspace| workspaces.parallel_worktrees(workspace.worktree.as_ref());
        let left = workspace.map(beside).unwrap_or_default();
        // Do this before a new fixer starts.
        let note = (needed == ParallelNeed::Nothing)
            .then(|| workspaces.keep_unused_fixes(run, loop_id, &loop_state.branch))
            .flatten();
        let last = loop_state.attempt_starts.keys().next_back().copied();
        self.cleanup_jobs.spawn_blocking(move || left.iter().for_each(|one| workspaces.remove_parallel(one)));
        let Some((note, attempt)) = note.zip(last) else { return Ok(()) };
        self.renderer.show(&DispatcherNotice::Note(&note));
        self.append(run, vec![Fact::Loop(loop_id.clone(), LoopFact::Noted { attempt, note })])
    }
}
