//! The copies of worktrees in which reviewers build and test.
//!
//! A copy is named after the loop's worktree and the reviewer, which runs there once at a time. A copy that a killed
//! process left has the same name and is replaced.

use std::path::{Path, PathBuf};

use signoff_core::ids::{Commit, ReviewerName};

use super::EngineContext;
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::git::Worktree;

/// The path of a reviewer's copy of a worktree.
pub fn path(worktree: &str, reviewer: &ReviewerName) -> PathBuf {
    let own = Path::new(worktree);
    let mut name = own.file_name().unwrap_or_default().to_owned();
    name.push(format!("-copy-{reviewer}"));
    own.with_file_name(name)
}

/// Creates the copy. Returns it with a spec that points to it.
pub fn create_copy(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    reviewer: &ReviewerName,
    commit: &Commit,
) -> Result<(AttemptSpec, Worktree), EngineError> {
    let path = path(&spec.workspace.worktree, reviewer);
    ctx.repository.remove_parallel_worktree(&path)?;
    let copy = ctx.repository.parallel_worktree(&path, || Ok(commit.clone()))?;
    copy.copy_files(ctx.settings.copied_into_worktrees())?;
    let mut moved = spec.clone();
    moved.workspace.worktree = copy.path().display().to_string();
    Ok((moved, copy))
}

/// Removes all copies of a worktree that a killed process left.
pub fn remove_all_copies(ctx: &EngineContext, worktree: &str) {
    let own = Path::new(worktree);
    let prefix = format!("{}-copy-", own.file_name().unwrap_or_default().to_string_lossy());
    let is_copy = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&prefix) && path.parent() == own.parent()
    };
    for copy in ctx.repository.worktree_paths().iter().filter(|path| is_copy(path)) {
        // A copy that cannot be removed is replaced when it is needed.
        ctx.repository.remove_parallel_worktree(copy).ok();
    }
}

/// Removes a reviewer's copy.
pub fn remove_copy(ctx: &EngineContext, spec: &AttemptSpec, reviewer: &ReviewerName) {
    let path = path(&spec.workspace.worktree, reviewer);
    if path.symlink_metadata().is_ok() {
        // A copy that cannot be removed is replaced when it is needed.
        ctx.repository.remove_parallel_worktree(&path).ok();
    }
}
