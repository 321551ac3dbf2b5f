//! A worktree off its branch while somebody works in it who may write to no ref but its own `HEAD`.
//!
//! Git changes a branch by making a file beside that of the branch, where all the other branches are. Who may make that
//! one may make them all. `HEAD` lies in the worktree's own git directory: off its branch, all commits are made there,
//! and the branch follows when the work has ended.
//!
//! Some commands of git also lock what all worktrees share, for a moment and for nothing. They find a directory with links
//! in its place, in which they may.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;

use super::disk::{content, remove_if_there, write_whole};
use super::tips::is_id;
use super::{GitError, Repository, Worktree};

impl Repository {
    /// Where all worktrees keep what was committed.
    pub fn objects(&self) -> [PathBuf; 2] {
        ["objects", "lfs"].map(|name| self.common().join(name))
    }
}

/// Where a worktree's git directory says where the rest is.
const COMMON: &str = "commondir";

/// What git writes there.
const USUAL: &[u8] = b"../..\n";

/// The one file that git would replace by another, and not write through a link.
const PACKED: &str = "packed-refs";

impl Worktree {
    /// What git keeps for this worktree alone.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Takes `HEAD` off the branch, and lets git find `stand_in` in place of what all worktrees share. Files, index and
    /// branch stay.
    pub fn detach(&self, stand_in: &Path) -> Result<(), GitError> {
        self.there()?;
        self.stand_in(stand_in).map_err(GitError::at(stand_in))?;
        let said = [stand_in.as_os_str().as_bytes(), b"\n"].concat();
        write_whole(&self.git_dir.join(COMMON), &said)?;
        self.leave_branch()
    }

    fn stand_in(&self, stand_in: &Path) -> io::Result<()> {
        fs::create_dir_all(stand_in)?;
        for entry in fs::read_dir(self.repository.common())? {
            let entry = entry?;
            let (real, own) = (entry.path(), stand_in.join(entry.file_name()));
            match own.symlink_metadata() {
                Ok(_) => {}
                Err(_) if entry.file_name() == PACKED => drop(fs::copy(real, own)?),
                Err(_) => symlink(real, own)?,
            }
        }
        Ok(())
    }

    fn leave_branch(&self) -> Result<(), GitError> {
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
        self.link()?;
        let Some((branch, head)) = self.branch().zip(self.detached_at()) else { return Ok(()) };
        let known = self.repository.known(branch)?;
        let Some(tip) = known.tip.map(|tip| tip.commit) else { return Ok(()) };
        let (is_ahead, is_behind) = if tip == head {
            (true, false)
        } else {
            let ancestor =
                |one: &Commit, other: &Commit| self.repository.is_ancestor(one.as_str(), other.as_str());
            (ancestor(&tip, &head)?, ancestor(&head, &tip)?)
        };
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
    fn detached_at(&self) -> Option<Commit> {
        let head = String::from_utf8(content(&self.git_dir.join("HEAD"))?).ok()?;
        let commit = head.trim_end();
        is_id(commit).then(|| Commit::new(commit))
    }
}
