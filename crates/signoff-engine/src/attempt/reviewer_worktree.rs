//! The files of one reviewer: a temporary worktree to build and test in, and files that its agent would execute.
//!
//! A copy is named after the loop's worktree and the reviewer, which runs there once at a time. A copy that a killed
//! process left has the same name and is replaced.
//!
//! A writer can hide files from the diff: ignored files are in no commit, but an agent that searches the disk still
//! runs them. So for such agents these files must be identical to the base commit.

use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::settings::AgentConfig;

use super::EngineContext;
use crate::agent;
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
pub fn make(
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
pub fn clear(ctx: &EngineContext, worktree: &str) {
    let own = Path::new(worktree);
    let begins = format!("{}-copy-", own.file_name().unwrap_or_default().to_string_lossy());
    let is_copy = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&begins) && path.parent() == own.parent()
    };
    for copy in ctx.repository.worktree_paths().iter().filter(|path| is_copy(path)) {
        // A copy that cannot be removed is replaced when it is needed.
        ctx.repository.remove_parallel_worktree(copy).ok();
    }
}

/// Removes a reviewer's copy.
pub fn discard(ctx: &EngineContext, spec: &AttemptSpec, reviewer: &ReviewerName) {
    let path = path(&spec.workspace.worktree, reviewer);
    if path.symlink_metadata().is_ok() {
        // A copy that cannot be removed is replaced when it is needed.
        ctx.repository.remove_parallel_worktree(&path).ok();
    }
}

/// Maximum number of files and directories to check.
const MOST: usize = 1000;

/// The first file in a task's worktree that an agent would run and that differs from the base commit.
pub fn find_untrusted_file(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    agent: &AgentConfig,
) -> Result<Option<String>, EngineError> {
    let worktree = Path::new(&spec.workspace.worktree);
    let (mut plain, mut left) = (Vec::new(), MOST);
    for path in entries(worktree).into_iter().filter(|path| runs(agent, worktree, path)) {
        if let Err(odd) = files(&path, &mut plain, &mut left) {
            return Ok(Some(relative_path(worktree, &odd)));
        }
    }
    let plain: Vec<PathBuf> =
        plain.iter().filter_map(|path| path.strip_prefix(worktree).ok()).map(Path::to_owned).collect();
    let unlike = ctx.repository.first_difference(spec.base(), worktree, &plain)?;
    Ok(unlike.map(|path| relative_path(worktree, &worktree.join(path))))
}

fn relative_path(worktree: &Path, path: &Path) -> String {
    path.strip_prefix(worktree).unwrap_or(path).display().to_string()
}

fn runs(agent: &AgentConfig, worktree: &Path, path: &Path) -> bool {
    agent::executes_file(agent, &relative_path(worktree, path))
}

/// Collects the regular files at a path. Other file types, and too many files, are an error with the path.
fn files(path: &Path, plain: &mut Vec<PathBuf>, left: &mut usize) -> Result<(), PathBuf> {
    *left = left.checked_sub(1).ok_or_else(|| path.to_owned())?;
    let kind = path.symlink_metadata().map_err(|_| path.to_owned())?.file_type();
    if kind.is_dir() {
        return entries(path).iter().try_for_each(|path| files(path, plain, left));
    }
    plain.push(path.to_owned());
    // The target of a link is not checked.
    if kind.is_file() { Ok(()) } else { Err(path.to_owned()) }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
