//! The lock git itself respects before it writes a checkout's index.
//!
//! Whoever holds it keeps every other git from committing there. It is made as a second name of a file of our own, in
//! one step: so a lock that a killed program left is known to be ours, and somebody else's is never taken for it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::disk::remove_if_there;
use super::{Git, GitError};

/// The lock of a checkout's index, freed when this value is gone.
#[derive(Debug)]
pub(super) struct IndexLock {
    lock: PathBuf,
    own: PathBuf,
    /// Whether the two are one file.
    linked: bool,
}

impl IndexLock {
    /// Takes the lock, once whoever holds it is done. Only one program of ours may try at a time.
    pub(super) fn take(git: &Git, git_dir: &Path) -> Result<Self, GitError> {
        Self::free_left(git_dir)?;
        let (lock, own) = names(git_dir);
        File::create_new(&own).map_err(GitError::at(&own))?;
        let taken = git.wait_for(|| match link(&own, &lock) {
            Ok(linked) => Ok(Some(linked)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(GitError::at(&lock)(error)),
        });
        match taken {
            Ok(Some(linked)) => Ok(Self { lock, own, linked }),
            Ok(None) => remove_if_there(&own).and(Err(GitError::Locked { file: lock })),
            Err(error) => remove_if_there(&own).and(Err(error)),
        }
    }

    /// Removes a lock that a killed program of ours left, and no other.
    pub(super) fn free_left(git_dir: &Path) -> Result<(), GitError> {
        let (lock, own) = names(git_dir);
        if is_same(&lock, &own) {
            remove_if_there(&lock)?;
        }
        remove_if_there(&own)
    }

    /// Puts a finished index in place of the checkout's.
    pub(super) fn put(&self, index: &Path) -> Result<(), GitError> {
        let place = self.lock.with_extension("");
        fs::rename(index, &place).map_err(GitError::at(&place))
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        // Somebody may have removed it by hand, and another may have taken it since.
        if is_same(&self.lock, &self.own) || !self.linked {
            fs::remove_file(&self.lock).ok();
        }
        fs::remove_file(&self.own).ok();
    }
}

fn names(git_dir: &Path) -> (PathBuf, PathBuf) {
    (git_dir.join("index.lock"), git_dir.join("signoff-index-lock"))
}

/// Gives a file a second name, and tells whether it has one. Where the disk knows no such thing the lock is a file like
/// any other git's.
fn link(own: &Path, lock: &Path) -> io::Result<bool> {
    match fs::hard_link(own, lock) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => File::create_new(lock).map(|_| false),
        linked => linked.map(|()| true),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()));
    id(one).ok().zip(id(other).ok()).is_some_and(|(one, other)| one == other)
}
