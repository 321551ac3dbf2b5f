//! What lies in a worktree for an agent to run, whether or not git knows of it.
//!
//! A writer can hide files from the diff: what the work ignores is in no commit, and an agent that looks at the disk runs it
//! all the same. So for agents that do, what lies there must be what was there before the work.

use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::config::Agent;

use super::Workshop;
use crate::agent;
use crate::assignment::Assignment;
use crate::error::EngineError;

/// With more files and directories nobody looks further.
const MOST: usize = 1000;

/// The first file in the worktree of a task that an agent would run, and that the commit the work is based on has not.
pub fn planted(shop: &Workshop, task: &Assignment, agent: &Agent) -> Result<Option<String>, EngineError> {
    let worktree = Path::new(&task.place.worktree);
    let (mut plain, mut left) = (Vec::new(), MOST);
    for path in inside(worktree).into_iter().filter(|path| runs(agent, worktree, path)) {
        if let Err(odd) = files(&path, &mut plain, &mut left) {
            return Ok(Some(told(worktree, &odd)));
        }
    }
    let plain: Vec<PathBuf> =
        plain.iter().filter_map(|path| path.strip_prefix(worktree).ok()).map(Path::to_owned).collect();
    let unlike = shop.repository.unlike(task.base(), worktree, &plain)?;
    Ok(unlike.map(|path| told(worktree, &worktree.join(path))))
}

fn told(worktree: &Path, path: &Path) -> String {
    path.strip_prefix(worktree).unwrap_or(path).display().to_string()
}

fn runs(agent: &Agent, worktree: &Path, path: &Path) -> bool {
    agent::runs(agent, &told(worktree, path))
}

/// The plain files at a path. What else is there, or more than can be looked at, is an error with its path.
fn files(path: &Path, plain: &mut Vec<PathBuf>, left: &mut usize) -> Result<(), PathBuf> {
    *left = left.checked_sub(1).ok_or_else(|| path.to_owned())?;
    let kind = path.symlink_metadata().map_err(|_| path.to_owned())?.file_type();
    if kind.is_dir() {
        return inside(path).iter().try_for_each(|path| files(path, plain, left));
    }
    plain.push(path.to_owned());
    // A link leads to what is not looked at here.
    if kind.is_file() { Ok(()) } else { Err(path.to_owned()) }
}

fn inside(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
