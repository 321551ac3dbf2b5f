//! Moving a target branch together with the checkout it is checked out in.
//!
//! The branch moves first, by compare-and-swap; then files and index follow, while the lock of the index keeps every
//! other git from committing there. What is under way is written down before, so that a program that was killed in
//! between is finished by the next one: see `land_behind`. Nothing of the person's is overwritten.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use signoff_core::ids::Commit;

use super::disk::{is_in_the_way, remove_if_there, write_synced};
use super::index_lock::IndexLock;
use super::repository::{Place, path};
use super::stage::ScratchIndex;
use super::status::{Kind, Status};
use super::{GitError, Operation, Repository, Target};
use crate::failpoint;

/// Whether a branch was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    Done,
    /// It is not where it was: somebody else moved it.
    Elsewhere,
}

/// A checkout that follows its branch.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Forward {
    branch: String,
    /// Not a path, of which only text could be written down.
    checkout: OsString,
    pub(super) from: Commit,
    pub(super) to: Commit,
}

impl Forward {
    pub(super) fn checkout(&self) -> &Path {
        Path::new(&self.checkout)
    }
}

/// A checkout nobody else commits in, with the index that is to become its own.
#[derive(Debug)]
struct Ready {
    index: ScratchIndex,
    lock: IndexLock,
}

/// So many files are named.
const NAMED: usize = 3;

impl Repository {
    /// Moves a target to a commit that continues it. Where it is checked out, files and index go with it.
    pub fn move_target(&self, target: &Target, to: &Commit) -> Result<Moved, GitError> {
        self.check_not_under_way(&target.branch)?;
        let Some(checkout) = target.used_by.as_ref().filter(|path| path.is_dir()) else {
            let moved = self.advance(&target.branch, &target.tip.commit, to)?;
            failpoint::pass("target_moved");
            return Ok(if moved { Moved::Done } else { Moved::Elsewhere });
        };
        let forward = Forward {
            branch: target.branch.clone(),
            checkout: checkout.clone().into_os_string(),
            from: target.tip.commit.clone(),
            to: to.clone(),
        };
        let git_dir = self.git_dir_of(checkout)?;
        self.forward(Place { git_dir: &git_dir, work_tree: checkout, index: None, objects: None }, &forward)
    }

    /// Whether a target could be moved now: where it is checked out, nothing must be in the way.
    pub fn check_movable(&self, target: &Target) -> Result<(), GitError> {
        self.check_not_under_way(&target.branch)?;
        let Some(checkout) = target.used_by.as_ref().filter(|path| path.is_dir()) else { return Ok(()) };
        let git_dir = self.git_dir_of(checkout)?;
        self.check_clean(Place { git_dir: &git_dir, work_tree: checkout, index: None, objects: None })
            .map(drop)
    }

    fn forward(&self, place: Place<'_>, forward: &Forward) -> Result<Moved, GitError> {
        let note = self.forward_note();
        let text = serde_json::to_vec(forward).map_err(|error| GitError::at(&note)(error.into()))?;
        write_synced(&note, &text)?;
        let ready = match self.make_ready(place, forward) {
            Ok(Some(ready)) if self.advance(&forward.branch, &forward.from, &forward.to)? => ready,
            not_moved => {
                remove_if_there(&self.forward_note())?;
                return not_moved.map(|_| Moved::Elsewhere);
            }
        };
        failpoint::pass("target_moved");
        self.follow(place, forward, &ready)?;
        drop(ready);
        remove_if_there(&self.forward_note())?;
        Ok(Moved::Done)
    }

    /// Takes the lock of the checkout's index, and looks once more whether it can follow. Until the lock is free again
    /// nobody can commit there what the old index holds on top of where the branch is then. None: the checkout is
    /// not where it was.
    fn make_ready(&self, place: Place<'_>, forward: &Forward) -> Result<Option<Ready>, GitError> {
        let lock = IndexLock::take(self.git(), place.git_dir)?;
        failpoint::pass("index_locked");
        let status = self.check_clean(place)?;
        if status.branch.as_ref() != Some(&forward.branch) || status.head.as_ref() != Some(&forward.from) {
            return Ok(None);
        }
        let ready = Ready { index: self.scratch_index(place.git_dir)?, lock };
        self.check_nothing_overwritten(Place { index: Some(&ready.index.path), ..place }, forward)?;
        Ok(Some(ready))
    }

