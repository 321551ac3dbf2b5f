//! Removes worktrees: only our own, and only if no work is lost.

use std::path::Path;

use super::disk::{canonical_path, remove_if_exists};
use super::stage::ExcludedPaths;
use super::{GitError, Repository, Worktree};

/// What to do with uncommitted work when its worktree is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncommitted {
    Keep,
    Discard,
}

impl Repository {
    /// Removes a worktree that signoff created. Keeps its branch.
    pub fn remove_worktree(&self, path: &Path, uncommitted: Uncommitted) -> Result<(), GitError> {
        let path = canonical_path(path)?;
        let worktree = self.worktree(&path)?;
        if uncommitted == Uncommitted::Keep && worktree.exists() {
            worktree.import_from_sandbox()?;
            worktree.check_nothing_lost()?;
        }
        remove_if_exists(&path)?;
        self.remove_sandbox_dir(&worktree.git_dir)?;
        // Removed last, so that an interrupted call can be repeated.
        self.with_lock(|| remove_if_exists(&worktree.git_dir))
    }
}

impl Worktree {
    fn check_nothing_lost(&self) -> Result<(), GitError> {
        let status = self.repository.status(self.place())?;
        if ExcludedPaths::for_worktree(&self.git_dir).has_changes(&status) {
            return Err(GitError::UncommittedWork(self.path().to_owned()));
        }
        match (self.branch(), status.head) {
            // Commits on a detached `HEAD` may be on no branch at all.
            (Some(branch), Some(head)) if status.branch.as_deref() != Some(branch) => {
                let tip = format!("refs/heads/{branch}");
                if self.repository.is_ancestor(head.as_str(), &tip)? {
                    return Ok(());
                }
                let worktree = self.path().to_owned();
                Err(GitError::OffBranch { worktree, branch: branch.to_owned(), head })
            }
            (_, _) => Ok(()),
        }
    }
}
