//! Only one loop at a time works in a worktree: an improvement, a review and a retry of one task share theirs.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::Path;

use crate::error::EngineError;
use crate::layout::Layout;

/// The right to work in a worktree, until it is dropped.
#[derive(Debug)]
pub struct Occupied {
    _lock: File,
}

impl Occupied {
    /// Takes a worktree, if nobody has it.
    pub fn take(layout: &Layout, worktree: &Path) -> Result<Self, EngineError> {
        let path = layout.worktree_lock(worktree);
        let failed = |error| EngineError::io("lock", &path, error);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        let options = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let lock = options.map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(EngineError::Occupied { worktree: worktree.to_owned() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}
