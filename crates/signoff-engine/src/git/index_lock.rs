//! The lock that git takes before it writes a checkout's index.
//!
//! While it is held, no other git can commit in that checkout. The lock is a hard link to a file of our own,
//! created in one step. So a lock left by a killed signoff is recognized, and another program's lock is never
//! removed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::disk::remove_if_exists;
use super::{Git, GitError};

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
        let taken = git.wait_for(|| match link(&own, &lock) {
            Ok(linked) => Ok(Some(linked)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(GitError::at(&lock)(error)),
        });
        match taken {
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
