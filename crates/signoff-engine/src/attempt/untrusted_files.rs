//! Files in a task's worktree that a reviewer's agent would run.
//!
//! A writer can hide files from the diff: ignored files are in no commit, but an agent that searches the disk still
//! runs them. So for such agents these files must be identical to the base commit.

use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::settings::AgentConfig;

use super::EngineContext;
use crate::agent;
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;

/// Maximum number of files and directories to check.
const MAX_CHECKED_FILES: usize = 1000;

/// The first file in a task's worktree that an agent would run and that differs from the base commit.
pub fn find_untrusted_file(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    agent: &AgentConfig,
) -> Result<Option<String>, EngineError> {
    let worktree = Path::new(&spec.workspace.worktree);
    let (mut plain, mut left) = (Vec::new(), MAX_CHECKED_FILES);
    for path in entries(worktree).into_iter().filter(|path| runs(agent, worktree, path)) {
        if let Err(odd) = files(&path, &mut plain, &mut left) {
            return Ok(Some(relative_path(worktree, &odd)));
        }
    }
    let plain: Vec<PathBuf> =
        plain.iter().filter_map(|path| path.strip_prefix(worktree).ok()).map(Path::to_owned).collect();
    let different = ctx.repository.first_difference(spec.base(), worktree, &plain)?;
    Ok(different.map(|path| relative_path(worktree, &worktree.join(path))))
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
