//! Writes files atomically: after a crash a file is either complete or unchanged.

mod locked_temp_file;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::locked_temp_file::LockedTempFile;
use crate::remove_tree;

/// Permissions and durability of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Default permissions.
    Plain,
    /// Readable by its owner only.
    Private,
    /// Readable by its owner only, and synced to disk.
    Durable,
}

/// A written file that is not at its final path yet.
///
/// No other process writes the same file, and the temporary name is always the same, so that an interrupted
/// write leaves nothing behind once it is repeated.
#[derive(Debug)]
#[must_use = "the file is not at its final path until it is committed"]
pub struct AtomicFile<'a> {
    path: &'a Path,
    temporary: PathBuf,
    mode: WriteMode,
}

impl<'a> AtomicFile<'a> {
    /// Writes the temporary file. Removes anything at its path without following links, because an agent may
    /// have put one there.
    pub fn write(path: &'a Path, bytes: &[u8], mode: WriteMode) -> io::Result<Self> {
        let mut temporary = OsString::from(path);
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        remove_if_exists(&temporary)?;
        let permissions = if mode == WriteMode::Plain { 0o666 } else { 0o600 };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(permissions).open(&temporary)?;
        file.write_all(bytes)?;
        if mode == WriteMode::Durable {
            file.sync_all()?;
        }
        Ok(Self { path, temporary, mode })
    }

    /// Moves it to its final path.
    pub fn commit(self) -> io::Result<()> {
        fs::rename(&self.temporary, self.path)?;
        if self.mode == WriteMode::Durable { sync_directory_of(self.path) } else { Ok(()) }
    }
}

/// Syncs the directory that contains a path, so that a rename in it survives a power failure.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Writes a file atomically.
pub fn write(path: &Path, bytes: &[u8], mode: WriteMode) -> io::Result<()> {
    AtomicFile::write(path, bytes, mode)?.commit()
}

/// Writes a value as JSON, atomically.
pub fn write_json(path: &Path, value: &impl Serialize, mode: WriteMode) -> io::Result<()> {
    write(path, &serde_json::to_vec(value)?, mode)
}

/// Reads a value from JSON.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    serde_json::from_slice(&fs::read(path)?).map_err(io::Error::from)
}

/// Reads the first bytes of a file.
pub fn read_at_most(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file that serves as a lock. Creates it and its directory if they are missing.
pub fn open_lock(path: &Path) -> io::Result<File> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    File::options().create(true).truncate(false).write(true).open(path)
}

/// Removes a file, a link or a directory if it exists.
pub fn remove_if_exists(path: &Path) -> io::Result<()> {
    match remove_tree::remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_link_at_the_temporary_path_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let [file, theirs] = ["a.md", "theirs"].map(|name| directory.path().join(name));
        for (care, others) in [(WriteMode::Private, false), (WriteMode::Durable, false), (WriteMode::Plain, true)] {
            fs::write(&theirs, "theirs").unwrap();
            symlink(&theirs, directory.path().join("a.md.new")).unwrap();
            write(&file, b"ours", care).unwrap();
            assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs", "{care:?}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "ours", "{care:?}");
            let mode = file.metadata().unwrap().permissions().mode();
            assert!(others || mode & 0o077 == 0, "{care:?}: {mode:o}");
            assert_eq!(directory.path().read_dir().unwrap().count(), 2, "{care:?}");
        }
    }
}
