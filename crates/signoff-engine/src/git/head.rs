//! The commit a worktree is at, and its tree.

use std::collections::HashMap;
use std::fs;
use std::sync::{Mutex, PoisonError};

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;

use super::repository::Place;
use super::{GitError, Worktree};

/// The trees of commits that somebody asked for. They never change, and many tasks begin at the same commit.
#[derive(Debug, Default)]
pub(super) struct Trees(Mutex<HashMap<Commit, Tree>>);

impl Trees {
    pub(super) fn keep(&self, head: &Head) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(head.commit.clone(), head.tree.clone());
    }

    fn of(&self, commit: &Commit) -> Option<Tree> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(commit).cloned()
    }
}

impl Worktree {
    /// The commit it is at, with its tree.
    pub fn head(&self) -> Result<Head, GitError> {
        self.head_at(self.place())
    }

    pub(super) fn head_at(&self, place: Place<'_>) -> Result<Head, GitError> {
        self.there()?;
        if let Some(known) = self.known_head() {
            return Ok(known);
        }
        let asked = ["rev-parse", "HEAD^{commit}", "HEAD^{tree}"];
        let printed = self.repository.sealed(place)?.args(asked).read_line()?;
        let (commit, tree) = printed.split_once('\n').unwrap_or((&printed, ""));
        Ok(Head { commit: Commit::new(commit), tree: Tree::new(tree) })
    }

    /// What can be told without asking git: its branch has a file of its own, which names a commit that was asked for
    /// before.
    fn known_head(&self) -> Option<Head> {
        let head = fs::read_to_string(self.git_dir.join("HEAD")).ok()?;
        let branch = head.trim_end().strip_prefix("ref: refs/heads/")?;
        let commit = fs::read_to_string(self.repository.common().join("refs/heads").join(branch)).ok()?;
        let commit = Commit::new(commit.trim_end());
        let tree = self.repository.trees().of(&commit)?;
        Some(Head { commit, tree })
    }
}
