//! Leases as file locks. The operating system releases them when a process dies; they never expire.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use signoff_core::ids::RunId;

use crate::StoreError;

pub(super) struct LeaseFiles {
    /// The directory of the database.
    pub store_dir: PathBuf,
}

/// A locked file, unlocked on drop. Closing the file is not enough while a child process has it open.
pub(super) struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // If this fails, closing the file releases the lock.
        let _ = self.0.unlock();
    }
}

impl LeaseFiles {
    pub fn acquire(&self, run: RunId) -> Result<LockedFile, StoreError> {
        let _probe = self.lock_probe()?;
        lock(open(&self.file(run))?, run)
    }

    pub fn is_held(&self, run: RunId) -> Result<bool, StoreError> {
        if !self.file(run).try_exists()? {
            return Ok(false);
        }
        let probe = self.lock_probe()?;
        let result = lock(open(&self.file(run))?, run).map(drop);
        drop(probe);
        match result {
            Ok(()) => Ok(false),
            Err(StoreError::LeaseHeld(_)) => Ok(true),
            Err(other) => Err(other),
        }
    }

    /// A short lock around every check and acquisition, so that a check is never mistaken for a holder.
    fn lock_probe(&self) -> Result<LockedFile, StoreError> {
        self.lock_named("gate")
    }

    /// Locks the schema for a migration.
    pub fn lock_schema(&self) -> Result<LockedFile, StoreError> {
        self.lock_named("schema")
    }

    fn lock_named(&self, name: &str) -> Result<LockedFile, StoreError> {
        fs::create_dir_all(self.path(""))?;
        let file = open(&self.path(name))?;
        file.lock()?;
        Ok(LockedFile(file))
    }

    fn file(&self, run: RunId) -> PathBuf {
        self.path(&format!("run-{run}"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.store_dir.join("leases").join(name)
    }
}

fn lock(file: File, run: RunId) -> Result<LockedFile, StoreError> {
    match file.try_lock() {
        Ok(()) => Ok(LockedFile(file)),
        Err(TryLockError::WouldBlock) => Err(StoreError::LeaseHeld(run)),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    Ok(File::options().create(true).truncate(false).write(true).open(path)?)
}
