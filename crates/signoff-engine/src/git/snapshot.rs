//! The state of a worktree before a read-only agent runs in it, and the undoing of what the agent changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::{fmt, fs};

use signoff_core::ids::Commit;

use super::commit::{ExcludedPaths, copy_index};
use super::disk::{content, is_directory, remove_empty_parents, remove_if_exists};
use super::isolated_dir::ScratchPath;
use super::repository::{GitDirs, join_nul};
use super::status::{FileState, FilesFingerprint, GitStatus, StatusEntry, StatusKind, directories};
use super::{GitError, Operation, Worktree, index};

/// A worktree's state, which [`Worktree::undo_since`] restores.
#[derive(Debug)]
pub struct WorktreeSnapshot {
    head: Commit,
    branch: Option<String>,
    /// All files. Not the worktree's own index, so that no flag set there can hide a change.
    files: ScratchPath,
    operation: Option<Operation>,
    /// Fingerprint of the files, the branch and the index, if they were known to match the commit.
    fingerprint: Option<FilesFingerprint>,
    repository: BTreeMap<String, [u8; 32]>,
}

/// The files of a new commit, for [`Worktree::snapshot_with`].
#[derive(Debug)]
pub struct CommittedFiles(ScratchPath);

impl Worktree {
    /// The files right after a commit, when the index matches the commit. `None` if only git can read the index.
    pub fn committed_files(&self) -> Result<Option<CommittedFiles>, GitError> {
        let Some(bare) = self.index_without_stat()? else { return Ok(None) };
        let files = self.repository.scratch()?;
        fs::write(&files.path, bare).map_err(GitError::at(&files.path))?;
        Ok(Some(CommittedFiles(files)))
    }

    /// A snapshot of the files that were committed as `head`.
    pub fn snapshot_with(&self, head: &Commit, files: CommittedFiles) -> Result<WorktreeSnapshot, GitError> {
        self.check_exists()?;
        let fingerprint = self.fingerprint(&files.0)?;
        let snapshot = self.build_snapshot(head.clone(), files.0);
        Ok(WorktreeSnapshot { fingerprint, ..snapshot })
    }

    fn fingerprint(&self, files: &ScratchPath) -> Result<Option<FilesFingerprint>, GitError> {
        let bytes = fs::read(&files.path).map_err(GitError::at(&files.path))?;
        let names = index::file_paths(&bytes, self.repository.isolated_dir()?.id_bytes);
        // Directories show files that were added.
        let Some((names, directories)) = names.zip(directories(self.path())) else { return Ok(None) };
        let paths = names.into_iter().chain(directories).chain([PathBuf::new(), PathBuf::from(".git")]).collect();
        Ok(Some(FilesFingerprint::new(&self.repository, self.dirs(), paths)))
    }

    /// Whether the worktree is unchanged since the snapshot, as far as this is known without git.
    pub fn is_untouched_since(&self, snapshot: &WorktreeSnapshot) -> bool {
        let same = |then: &FilesFingerprint| then.is_current(&self.repository, self.dirs());
        Operation::unfinished_in(&self.git_dir) == snapshot.operation && snapshot.fingerprint.as_ref().is_some_and(same)
    }

    /// A snapshot of the committed state `head`.
    pub fn snapshot_at_commit(&self, head: &Commit) -> Result<WorktreeSnapshot, GitError> {
        self.check_exists()?;
        let files = self.repository.scratch()?;
        let dirs = self.dirs().with_index(&files);
        self.repository.isolated_git_at(dirs, "read-tree")?.args([head.as_str()]).execute()?;
        Ok(self.build_snapshot(head.clone(), files))
    }

    fn build_snapshot(&self, head: Commit, files: ScratchPath) -> WorktreeSnapshot {
        let branch = self.branch.clone();
        let operation = Operation::unfinished_in(&self.git_dir);
        let repository = self.repository_file_hashes();
        WorktreeSnapshot { head, branch, files, operation, fingerprint: None, repository }
    }

    /// Replaces the snapshot's hashes of the repository's files with the current ones.
    pub fn refresh_repository_files(&self, snapshot: &mut WorktreeSnapshot) {
        snapshot.repository = self.repository_file_hashes();
    }

