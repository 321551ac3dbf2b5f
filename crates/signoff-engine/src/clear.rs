//! Removing what agents made, whatever it is.
//!
//! An agent can put directories into each other without end, take everybody's rights from them, and leave links to
//! anywhere. So nothing here goes down level by level, with room on the stack, a descriptor or a longer path for each:
//! what lies in a directory is moved up, next to it, until all directories lie side by side. And nothing is reached by a
//! path that somebody could change meanwhile.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// A system may leave something out while a directory is read and changed. Who makes things faster than they are removed
/// is not waited for.
const LOOKS: usize = 4;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes a file, a link or a directory with all that is in it. What cannot be removed stays, and is the error; all else
/// is gone.
pub fn remove(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return fs::remove_file(path);
    }
    let mut heap = Heap::new(open(CWD, path)?);
    for _ in 0..LOOKS {
        let moved = heap.level();
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && moved => {}
            removed => return removed,
        }
    }
    fs::remove_dir(path)
}

/// A directory whose directories are emptied one after the other.
struct Heap {
    top: OwnedFd,
    /// Those that lie in it and are still to be emptied.
    next: Vec<CString>,
    /// For names that nobody else gives.
    prefix: u64,
    named: u64,
}

impl Heap {
    fn new(top: OwnedFd) -> Self {
        // Should it be a name that is there, the next one is not.
        let prefix = getrandom::u64().unwrap_or_default();
        Self { top, next: Vec::new(), prefix, named: 0 }
    }

    /// Removes all that can be removed; whether there was anything.
    fn level(&mut self) -> bool {
        let Ok(inside) = inside(self.top.as_fd()) else { return false };
        let found = !inside.is_empty();
        for (name, kind) in inside {
            if is_directory(self.top.as_fd(), &name, kind) {
                self.next.push(name);
            }
        }
        while let Some(name) = self.next.pop() {
            self.empty(&name);
        }
        found
    }

    fn empty(&mut self, name: &CStr) {
        for _ in 0..LOOKS {
            let Ok(directory) = open(self.top.as_fd(), name) else { return };
            let moved = self.move_up(directory.as_fd());
            match rustix::fs::unlinkat(&self.top, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY) if moved => {}
                Ok(()) | Err(_) => return,
            }
        }
    }

    /// Removes what lies in a directory, and moves its directories to the others; whether there was anything.
    fn move_up(&mut self, from: BorrowedFd<'_>) -> bool {
        let Ok(inside) = inside(from) else { return false };
        let found = !inside.is_empty();
        for (name, kind) in inside {
            if !is_directory(from, &name, kind) {
                continue;
            }
            let fresh = self.fresh_name().filter(|fresh| self.takes(from, &name, fresh));
            self.next.extend(fresh);
        }
        found
    }

    fn takes(&self, from: BorrowedFd<'_>, name: &CStr, fresh: &CStr) -> bool {
        let moved = || rustix::fs::renameat(from, name, &self.top, fresh);
        match moved() {
            // Who moves a directory changes what it says about the one above it.
            Err(Errno::ACCESS) => let_in(from, name).and_then(|()| moved()).is_ok(),
            moved => moved.is_ok(),
        }
    }

    fn fresh_name(&mut self) -> Option<CString> {
        self.named += 1;
        CString::new(format!("{:016x}-{}", self.prefix, self.named)).ok()
    }
}

/// Removes what is no directory. Whether it is one.
fn is_directory(at: BorrowedFd<'_>, name: &CStr, kind: FileType) -> bool {
    if kind == FileType::Directory {
        return true;
    }
    matches!(rustix::fs::unlinkat(at, name, AtFlags::empty()), Err(Errno::ISDIR | Errno::PERM))
}

fn inside(directory: BorrowedFd<'_>) -> rustix::io::Result<Vec<(CString, FileType)>> {
    let named = |name: &CStr| !matches!(name.to_bytes(), b"." | b"..");
    let entries = Dir::read_from(directory)?.flatten();
    let entries = entries.filter(|entry| named(entry.file_name()));
    Ok(entries.map(|entry| (entry.file_name().to_owned(), entry.file_type())).collect())
}

/// Opens a directory, with all rights in it.
fn open<P: rustix::path::Arg + Copy>(at: BorrowedFd<'_>, name: P) -> rustix::io::Result<OwnedFd> {
    let opened = || rustix::fs::openat(at, name, DIRECTORY, Mode::empty());
    let directory = match opened() {
        Err(Errno::ACCESS) => let_in(at, name).and_then(|()| opened())?,
        opened => opened?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&directory)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        // Whose it is not, cannot; then it stays.
        rustix::fs::fchmod(&directory, Mode::RWXU).ok();
    }
    Ok(directory)
}

/// Gives its owner all rights in a directory that nobody may open.
#[cfg(target_os = "linux")]
fn let_in<P: rustix::path::Arg>(at: BorrowedFd<'_>, name: P) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd;
    let place = rustix::fs::openat(at, name, DIRECTORY | OFlags::PATH, Mode::empty())?;
    rustix::fs::chmod(format!("/proc/self/fd/{}", place.as_raw_fd()), Mode::RWXU)
}

#[cfg(not(target_os = "linux"))]
fn let_in<P: rustix::path::Arg>(at: BorrowedFd<'_>, name: P) -> rustix::io::Result<()> {
    rustix::fs::chmodat(at, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(test)]
pub mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Somewhere in memory, where there is such a place: so many directories are slow to make elsewhere.
    pub fn quick_place() -> tempfile::TempDir {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
    }

    /// So many directories within each other, as nobody can name them.
    pub fn dig(top: &Path, levels: usize) {
        let mut here = rustix::fs::open(top, DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..levels {
            rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
            here = rustix::fs::openat(&here, "d", DIRECTORY, Mode::empty()).unwrap();
        }
        rustix::fs::openat(&here, "deepest", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
    }

    #[test]
    fn no_depth_is_too_deep() {
        let place = quick_place();
        let top = place.path().join("top");
        fs::create_dir(&top).unwrap();
        dig(&top, 20_000);
        remove(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn a_wide_tree_goes_as_well() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("top");
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
        let place = tempfile::tempdir().unwrap();
        let (top, other) = (place.path().join("top"), place.path().join("other"));
        fs::create_dir_all(top.join("in")).unwrap();
        fs::create_dir_all(other.join("kept")).unwrap();
        symlink(&other, top.join("link")).unwrap();
        symlink(&other, top.join("in/link")).unwrap();
        symlink(&other, place.path().join("top-link")).unwrap();
        remove(&place.path().join("top-link")).unwrap();
        remove(&top).unwrap();
        assert!(!top.exists() && other.join("kept").is_dir());
        assert_eq!(place.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn rights_that_were_taken_away_are_in_nobodys_way() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("top");
        fs::create_dir_all(top.join("a/b/c")).unwrap();
        fs::write(top.join("a/b/c/file"), "x").unwrap();
        for (directory, mode) in [("a/b/c", 0o000), ("a/b", 0o555), ("a", 0o000), ("", 0o000)] {
            fs::set_permissions(top.join(directory), fs::Permissions::from_mode(mode)).unwrap();
        }
        remove(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn what_is_not_there_is_said_so() {
        let error = remove(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
