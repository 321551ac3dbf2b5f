//! Putting a worktree back as it was, and telling what had changed.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;

use super::disk::{content, is_directory, remove_if_there};
use super::repository::Place;
use super::snapshot::Snapshot;
use super::stage::{KeptOut, copy_index};
use super::status::{Entry, FileState, Kind, Status};
use super::{GitError, Operation, Worktree};

/// How often files are put back that turn up again, say because a `.gitignore` had hidden them.
const ROUNDS: usize = 4;

/// Something that was changed by somebody who must not change anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Undone.
    File { path: PathBuf, what: FileChange },
    /// Undone: the branch is where it was. The reflog has the commit.
    Moved { from: Commit, to: Commit },
    /// Undone: the branch is there again.
    DeletedBranch { branch: String },
    /// Undone: the worktree is on its branch again.
    LeftBranch { branch: String },
    /// Undone: files, index and branch are as they were.
    Began { operation: Operation },
    /// A file of the repository, which all worktrees share: another loop or the person may have changed it, so it
    /// is only reported.
    Repository { file: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileChange {
    Added,
    Modified,
    Deleted,
}

impl Change {
    /// Whether all is as it was before.
    pub fn is_undone(&self) -> bool {
        match self {
            Self::File { .. }
            | Self::Moved { .. }
            | Self::DeletedBranch { .. }
            | Self::LeftBranch { .. }
            | Self::Began { .. } => true,
            Self::Repository { .. } => false,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, what: FileChange::Added } => write!(f, "added {}", path.display()),
            Self::File { path, what: FileChange::Modified } => write!(f, "modified {}", path.display()),
            Self::File { path, what: FileChange::Deleted } => write!(f, "deleted {}", path.display()),
            Self::Moved { to, .. } => write!(f, "moved the branch to {to}"),
            Self::DeletedBranch { branch } => write!(f, "deleted the branch {branch}"),
            Self::LeftBranch { branch } => write!(f, "left the branch {branch}"),
            Self::Began { operation } => write!(f, "began a {operation}"),
            Self::Repository { file } => write!(f, "changed {file} of the repository"),
        }
    }
}

impl Worktree {
    /// Undoes what was done to the worktree since the snapshot, and tells it. Ignored files are left alone, and so are
    /// those that no commit holds because they are ours or were copied in.
    ///
    /// Whoever did it must have ended.
    pub fn undo_since(&self, snapshot: &Snapshot) -> Result<Vec<Change>, GitError> {
        self.restore_directory()?;
        self.clear_stale_lock()?;
        let mut changes = self.changes_of_repository(snapshot);
        if self.is_untouched_since(snapshot) {
            return Ok(changes);
        }
        if self.link()? {
            changes.push(Change::File { path: PathBuf::from(".git"), what: FileChange::Modified });
        }
        let status = self.repository.status(self.files(snapshot))?;
        changes.extend(self.undo_operation(snapshot)?);
        changes.extend(self.undo_head(snapshot, &status)?);
        changes.extend(self.undo_files(snapshot, status)?);
        self.put_index_back(snapshot)?;
        Ok(changes)
    }

    /// Whether files, `HEAD` or the branch differ from the snapshot; nothing is put back.
    pub fn is_changed_since(&self, snapshot: &Snapshot) -> Result<bool, GitError> {
        if self.is_untouched_since(snapshot) {
            return Ok(false);
        }
        let status = self.repository.status(self.files(snapshot))?;
        let moved = status.branch != snapshot.branch || status.head.as_ref() != Some(&snapshot.head);
        Ok(moved || !self.changed_files(status).is_empty())
    }

    fn files<'a>(&'a self, snapshot: &'a Snapshot) -> Place<'a> {
        Place { index: Some(&snapshot.files.path), ..self.place() }
    }

    /// A worktree that was deleted altogether, or that something else took the place of, is made again from the snapshot.
    fn restore_directory(&self) -> Result<(), GitError> {
        if is_directory(&self.git_dir) && !is_directory(self.path()) {
            remove_if_there(self.path())?;
            fs::create_dir(self.path()).map_err(GitError::at(self.path()))?;
        }
        self.there()
    }

    fn changes_of_repository(&self, snapshot: &Snapshot) -> Vec<Change> {
        let now = self.repository_files();
        let names: BTreeSet<&String> = snapshot.repository.keys().chain(now.keys()).collect();
        let changed = names.into_iter().filter(|name| snapshot.repository.get(*name) != now.get(*name));
        changed.map(|name| Change::Repository { file: name.clone() }).collect()
    }