    /// Hashes of the repository's files that change git's behavior, such as hooks.
    pub(super) fn repository_file_hashes(&self) -> BTreeMap<String, [u8; 32]> {
        let common = self.repository.common();
        let mut hashes = self.repository.inner.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut files = BTreeMap::new();
        for name in ["config", "config.worktree", "info/attributes", "info/exclude", "refs/stash"] {
            files.extend(hashes.get_or_compute(common.join(name)).map(|hash| (name.to_owned(), hash)));
        }
        let own = hashes.get_or_compute(self.git_dir.join("config.worktree"));
        files.extend(own.map(|hash| ("worktree config".to_owned(), hash)));
        for hook in fs::read_dir(common.join("hooks")).into_iter().flatten().flatten() {
            let name = format!("hooks/{}", hook.file_name().to_string_lossy());
            files.extend(hashes.get_or_compute(hook.path()).map(|hash| (name, hash)));
        }
        files
    }
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum FileChange {
    Added,
    Modified,
    Deleted,
}

impl WorktreeChange {
    /// Whether the change was undone.
    pub fn is_undone(&self) -> bool {
        !matches!(self, Self::RepositoryFile { .. })
    }
}

impl fmt::Display for WorktreeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, what } => write!(f, "{what} {}", path.display()),
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
        let status = self.repository.status(self.snapshot_dirs(snapshot))?;
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
        let status = self.repository.status(self.snapshot_dirs(snapshot))?;
        let moved = status.branch != snapshot.branch || status.head.as_ref() != Some(&snapshot.head);
        Ok(moved || !self.changed_files(status).is_empty())
    }

    fn snapshot_dirs<'a>(&'a self, snapshot: &'a WorktreeSnapshot) -> GitDirs<'a> {
        self.dirs().with_index(&snapshot.files)
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
        self.isolated_git(operation.quit_args())?.execute()?;
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
            None => self.isolated_git("update-ref --no-deref HEAD")?.args([snapshot.head.as_str()]).execute()?,
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
            changes.extend(found.into_iter().map(|ChangedFile { path, what }| WorktreeChange::File { path, what }));
            status = self.repository.status(self.snapshot_dirs(snapshot))?;
        }
        Err(GitError::StillChanging(self.path().to_owned()))
    }

    fn changed_files(&self, status: GitStatus) -> Vec<ChangedFile> {
        let kept_out = ExcludedPaths::for_worktree(&self.git_dir);
        let counts = |file: &ChangedFile| match file.what {
            FileChange::Added => !kept_out.contains(&file.path),
            FileChange::Modified | FileChange::Deleted => true,
        };
        status.entries.into_iter().filter_map(file_change).filter(counts).collect()
    }

    fn restore_files(&self, snapshot: &WorktreeSnapshot, found: &[ChangedFile]) -> Result<(), GitError> {
        let mut tracked = Vec::new();
        for ChangedFile { path, what } in found {
            match what {
                FileChange::Added => {
                    remove_if_exists(&self.path().join(path))?;
                    remove_empty_parents(self.path(), path);
                }
                FileChange::Modified | FileChange::Deleted => tracked.extend(join_nul([path.as_path()])),
            }
        }
        if tracked.is_empty() {
            return Ok(());
        }
        let command =
            self.repository.isolated_git_at(self.snapshot_dirs(snapshot), "checkout-index -f -u -q -z --stdin")?;
        command.input(tracked).execute()
    }

    /// Restores the index without reporting it, because even read-only commands refresh it.
    fn restore_index(&self, snapshot: &WorktreeSnapshot) -> Result<(), GitError> {
        let index = &snapshot.files.path;
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

/// A file that differs from the snapshot.
struct ChangedFile {
    path: PathBuf,
    what: FileChange,
}

/// The change of the file itself. The index is restored as a whole.
fn file_change(entry: StatusEntry) -> Option<ChangedFile> {
    let what = match entry.kind {
        StatusKind::Tracked { file: FileState::Unchanged, .. } => return None,
        StatusKind::Tracked { file: FileState::Deleted, .. } => FileChange::Deleted,
        StatusKind::Tracked { file: FileState::Changed, .. } | StatusKind::Unmerged => FileChange::Modified,
        StatusKind::Untracked | StatusKind::Nested => FileChange::Added,
    };
    Some(ChangedFile { path: entry.path, what })
}
