//! A lock file per repository, for operations in which two git processes would race.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use super::{Git, GitError};

/// Runs `work` while no other thread or process of ours holds the lock.
///
/// The operating system releases the lock when its holder dies, so it never becomes stale.
pub(super) fn with_lock<T>(git: &Git, file: &Path, work: impl FnOnce() -> Result<T, GitError>) -> Result<T, GitError> {
    let held = lock(git, file)?;
    let done = work();
    drop(held);
    done
}

fn lock(git: &Git, path: &Path) -> Result<File, GitError> {
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory).map_err(GitError::at(directory))?;
    let file = File::options().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(GitError::at(path))?;
    let held = git.wait_for(|| match file.try_lock() {
        Ok(()) => Ok(Some(())),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(GitError::at(path)(error)),
    })?;
    // The holder may itself wait for another lock; the error names that one.
    held.map(|()| file).ok_or_else(|| GitError::Locked { file: git.blocking_lock().unwrap_or_else(|| path.to_owned()) })
}
