//! Moves a target branch together with its checkout.
//!
//! The branch moves first, by compare-and-swap. Then files and index follow while the index lock prevents
//! commits in the checkout. The update is recorded before it starts, so that the next process finishes it after
//! a kill: see `land_recovery`. Files of the user are never overwritten.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use signoff_core::ids::Commit;

use super::disk::{is_not_directory, remove_if_exists, write_durable};
use super::index_lock::IndexLock;
use super::repository::{GitPlace, path};
use super::stage::ScratchIndex;
use super::status::{GitStatus, StatusKind};
use super::{GitError, LandTarget, Operation, Repository};
use crate::failpoint;

/// Whether a branch was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveOutcome {
    Done,
    /// Another program moved the branch in the meantime.
    Conflict,
}

/// A recorded checkout update.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CheckoutUpdate {
    branch: String,
    /// An `OsString`, because a `PathBuf` serializes only as UTF-8.
    checkout: OsString,
    pub(super) from: Commit,
    pub(super) to: Commit,
}

impl CheckoutUpdate {
    pub(super) fn checkout(&self) -> &Path {
        Path::new(&self.checkout)
    }
}

/// A locked checkout, with the index that will replace its own.
#[derive(Debug)]
struct LockedCheckout {
    index: ScratchIndex,
    lock: IndexLock,
}

/// Maximum number of files that an error names.
const MAX_NAMED: usize = 3;

impl Repository {
    /// Moves a target to a descendant commit. If it is checked out, files and index follow.
    pub fn move_target(&self, target: &LandTarget, to: &Commit) -> Result<MoveOutcome, GitError> {
        self.check_no_operation(&target.branch)?;
        let Some(checkout) = target.worktree.as_ref().filter(|path| path.is_dir()) else {
            let moved = self.advance_branch(&target.branch, &target.tip.commit, to)?;
            failpoint::pass("target_moved");
            return Ok(if moved { MoveOutcome::Done } else { MoveOutcome::Conflict });
        };
        let forward = CheckoutUpdate {
            branch: target.branch.clone(),
            checkout: checkout.clone().into_os_string(),
            from: target.tip.commit.clone(),
            to: to.clone(),
        };
        let git_dir = self.git_dir_of(checkout)?;
        self.update_checked_out(
            GitPlace { git_dir: &git_dir, work_tree: checkout, index: None, objects: None },
            &forward,
        )
    }

    /// Checks whether a target can be moved now: if it is checked out, the checkout must be clean.
    pub fn check_movable(&self, target: &LandTarget) -> Result<(), GitError> {
        self.check_no_operation(&target.branch)?;
        let Some(checkout) = target.worktree.as_ref().filter(|path| path.is_dir()) else { return Ok(()) };
        let git_dir = self.git_dir_of(checkout)?;
        self.check_clean(GitPlace { git_dir: &git_dir, work_tree: checkout, index: None, objects: None }).map(drop)
    }

    fn update_checked_out(&self, place: GitPlace<'_>, update: &CheckoutUpdate) -> Result<MoveOutcome, GitError> {
        let note = self.update_record_path();
        let text = serde_json::to_vec(update).map_err(|error| GitError::at(&note)(error.into()))?;
        write_durable(&note, &text)?;
        let ready = match self.lock_checkout(place, update) {
            Ok(Some(ready)) if self.advance_branch(&update.branch, &update.from, &update.to)? => ready,
            not_moved => {
                remove_if_exists(&self.update_record_path())?;
                return not_moved.map(|_| MoveOutcome::Conflict);
            }
        };
        failpoint::pass("target_moved");
        self.follow_branch(place, update, &ready)?;
        drop(ready);
        remove_if_exists(&self.update_record_path())?;
        Ok(MoveOutcome::Done)
    }

    /// Locks the checkout's index and checks again whether the checkout can follow. Until the lock is released,
    /// the old index cannot be committed on top of the new branch tip. Returns `None` if the checkout is at
    /// another commit.
    fn lock_checkout(&self, place: GitPlace<'_>, update: &CheckoutUpdate) -> Result<Option<LockedCheckout>, GitError> {
        let lock = IndexLock::acquire(self.git(), place.git_dir)?;
        failpoint::pass("index_locked");
        let status = self.check_clean(place)?;
        if status.branch.as_ref() != Some(&update.branch) || status.head.as_ref() != Some(&update.from) {
            return Ok(None);
        }
        let locked = LockedCheckout { index: self.scratch_index(place.git_dir)?, lock };
        self.check_nothing_overwritten(GitPlace { index: Some(&locked.index.path), ..place }, update)?;
        Ok(Some(locked))
    }

