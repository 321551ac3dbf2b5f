//! Copying files git does not know, such as `.env`, from the checkout into a worktree.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use super::disk::{content, write_whole};
use super::stage::{COPIED, KeptOut};
use super::{GitError, Worktree};

impl Worktree {
    /// Copies the named files from the checkout, where they exist and the worktree has nothing at their place.
    ///
    /// They will not be committed, ignored or not: what is not tracked in the checkout may be a secret.
    pub fn copy_files(&self, names: &[String]) -> Result<Vec<PathBuf>, GitError> {
        self.there()?;
        let mut copied = Vec::new();
        for name in names.iter().map(Path::new) {
            if let Some(found) = self.to_copy(name)? {
                // First, so that none lies there that nobody knows to be a secret.
                self.note_copied(name)?;
                self.copy_file(name, &found)?;
                copied.push(name.to_owned());
            }
        }
        Ok(copied)
    }

    /// Notes which of the named files were copied in before, where the note went with the git directory.
    pub fn remember_copied(&self, names: &[String]) -> Result<(), GitError> {
        let is_copy = |name: &&Path| {
            let both = [self.repository.checkout(), self.path()];
            stays_inside(name) && both.iter().all(|top| fs::symlink_metadata(top.join(name)).is_ok())
        };
        for name in names.iter().map(Path::new).filter(is_copy) {
            // What the branch holds is no copy, and is committed like all else.
            let asked = ["ls-tree", "-z", "--name-only", "--full-tree", "HEAD", "--"];
            let listed = self.repository.sealed(self.place())?.args(asked).args([name]).read()?;
            if listed.is_empty() && !KeptOut::of(&self.git_dir).holds(name) {
                self.note_copied(name)?;
            }
        }
        Ok(())
    }

    /// What is to be copied, if it is there and nothing is at its place.
    fn to_copy(&self, name: &Path) -> Result<Option<Metadata>, GitError> {
        let (from, to) = (self.repository.checkout().join(name), self.path().join(name));
        if !stays_inside(name)
            || leads_astray(self.repository.checkout(), name)
            || leads_astray(self.path(), name)
        {
            return Err(GitError::OutsideWorktree(name.to_owned()));
        }
        let found = fs::symlink_metadata(&from).ok().filter(|found| !found.is_dir());
        Ok(found.filter(|_| fs::symlink_metadata(&to).is_err()))
    }

    fn copy_file(&self, name: &Path, found: &Metadata) -> Result<(), GitError> {
        let (from, to) = (self.repository.checkout().join(name), self.path().join(name));
        if let Some(directory) = to.parent() {
            fs::create_dir_all(directory).map_err(GitError::at(directory))?;
        }
        if found.is_symlink() {
            fs::read_link(&from).and_then(|target| symlink(target, &to)).map_err(GitError::at(&to))
        } else {
            fs::copy(&from, &to).map(drop).map_err(GitError::at(&to))
        }
    }

    fn note_copied(&self, name: &Path) -> Result<(), GitError> {
        let file = self.git_dir.join(COPIED);
        let mut noted = content(&file).unwrap_or_default();
        noted.extend(name.as_os_str().as_bytes().iter().chain(&[0]));
        write_whole(&file, &noted)
    }
}

fn stays_inside(name: &Path) -> bool {
    let mut components = name.components().peekable();
    components.peek().is_some()
        && components.all(|part| matches!(part, Component::Normal(part) if part != ".git"))
}

/// Whether a directory on the way to `name` is a link.
fn leads_astray(top: &Path, name: &Path) -> bool {
    let above = name.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    above.map(|above| top.join(above)).any(|above| above.is_symlink())
}
