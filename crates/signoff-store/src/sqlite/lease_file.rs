//! Leases by file locks: the operating system frees them when a program dies, and no clock can.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use signoff_core::ids::RunId;

use super::fault;
use crate::StoreError;

pub(super) struct LeaseFiles {
    beside: PathBuf,
    dir: PathBuf,
}

/// A locked file, unlocked when dropped. Closing alone would not do while a child process still has it open.
pub(super) struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // If this fails the lock goes with the file, a moment later.
        let _ = self.0.unlock();
    }
}

impl LeaseFiles {
    pub fn in_dir(dir: &Path) -> Self {
        Self { beside: dir.to_owned(), dir: dir.join("leases") }
    }

    /// The directory that holds the leases, and the database.
    pub fn beside(&self) -> &Path {
        &self.beside
    }

    pub fn acquire(&self, run: RunId) -> Result<Locked, StoreError> {
        let _gate = self.gate()?;
        lock(open(&self.file(run))?, run)
    }

    pub fn is_held(&self, run: RunId) -> Result<bool, StoreError> {
        if !self.file(run).try_exists().map_err(fault::of_file)? {
            return Ok(false);
        }
        let gate = self.gate()?;
        let looked = lock(open(&self.file(run))?, run).map(drop);
        drop(gate);
        match looked {
            Ok(()) => Ok(false),
            Err(StoreError::Held(_)) => Ok(true),
            Err(other) => Err(other),
        }
    }

    /// The right to look at or take leases. Held for a moment only, so that one who looks is never taken for a
    /// holder.
    fn gate(&self) -> Result<Locked, StoreError> {
        self.wait_for("gate")
    }

    /// The right to change the schema.
    pub fn schema(&self) -> Result<Locked, StoreError> {
        self.wait_for("schema")
    }

    fn wait_for(&self, name: &str) -> Result<Locked, StoreError> {
        fs::create_dir_all(&self.dir).map_err(fault::of_file)?;
        let file = open(&self.dir.join(name))?;
        file.lock().map_err(fault::of_file)?;
        Ok(Locked(file))
    }

    fn file(&self, run: RunId) -> PathBuf {
        self.dir.join(format!("run-{run}"))
    }
}

fn lock(file: File, run: RunId) -> Result<Locked, StoreError> {
    match file.try_lock() {
        Ok(()) => Ok(Locked(file)),
        Err(TryLockError::WouldBlock) => Err(StoreError::Held(run)),
        Err(TryLockError::Error(error)) => Err(fault::of_file(error)),
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    file.map_err(fault::of_file)
}
