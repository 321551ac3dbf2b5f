//! The commit a worktree is at, and its tree.

use std::collections::HashMap;
use std::fs;
use std::sync::{Mutex, PoisonError};

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;

use super::disk::content;
use super::refs::is_id;
use super::repository::GitPlace;
use super::{GitError, Worktree, index};

/// Cache of commits' trees. They never change, and many tasks start at the same commit.
#[derive(Debug, Default)]
pub(super) struct TreeCache(Mutex<HashMap<Commit, Tree>>);

impl TreeCache {
    pub(super) fn insert(&self, head: &Head) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(head.commit.clone(), head.tree.clone());
    }

    pub(super) fn get(&self, commit: &Commit) -> Option<Tree> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(commit).cloned()
    }
}

impl Worktree {
    /// The commit the worktree is at, with its tree.
    pub fn head(&self) -> Result<Head, GitError> {
        self.head_at(self.place())
    }

    pub(super) fn head_at(&self, place: GitPlace<'_>) -> Result<Head, GitError> {
        self.check_exists()?;
        if let Some(known) = self.cached_head() {
            return Ok(known);
        }
        let asked = ["rev-parse", "HEAD^{commit}", "HEAD^{tree}"];
        let printed = self.repository.isolated_git(place)?.args(asked).read_line()?;
        let (commit, tree) = printed.split_once('\n').unwrap_or((&printed, ""));
        let head = Head { commit: Commit::new(commit), tree: Tree::new(tree) };
        self.repository.trees().insert(&head);
        Ok(head)
    }

    /// Like [`Self::head`], right after a commit: the index contains the tree, and the branch file the commit.
    pub(super) fn committed_head(&self) -> Result<Head, GitError> {
        let bytes = content(&self.git_dir.join("index")).unwrap_or_default();
        let tree = index::root_tree(&bytes, self.repository.isolated_dir()?.id_bytes()).map(Tree::new);
        match self.branch_file_commit().zip(tree) {
            Some((commit, tree)) => Ok(Head { commit, tree }),
            None => self.head(),
        }
    }

    /// The head without a git process: if the branch has a file of its own and its commit is in the cache.
    fn cached_head(&self) -> Option<Head> {
        let commit = self.branch_file_commit()?;
        let tree = self.repository.trees().get(&commit)?;
        Some(Head { commit, tree })
    }

    /// The commit in the branch's own file.
    pub(super) fn branch_file_commit(&self) -> Option<Commit> {
        let head = fs::read_to_string(self.git_dir.join("HEAD")).ok()?;
        let branch = head.trim_end().strip_prefix("ref: refs/heads/")?;
        let commit = fs::read_to_string(self.repository.common().join("refs/heads").join(branch)).ok()?;
        let commit = commit.trim_end();
        is_id(commit).then(|| Commit::new(commit))
    }
}
