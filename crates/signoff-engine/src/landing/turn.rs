//! One landing at a time in a repository, whoever wants to land.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::time::Duration;

use super::bring::Driven;
use crate::assignment;
use crate::dispatcher::Input;
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
    pub async fn wait(repository: &Repository, driven: Driven<'_>) -> Result<Option<Self>, EngineError> {
        let path = repository.landing_lock();
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
                stoppable = Some(listen(driven).map_err(failed)?);
            }
            if stoppable.as_ref().is_some_and(Stoppable::is_asked) {
                return Ok(None);
            }
            if look == TOLD_AFTER
                && let Some((task, tell)) = driven
            {
                let whose = assignment::whose(task.run, &task.loop_id, task.task);
                let note = format!("{whose} waits: another landing is under way");
                tell.send(Input::Note(note)).ok();
            }
            tokio::time::sleep(GLANCE).await;
        }
        Ok(None)
    }
}

/// Lets the dispatcher end the waiting.
fn listen(driven: Driven<'_>) -> std::io::Result<Stoppable> {
    let stoppable = Stoppable::new()?;
    if let Some((task, tell)) = driven {
        let (run, loop_id, attempt) = (task.run, task.loop_id.clone(), task.job.attempt);
        tell.send(Input::Running { run, loop_id, attempt, stopper: stoppable.stopper() }).ok();
    }
    Ok(stoppable)
}

fn open(path: &Path) -> std::io::Result<File> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    File::options().create(true).truncate(false).write(true).open(path)
}
