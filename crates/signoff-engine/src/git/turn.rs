//! Taking turns: where git itself races with a second git, one lock file per repository orders us.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use super::{Git, GitError};

/// Runs `work` while no other thread or process of ours is in its turn.
///
/// The operating system frees the lock when its holder dies, so none is ever stale.
pub(super) fn take<T>(
    git: &Git,
    file: &Path,
    work: impl FnOnce() -> Result<T, GitError>,
) -> Result<T, GitError> {
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
    // Whoever has the turn may itself be waiting: then that lock is the one to name.
    held.map(|()| file)
        .ok_or_else(|| GitError::Locked { file: git.held_up_by().unwrap_or_else(|| path.to_owned()) })
}
