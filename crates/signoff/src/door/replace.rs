//! Files of people are replaced as a whole or not at all, whenever the program is killed.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use signoff_engine::failpoint;

use crate::failure::Failure;

/// Puts a text in the place of a file. Who may read it stays as it was, a link stays a link.
pub fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        let failure = Failure::failed(format!("cannot write {}: {error}", path.display()));
        failure.at(path.display().to_string()).hint("what was there before is as it was")
    };
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let place = place(path)?;
    match place.metadata() {
        // A terminal, a pipe: there is nothing to keep whole.
        Ok(found) if !found.is_file() => fs::write(&place, text).map_err(failed),
        Ok(found) if found.permissions().readonly() => Err(read_only(path)),
        Ok(found) => swap(&place, text, Some(found.permissions())).map_err(failed),
        Err(_) => swap(&place, text, None).map_err(failed),
    }
}

/// Puts a file of our own in the place of whatever lies there: a link is replaced, not followed.
pub fn put(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    swap(path, text, None).map_err(failed)
}

/// What a link leads to is written, not the link.
fn place(path: &Path) -> Result<PathBuf, Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(path.to_owned());
    }
    path.canonicalize().map_err(|error| {
        Failure::failed(format!("cannot write {}: {error}", path.display()))
            .hint("it is a link that leads nowhere: remove it, or make the file it names")
    })
}

fn read_only(path: &Path) -> Failure {
    Failure::failed(format!("cannot write {}: it is read-only", path.display()))
        .hint("make it writable, then type the same again")
}

fn swap(path: &Path, text: &str, permissions: Option<Permissions>) -> io::Result<()> {
    let mut draft = OsString::from(path);
    draft.push(format!(".signoff-{}", std::process::id()));
    let draft = PathBuf::from(draft);
    let written = write(&draft, text, permissions).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        fs::remove_file(&draft).ok();
        return written;
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn write(draft: &Path, text: &str, permissions: Option<Permissions>) -> io::Result<()> {
    // One that a program with our number left when it was killed.
    let gone = |error: io::Error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) };
    fs::remove_file(draft).or_else(gone)?;
    let mut file = File::create_new(draft)?;
    let (first, rest) = text.as_bytes().split_at(text.len() / 2);
    file.write_all(first)?;
    failpoint::pass("half_written");
    file.write_all(rest)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.sync_all()?;
    failpoint::pass("replace");
    Ok(())
}