    fn follow_branch(
        &self,
        place: GitPlace<'_>,
        forward: &CheckoutUpdate,
        ready: &LockedCheckout,
    ) -> Result<(), GitError> {
        let aside = GitPlace { index: Some(&ready.index.path), ..place };
        if self.read_tree_two_way(aside, forward, &["-u"]).is_err() {
            // A file changed in the meantime.
            return self.record_left_files(self.update_checkout(place, forward, &ready.lock));
        }
        failpoint::pass("files_followed");
        ready.lock.replace_index(&ready.index.path)?;
        failpoint::pass("index_followed");
        Ok(())
    }

    /// Like `finish_checkout_update`, unless a landing is in progress.
    pub fn repair_checkout(&self) -> Result<(), GitError> {
        self.record_left_files(self.try_finish_checkout_update())
    }

    /// Fails if the checkout has uncommitted changes to tracked files.
    fn check_clean(&self, place: GitPlace<'_>) -> Result<GitStatus, GitError> {
        if let Some(operation) = Operation::unfinished_in(place.git_dir) {
            return Err(GitError::Unfinished { worktree: place.work_tree.to_owned(), operation });
        }
        let status = self.status(place)?;
        let tracked = status.entries.iter().filter(|entry| match entry.kind {
            StatusKind::Tracked { .. } | StatusKind::Unmerged => true,
            StatusKind::Untracked | StatusKind::Nested => false,
        });
        let changed: Vec<&PathBuf> = tracked.map(|entry| &entry.path).collect();
        if !changed.is_empty() {
            return Err(dirty_error(place.work_tree, changed.into_iter()));
        }
        Ok(status)
    }

    /// Fails if an untracked file, ignored or not, would be overwritten.
    fn check_nothing_overwritten(&self, place: GitPlace<'_>, update: &CheckoutUpdate) -> Result<(), GitError> {
        let asked = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A"];
        let (from, to) = (update.from.as_str(), update.to.as_str());
        let added = self.isolated_git(place)?.args(asked).args([from, to]).read()?;
        let added = added.split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(path);
        let found: BTreeSet<PathBuf> =
            added.filter_map(|file| blocking_path(place.work_tree, &file).map(Path::to_owned)).collect();
        for file in found {
            // A directory that becomes a file may contain untracked files, which would be lost.
            let asked = ["ls-files", "--others", "-z", "--"];
            let others = self.isolated_git(place)?.args(asked).arg_path(&file).read()?;
            if !others.is_empty() {
                return Err(GitError::WouldOverwrite { checkout: place.work_tree.to_owned(), file });
            }
        }
        // Makes git treat files with only a newer time as unchanged.
        self.isolated_git(place)?.args(["update-index", "-q", "--refresh"]).run()?;
        self.read_tree_two_way(place, update, &["-u", "-n"])
    }

    fn read_tree_two_way(&self, place: GitPlace<'_>, update: &CheckoutUpdate, flags: &[&str]) -> Result<(), GitError> {
        let (from, to) = (update.from.as_str(), update.to.as_str());
        self.isolated_git(place)?.args(["read-tree", "-m"]).args(flags).args([from, to]).read().map(drop)
    }

    pub(super) fn update_record_path(&self) -> PathBuf {
        self.common().join("signoff/forward.json")
    }

    /// The git directory of any checkout of this repository.
    pub(super) fn git_dir_of(&self, checkout: &Path) -> Result<PathBuf, GitError> {
        let here = self.checkout_place();
        if checkout == here.work_tree {
            return Ok(here.git_dir.to_owned());
        }
        match self.registered_git_dir(checkout)? {
            Some(git_dir) => Ok(git_dir),
            None if checkout == self.root() => Ok(self.common().to_owned()),
            None => Err(GitError::WorktreeGone(checkout.to_owned())),
        }
    }
}

/// What exists at a file's path, or in place of one of its parent directories.
pub(super) fn blocking_path<'a>(work_tree: &Path, file: &'a Path) -> Option<&'a Path> {
    let above = file.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    let above: Vec<&Path> = above.collect();
    let blocks = |above: &&&Path| is_not_directory(&work_tree.join(above));
    let found = above.iter().rev().find(blocks).copied();
    found.or_else(|| work_tree.join(file).symlink_metadata().is_ok().then_some(file))
}

fn dirty_error<'a>(checkout: &Path, files: impl ExactSizeIterator<Item = &'a PathBuf>) -> GitError {
    let more = files.len().saturating_sub(MAX_NAMED);
    let named: Vec<String> = files.take(MAX_NAMED).map(|file| file.display().to_string()).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    GitError::Dirty { checkout: checkout.to_owned(), files: format!("{}{more}", named.join(", ")) }
}
