//! Moves a branch to the commits that a sandboxed agent made on a detached `HEAD`.
//!
//! To update a branch, git creates a file in the directory that contains all branches. A sandbox that allows
//! this for one branch allows it for all. So a sandboxed agent works on a detached `HEAD`, and the branch
//! follows afterwards.

use signoff_core::ids::Commit;

use super::disk::{content, remove_if_exists, write_atomic};
use super::refs::is_id;
use super::{BranchTips, GitError, Worktree};

/// File in a worktree's git directory with the path of the common directory.
const COMMON_DIR_FILE: &str = "commondir";

/// Git's standard content of that file.
const STANDARD_COMMON_DIR: &[u8] = b"../..\n";

impl Worktree {
    /// Moves the branch to the detached `HEAD` and attaches `HEAD` again. Does nothing if `HEAD` does not
    /// descend from the branch's base.
    pub fn sync_branch(&self) -> Result<(), GitError> {
        self.restore_git_file()?;
        let Some((branch, head)) = self.branch().zip(self.detached_commit()) else { return Ok(()) };
        // Usually nothing was committed, and files show that without a git process.
        if BranchTips::from_common_dir(self.repository.common()).commit_from_files(branch).as_deref()
            == Some(head.as_str())
        {
            return write_atomic(&self.git_dir.join("HEAD"), format!("ref: refs/heads/{branch}\n").as_bytes());
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

    /// Restores the path of the common directory and removes `config.worktree`, whose settings the user's git would
    /// use.
    pub(super) fn restore_common_dir(&self) -> Result<(), GitError> {
        remove_if_exists(&self.git_dir.join("config.worktree"))?;
        let common = self.git_dir.join(COMMON_DIR_FILE);
        if content(&common).is_some_and(|said| said == STANDARD_COMMON_DIR) {
            Ok(())
        } else {
            write_atomic(&common, STANDARD_COMMON_DIR)
        }
    }

    /// The commit that a detached `HEAD` contains.
    pub(super) fn detached_commit(&self) -> Option<Commit> {
        let head = String::from_utf8(content(&self.git_dir.join("HEAD"))?).ok()?;
        let commit = head.trim_end();
        is_id(commit).then(|| Commit::new(commit))
    }
}
