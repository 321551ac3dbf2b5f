//! Worktrees around a landing: the loop's own when it is sent back, and the one in which checks run.

use std::path::Path;

use signoff_core::ids::Commit;

use super::disk::{remove_if_there, settle};
use super::worktree::marked;
use super::{GitError, Repository, Worktree};
use crate::clear;

impl Repository {
    /// The worktree in which a merge is checked, brought to this commit. What git ignores stays there from one landing
    /// to the next, so that not everything is built anew.
    pub fn integration(&self, path: &Path, commit: &Commit) -> Result<Worktree, GitError> {
        match self.worktree(path) {
            Ok(found) if found.is_there() && found.branch().is_none() => {
                found.brought_to(commit)?;
                Ok(found)
            }
            Ok(_) | Err(GitError::WorktreeGone(_) | GitError::NotOurs(_)) => {
                self.forget_integration(path)?;
                self.add_detached(path, commit)
            }
            Err(error) => Err(error),
        }
    }

    /// What a killed program left of it.
    fn forget_integration(&self, path: &Path) -> Result<(), GitError> {
        let path = settle(path)?;
        let Some(git_dir) = self.registered(&path)? else { return Ok(()) };
        // Nobody but us leaves a worktree without marker and index.
        let is_ours = marked(&git_dir) == Some(None) || !git_dir.join("index").exists();
        if !is_ours {
            return Err(GitError::NotOurs(path));
        }
        remove_if_there(&path)?;
        self.in_turn(|| clear::remove(&git_dir).map_err(GitError::at(&git_dir)))
    }
}

impl Worktree {
    /// Files, index and `HEAD` of a commit, and nothing else that is not ignored.
    fn brought_to(&self, commit: &Commit) -> Result<(), GitError> {
        self.link()?;
        self.clear_stale_lock()?;
        let asked = ["update-ref", "--no-deref", "HEAD", commit.as_str()];
        self.repository.sealed(self.place())?.args(asked).read()?;
        self.reset_to(commit)?;
        self.repository.sealed(self.place())?.args(["clean", "-ffdq"]).read().map(drop)
    }

    fn reset_to(&self, commit: &Commit) -> Result<(), GitError> {
        let asked = ["read-tree", "--reset", "-u", commit.as_str()];
        self.repository.sealed(self.place())?.args(asked).read().map(drop)
    }

    /// Brings its files to where its branch was moved. All that was in it must be committed.
    pub fn follow_branch(&self, commit: &Commit) -> Result<(), GitError> {
        let Some(branch) = self.branch().filter(|_| self.is_there()) else { return Ok(()) };
        self.link()?;
        self.clear_stale_lock()?;
        let name = format!("refs/heads/{branch}");
        self.repository.sealed(self.place())?.args(["symbolic-ref", "HEAD", &name]).read()?;
        self.reset_to(commit)
    }
}
