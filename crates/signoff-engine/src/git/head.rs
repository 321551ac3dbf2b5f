//! The commit a worktree is at, and its tree.

use std::collections::HashMap;
use std::fs;
use std::sync::{Mutex, PoisonError};

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;

use super::disk::content;
use super::repository::Place;
use super::tips::is_id;
use super::{GitError, Worktree, index};

/// The trees of commits that somebody asked for. They never change, and many tasks begin at the same commit.
#[derive(Debug, Default)]
pub(super) struct Trees(Mutex<HashMap<Commit, Tree>>);

impl Trees {
    pub(super) fn keep(&self, head: &Head) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(head.commit.clone(), head.tree.clone());
    }

    pub(super) fn of(&self, commit: &Commit) -> Option<Tree> {
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
        let head = Head { commit: Commit::new(commit), tree: Tree::new(tree) };
        self.repository.trees().keep(&head);
        Ok(head)
    }

    /// The same right after git has committed: then the index names the tree, and the branch the commit.
    pub(super) fn committed_head(&self) -> Result<Head, GitError> {
        let bytes = content(&self.git_dir.join("index")).unwrap_or_default();
        let tree = index::root_tree(&bytes, self.repository.seal()?.id_bytes()).map(Tree::new);
        match self.loose_commit().zip(tree) {
            Some((commit, tree)) => Ok(Head { commit, tree }),
            None => self.head(),
        }
    }

    /// What can be told without asking git: its branch has a file of its own, which names a commit that was asked for
    /// before.
    fn known_head(&self) -> Option<Head> {
        let commit = self.loose_commit()?;
        let tree = self.repository.trees().of(&commit)?;
        Some(Head { commit, tree })
    }

    /// The commit that the file of its branch names.
    pub(super) fn loose_commit(&self) -> Option<Commit> {
        let head = fs::read_to_string(self.git_dir.join("HEAD")).ok()?;
        let branch = head.trim_end().strip_prefix("ref: refs/heads/")?;
        let commit = fs::read_to_string(self.repository.common().join("refs/heads").join(branch)).ok()?;
        let commit = commit.trim_end();
        is_id(commit).then(|| Commit::new(commit))
    }
}