    fn undo_operation(&self, snapshot: &Snapshot) -> Result<Option<Change>, GitError> {
        let now = Operation::left_in(&self.git_dir);
        let Some(operation) = now.filter(|_| now != snapshot.operation) else { return Ok(None) };
        self.repository.sealed(self.place())?.args(operation.quit()).read()?;
        Ok(Some(Change::Began { operation }))
    }

    fn undo_head(&self, snapshot: &Snapshot, status: &Status) -> Result<Vec<Change>, GitError> {
        if status.branch == snapshot.branch && status.head.as_ref() == Some(&snapshot.head) {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        let branch = snapshot.branch.clone();
        if status.branch != snapshot.branch {
            changes.extend(branch.map(|branch| Change::LeftBranch { branch }));
        } else if status.head.is_none() {
            changes.extend(branch.map(|branch| Change::DeletedBranch { branch }));
        }
        let moved = status.head.clone().filter(|head| *head != snapshot.head);
        changes.extend(moved.map(|to| Change::Moved { from: snapshot.head.clone(), to }));
        match &snapshot.branch {
            Some(branch) => self.move_branch(branch, &snapshot.head)?,
            None => {
                let asked = ["update-ref", "--no-deref", "HEAD", snapshot.head.as_str()];
                self.repository.sealed(self.place())?.args(asked).read()?;
            }
        }
        Ok(changes)
    }

    fn undo_files(&self, snapshot: &Snapshot, first: Status) -> Result<Vec<Change>, GitError> {
        let mut changes = Vec::new();
        let mut status = first;
        for _ in 0..ROUNDS {
            let found = self.changed_files(status);
            if found.is_empty() {
                return Ok(changes);
            }
            self.put_back(snapshot, &found)?;
            changes.extend(found.into_iter().map(|(entry, what)| Change::File { path: entry.path, what }));
            status = self.repository.status(self.files(snapshot))?;
        }
        Err(GitError::StillChanging(self.path().to_owned()))
    }

    fn changed_files(&self, status: Status) -> Vec<(Entry, FileChange)> {
        let kept_out = KeptOut::of(&self.git_dir);
        let counts = |(entry, what): &(Entry, FileChange)| match what {
            FileChange::Added => !kept_out.holds(&entry.path),
            FileChange::Modified | FileChange::Deleted => true,
        };
        status.entries.into_iter().filter_map(changed).filter(counts).collect()
    }

    fn put_back(&self, snapshot: &Snapshot, found: &[(Entry, FileChange)]) -> Result<(), GitError> {
        let mut tracked = Vec::new();
        for (entry, what) in found {
            match what {
                FileChange::Added => self.remove_added(&entry.path)?,
                FileChange::Modified | FileChange::Deleted => {
                    tracked.extend(entry.path.as_os_str().as_bytes().iter().chain(&[0]));
                }
            }
        }
        if tracked.is_empty() {
            return Ok(());
        }
        let asked = ["checkout-index", "-f", "-u", "-q", "-z", "--stdin"];
        self.repository.sealed(self.files(snapshot))?.args(asked).input(tracked).read().map(drop)
    }

    /// Removes what was added, and directories that are empty without it.
    fn remove_added(&self, path: &Path) -> Result<(), GitError> {
        remove_if_there(&self.path().join(path))?;
        let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        for directory in above {
            if fs::remove_dir(self.path().join(directory)).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Nothing is said about it: reading commands too freshen an index.
    fn put_index_back(&self, snapshot: &Snapshot) -> Result<(), GitError> {
        let index = &snapshot.index.as_ref().unwrap_or(&snapshot.files).path;
        let same = fs::read(index).ok() == content(&self.git_dir.join("index"));
        if same { Ok(()) } else { self.replace_index(index) }
    }

    /// Puts a copy of `index` in place of the worktree's own, at once or not at all.
    pub(super) fn replace_index(&self, index: &Path) -> Result<(), GitError> {
        let (own, fresh) = (self.git_dir.join("index"), self.git_dir.join("signoff-index"));
        remove_if_there(&fresh)?;
        copy_index(index, &fresh).map_err(GitError::at(&fresh))?;
        if is_directory(&own) {
            remove_if_there(&own)?;
        }
        fs::rename(&fresh, &own).map_err(GitError::at(&own))
    }
}

/// What happened to the file itself; the index is put back as a whole.
fn changed(entry: Entry) -> Option<(Entry, FileChange)> {
    let what = match entry.kind {
        Kind::Tracked { file: FileState::Same, .. } => return None,
        Kind::Tracked { file: FileState::Gone, .. } => FileChange::Deleted,
        Kind::Tracked { file: FileState::Changed, .. } | Kind::Unmerged => FileChange::Modified,
        Kind::Untracked | Kind::Nested => FileChange::Added,
    };
    Some((entry, what))
}
