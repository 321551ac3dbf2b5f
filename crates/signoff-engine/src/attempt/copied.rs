//! A throw-away worktree for one reviewer, to build and test in.
//!
//! It is named after the loop's worktree and the reviewer, who is at work there once at a time: what a killed program left
//! is found under the same name, and made anew.

use std::path::{Path, PathBuf};

use signoff_core::ids::{Commit, ReviewerName};

use super::Workshop;
use crate::assignment::Assignment;
use crate::error::EngineError;
use crate::git::Worktree;

/// Where a reviewer's copy of a worktree is.
pub fn path(worktree: &str, reviewer: &ReviewerName) -> PathBuf {
    let own = Path::new(worktree);
    let mut name = own.file_name().unwrap_or_default().to_owned();
    name.push(format!("-copy-{reviewer}"));
    own.with_file_name(name)
}

/// Makes the copy, and the assignment as it is for whoever works there.
pub fn make(
    shop: &Workshop,
    task: &Assignment,
    (reviewer, commit): (&ReviewerName, &Commit),
) -> Result<(Assignment, Worktree), EngineError> {
    let path = path(&task.place.worktree, reviewer);
    shop.repository.clear_apart(&path)?;
    let copy = shop.repository.apart(&path, || Ok(commit.clone()))?;
    copy.copy_files(shop.settings.copied_into_worktrees())?;
    let mut moved = task.clone();
    moved.place.worktree = copy.path().display().to_string();
    Ok((moved, copy))
}

/// Takes away all copies of a worktree that a killed program left.
pub fn clear(shop: &Workshop, worktree: &str) {
    let own = Path::new(worktree);
    let begins = format!("{}-copy-", own.file_name().unwrap_or_default().to_string_lossy());
    let is_copy = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&begins) && path.parent() == own.parent()
    };
    for copy in shop.repository.worktree_paths().iter().filter(|path| is_copy(path)) {
        // What cannot be taken away is in nobody's way, and is made anew when it is needed.
        shop.repository.clear_apart(copy).ok();
    }
}

/// Takes it away, with all that was done there.
pub fn discard(shop: &Workshop, task: &Assignment, reviewer: &ReviewerName) {
    let path = path(&task.place.worktree, reviewer);
    if path.symlink_metadata().is_ok() {
        // What cannot be taken away is in nobody's way, and is made anew when it is needed.
        shop.repository.clear_apart(&path).ok();
    }
}
