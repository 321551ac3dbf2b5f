//! A lock per worktree: an improvement, a review and a retry of one task share a worktree, and only one may run.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::atomic_file;
use crate::error::EngineError;
use crate::layout::Layout;

/// The lock of a worktree, released on drop.
#[derive(Debug)]
pub struct WorktreeLock {
    _lock: File,
}

impl WorktreeLock {
    /// Locks a worktree, or fails if it is in use.
    pub fn acquire(layout: &Layout, worktree: &Path) -> Result<Self, EngineError> {
        let path = layout.worktree_lock(worktree);
        let failed = |error| EngineError::io("lock", &path, error);
        let lock = atomic_file::open_lock(&path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(EngineError::Occupied { worktree: worktree.to_owned() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}