    fn follow(&self, place: Place<'_>, forward: &Forward, ready: &Ready) -> Result<(), GitError> {
        let aside = Place { index: Some(&ready.index.path), ..place };
        if self.two_way(aside, forward, &["-u"]).is_err() {
            // Somebody was quicker with a change of their own.
            return self.telling(self.catch_up(place, forward, &ready.lock));
        }
        failpoint::pass("files_followed");
        ready.lock.put(&ready.index.path)?;
        failpoint::pass("index_followed");
        Ok(())
    }

    /// The same for whoever is about to work here, unless somebody is landing something just now.
    pub fn repair_checkout(&self) -> Result<(), GitError> {
        self.telling(self.free_checkout())
    }

    /// A person's changes are not put into anything, and nothing is put into them.
    fn check_clean(&self, place: Place<'_>) -> Result<Status, GitError> {
        if let Some(operation) = Operation::left_in(place.git_dir) {
            return Err(GitError::Unfinished { worktree: place.work_tree.to_owned(), operation });
        }
        let status = self.status(place)?;
        let tracked = status.entries.iter().filter(|entry| match entry.kind {
            Kind::Tracked { .. } | Kind::Unmerged => true,
            Kind::Untracked | Kind::Nested => false,
        });
        let changed: Vec<&PathBuf> = tracked.map(|entry| &entry.path).collect();
        if !changed.is_empty() {
            return Err(dirty(place.work_tree, changed.into_iter()));
        }
        Ok(status)
    }

    /// Files that git does not know, ignored ones included, stay.
    fn check_nothing_overwritten(&self, place: Place<'_>, forward: &Forward) -> Result<(), GitError> {
        let asked = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A"];
        let (from, to) = (forward.from.as_str(), forward.to.as_str());
        let added = self.sealed(place)?.args(asked).args([from, to]).read()?;
        let added = added.split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(path);
        let found: BTreeSet<PathBuf> =
            added.filter_map(|file| in_the_way(place.work_tree, &file).map(Path::to_owned)).collect();
        for file in found {
            // A directory that becomes a file holds what git knows, or else something that would be lost.
            let asked = ["ls-files", "--others", "-z", "--"];
            let others = self.sealed(place)?.args(asked).arg_path(&file).read()?;
            if !others.is_empty() {
                return Err(GitError::WouldOverwrite { checkout: place.work_tree.to_owned(), file });
            }
        }
        // What was merely touched counts as unchanged from here on.
        self.sealed(place)?.args(["update-index", "-q", "--refresh"]).run()?;
        self.two_way(place, forward, &["-u", "-n"])
    }

    fn two_way(&self, place: Place<'_>, forward: &Forward, how: &[&str]) -> Result<(), GitError> {
        let (from, to) = (forward.from.as_str(), forward.to.as_str());
        self.sealed(place)?.args(["read-tree", "-m"]).args(how).args([from, to]).read().map(drop)
    }

    pub(super) fn forward_note(&self) -> PathBuf {
        self.common().join("signoff/forward.json")
    }

    /// The git directory of a checkout of this repository, whoever made it.
    pub(super) fn git_dir_of(&self, checkout: &Path) -> Result<PathBuf, GitError> {
        let here = self.here();
        if checkout == here.work_tree {
            return Ok(here.git_dir.to_owned());
        }
        match self.registered(checkout)? {
            Some(git_dir) => Ok(git_dir),
            None if checkout == self.root() => Ok(self.common().to_owned()),
            None => Err(GitError::WorktreeGone(checkout.to_owned())),
        }
    }
}

/// What is there where a file is to come, or where a directory for it has to be.
pub(super) fn in_the_way<'a>(work_tree: &Path, file: &'a Path) -> Option<&'a Path> {
    let above = file.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    let above: Vec<&Path> = above.collect();
    let blocks = |above: &&&Path| is_in_the_way(&work_tree.join(above));
    let found = above.iter().rev().find(blocks).copied();
    found.or_else(|| work_tree.join(file).symlink_metadata().is_ok().then_some(file))
}

fn dirty<'a>(checkout: &Path, files: impl ExactSizeIterator<Item = &'a PathBuf>) -> GitError {
    let more = files.len().saturating_sub(NAMED);
    let named: Vec<String> = files.take(NAMED).map(|file| file.display().to_string()).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    GitError::Dirty { checkout: checkout.to_owned(), files: format!("{}{more}", named.join(", ")) }
}
