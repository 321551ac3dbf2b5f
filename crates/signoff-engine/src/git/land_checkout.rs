//! Moving a target branch together with the checkout it is checked out in.
//!
//! The branch moves first, by compare-and-swap; then files and index follow. What is under way is written down before,
//! so that a program that was killed in between is finished by the next one. Nothing of the person's is overwritten.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use signoff_core::ids::Commit;

use super::disk::{remove_if_there, write_synced};
use super::repository::{Place, path};
use super::stage::ScratchIndex;
use super::status::{FileState, Kind, Status};
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
struct Forward {
    branch: String,
    /// Not a path, of which only text could be written down.
    checkout: OsString,
    from: Commit,
    to: Commit,
}

impl Forward {
    fn checkout(&self) -> &Path {
        Path::new(&self.checkout)
    }
}

/// So many files are named.
const NAMED: usize = 3;

impl Repository {
    /// Moves a target to a commit that continues it. Where it is checked out, files and index go with it.
    pub fn move_target(&self, target: &Target, to: &Commit) -> Result<Moved, GitError> {
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
        let place = Place { git_dir: &git_dir, work_tree: checkout, index: None };
        self.check_clean(place)?;
        self.check_nothing_overwritten(place, &forward)?;
        self.forward(place, &forward)
    }

    /// Whether a target could be moved now: where it is checked out, nothing must be in the way.
    pub fn check_movable(&self, target: &Target) -> Result<(), GitError> {
        let Some(checkout) = target.used_by.as_ref().filter(|path| path.is_dir()) else { return Ok(()) };
        let git_dir = self.git_dir_of(checkout)?;
        self.check_clean(Place { git_dir: &git_dir, work_tree: checkout, index: None })
    }

    fn forward(&self, place: Place<'_>, forward: &Forward) -> Result<Moved, GitError> {
        let note = self.forward_note();
        let text = serde_json::to_vec(forward).map_err(|error| GitError::at(&note)(error.into()))?;
        write_synced(&note, &text)?;
        if !self.advance(&forward.branch, &forward.from, &forward.to)? {
            remove_if_there(&self.forward_note())?;
            return Ok(Moved::Elsewhere);
        }
        failpoint::pass("target_moved");
        let followed = self.two_way(place, forward, &["-u"]);
        if followed.is_err() {
            // Somebody was quicker with a change of their own: nothing has happened.
            self.advance(&forward.branch, &forward.to, &forward.from)?;
        }
        remove_if_there(&self.forward_note())?;
        followed.map(|()| Moved::Done)
    }

    /// Finishes what a killed program had begun, for whoever is about to work here; unless somebody is landing
    /// something just now, who does it.
    pub fn repair_checkout(&self) -> Result<(), GitError> {
        if !self.forward_note().exists() {
            return Ok(());
        }
        let lock = self.landing_lock();
        let file = fs::File::options().create(true).truncate(false).write(true).open(&lock);
        let file = file.map_err(GitError::at(&lock))?;
        if file.try_lock().is_ok() { self.finish_forward() } else { Ok(()) }
    }

    /// The same for whoever has the turn to land.
    pub fn finish_forward(&self) -> Result<(), GitError> {
        let note = self.forward_note();
        let Some(forward) = fs::read(&note).ok().and_then(|note| serde_json::from_slice(&note).ok()) else {
            return Ok(());
        };
        if self.is_behind(&forward)? {
            self.catch_up(&forward)?;
        }
        remove_if_there(&note)
    }

    /// Whether the branch moved and the index did not. If it is at neither end, the person took over.
    fn is_behind(&self, forward: &Forward) -> Result<bool, GitError> {
        let Forward { branch, from, to, .. } = forward;
        let checkout = forward.checkout();
        let Some(now) = self.target(branch)? else { return Ok(false) };
        if now.tip.commit != *to || now.used_by.as_deref() != Some(checkout) || !checkout.is_dir() {
            return Ok(false);
        }
        let git_dir = self.git_dir_of(checkout)?;
        let place = Place { git_dir: &git_dir, work_tree: checkout, index: None };
        let asked = ["diff-index", "--cached", "--quiet", from.as_str(), "--"];
        self.sealed(place)?.args(asked).run()?.yes()
    }

    /// The files are those of before or those of after, each of them; then they become those of after.
    fn catch_up(&self, forward: &Forward) -> Result<(), GitError> {
        let git_dir = self.git_dir_of(forward.checkout())?;
        let place = Place { git_dir: &git_dir, work_tree: forward.checkout(), index: None };
        let index = ScratchIndex { path: self.seal()?.scratch() };
        let after = Place { index: Some(&index.path), ..place };
        self.sealed(after)?.args(["read-tree", forward.to.as_str()]).read()?;
        let (before, after) = (self.differing(place)?, self.differing(after)?);
        let foreign: Vec<&PathBuf> = before.intersection(&after).collect();
        if !foreign.is_empty() {
            return Err(dirty(forward.checkout(), foreign.into_iter()));
        }
        self.sealed(place)?.args(["read-tree", "--reset", "-u", forward.to.as_str()]).read().map(drop)
    }

    /// The files that are not as the index has them.
    fn differing(&self, place: Place<'_>) -> Result<BTreeSet<PathBuf>, GitError> {
        let status = self.status(place)?;
        let differs = |kind: Kind| match kind {
            Kind::Tracked { file, .. } => file != FileState::Same,
            Kind::Unmerged | Kind::Untracked => true,
            Kind::Nested => false,
        };
        let differing = status.entries.into_iter().filter(|entry| differs(entry.kind));
        Ok(differing.map(|entry| entry.path).collect())
    }

    /// A person's changes are not put into anything, and nothing is put into them.
    fn check_clean(&self, place: Place<'_>) -> Result<(), GitError> {
        if let Some(operation) = Operation::left_in(place.git_dir) {
            return Err(GitError::Unfinished { worktree: place.work_tree.to_owned(), operation });
        }
        let Status { entries, .. } = self.status(place)?;
        let tracked = entries.iter().filter(|entry| match entry.kind {
            Kind::Tracked { .. } | Kind::Unmerged => true,
            Kind::Untracked | Kind::Nested => false,
        });
        let changed: Vec<&PathBuf> = tracked.map(|entry| &entry.path).collect();
        if !changed.is_empty() {
            return Err(dirty(place.work_tree, changed.into_iter()));
        }
        Ok(())
    }

    /// Files that git does not know, ignored ones included, stay.
    fn check_nothing_overwritten(&self, place: Place<'_>, forward: &Forward) -> Result<(), GitError> {
        let asked = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A"];
        let (from, to) = (forward.from.as_str(), forward.to.as_str());
        let added = self.sealed(place)?.args(asked).args([from, to]).read()?;
        let added = added.split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(path);
        let in_the_way = |file: &PathBuf| place.work_tree.join(file).symlink_metadata().is_ok();
        let found: Vec<PathBuf> = added.filter(in_the_way).collect();
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

    fn forward_note(&self) -> PathBuf {
        self.common().join("signoff/forward.json")
    }

    /// The git directory of a checkout of this repository, whoever made it.
    fn git_dir_of(&self, checkout: &Path) -> Result<PathBuf, GitError> {
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

fn dirty<'a>(checkout: &Path, files: impl ExactSizeIterator<Item = &'a PathBuf>) -> GitError {
    let more = files.len().saturating_sub(NAMED);
    let named: Vec<String> = files.take(NAMED).map(|file| file.display().to_string()).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    GitError::Dirty { checkout: checkout.to_owned(), files: format!("{}{more}", named.join(", ")) }
}
