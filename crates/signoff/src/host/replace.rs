//! Replaces user files atomically, also if the process is killed, and by one process at a time.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use signoff_engine::atomic_file::LockedTempFile;

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
            Some(temp_file) => temp_file.commit(text.as_bytes(), &self.destination),
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
    LockedTempFile::open(path).and_then(|temp_file| temp_file.commit(text.as_bytes(), path)).map_err(failed)
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
