//! Files that are there as a whole or not at all, whenever the program is killed.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::clear;

/// What a file needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// Like any other file.
    Plain,
    /// Only its owner may read it.
    Private,
    /// The same, and it survives a power cut.
    Durable,
}

/// A file that is written, and not in its place yet.
///
/// Nobody else writes the same file, and who was killed writes it again: the draft's name is always the same, so that
/// none is left behind.
#[derive(Debug)]
#[must_use = "a draft is nothing until it is in its place"]
pub struct Draft<'a> {
    path: &'a Path,
    draft: PathBuf,
    care: Care,
}

impl<'a> Draft<'a> {
    /// Writes it beside its place. Whatever lies there is taken away, not followed: an agent may have put a link.
    pub fn write(path: &'a Path, bytes: &[u8], care: Care) -> io::Result<Self> {
        let mut draft = OsString::from(path);
        draft.push(".new");
        let draft = PathBuf::from(draft);
        remove_if_there(&draft)?;
        let mode = if care == Care::Plain { 0o666 } else { 0o600 };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
        file.write_all(bytes)?;
        if care == Care::Durable {
            file.sync_all()?;
        }
        Ok(Self { path, draft, care })
    }

    /// Puts it in the place of what was there.
    pub fn put(self) -> io::Result<()> {
        fs::rename(&self.draft, self.path)?;
        match self.path.parent().filter(|_| self.care == Care::Durable) {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }
}

/// Writes the whole file or nothing.
pub fn write(path: &Path, bytes: &[u8], care: Care) -> io::Result<()> {
    Draft::write(path, bytes, care)?.put()
}

/// Removes a file, a link or a directory.
pub fn remove_if_there(path: &Path) -> io::Result<()> {
    match clear::remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_link_in_the_way_of_a_draft_leads_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        let [file, theirs] = ["a.md", "theirs"].map(|name| directory.path().join(name));
        for (care, others) in [(Care::Private, false), (Care::Durable, false), (Care::Plain, true)] {
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
