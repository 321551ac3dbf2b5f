//! One landing at a time in a repository, whoever wants to land.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::bring::{Tell, Told};
use crate::error::EngineError;
use crate::git::Repository;
use crate::process::Stoppable;

/// How often it is looked whether the one before is done.
const GLANCE: Duration = Duration::from_millis(20);

/// After so many looks people are told what is waited for.
const TOLD_AFTER: usize = 150;

/// The right to land, until it is dropped. The system frees it when its holder dies.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
}

impl Turn {
    /// Waits for it, however long the one before takes; none if the waiting was stopped.
    pub async fn wait(repository: &Repository, tell: Tell<'_>) -> Result<Option<Self>, EngineError> {
        Self::wait_for(repository.landing_lock(), tell).await
    }

    /// The same for the right that this file stands for.
    pub async fn wait_for(path: PathBuf, tell: Tell<'_>) -> Result<Option<Self>, EngineError> {
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
                let waiting = Stoppable::new().map_err(failed)?;
                tell(Told::Stoppable(waiting.stopper()));
                stoppable = Some(waiting);
            }
            if stoppable.as_ref().is_some_and(Stoppable::is_asked) {
                return Ok(None);
            }
            if look == TOLD_AFTER {
                tell(Told::Waits);
            }
            tokio::time::sleep(GLANCE).await;
        }
        Ok(None)
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    File::options().create(true).truncate(false).write(true).open(path)
}
