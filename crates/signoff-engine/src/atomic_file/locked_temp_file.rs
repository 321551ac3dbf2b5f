//! Replaces users' files: one process at a time, and with the permissions of the old file.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::failpoint;

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
    pub fn open(destination: &Path) -> io::Result<Self> {
        let mut path = OsString::from(destination);
        path.push(".signoff-draft");
        let path = PathBuf::from(path);
        // The target may be private, so a temporary file that replaces it starts private.
        let mode = if destination.exists() { 0o600 } else { 0o666 };
        loop {
            // A link planted here would redirect the write.
            if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
                fs::remove_file(&path)?;
            }
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(mode).open(&path)?;
            match file.lock() {
                Err(error) if error.kind() != ErrorKind::Unsupported => return Err(error),
                Ok(()) | Err(_) => {}
            }
            // The previous lock holder may have renamed or removed this file.
            let own = file.metadata()?;
            let is_own = |found: fs::Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
            if !path.symlink_metadata().is_ok_and(is_own) {
                continue;
            }
            let temp_file = Self { file, path: path.clone(), renamed: false };
            if own.len() == 0 {
                return Ok(temp_file);
            }
            // Left by a killed process: dropping it removes it.
        }
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
