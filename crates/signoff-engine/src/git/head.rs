//! The commit a worktree is at, and its branch.
//!
//! To update a branch, git creates a file in the directory that contains all branches. A sandbox that allows
//! this for one branch allows it for all. So a sandboxed agent works on a detached `HEAD`, and the branch
//! follows afterwards.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;

use super::branch::is_id;
use super::disk::{content, read_short, write_atomic};
use super::status::GitStatus;
use super::{GitError, Worktree, index};
use crate::atomic_file::WriteMode;

/// The content of a `HEAD` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HeadFile {
    Commit(Commit),
    /// The full name of a ref.
    Ref(String),
    /// The file is missing, or git would not accept its directory as a git directory.
    Invalid,
}

impl HeadFile {
    pub(super) fn read(git_dir: &Path) -> Self {
        let text = read_short(&git_dir.join("HEAD")).unwrap_or_default();
        match (text.trim_end().strip_prefix("ref: "), text.trim_end()) {
            (Some(name), _) if name.starts_with("refs/") => Self::Ref(name.to_owned()),
            (None, id) if is_id(id) => Self::Commit(Commit::new(id)),
            (Some(_) | None, _) => Self::Invalid,
        }
    }

    pub(super) fn branch(&self) -> Option<&str> {
        let Self::Ref(name) = self else { return None };
        name.strip_prefix("refs/heads/")
    }
}

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
        self.check_exists()?;
        // Files and the cache often show it without a git process.
        if let Some(commit) = self.branch_file_commit()
            && let Some(tree) = self.repository.inner.trees.get(&commit)
        {
            return Ok(Head { commit, tree });
        }
        let printed = self.isolated_git("rev-parse")?.args(["HEAD^{commit}", "HEAD^{tree}"]).read_line()?;
        let (commit, tree) = printed.split_once('\n').unwrap_or((&printed, ""));
        let head = Head { commit: Commit::new(commit), tree: Tree::new(tree) };
        self.repository.inner.trees.insert(&head);
        Ok(head)
    }

    /// Like [`Self::head`], right after a commit: the index contains the tree, and the branch file the commit.
    pub(super) fn committed_head(&self) -> Result<Head, GitError> {
        let bytes = content(&self.git_dir.join("index")).unwrap_or_default();
        let tree = index::root_tree(&bytes, self.repository.isolated_dir()?.id_bytes).map(Tree::new);
        match self.branch_file_commit().zip(tree) {
            Some((commit, tree)) => Ok(Head { commit, tree }),
            None => self.head(),
        }
    }

    /// The commit of the branch that `HEAD` names, as far as ref files contain it.
    pub(super) fn branch_file_commit(&self) -> Option<Commit> {
        self.repository.branch_file_tip(HeadFile::read(&self.git_dir).branch()?)
    }

    /// Moves the branch to the detached `HEAD` and attaches `HEAD` again. Does nothing if `HEAD` does not
    /// descend from the branch's base.
    pub fn sync_branch(&self) -> Result<(), GitError> {
        self.restore_git_file()?;
        let Some((branch, head)) = self.branch().zip(self.detached_commit()) else { return Ok(()) };
        // Usually nothing was committed, and files show that without a git process.
        if self.repository.is_at(branch, &head) {
            return write_atomic(
                &self.git_dir.join("HEAD"),
                format!("ref: refs/heads/{branch}\n").as_bytes(),
                WriteMode::Plain,
            );
        }
        let known = self.repository.branch_refs(branch)?;
        let Some(tip) = known.tip.map(|tip| tip.commit) else { return Ok(()) };
        let ancestor = |one: &Commit, other: &Commit| self.repository.is_ancestor(one.as_str(), other.as_str());
        let (is_ahead, is_behind) = (ancestor(&tip, &head)?, ancestor(&head, &tip)?);
        // Amended or rebased: the branch was rewritten from the same base.
        let is_rewritten = || match &known.base {
            Some(base) => self.repository.is_ancestor(base.as_str(), head.as_str()),
            None => Ok(false),
        };
        if is_ahead || (!is_behind && is_rewritten()?) { self.move_branch(branch, &head) } else { Ok(()) }
    }

    /// Updates the files to the commit its branch was moved to. Everything in it must be committed.
    pub fn check_out_branch(&self, commit: &Commit) -> Result<(), GitError> {
        let Some(branch) = self.branch().filter(|_| self.exists()) else { return Ok(()) };
        self.restore_git_file()?;
        self.clear_stale_lock()?;
        let name = format!("refs/heads/{branch}");
        self.isolated_git("symbolic-ref HEAD")?.args([&name]).execute()?;
        self.reset_to(commit.as_str())
    }

    /// The commit that a detached `HEAD` contains.
    pub(super) fn detached_commit(&self) -> Option<Commit> {
        let HeadFile::Commit(commit) = HeadFile::read(&self.git_dir) else { return None };
        Some(commit)
    }

    /// Updates index and files to the branch. Otherwise the next commit would revert what was committed elsewhere.
    /// Keeps uncommitted changes; if they conflict, changes nothing.
    pub(super) fn sync_to_branch(&self) -> Result<(), GitError> {
        let Some((was, tip)) = self.last_reflog_commit().zip(self.branch_file_commit()) else { return Ok(()) };
        // `HEAD` was moved in this worktree, or the branch was moved to an unrelated commit.
        if was == tip || !self.repository.is_ancestor(was.as_str(), tip.as_str()).unwrap_or(false) {
            return Ok(());
        }
        self.isolated_git("update-index -q --refresh")?.run()?;
        self.isolated_git("read-tree -m -u")?.args([was.as_str(), tip.as_str()]).run().map(drop)
    }

    /// The commit of the last `HEAD` update in this worktree, from its reflog.
    fn last_reflog_commit(&self) -> Option<Commit> {
        let log = content(&self.git_dir.join("logs/HEAD"))?;
        let last = log.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
        let id = std::str::from_utf8(last.split(|byte| *byte == b' ').nth(1)?).ok()?;
        is_id(id).then(|| Commit::new(id))
    }

    /// Moves `HEAD` back to the loop's branch if the agent left it, together with the agent's commits.
    pub(super) fn return_to_branch(&self, status: &GitStatus, dirty: bool) -> Result<(), GitError> {
        let Some(branch) = self.branch() else { return Ok(()) };
        let branch_gone = || GitError::BranchGone(branch.to_owned());
        let head = status.head.as_ref().ok_or_else(branch_gone)?;
        if status.branch.as_deref() == Some(branch) {
            return Ok(());
        }
        let known = self.repository.branch_refs(branch)?;
        // A renamed or deleted branch starts again at its base.
        let tip = known.tip.map(|tip| tip.commit).or(known.base).ok_or_else(branch_gone)?;
        if self.repository.is_ancestor(tip.as_str(), head.as_str())? {
            self.move_branch(branch, head)
        } else if !dirty && self.repository.is_ancestor(head.as_str(), tip.as_str())? {
            self.move_branch(branch, &tip)?;
            self.reset_to("HEAD")
        } else {
            let worktree = self.path().to_owned();
            Err(GitError::OffBranch { worktree, branch: branch.to_owned(), head: head.clone() })
        }
    }

    /// Moves the branch to a commit and attaches `HEAD` to it. Files and index stay.
    pub(super) fn move_branch(&self, branch: &str, commit: &Commit) -> Result<(), GitError> {
        let name = format!("refs/heads/{branch}");
        self.isolated_git("update-ref -m")?.args(["signoff: return to branch", &name, commit.as_str()]).execute()?;
        self.isolated_git("symbolic-ref HEAD")?.args([&name]).execute()
    }

    /// Resets branch and files to `to`. Everything after it stays on the branch `parked_branch`, including uncommitted
    /// work. Returns whether there was anything to move.
    pub fn park_branch(&self, to: &Commit, parked_branch: &str, message: &str) -> Result<bool, GitError> {
        let head = self.commit_all(message)?.head;
        let Some(branch) = self.branch().filter(|_| head.commit != *to) else { return Ok(false) };
        let name = format!("refs/heads/{parked_branch}");
        self.isolated_git("update-ref -m")?.args(["signoff: park branch", &name, head.commit.as_str()]).execute()?;
        self.move_branch(branch, to)?;
        self.reset_to("HEAD")?;
        Ok(true)
    }
}
