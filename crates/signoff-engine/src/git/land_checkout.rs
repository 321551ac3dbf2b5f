//! Moves a target branch together with its checkout.
//!
//! The branch moves first, by compare-and-swap. Then files and index follow while the index lock prevents
//! commits in the checkout. The update is recorded before it starts, so that the next process finishes it after
//! a kill: see `land_recovery`. Files of the user are never overwritten.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use signoff_core::ids::Commit;
use signoff_core::machine::Head;

use super::command::wait;
use super::disk::{is_not_directory, parent_directories, remove_if_exists, write_atomic};
use super::error::{MAX_LISTED_FILES, list_first};
use super::head::HeadFile;
use super::isolated_dir::ScratchPath;
use super::repository::{GitDirs, pathspec};
use super::status::{GitStatus, StatusKind};
use super::{Git, GitError, Operation, Repository};
use crate::atomic_file::WriteMode;
use crate::failpoint;

/// A branch that work lands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandTarget {
    pub branch: String,
    pub tip: Head,
    /// The worktree it is checked out in.
    pub worktree: Option<PathBuf>,
}

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
    index: ScratchPath,
    lock: IndexLock,
}

impl Repository {
    /// The current state of a branch, or `None` if it does not exist.
    pub fn land_target(&self, branch: &str) -> Result<Option<LandTarget>, GitError> {
        if let Some(tip) = self.tip_if_not_checked_out(branch) {
            return Ok(Some(LandTarget { branch: branch.to_owned(), tip, worktree: None }));
        }
        let known = self.branch_refs(branch)?;
        let of = |tip| LandTarget { branch: branch.to_owned(), tip, worktree: known.used_by.clone() };
        Ok(known.tip.map(of))
    }

    /// The tip of a branch, if files show it and that it is checked out nowhere. Every landing asks, so this
    /// avoids a git process.
    fn tip_if_not_checked_out(&self, branch: &str) -> Option<Head> {
        let commit = self.branch_file_tip(branch)?;
        let tree = self.inner.trees.get(&commit)?;
        let name = format!("refs/heads/{branch}");
        let may_use = |git_dir: PathBuf| match HeadFile::read(&git_dir) {
            HeadFile::Ref(used) => used == name,
            HeadFile::Commit(_) => false,
            HeadFile::Invalid => true,
        };
        (!self.git_dirs().any(may_use)).then_some(Head { commit, tree })
    }

    /// Whether a branch is at this commit, as far as ref files show.
    pub fn is_at(&self, branch: &str, commit: &Commit) -> bool {
        self.branch_file_tip(branch).as_ref() == Some(commit)
    }

    /// Creates a branch for the work of a run to land on. Accepts an existing one.
    pub fn create_target(&self, branch: &str, at: &Commit) -> Result<(), GitError> {
        match self.with_lock(|| self.create_branch(branch, at, at)) {
            Err(_) if self.has_branch(branch)? => Ok(()),
            made => made,
        }
    }

    /// Path of the lock file that every landing holds, in any signoff process.
    pub fn landing_lock(&self) -> PathBuf {
        self.common().join("signoff/landing.lock")
    }

    /// Moves a branch if it is still at `from`. Returns `false` if it has moved.
    pub fn advance_branch(&self, branch: &str, from: &Commit, to: &Commit) -> Result<bool, GitError> {
        let transaction = format!("update refs/heads/{branch}\0{to}\0{from}\0");
        let command = self.isolated_git("update-ref -m")?;
        let ended = command.args(["signoff: landed", "-z", "--stdin"]).input(transaction).run()?;
        let stderr = ended.stderr();
        let moved = stderr.contains("but expected") || stderr.contains("unable to resolve reference");
        if moved { Ok(false) } else { ended.success().map(|_| true) }
    }

    /// Moves a target to a descendant commit. If it is checked out, files and index follow.
    pub fn move_target(&self, target: &LandTarget, to: &Commit) -> Result<MoveOutcome, GitError> {
        self.check_no_operation(&target.branch)?;
        let Some(checkout) = target.worktree.as_ref().filter(|path| path.is_dir()) else {
            let moved = self.advance_branch(&target.branch, &target.tip.commit, to)?;
            failpoint::pass("target_moved");
            return Ok(if moved { MoveOutcome::Done } else { MoveOutcome::Conflict });
        };
        let update = CheckoutUpdate {
            branch: target.branch.clone(),
            checkout: checkout.clone().into_os_string(),
            from: target.tip.commit.clone(),
            to: to.clone(),
        };
        let git_dir = self.git_dir_of(checkout)?;
        self.update_checked_out(GitDirs::new(&git_dir, checkout), &update)
    }

