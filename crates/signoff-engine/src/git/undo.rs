//! Restores a worktree to a snapshot and reports what had changed.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;

use super::disk::{content, is_directory, remove_if_exists};
use super::repository::GitPlace;
use super::snapshot::WorktreeSnapshot;
use super::stage::{ExcludedPaths, copy_index};
use super::status::{FileState, GitStatus, StatusEntry, StatusKind};
use super::{GitError, Operation, Worktree};

/// Maximum number of passes. Restored files can reveal others, for example when a `.gitignore` had hidden them.
const MAX_PASSES: usize = 4;

/// A change made by an agent that must not change anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeChange {
    /// Undone.
    File { path: PathBuf, what: FileChange },
    /// Undone: the branch is back at its commit. The reflog has the other one.
    MovedBranch { from: Commit, to: Commit },
    /// Undone: the branch exists again.
    DeletedBranch { branch: String },
    /// Undone: the worktree is on its branch again.
    LeftBranch { branch: String },
    /// Undone: files, index and branch are restored.
    StartedOperation { operation: Operation },
    /// A file of the repository, which all worktrees share. Another loop or the user may have changed it, so it
    /// is only reported.
    RepositoryFile { file: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileChange {
    Added,
    Modified,
    Deleted,
}

impl WorktreeChange {
    /// Whether the change was undone.
    pub fn is_undone(&self) -> bool {
        match self {
            Self::File { .. }
            | Self::MovedBranch { .. }
            | Self::DeletedBranch { .. }
            | Self::LeftBranch { .. }
            | Self::StartedOperation { .. } => true,
            Self::RepositoryFile { .. } => false,
        }
    }
}

impl fmt::Display for WorktreeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, what: FileChange::Added } => write!(f, "added {}", path.display()),
            Self::File { path, what: FileChange::Modified } => write!(f, "modified {}", path.display()),
            Self::File { path, what: FileChange::Deleted } => write!(f, "deleted {}", path.display()),
            Self::MovedBranch { to, .. } => write!(f, "moved the branch to {to}"),
            Self::DeletedBranch { branch } => write!(f, "deleted the branch {branch}"),
            Self::LeftBranch { branch } => write!(f, "left the branch {branch}"),
            Self::StartedOperation { operation } => write!(f, "began a {operation}"),
            Self::RepositoryFile { file } => write!(f, "changed {file} of the repository"),
        }
    }
}

impl Worktree {
    /// Undoes all changes since the snapshot and returns them. Ignores ignored files, our own files and copied
    /// files.
    ///
    /// The agent must have ended.
    pub fn undo_since(&self, snapshot: &WorktreeSnapshot) -> Result<Vec<WorktreeChange>, GitError> {
        self.restore_directory()?;
        self.clear_stale_lock()?;
        let mut changes = self.repository_changes(snapshot);
        if self.is_untouched_since(snapshot) {
            return Ok(changes);
        }
        if self.restore_git_file()? {
            changes.push(WorktreeChange::File { path: PathBuf::from(".git"), what: FileChange::Modified });
        }
        let status = self.repository.status(self.snapshot_place(snapshot))?;
        changes.extend(self.undo_operation(snapshot)?);
        changes.extend(self.undo_head(snapshot, &status)?);
        changes.extend(self.undo_files(snapshot, status)?);
        self.restore_index(snapshot)?;
        Ok(changes)
    }

    /// Whether files, `HEAD` or the branch differ from the snapshot. Restores nothing.
    pub fn is_changed_since(&self, snapshot: &WorktreeSnapshot) -> Result<bool, GitError> {
        if self.is_untouched_since(snapshot) {
            return Ok(false);
        }
        let status = self.repository.status(self.snapshot_place(snapshot))?;
        let moved = status.branch != snapshot.branch || status.head.as_ref() != Some(&snapshot.head);
        Ok(moved || !self.changed_files(status).is_empty())
    }

    fn snapshot_place<'a>(&'a self, snapshot: &'a WorktreeSnapshot) -> GitPlace<'a> {
        GitPlace { index: Some(&snapshot.files.path), ..self.place() }
    }

    /// Recreates the directory of a worktree that was deleted or replaced.
    fn restore_directory(&self) -> Result<(), GitError> {
        if is_directory(&self.git_dir) && !is_directory(self.path()) {
            remove_if_exists(self.path())?;
            fs::create_dir(self.path()).map_err(GitError::at(self.path()))?;
        }
        self.check_exists()
    }

    fn repository_changes(&self, snapshot: &WorktreeSnapshot) -> Vec<WorktreeChange> {
        let now = self.repository_file_hashes();
        let names: BTreeSet<&String> = snapshot.repository.keys().chain(now.keys()).collect();
        let changed = names.into_iter().filter(|name| snapshot.repository.get(*name) != now.get(*name));
        changed.map(|name| WorktreeChange::RepositoryFile { file: name.clone() }).collect()
    }

