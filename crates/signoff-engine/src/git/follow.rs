//! A branch that follows where somebody got without it.
//!
//! Git changes a branch by making a file beside that of the branch, where all the other branches are. Who may make that
//! one may make them all. So whoever is held works off its branch, which follows when the work has ended.

use signoff_core::ids::Commit;

use super::disk::{content, remove_if_there, write_whole};
use super::tips::is_id;
use super::{GitError, Tips, Worktree};

/// Where a worktree's git directory says where the rest is.
const COMMON: &str = "commondir";

/// What git writes there.
const USUAL: &[u8] = b"../..\n";

impl Worktree {
    /// Brings the branch to where somebody got without it, and `HEAD` back to the branch. Where that does not go on from
    /// where the branch began, all stays as it is.
    pub fn follow(&self) -> Result<(), GitError> {
        self.link()?;
        let Some((branch, head)) = self.branch().zip(self.detached_at()) else { return Ok(()) };
        // Mostly nobody committed anything, and files tell as much.
        if Tips::of_common(self.repository.common()).of_file(branch).as_deref() == Some(head.as_str()) {
            return write_whole(&self.git_dir.join("HEAD"), format!("ref: refs/heads/{branch}\n").as_bytes());
        }
        let known = self.repository.known(branch)?;
        let Some(tip) = known.tip.map(|tip| tip.commit) else { return Ok(()) };
        let ancestor =
            |one: &Commit, other: &Commit| self.repository.is_ancestor(one.as_str(), other.as_str());
        let (is_ahead, is_behind) = (ancestor(&tip, &head)?, ancestor(&head, &tip)?);
        // What was made anew from the same beginning: amended, or rebased.
        let goes_on = || match &known.base {
            Some(base) => self.repository.is_ancestor(base.as_str(), head.as_str()),
            None => Ok(false),
        };
        if is_ahead || (!is_behind && goes_on()?) { self.move_branch(branch, &head) } else { Ok(()) }
    }

    /// Makes its git directory say where the rest is, whatever was put there, and nothing about how git is to work: the
    /// person's git would do it.
    pub(super) fn share(&self) -> Result<(), GitError> {
        remove_if_there(&self.git_dir.join("config.worktree"))?;
        let common = self.git_dir.join(COMMON);
        if content(&common).is_some_and(|said| said == USUAL) { Ok(()) } else { write_whole(&common, USUAL) }
    }

    /// The commit that `HEAD` names itself.
    pub(super) fn detached_at(&self) -> Option<Commit> {
        let head = String::from_utf8(content(&self.git_dir.join("HEAD"))?).ok()?;
        let commit = head.trim_end();
        is_id(commit).then(|| Commit::new(commit))
    }
}
