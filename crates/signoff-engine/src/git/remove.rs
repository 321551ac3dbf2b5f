//! Removing worktrees: only our own, and only when nothing is lost with them.

use std::path::Path;

use super::disk::{remove_if_there, settle};
use super::stage::KeptOut;
use super::{GitError, Repository, Worktree};

/// What to do with work that is not committed when its worktree is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncommitted {
    Keep,
    Discard,
}

impl Repository {
    /// Removes a worktree this program made. Its branch stays.
    pub fn remove_worktree(&self, path: &Path, uncommitted: Uncommitted) -> Result<(), GitError> {
        let path = settle(path)?;
        let worktree = self.worktree(&path)?;
        if uncommitted == Uncommitted::Keep && worktree.is_there() {
            worktree.take_back()?;
            worktree.nothing_to_lose()?;
        }
        remove_if_there(&path)?;
        self.forget_lent(&worktree.git_dir)?;
        // Last: until here a second try finds all it needs.
        self.in_turn(|| remove_if_there(&worktree.git_dir))
    }
}

impl Worktree {
    fn nothing_to_lose(&self) -> Result<(), GitError> {
        let status = self.repository.status(self.place())?;
        if KeptOut::of(&self.git_dir).leaves_work(&status) {
            return Err(GitError::UncommittedWork(self.path().to_owned()));
        }
        match (self.branch(), status.head) {
            // Commits made away from the branch may be on no branch at all.
            (Some(branch), Some(head)) if status.branch.as_deref() != Some(branch) => {
                let tip = format!("refs/heads/{branch}");
                if self.repository.is_ancestor(head.as_str(), &tip)? {
                    return Ok(());
                }
                let worktree = self.path().to_owned();
                Err(GitError::Astray { worktree, branch: branch.to_owned(), head })
            }
            (_, _) => Ok(()),
        }
    }
}
