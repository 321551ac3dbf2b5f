//! The landing lock: one landing at a time in a repository.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::land_commit::{LandingProgress, ProgressCallback};
use crate::error::EngineError;
use crate::git::Repository;
use crate::process::StopRequest;

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Number of polls before the user is notified about the wait.
const NOTIFY_AFTER: usize = 150;

/// The right to land, until it is dropped. The system releases it if the process dies.
#[derive(Debug)]
pub struct LandingLock {
    _lock: File,
}

impl LandingLock {
    /// Waits for the landing lock; `None` if the wait was stopped.
    pub async fn acquire(repository: &Repository, progress: ProgressCallback<'_>) -> Result<Option<Self>, EngineError> {
        Self::acquire_file(repository.landing_lock(), progress).await
    }

    /// Waits for the lock of this file; `None` if the wait was stopped.
    pub async fn acquire_file(path: PathBuf, progress: ProgressCallback<'_>) -> Result<Option<Self>, EngineError> {
        let lock = open(&path).map_err(|error| EngineError::io("open", &path, error))?;
        let failed = |error| EngineError::io("lock", &path, error);
        let mut stoppable = None;
        for look in 0_usize.. {
            match lock.try_lock() {
                Ok(()) => return Ok(Some(Self { _lock: lock })),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            if stoppable.is_none() {
                let waiting = StopRequest::new().map_err(failed)?;
                progress(LandingProgress::Stoppable(waiting.stopper()));
                stoppable = Some(waiting);
            }
            if stoppable.as_ref().is_some_and(StopRequest::is_requested) {
                return Ok(None);
            }
            if look == NOTIFY_AFTER {
                progress(LandingProgress::Waiting);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(None)
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    File::options().create(true).truncate(false).write(true).open(path)
}
