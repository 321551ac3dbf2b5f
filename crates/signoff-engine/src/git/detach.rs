//! A worktree off its branch while somebody works in it who may write to no ref but its own `HEAD`.
//!
//! Git changes a branch by making a file beside that of the branch, where all the other branches are. Who may make that
//! one may make them all. `HEAD` lies in the worktree's own git directory: off its branch, all commits are made there,
//! and the branch follows when the work has ended.

use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;

use super::disk::{content, write_whole};
use super::tips::is_id;
use super::{GitError, Repository, Worktree};

impl Repository {
    /// Where all worktrees keep what was committed.
    pub fn objects(&self) -> PathBuf {
        self.common().join("objects")
    }
}

impl Worktree {
    /// What git keeps for this worktree alone.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Takes `HEAD` off the branch; files, index and branch stay.
    pub fn detach(&self) -> Result<(), GitError> {
        self.there()?;
        if self.branch().is_none() || self.detached_at().is_some() {
            return Ok(());
        }
        match self.loose_commit() {
            Some(commit) => write_whole(&self.git_dir.join("HEAD"), format!("{commit}\n").as_bytes()),
            // Refs may be kept in another form.
            None => {
                let commit = self.head()?.commit;
                let asked = ["update-ref", "--no-deref", "HEAD", commit.as_str()];
                self.repository.sealed(self.place())?.args(asked).read().map(drop)
            }
        }
    }

    /// Brings the branch to where somebody got without it, and `HEAD` back to the branch. Where that does not go on from
    /// where the branch began, all stays as it is.
    pub fn follow(&self) -> Result<(), GitError> {
        let Some((branch, head)) = self.branch().zip(self.detached_at()) else { return Ok(()) };
        let known = self.repository.known(branch)?;
        let Some(tip) = known.tip.map(|tip| tip.commit) else { return Ok(()) };
        let (is_ahead, is_behind) = if tip == head {
            (true, false)
        } else {
            let ancestor = |one: &Commit, other: &Commit| {
                self.repository.is_ancestor(one.as_str(), other.as_str())
            };
            (ancestor(&tip, &head)?, ancestor(&head, &tip)?)
        };
        // What was made anew from the same beginning: amended, or rebased.
        let goes_on = || match &known.base {
            Some(base) => self.repository.is_ancestor(base.as_str(), head.as_str()),
            None => Ok(false),
        };
        if is_ahead || (!is_behind && goes_on()?) { self.move_branch(branch, &head) } else { Ok(()) }
    }

    /// The commit that `HEAD` names itself.
    fn detached_at(&self) -> Option<Commit> {
        let head = String::from_utf8(content(&self.git_dir.join("HEAD"))?).ok()?;
        let commit = head.trim_end();
        is_id(commit).then(|| Commit::new(commit))
    }
}
