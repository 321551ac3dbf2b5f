//! Removes directory trees that agents created.
//!
//! An agent can nest directories to any depth, remove all permissions from them, and leave links to anywhere.
//! So this module does not recurse, which would need stack space, a descriptor or a longer path per level: it
//! moves subdirectories up until all of them are siblings. It uses directory descriptors, so that no path
//! component can be replaced in the meantime.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Maximum number of passes over a directory. A system may skip entries of a directory that changes while it is
/// read. A process that creates entries faster than they are removed makes the removal fail.
const MAX_PASSES: usize = 4;

const OPEN_DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes a file, a link or a directory with its content. If something cannot be removed, removes the rest and
/// returns the error.
pub fn remove(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return fs::remove_file(path);
    }
    let mut tree = FlattenedTree::new(open_directory(CWD, path)?);
    for _ in 0..MAX_PASSES {
        let any = tree.empty_top();
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && any => {}
            removed => return removed,
        }
    }
    fs::remove_dir(path)
}

/// A directory tree that is being flattened.
struct FlattenedTree {
    top: OwnedFd,
    /// Subdirectories of `top` that still have to be emptied.
    pending: Vec<CString>,
    /// Random prefix of new names.
    prefix: u64,
    named: u64,
}

impl FlattenedTree {
    fn new(top: OwnedFd) -> Self {
        // A collision with an existing name is unlikely, and the next name differs.
        let prefix = getrandom::u64().unwrap_or_default();
        Self { top, pending: Vec::new(), prefix, named: 0 }
    }

    /// Removes everything that can be removed. Returns whether there was anything.
    fn empty_top(&mut self) -> bool {
        let Ok(inside) = read_entries(self.top.as_fd()) else { return false };
        let found = !inside.is_empty();
        for (name, kind) in inside {
            if is_directory_or_removed(self.top.as_fd(), &name, kind) {
                self.pending.push(name);
            }
        }
        while let Some(name) = self.pending.pop() {
            self.empty_directory(&name);
        }
        found
    }

    fn empty_directory(&mut self, name: &CStr) {
        for _ in 0..MAX_PASSES {
            let Ok(directory) = open_directory(self.top.as_fd(), name) else { return };
            let moved = self.move_up(directory.as_fd());
            match rustix::fs::unlinkat(&self.top, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY) if moved => {}
                Ok(()) | Err(_) => return,
            }
        }
    }

    /// Removes the files in a directory and moves its subdirectories to the top. Returns whether there was
    /// anything.
    fn move_up(&mut self, from: BorrowedFd<'_>) -> bool {
        let Ok(inside) = read_entries(from) else { return false };
        let found = !inside.is_empty();
        for (name, kind) in inside {
            if !is_directory_or_removed(from, &name, kind) {
                continue;
            }
            let fresh = self.fresh_name().filter(|fresh| self.move_to_top(from, &name, fresh));
            self.pending.extend(fresh);
        }
        found
    }

    fn move_to_top(&self, from: BorrowedFd<'_>, name: &CStr, fresh: &CStr) -> bool {
        let moved = || rustix::fs::renameat(from, name, &self.top, fresh);
        match moved() {
            // Moving a directory changes its `..` entry, which requires write access to it.
            Err(Errno::ACCESS) => grant_access(from, name).and_then(|()| moved()).is_ok(),
            moved => moved.is_ok(),
        }
    }

    fn fresh_name(&mut self) -> Option<CString> {
        self.named += 1;
        CString::new(format!("{:016x}-{}", self.prefix, self.named)).ok()
    }
}

/// Removes an entry that is not a directory. Returns whether it is a directory.
fn is_directory_or_removed(at: BorrowedFd<'_>, name: &CStr, kind: FileType) -> bool {
    if kind == FileType::Directory {
        return true;
    }
    matches!(rustix::fs::unlinkat(at, name, AtFlags::empty()), Err(Errno::ISDIR | Errno::PERM))
}

