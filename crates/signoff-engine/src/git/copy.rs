//! Copies untracked files, such as `.env`, from the checkout into a worktree.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use super::disk::{content, write_atomic};
use super::stage::{COPIED_LIST, ExcludedPaths};
use super::{GitError, Worktree};

impl Worktree {
    /// Copies the named files from the checkout if they exist there and not in the worktree.
    ///
    /// They are never committed, ignored or not: an untracked file may be a secret.
    pub fn copy_files(&self, names: &[String]) -> Result<Vec<PathBuf>, GitError> {
        self.check_exists()?;
        let mut copied = Vec::new();
        for name in names.iter().map(Path::new) {
            if let Some(found) = self.copy_source(name)? {
                // Recorded first, so that every copy is known to be a possible secret.
                self.record_copied(name)?;
                self.copy_file(name, &found)?;
                copied.push(name.to_owned());
            }
        }
        Ok(copied)
    }

    /// Records again which of the named files were copied, after the record was lost with the git directory.
    pub fn restore_copied_list(&self, names: &[String]) -> Result<(), GitError> {
        let is_copy = |name: &&Path| {
            let both = [self.repository.checkout(), self.path()];
            is_relative_inside(name) && both.iter().all(|top| fs::symlink_metadata(top.join(name)).is_ok())
        };
        for name in names.iter().map(Path::new).filter(is_copy) {
            // A file that the branch contains is not a copy, and is committed like any other.
            let asked = ["ls-tree", "-z", "--name-only", "--full-tree", "HEAD", "--"];
            let listed = self.repository.isolated_git(self.place())?.args(asked).args([name]).read()?;
            if listed.is_empty() && !ExcludedPaths::for_worktree(&self.git_dir).contains(name) {
                self.record_copied(name)?;
            }
        }
        Ok(())
    }

    /// The source of a copy, if it exists and the destination does not.
    fn copy_source(&self, name: &Path) -> Result<Option<Metadata>, GitError> {
        let (from, to) = (self.repository.checkout().join(name), self.path().join(name));
        if !is_relative_inside(name)
            || has_linked_parent(self.repository.checkout(), name)
            || has_linked_parent(self.path(), name)
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

    fn record_copied(&self, name: &Path) -> Result<(), GitError> {
        let file = self.git_dir.join(COPIED_LIST);
        let mut noted = content(&file).unwrap_or_default();
        noted.extend(name.as_os_str().as_bytes().iter().chain(&[0]));
        write_atomic(&file, &noted)
    }
}

fn is_relative_inside(name: &Path) -> bool {
    let mut components = name.components().peekable();
    components.peek().is_some() && components.all(|part| matches!(part, Component::Normal(part) if part != ".git"))
}

/// Whether a directory on the path to `name` is a link.
fn has_linked_parent(top: &Path, name: &Path) -> bool {
    let above = name.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    above.map(|above| top.join(above)).any(|above| above.is_symlink())
}