    /// Checks whether a target can be moved now: if it is checked out, the checkout must be clean.
    pub fn check_movable(&self, target: &LandTarget) -> Result<(), GitError> {
        self.check_no_operation(&target.branch)?;
        let Some(checkout) = target.worktree.as_ref().filter(|path| path.is_dir()) else { return Ok(()) };
        let git_dir = self.git_dir_of(checkout)?;
        self.check_clean(GitDirs::new(&git_dir, checkout)).map(drop)
    }

    fn update_checked_out(&self, dirs: GitDirs<'_>, update: &CheckoutUpdate) -> Result<MoveOutcome, GitError> {
        let record_path = self.update_record_path();
        let text = serde_json::to_vec(update).map_err(|error| GitError::at(&record_path)(error.into()))?;
        write_atomic(&record_path, &text, WriteMode::Durable)?;
        let ready = match self.lock_checkout(dirs, update) {
            Ok(Some(ready)) if self.advance_branch(&update.branch, &update.from, &update.to)? => ready,
            not_moved => {
                remove_if_exists(&record_path)?;
                return not_moved.map(|_| MoveOutcome::Conflict);
            }
        };
        failpoint::pass("target_moved");
        self.follow_branch(dirs, update, &ready)?;
        drop(ready);
        remove_if_exists(&record_path)?;
        Ok(MoveOutcome::Done)
    }

    /// Locks the checkout's index and checks again whether the checkout can follow. Until the lock is released,
    /// the old index cannot be committed on top of the new branch tip. Returns `None` if the checkout is at
    /// another commit.
    fn lock_checkout(&self, dirs: GitDirs<'_>, update: &CheckoutUpdate) -> Result<Option<LockedCheckout>, GitError> {
        let lock = IndexLock::acquire(self.git(), dirs.git_dir)?;
        failpoint::pass("index_locked");
        let status = self.check_clean(dirs)?;
        if status.branch.as_ref() != Some(&update.branch) || status.head.as_ref() != Some(&update.from) {
            return Ok(None);
        }
        let locked = LockedCheckout { index: self.scratch_index(dirs.git_dir)?, lock };
        self.check_nothing_overwritten(dirs.with_index(&locked.index), update)?;
        Ok(Some(locked))
    }