fn read_entries(directory: BorrowedFd<'_>) -> rustix::io::Result<Vec<(CString, FileType)>> {
    let named = |name: &CStr| !matches!(name.to_bytes(), b"." | b"..");
    let entries = Dir::read_from(directory)?.flatten();
    let entries = entries.filter(|entry| named(entry.file_name()));
    Ok(entries.map(|entry| (entry.file_name().to_owned(), entry.file_type())).collect())
}

/// Opens a directory and grants its owner all permissions.
fn open_directory<P: rustix::path::Arg + Copy>(at: BorrowedFd<'_>, name: P) -> rustix::io::Result<OwnedFd> {
    let opened = || rustix::fs::openat(at, name, OPEN_DIRECTORY, Mode::empty());
    let directory = match opened() {
        Err(Errno::ACCESS) => grant_access(at, name).and_then(|()| opened())?,
        opened => opened?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&directory)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        // Fails for another owner's directory, which then stays.
        rustix::fs::fchmod(&directory, Mode::RWXU).ok();
    }
    Ok(directory)
}

/// Grants the owner all permissions on a directory that cannot be opened.
#[cfg(target_os = "linux")]
fn grant_access<P: rustix::path::Arg>(at: BorrowedFd<'_>, name: P) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd;
    let directory = rustix::fs::openat(at, name, OPEN_DIRECTORY | OFlags::PATH, Mode::empty())?;
    rustix::fs::chmod(format!("/proc/self/fd/{}", directory.as_raw_fd()), Mode::RWXU)
}

#[cfg(not(target_os = "linux"))]
fn grant_access<P: rustix::path::Arg>(at: BorrowedFd<'_>, name: P) -> rustix::io::Result<()> {
    rustix::fs::chmodat(at, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(test)]
pub mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A temporary directory in memory if possible, because creating many directories on disk is slow.
    pub fn memory_tempdir() -> tempfile::TempDir {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
    }

    /// Creates nested directories, deeper than any path can name.
    pub fn create_nested(top: &Path, levels: usize) {
        let mut here = rustix::fs::open(top, OPEN_DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..levels {
            rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
            here = rustix::fs::openat(&here, "d", OPEN_DIRECTORY, Mode::empty()).unwrap();
        }
        rustix::fs::openat(&here, "deepest", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
    }

    #[test]
    fn a_tree_of_any_depth_is_removed() {
        let directory = memory_tempdir();
        let top = directory.path().join("top");
        fs::create_dir(&top).unwrap();
        create_nested(&top, 20_000);
        remove(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn a_wide_tree_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("top");
        for number in 0..300 {
            let inner = top.join(format!("{}/{}", number % 7, number));
            fs::create_dir_all(inner.join("empty")).unwrap();
            fs::write(inner.join("file"), "x").unwrap();
        }
        remove(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (top, other) = (directory.path().join("top"), directory.path().join("other"));
        fs::create_dir_all(top.join("in")).unwrap();
        fs::create_dir_all(other.join("kept")).unwrap();
        symlink(&other, top.join("link")).unwrap();
        symlink(&other, top.join("in/link")).unwrap();
        symlink(&other, directory.path().join("top-link")).unwrap();
        remove(&directory.path().join("top-link")).unwrap();
        remove(&top).unwrap();
        assert!(!top.exists() && other.join("kept").is_dir());
        assert_eq!(directory.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn directories_without_permissions_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("top");
        fs::create_dir_all(top.join("a/b/c")).unwrap();
        fs::write(top.join("a/b/c/file"), "x").unwrap();
        for (directory, mode) in [("a/b/c", 0o000), ("a/b", 0o555), ("a", 0o000), ("", 0o000)] {
            fs::set_permissions(top.join(directory), fs::Permissions::from_mode(mode)).unwrap();
        }
        remove(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn a_missing_path_is_an_error() {
        let error = remove(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
