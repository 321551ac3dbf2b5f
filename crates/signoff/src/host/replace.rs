//! Replaces user files atomically, also if the process is killed, and by one process at a time.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use signoff_engine::{atomic_file, failpoint};

use crate::{CliError, Result};

/// Replaces the contents of a file. Permissions are kept, and a symbolic link stays a link.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    Replacement::begin(path)?.write(text)
}

/// An exclusive lock to replace a file. Other processes wait for it. Dropping it without writing changes nothing.
pub struct Replacement<'p> {
    path: &'p Path,
    /// The file that is written: the target of a link, not the link.
    destination: PathBuf,
    /// `None` for a terminal or a pipe, which is written directly.
    temp_file: Option<LockedTempFile>,
}

impl<'p> Replacement<'p> {
    /// Waits until no other process is replacing the file.
    pub fn begin(path: &'p Path) -> Result<Self> {
        let failed = |error| failed(path, &error);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        let destination = resolve_link(path)?;
        let temp_file = match destination.metadata() {
            Ok(found) if !found.is_file() => None,
            Ok(found) if found.permissions().readonly() => {
                return Err(CliError::failed(format!("cannot write {}: it is read-only", path.display()))
                    .hint("make it writable, then run the command again"));
            }
            Ok(_) | Err(_) => Some(LockedTempFile::open(&destination).map_err(failed)?),
        };
        Ok(Self { path, destination, temp_file })
    }

    /// Replaces the contents of the file.
    pub fn write(self, text: &str) -> Result<()> {
        let written = match self.temp_file {
            None => write_to_pipe(&self.destination, text),
            Some(temp_file) => temp_file.commit(text, &self.destination),
        };
        written.map_err(|error| failed(self.path, &error))
    }
}

/// Replaces one of signoff's own files. A symbolic link is replaced, not followed.
pub fn replace_own_file(path: &Path, text: &str) -> Result<()> {
    let failed = |error: io::Error| failed(path, &error);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    LockedTempFile::open(path).and_then(|temp_file| temp_file.commit(text, path)).map_err(failed)
}

fn failed(path: &Path, error: &io::Error) -> CliError {
    let failure = CliError::failed(format!("cannot write {}: {error}", path.display()));
    failure.at(path.display().to_string()).hint("the old file is unchanged")
}

/// Resolves a symbolic link to the file that is written.
fn resolve_link(path: &Path) -> Result<PathBuf> {
    if path.symlink_metadata().is_err() {
        return Ok(path.to_owned());
    }
    // The canonical path of a terminal or a pipe cannot be opened, so `/dev/stdout` is kept as it is.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Ok(path.to_owned());
    }
    path.canonicalize().map_err(|error| {
        CliError::failed(format!("cannot write {}: {error}", path.display()))
            .hint("it is a broken symbolic link: remove it, or create its target")
    })
}

/// Writes to a pipe or a terminal. A reader that closed the pipe is not an error.
fn write_to_pipe(destination: &Path, text: &str) -> io::Result<()> {
    match fs::write(destination, text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// The new contents in a locked temporary file beside the target. The next process removes one left by a killed
/// process.
struct LockedTempFile {
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
    fn open(destination: &Path) -> io::Result<Self> {
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

    fn commit(mut self, text: &str, destination: &Path) -> io::Result<()> {
        let permissions = destination.metadata().ok().map(|found| found.permissions());
        self.write(text, permissions)?;
        fs::rename(&self.path, destination)?;
        self.renamed = true;
        atomic_file::sync_directory_of(destination)
    }

    fn write(&mut self, text: &str, permissions: Option<Permissions>) -> io::Result<()> {
        let (first, rest) = text.as_bytes().split_at(text.len() / 2);
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