    fn undo_operation(&self, snapshot: &WorktreeSnapshot) -> Result<Option<WorktreeChange>, GitError> {
        let now = Operation::unfinished_in(&self.git_dir);
        let Some(operation) = now.filter(|_| now != snapshot.operation) else { return Ok(None) };
        self.repository.isolated_git(self.place())?.args(operation.quit_args()).read()?;
        Ok(Some(WorktreeChange::StartedOperation { operation }))
    }

    fn undo_head(&self, snapshot: &WorktreeSnapshot, status: &GitStatus) -> Result<Vec<WorktreeChange>, GitError> {
        if status.branch == snapshot.branch && status.head.as_ref() == Some(&snapshot.head) {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        let branch = snapshot.branch.clone();
        if status.branch != snapshot.branch {
            changes.extend(branch.map(|branch| WorktreeChange::LeftBranch { branch }));
        } else if status.head.is_none() {
            changes.extend(branch.map(|branch| WorktreeChange::DeletedBranch { branch }));
        }
        let moved = status.head.clone().filter(|head| *head != snapshot.head);
        changes.extend(moved.map(|to| WorktreeChange::MovedBranch { from: snapshot.head.clone(), to }));
        match &snapshot.branch {
            Some(branch) => self.move_branch(branch, &snapshot.head)?,
            None => {
                let asked = ["update-ref", "--no-deref", "HEAD", snapshot.head.as_str()];
                self.repository.isolated_git(self.place())?.args(asked).read()?;
            }
        }
        Ok(changes)
    }

    fn undo_files(&self, snapshot: &WorktreeSnapshot, first: GitStatus) -> Result<Vec<WorktreeChange>, GitError> {
        let mut changes = Vec::new();
        let mut status = first;
        for _ in 0..MAX_PASSES {
            let found = self.changed_files(status);
            if found.is_empty() {
                return Ok(changes);
            }
            self.restore_files(snapshot, &found)?;
            changes.extend(found.into_iter().map(|(entry, what)| WorktreeChange::File { path: entry.path, what }));
            status = self.repository.status(self.snapshot_place(snapshot))?;
        }
        Err(GitError::StillChanging(self.path().to_owned()))
    }

    fn changed_files(&self, status: GitStatus) -> Vec<(StatusEntry, FileChange)> {
        let kept_out = ExcludedPaths::for_worktree(&self.git_dir);
        let counts = |(entry, what): &(StatusEntry, FileChange)| match what {
            FileChange::Added => !kept_out.contains(&entry.path),
            FileChange::Modified | FileChange::Deleted => true,
        };
        status.entries.into_iter().filter_map(file_change).filter(counts).collect()
    }

    fn restore_files(&self, snapshot: &WorktreeSnapshot, found: &[(StatusEntry, FileChange)]) -> Result<(), GitError> {
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
        self.repository.isolated_git(self.snapshot_place(snapshot))?.args(asked).input(tracked).read().map(drop)
    }

    /// Removes an added file, and then its empty parent directories.
    fn remove_added(&self, path: &Path) -> Result<(), GitError> {
        remove_if_exists(&self.path().join(path))?;
        let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        for directory in above {
            if fs::remove_dir(self.path().join(directory)).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Restores the index without reporting it, because even read-only commands refresh it.
    fn restore_index(&self, snapshot: &WorktreeSnapshot) -> Result<(), GitError> {
        let index = &snapshot.index.as_ref().unwrap_or(&snapshot.files).path;
        let same = fs::read(index).ok() == content(&self.git_dir.join("index"));
        if same { Ok(()) } else { self.replace_index(index) }
    }

    /// Replaces the worktree's index atomically with a copy of `index`.
    pub(super) fn replace_index(&self, index: &Path) -> Result<(), GitError> {
        let (own, fresh) = (self.git_dir.join("index"), self.git_dir.join("signoff-index"));
        remove_if_exists(&fresh)?;
        copy_index(index, &fresh).map_err(GitError::at(&fresh))?;
        if is_directory(&own) {
            remove_if_exists(&own)?;
        }
        fs::rename(&fresh, &own).map_err(GitError::at(&own))
    }
}

/// The change of the file itself. The index is restored as a whole.
fn file_change(entry: StatusEntry) -> Option<(StatusEntry, FileChange)> {
    let what = match entry.kind {
        StatusKind::Tracked { file: FileState::Unchanged, .. } => return None,
        StatusKind::Tracked { file: FileState::Deleted, .. } => FileChange::Deleted,
        StatusKind::Tracked { file: FileState::Changed, .. } | StatusKind::Unmerged => FileChange::Modified,
        StatusKind::Untracked | StatusKind::Nested => FileChange::Added,
    };
    Some((entry, what))
}
