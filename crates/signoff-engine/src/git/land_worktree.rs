//! Worktrees used by a landing: the loop's own, and the one in which checks run.

use std::path::Path;

use signoff_core::ids::Commit;

use super::disk::{canonical_path, remove_if_exists};
use super::worktree::read_marker;
use super::{GitError, Repository, Worktree};
use crate::remove_tree;

impl Repository {
    /// The worktree in which a merge is checked, at this commit. Ignored files stay between landings, so that
    /// builds are incremental.
    pub fn integration_worktree(&self, path: &Path, commit: &Commit) -> Result<Worktree, GitError> {
        match self.worktree(path) {
            Ok(found) if found.exists() && found.branch().is_none() => {
                found.check_out_clean(commit)?;
                Ok(found)
            }
            Ok(_) | Err(GitError::WorktreeGone(_) | GitError::NotOurs(_)) => {
                self.remove_integration_worktree(path)?;
                self.add_detached(path, commit)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes an incomplete integration worktree left by a killed process.
    fn remove_integration_worktree(&self, path: &Path) -> Result<(), GitError> {
        let path = canonical_path(path)?;
        let Some(git_dir) = self.registered_git_dir(&path)? else { return Ok(()) };
        // Only signoff leaves a worktree without marker and index.
        let is_ours = read_marker(&git_dir) == Some(None) || !git_dir.join("index").exists();
        if !is_ours {
            return Err(GitError::NotOurs(path));
        }
        remove_if_exists(&path)?;
        self.with_lock(|| remove_tree::remove(&git_dir).map_err(GitError::at(&git_dir)))
    }
}

impl Worktree {
    /// Sets files, index and `HEAD` to a commit, and removes everything else that is not ignored.
    fn check_out_clean(&self, commit: &Commit) -> Result<(), GitError> {
        self.restore_git_file()?;
        self.clear_stale_lock()?;
        let asked = ["update-ref", "--no-deref", "HEAD", commit.as_str()];
        self.repository.isolated_git(self.place())?.args(asked).read()?;
        self.reset_to(commit)?;
        self.repository.isolated_git(self.place())?.args(["clean", "-ffdq"]).read().map(drop)
    }

    fn reset_to(&self, commit: &Commit) -> Result<(), GitError> {
        let asked = ["read-tree", "--reset", "-u", commit.as_str()];
        self.repository.isolated_git(self.place())?.args(asked).read().map(drop)
    }

    /// Updates the files to the commit its branch was moved to. Everything in it must be committed.
    pub fn check_out_branch(&self, commit: &Commit) -> Result<(), GitError> {
        let Some(branch) = self.branch().filter(|_| self.exists()) else { return Ok(()) };
        self.restore_git_file()?;
        self.clear_stale_lock()?;
        let name = format!("refs/heads/{branch}");
        self.repository.isolated_git(self.place())?.args(["symbolic-ref", "HEAD", &name]).read()?;
        self.reset_to(commit)
    }
}
