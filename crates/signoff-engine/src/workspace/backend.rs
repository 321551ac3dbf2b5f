//! The dispatcher's interface to the repository, apart from running attempts.

use std::path::{Path, PathBuf};

use signoff_core::ids::{Commit, LoopId, RunId, Tree};
use signoff_core::machine::Head;
use signoff_core::wire::LoopFact;

use super::WorkspaceRequest;
use super::parallel_fixes::{keep_unused_commits, parallel_worktrees};
use crate::attempt::{self, EngineContext, PlanLocation};
use crate::attempt_spec::AttemptSpec;
use crate::dispatcher::PreparedWorkspace;
use crate::error::EngineError;
use crate::git::UncommittedPolicy;

/// The workspaces of loops: their worktrees and branches.
pub trait Workspaces: Send + Sync {
    /// The path of a loop's worktree.
    fn path(&self, request: &WorkspaceRequest) -> PathBuf;

    /// Creates the workspace of a loop, or finds it if a killed process created it. Blocks.
    fn create(&self, request: &WorkspaceRequest) -> Result<PreparedWorkspace, EngineError>;

    /// Removes a temporary worktree and its uncommitted changes. Errors are ignored.
    fn remove(&self, worktree: &Path);

    /// Removes all copies of a worktree that a killed process left to reviewers.
    fn remove_reviewer_copies(&self, worktree: &str);

    /// The head of a branch; `None` if there is no such branch.
    fn head_of(&self, branch: &str) -> Result<Option<Head>, EngineError>;

    fn tree_of(&self, commit: &Commit) -> Result<Tree, EngineError>;

    /// The worktrees for parallel fixes beside a loop's worktree.
    fn parallel_worktrees(&self, worktree: &Path) -> Vec<PathBuf>;

    /// Removes a worktree for a parallel fix. Errors are ignored.
    fn remove_parallel(&self, worktree: &Path);

    /// Keeps the commits of parallel fixes that a loop does not use. Returns a note that says where they are.
    fn keep_unused_fixes(&self, run: RunId, loop_id: &LoopId, branch: &str) -> Option<String>;

    /// The facts for a plan that changed since it was last read, and a note.
    fn reread_plan(
        &self,
        spec: &AttemptSpec,
        location: PlanLocation,
    ) -> Result<(Vec<LoopFact>, Option<String>), EngineError>;
}

/// Worktrees of the user's git repository.
impl Workspaces for EngineContext {
    fn path(&self, request: &WorkspaceRequest) -> PathBuf {
        super::path(self, request)
    }

    fn create(&self, request: &WorkspaceRequest) -> Result<PreparedWorkspace, EngineError> {
        super::create(self, request)
    }

    fn remove(&self, worktree: &Path) {
        self.repository.remove_worktree(worktree, UncommittedPolicy::Discard).ok();
    }

    fn remove_reviewer_copies(&self, worktree: &str) {
        attempt::reviewer_worktree::remove_all_copies(self, worktree);
    }

    fn head_of(&self, branch: &str) -> Result<Option<Head>, EngineError> {
        Ok(self.repository.head_of(branch)?)
    }

    fn tree_of(&self, commit: &Commit) -> Result<Tree, EngineError> {
        Ok(self.repository.tree_of(commit)?)
    }

    fn parallel_worktrees(&self, worktree: &Path) -> Vec<PathBuf> {
        parallel_worktrees(&self.repository, worktree)
    }

    fn remove_parallel(&self, worktree: &Path) {
        self.repository.remove_parallel_worktree(worktree).ok();
    }

    fn keep_unused_fixes(&self, run: RunId, loop_id: &LoopId, branch: &str) -> Option<String> {
        keep_unused_commits(&self.repository, run, loop_id, branch)
    }

    fn reread_plan(
        &self,
        spec: &AttemptSpec,
        location: PlanLocation,
    ) -> Result<(Vec<LoopFact>, Option<String>), EngineError> {
        attempt::reread_plan(self, spec, location)
    }
}
