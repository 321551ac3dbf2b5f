//! Files of people are replaced as a whole or not at all, whenever the program is killed, and by one program at a
//! time.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use signoff_engine::failpoint;

use crate::failure::Failure;

/// Puts a text in the place of a file. Who may read it stays as it was, a link stays a link.
pub fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    Replacement::begin(path)?.put(text)
}

/// The right to replace a file: whoever else wants to waits. Without [`Replacement::put`] all stays as it was.
pub struct Replacement<'p> {
    path: &'p Path,
    /// What a link leads to is written, not the link.
    place: PathBuf,
    /// None for a terminal or a pipe, where there is nothing to keep whole.
    draft: Option<Draft>,
}

impl<'p> Replacement<'p> {
    /// Waits until nobody else is replacing the file.
    pub fn begin(path: &'p Path) -> Result<Self, Failure> {
        let failed = |error| failed(path, &error);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        let place = place(path)?;
        let draft = match place.metadata() {
            Ok(found) if !found.is_file() => None,
            Ok(found) if found.permissions().readonly() => return Err(read_only(path)),
            Ok(_) | Err(_) => Some(Draft::open(&place).map_err(failed)?),
        };
        Ok(Self { path, place, draft })
    }

    /// Puts a text in its place.
    pub fn put(self, text: &str) -> Result<(), Failure> {
        let written = match self.draft {
            None => to_pipe(&self.place, text),
            Some(draft) => draft.put(text, &self.place),
        };
        written.map_err(|error| failed(self.path, &error))
    }
}

/// Puts a file of our own in the place of whatever lies there: a link is replaced, not followed.
pub fn put(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| failed(path, &error);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    Draft::open(path).and_then(|draft| draft.put(text, path)).map_err(failed)
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::failed(format!("cannot write {}: {error}", path.display()));
    failure.at(path.display().to_string()).hint("what was there before is as it was")
}

/// What a link leads to is written, not the link.
fn place(path: &Path) -> Result<PathBuf, Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(path.to_owned());
    }
    // What a terminal or a pipe is called elsewhere leads nowhere: `/dev/stdout` is written as it is.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Ok(path.to_owned());
    }
    path.canonicalize().map_err(|error| {
        Failure::failed(format!("cannot write {}: {error}", path.display()))
            .hint("it is a link that leads nowhere: remove it, or make the file it names")
    })
}

/// Whoever reads a pipe may stop when it has enough.
fn to_pipe(place: &Path, text: &str) -> io::Result<()> {
    match fs::write(place, text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn read_only(path: &Path) -> Failure {
    Failure::failed(format!("cannot write {}: it is read-only", path.display()))
        .hint("make it writable, then type the same again")
}

/// The new text beside the file, locked. One that a killed program left is cleared away by the next.
struct Draft {
    file: File,
    path: PathBuf,
    is_put: bool,
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_put {
            fs::remove_file(&self.path).ok();
        }
        // If this fails the lock goes with the file, a moment later.
        let _ = self.file.unlock();
    }
}

impl Draft {
    fn open(place: &Path) -> io::Result<Self> {
        let mut path = OsString::from(place);
        path.push(".signoff-draft");
        let path = PathBuf::from(path);
        // Nobody else may read what only its owner might.
        let mode = if place.exists() { 0o600 } else { 0o666 };
        loop {
            // A link would lead the text elsewhere.
            if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
                fs::remove_file(&path)?;
            }
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(mode).open(&path)?;
            match file.lock() {
                Err(error) if error.kind() != ErrorKind::Unsupported => return Err(error),
                Ok(()) | Err(_) => {}
            }
            // Whoever had the lock before may have put this very file in its place, or removed it.
            let own = file.metadata()?;
            let is_own = |found: fs::Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
            if !path.symlink_metadata().is_ok_and(is_own) {
                continue;
            }
            let draft = Self { file, path: path.clone(), is_put: false };
            if own.len() == 0 {
                return Ok(draft);
            }
            // Left by a killed program: dropped, it is removed.
        }
    }

    fn put(mut self, text: &str, place: &Path) -> io::Result<()> {
        let permissions = place.metadata().ok().map(|found| found.permissions());
        self.write(text, permissions)?;
        fs::rename(&self.path, place)?;
        self.is_put = true;
        let directory = place.parent().filter(|directory| !directory.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
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
