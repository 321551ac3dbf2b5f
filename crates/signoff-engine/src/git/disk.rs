//! What lies on the disk, looked at without following links.
//!
//! Agents can put a link in place of whatever we made, and what lies behind it is somebody else's.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::GitError;

use crate::draft::{self, Care, Draft};
use crate::failpoint;

/// What its owner needs to work in a directory.
const OWNER: u32 = 0o700;

/// Longer is no file that says where something is.
const SHORT: u64 = 64 * 1024;

/// Git makes no directories that lie deeper in its own.
const DEEPEST: usize = 32;

/// Whether a directory is there; a link to one is none.
pub(super) fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Whether anything is there that is no directory, such as a link.
pub(super) fn is_in_the_way(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir())
}

/// What a plain file holds; nothing of anything else: a pipe would be waited for in vain.
pub(super) fn content(path: &Path) -> Option<Vec<u8>> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    fs::read(path).ok()
}

/// The text of a plain file that is never long.
pub(super) fn short(path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    (found.is_file() && found.len() <= SHORT).then(|| fs::read_to_string(path).ok()).flatten()
}

/// Takes all away below a directory that is neither a plain file nor a directory, telling it, and all locks of git: whoever
/// could hold them has ended. Whether a plain file is left.
pub(super) fn plain_only(top: &Path, mut odd: impl FnMut(&Path)) -> Result<bool, GitError> {
    let mut any = false;
    let mut found = vec![(top.to_owned(), 0)];
    while let Some((directory, depth)) = found.pop() {
        give_back(&directory)?;
        for entry in fs::read_dir(&directory).map_err(GitError::at(&directory))? {
            let entry = entry.map_err(GitError::at(&directory))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(GitError::at(&directory))?);
            if kind.is_dir() && depth < DEEPEST {
                found.push((path, depth + 1));
            } else if kind.is_file() && path.extension().is_none_or(|end| end != "lock") {
                let_read(&entry).map_err(GitError::at(&path))?;
                any = true;
            } else {
                if !kind.is_file() {
                    odd(&path);
                }
                remove_if_there(&path)?;
            }
        }
    }
    Ok(any)
}

/// The path of a worktree as git will spell it, with the directories above it made.
pub(super) fn settle(path: &Path) -> Result<PathBuf, GitError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(GitError::NotOurs(path.to_owned()));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    if parent.is_symlink() {
        return Err(GitError::Linked(parent.to_owned()));
    }
    fs::create_dir_all(parent).map_err(GitError::at(parent))?;
    let path = fs::canonicalize(parent).map_err(GitError::at(parent))?.join(name);
    give_back(&path)?;
    Ok(path)
}

/// Lets the owner into a directory from which an agent took that right.
pub(super) fn give_back(path: &Path) -> Result<(), GitError> {
    let Some(found) = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_dir) else { return Ok(()) };
    let mode = found.permissions().mode();
    if mode & OWNER == OWNER {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode | OWNER)).map_err(GitError::at(path))
}

/// Lets the owner read a plain file from which an agent took that right.
fn let_read(file: &fs::DirEntry) -> io::Result<()> {
    let mode = file.metadata()?.permissions().mode();
    let readable = mode & 0o400 != 0;
    if readable { Ok(()) } else { fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)) }
}

/// Writes the whole file or nothing, in place of whatever is there.
pub(super) fn write_whole(path: &Path, text: &[u8]) -> Result<(), GitError> {
    put(path, text, Care::Plain)
}

/// The same, and it is on the disk when what it is about begins.
pub(super) fn write_synced(path: &Path, text: &[u8]) -> Result<(), GitError> {
    put(path, text, Care::Durable)
}

fn put(path: &Path, text: &[u8], care: Care) -> Result<(), GitError> {
    let draft = Draft::write(path, text, care).map_err(GitError::at(path))?;
    failpoint::pass("marked");
    if is_directory(path) {
        remove_if_there(path)?;
    }
    draft.put().map_err(GitError::at(path))
}

/// Removes a file, a link or a directory.
pub(super) fn remove_if_there(path: &Path) -> Result<(), GitError> {
    draft::remove_if_there(path).map_err(GitError::at(path))
}
