//! Replaces users' files: one process at a time, and with the permissions of the old file.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{failpoint, git};

/// How long to wait while another process replaces the same file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The new contents of a user's file, in a locked temporary file beside it. The next process removes one left by a
/// killed process.
#[derive(Debug)]
pub struct LockedTempFile {
    file: File,
    path: PathBuf,
    renamed: bool,
}

impl Drop for LockedTempFile {
    fn drop(&mut self) {
        if !self.renamed {
            fs::remove_file(&self.path).ok();
        }
        // If unlocking fails, closing the file releases the lock.
        let _ = self.file.unlock();
    }
}

impl LockedTempFile {
    /// Waits while another process replaces the file, but not for ever: any process that can read it can hold the lock.
    pub fn open(destination: &Path) -> io::Result<Self> {
        Self::open_within(destination, LOCK_TIMEOUT)
    }

    fn open_within(destination: &Path, timeout: Duration) -> io::Result<Self> {
        let mut path = OsString::from(destination);
        path.push(".signoff-draft");
        let path = PathBuf::from(path);
        // The target may be private, so a temporary file that replaces it starts private.
        let mode = if destination.exists() { 0o600 } else { 0o666 };
        git::wait(timeout, || Self::try_open(&path, mode))?.ok_or_else(|| {
            let message = format!("another process holds the lock of {} for {} s", path.display(), timeout.as_secs());
            io::Error::new(ErrorKind::TimedOut, message)
        })
    }

    /// Returns `None` if another process has the file, or if one that was killed left it behind.
    fn try_open(path: &Path, mode: u32) -> io::Result<Option<Self>> {
        // A link planted here would redirect the write.
        if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            fs::remove_file(path)?;
        }
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(mode).open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => return Err(error),
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        // The previous lock holder may have renamed or removed this file.
        let own = file.metadata()?;
        let is_own = |found: fs::Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
        if !path.symlink_metadata().is_ok_and(is_own) {
            return Ok(None);
        }
        let temp_file = Self { file, path: path.to_owned(), renamed: false };
        // Dropping a file that a killed process left removes it.
        Ok((own.len() == 0).then_some(temp_file))
    }

    pub fn commit(mut self, bytes: &[u8], destination: &Path) -> io::Result<()> {
        let permissions = destination.metadata().ok().map(|found| found.permissions());
        self.write(bytes, permissions)?;
        fs::rename(&self.path, destination)?;
        self.renamed = true;
        super::sync_directory_of(destination)
    }

    fn write(&mut self, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        self.file.write_all(first)?;
        failpoint::pass("half_written");
        self.file.write_all(rest)?;
        if let Some(permissions) = permissions {
            self.file.set_permissions(permissions)?;
        }
        self.file.sync_all()?;
        failpoint::pass("replace");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_never_released_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let plan = directory.path().join("plan.md");
        fs::write(&plan, "- [ ] one").unwrap();
        let held = LockedTempFile::open(&plan).unwrap();
        let error = LockedTempFile::open_within(&plan, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        drop(held);
        LockedTempFile::open(&plan).unwrap().commit(b"- [x] one", &plan).unwrap();
        assert_eq!(fs::read_to_string(&plan).unwrap(), "- [x] one");
        assert_eq!(directory.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn a_file_of_a_killed_process_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let plan = directory.path().join("plan.md");
        fs::write(directory.path().join("plan.md.signoff-draft"), "half of it, and much longer").unwrap();
        LockedTempFile::open(&plan).unwrap().commit(b"whole", &plan).unwrap();
        assert_eq!(fs::read_to_string(&plan).unwrap(), "whole");
    }
}
