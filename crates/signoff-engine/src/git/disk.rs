//! File system access that does not follow links.
//!
//! An agent can replace any of our files with a link, and the link's target does not belong to us.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::GitError;

use crate::atomic_file::{self, AtomicFile, WriteMode};
use crate::failpoint;

/// Permissions the owner needs to work in a directory.
const OWNER_RWX: u32 = 0o700;

/// Maximum size of a file that contains only a path or an id.
const MAX_SHORT_FILE: u64 = 64 * 1024;

/// Maximum depth below a git directory. Git creates no deeper directories.
const MAX_DEPTH: usize = 32;

/// Whether `path` is a directory. A link to a directory does not count.
pub(super) fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Whether `path` exists and is not a directory, for example a link.
pub(super) fn is_not_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir())
}

/// The content of a plain file. `None` for anything else: reading a pipe would block.
pub(super) fn content(path: &Path) -> Option<Vec<u8>> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    fs::read(path).ok()
}

/// The text of a plain file that is expected to be short.
pub(super) fn read_short(path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    let text = (found.is_file() && found.len() <= MAX_SHORT_FILE).then(|| fs::read(path).ok()).flatten()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The directories above a relative path, from the inside out.
pub(super) fn parent_directories(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty())
}

/// Removes the directories above a relative path that are empty, from the inside out.
pub(super) fn remove_empty_parents(top: &Path, path: &Path) {
    for directory in parent_directories(path).map(|above| top.join(above)) {
        if !is_directory(&directory) || fs::remove_dir(&directory).is_err() {
            break;
        }
    }
}

/// Removes everything below a directory that is neither a plain file nor a directory, and all git locks,
/// because their holders have ended. Calls `on_removed` for each removed entry that is no lock. Returns the plain
/// files that are left.
pub(super) fn remove_special_files(top: &Path, mut on_removed: impl FnMut(&Path)) -> Result<Vec<PathBuf>, GitError> {
    let mut left = Vec::new();
    let mut found = vec![(top.to_owned(), 0)];
    while let Some((directory, depth)) = found.pop() {
        restore_access(&directory)?;
        for entry in fs::read_dir(&directory).map_err(GitError::at(&directory))? {
            let entry = entry.map_err(GitError::at(&directory))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(GitError::at(&directory))?);
            if kind.is_dir() && depth < MAX_DEPTH {
                found.push((path, depth + 1));
            } else if kind.is_file() && path.extension().is_none_or(|end| end != "lock") {
                restore_read_access(&entry).map_err(GitError::at(&path))?;
                left.push(path);
            } else {
                if !kind.is_file() {
                    on_removed(&path);
                }
                remove_if_exists(&path)?;
            }
        }
    }
    Ok(left)
}

/// The path of a worktree as git spells it. Creates its parent directories.
pub(super) fn canonical_path(path: &Path) -> Result<PathBuf, GitError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(GitError::NotOurs(path.to_owned()));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    if parent.is_symlink() {
        return Err(GitError::Linked(parent.to_owned()));
    }
    fs::create_dir_all(parent).map_err(GitError::at(parent))?;
    let path = fs::canonicalize(parent).map_err(GitError::at(parent))?.join(name);
    restore_access(&path)?;
    Ok(path)
}

/// Restores the owner's access to a directory.
pub(super) fn restore_access(path: &Path) -> Result<(), GitError> {
    let Some(found) = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_dir) else { return Ok(()) };
    let mode = found.permissions().mode();
    if mode & OWNER_RWX == OWNER_RWX {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode | OWNER_RWX)).map_err(GitError::at(path))
}

/// Restores the owner's read access to a plain file.
fn restore_read_access(file: &fs::DirEntry) -> io::Result<()> {
    let mode = file.metadata()?.permissions().mode();
    let readable = mode & 0o400 != 0;
    if readable { Ok(()) } else { fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)) }
}

/// Writes a file atomically and replaces anything at its path.
pub(super) fn write_atomic(path: &Path, text: &[u8], mode: WriteMode) -> Result<(), GitError> {
    let file = AtomicFile::write(path, text, mode).map_err(GitError::at(path))?;
    failpoint::pass("marked");
    if is_directory(path) {
        remove_if_exists(path)?;
    }
    file.commit().map_err(GitError::at(path))
}

/// Removes a file, a link or a directory if it exists.
pub(super) fn remove_if_exists(path: &Path) -> Result<(), GitError> {
    atomic_file::remove_if_exists(path).map_err(GitError::at(path))
}

/// The content of a file that consists of a path.
pub(super) fn line(path: &Path) -> Vec<u8> {
    [path.as_os_str().as_bytes(), b"\n"].concat()
}