    fn follow_branch(
        &self,
        dirs: GitDirs<'_>,
        update: &CheckoutUpdate,
        ready: &LockedCheckout,
    ) -> Result<(), GitError> {
        let scratch = dirs.with_index(&ready.index);
        if self.read_tree_two_way(scratch, update, &["-u"]).is_err() {
            // A file changed in the meantime.
            return self.record_left_files(self.update_checkout(dirs, update, &ready.lock));
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
    fn check_clean(&self, dirs: GitDirs<'_>) -> Result<GitStatus, GitError> {
        if let Some(operation) = Operation::unfinished_in(dirs.git_dir) {
            return Err(GitError::Unfinished { worktree: dirs.work_tree.to_owned(), operation });
        }
        let status = self.status(dirs)?;
        let tracked = status.entries.iter().filter(|entry| match entry.kind {
            StatusKind::Tracked { .. } | StatusKind::Unmerged => true,
            StatusKind::Untracked | StatusKind::Nested => false,
        });
        let changed: Vec<String> = tracked.map(|entry| entry.path.display().to_string()).collect();
        if !changed.is_empty() {
            return Err(GitError::Dirty {
                checkout: dirs.work_tree.to_owned(),
                files: list_first(&changed, MAX_LISTED_FILES),
            });
        }
        Ok(status)
    }

    /// Fails if an untracked file, ignored or not, would be overwritten.
    fn check_nothing_overwritten(&self, dirs: GitDirs<'_>, update: &CheckoutUpdate) -> Result<(), GitError> {
        let (from, to) = (update.from.as_str(), update.to.as_str());
        let command = self.isolated_git_at(dirs, "diff-tree -r -z --name-only --no-renames --diff-filter=A")?;
        let added = command.args([from, to]).read_paths()?;
        let found: BTreeSet<&Path> = added.iter().filter_map(|file| blocking_path(dirs.work_tree, file)).collect();
        for file in found {
            // A directory that becomes a file may contain untracked files, which would be lost.
            let command = self.isolated_git_at(dirs, "ls-files --others -z --")?;
            if !command.args([pathspec("top,literal", file)]).read()?.is_empty() {
                let (checkout, file) = (dirs.work_tree.to_owned(), file.to_owned());
                return Err(GitError::WouldOverwrite { checkout, file });
            }
        }
        // Makes git treat files with only a newer time as unchanged.
        self.isolated_git_at(dirs, "update-index -q --refresh")?.run()?;
        self.read_tree_two_way(dirs, update, &["-u", "-n"])
    }

    fn read_tree_two_way(&self, dirs: GitDirs<'_>, update: &CheckoutUpdate, flags: &[&str]) -> Result<(), GitError> {
        let (from, to) = (update.from.as_str(), update.to.as_str());
        self.isolated_git_at(dirs, "read-tree -m")?.args(flags).args([from, to]).execute()
    }

    pub(super) fn update_record_path(&self) -> PathBuf {
        self.common().join("signoff/forward.json")
    }

    /// The git directory of any checkout of this repository.
    pub(super) fn git_dir_of(&self, checkout: &Path) -> Result<PathBuf, GitError> {
        let here = self.checkout_dirs();
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
    let found = parent_directories(file).filter(|above| is_not_directory(&work_tree.join(above))).last();
    found.or_else(|| work_tree.join(file).symlink_metadata().is_ok().then_some(file))
}

/// The lock of a checkout's index. Dropping the value releases it.
#[derive(Debug)]
pub(super) struct IndexLock {
    lock: PathBuf,
    own: PathBuf,
    /// Whether both paths are one file.
    linked: bool,
}

impl IndexLock {
    /// Acquires the lock after its current holder is done. Only one signoff process may try at a time.
    pub(super) fn acquire(git: &Git, git_dir: &Path) -> Result<Self, GitError> {
        Self::remove_stale(git_dir)?;
        let (lock, own) = lock_paths(git_dir);
        File::create_new(&own).map_err(GitError::at(&own))?;
        let locked = wait(git.lock_timeout, || match link(&own, &lock) {
            Ok(linked) => Ok(Some(linked)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(GitError::at(&lock)(error)),
        });
        match locked {
            Ok(Some(linked)) => Ok(Self { lock, own, linked }),
            Ok(None) => remove_if_exists(&own).and(Err(GitError::Locked { file: lock })),
            Err(error) => remove_if_exists(&own).and(Err(error)),
        }
    }

    /// Removes a lock left by a killed signoff, and no other.
    pub(super) fn remove_stale(git_dir: &Path) -> Result<(), GitError> {
        let (lock, own) = lock_paths(git_dir);
        if is_same_file(&lock, &own) {
            remove_if_exists(&lock)?;
        }
        remove_if_exists(&own)
    }

    /// Replaces the checkout's index with a finished one.
    pub(super) fn replace_index(&self, index: &Path) -> Result<(), GitError> {
        let index_path = self.lock.with_extension("");
        fs::rename(index, &index_path).map_err(GitError::at(&index_path))
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        // The lock may have been removed by hand and taken by another program since.
        if is_same_file(&self.lock, &self.own) || !self.linked {
            fs::remove_file(&self.lock).ok();
        }
        fs::remove_file(&self.own).ok();
    }
}

fn lock_paths(git_dir: &Path) -> (PathBuf, PathBuf) {
    (git_dir.join("index.lock"), git_dir.join("signoff-index-lock"))
}

/// Creates a hard link and returns `true`. On a file system without hard links, creates a plain lock file like
/// git's and returns `false`.
fn link(own: &Path, lock: &Path) -> io::Result<bool> {
    match fs::hard_link(own, lock) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => File::create_new(lock).map(|_| false),
        linked => linked.map(|()| true),
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()));
    id(one).ok().zip(id(other).ok()).is_some_and(|(one, other)| one == other)
}
