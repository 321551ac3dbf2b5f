//! The state of a worktree before a read-only agent runs in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use sha2::{Digest, Sha256};
use signoff_core::ids::Commit;

use super::disk::content;
use super::repository::GitPlace;
use super::stage::{ExcludedPaths, ScratchIndex};
use super::stamp::FileStamp;
use super::{GitError, Operation, Worktree, index};

/// A worktree's state, which [`Worktree::undo_since`] restores.
#[derive(Debug)]
pub struct WorktreeSnapshot {
    pub(super) head: Commit,
    pub(super) branch: Option<String>,
    /// All files. Not the worktree's own index, so that no flag set there can hide a change.
    pub(super) files: ScratchIndex,
    /// The worktree's index, if it differed from `files`.
    pub(super) index: Option<ScratchIndex>,
    pub(super) operation: Option<Operation>,
    /// Fingerprint of the files, the branch and the index, if they were known to match the commit.
    pub(super) fingerprint: Option<FilesFingerprint>,
    pub(super) repository: BTreeMap<String, [u8; 32]>,
}

/// The files of a commit, with a hash that changes with any of them.
#[derive(Debug)]
pub(super) struct FilesFingerprint {
    paths: BTreeSet<PathBuf>,
    hash: u64,
}

/// The files of a new commit, for [`Worktree::snapshot_with`].
#[derive(Debug)]
pub struct CommittedFiles(ScratchIndex);

impl Worktree {
    /// The files right after a commit, when the index matches the commit. `None` if only git can read the index.
    pub fn committed_files(&self) -> Result<Option<CommittedFiles>, GitError> {
        let bytes = content(&self.git_dir.join("index")).unwrap_or_default();
        let Some(bare) = index::without_stat(&bytes, self.repository.isolated_dir()?.id_bytes()) else {
            return Ok(None);
        };
        let files = ScratchIndex { path: self.repository.isolated_dir()?.scratch_path() };
        fs::write(&files.path, bare).map_err(GitError::at(&files.path))?;
        Ok(Some(CommittedFiles(files)))
    }

    /// A snapshot of the files that were committed as `head`.
    pub fn snapshot_with(&self, head: &Commit, files: CommittedFiles) -> Result<WorktreeSnapshot, GitError> {
        self.check_exists()?;
        let footprint = self.fingerprint(&files.0)?;
        let snapshot = self.build_snapshot(head.clone(), self.branch.clone(), files.0, None);
        Ok(WorktreeSnapshot { fingerprint: footprint, ..snapshot })
    }

    fn fingerprint(&self, files: &ScratchIndex) -> Result<Option<FilesFingerprint>, GitError> {
        let bytes = fs::read(&files.path).map_err(GitError::at(&files.path))?;
        let names = index::file_paths(&bytes, self.repository.isolated_dir()?.id_bytes());
        // Directories show files that were added.
        let Some((names, directories)) = names.zip(directories(self.path())) else { return Ok(None) };
        let paths = names.into_iter().chain(directories).chain([PathBuf::new(), PathBuf::from(".git")]).collect();
        let print = self.repository.fingerprint(self.place(), &paths);
        Ok(Some(FilesFingerprint { paths, hash: print }))
    }

    /// Whether the worktree is unchanged since the snapshot, as far as this is known without git.
    pub fn is_untouched_since(&self, snapshot: &WorktreeSnapshot) -> bool {
        let same = |then: &FilesFingerprint| self.repository.fingerprint(self.place(), &then.paths) == then.hash;
        Operation::unfinished_in(&self.git_dir) == snapshot.operation && snapshot.fingerprint.as_ref().is_some_and(same)
    }

    /// Takes a snapshot of the worktree. Needs one git process if everything is committed.
    pub fn snapshot(&self) -> Result<WorktreeSnapshot, GitError> {
        self.check_exists()?;
        let files = self.repository.scratch_index(&self.git_dir)?;
        let place = GitPlace { index: Some(&files.path), ..self.place() };
        let status = self.repository.status(place)?;
        let head = status.head.clone().ok_or(GitError::NoCommits)?;
        let mut index = None;
        if !status.entries.is_empty() {
            index = Some(self.repository.scratch_index(&self.git_dir)?);
            self.repository.stage(place, &status, &ExcludedPaths::none())?;
        }
        Ok(self.build_snapshot(head, status.branch, files, index))
    }

    /// A snapshot of the committed state `head`, for an attempt that a crash interrupted.
    pub fn snapshot_at_commit(&self, head: &Commit) -> Result<WorktreeSnapshot, GitError> {
        self.check_exists()?;
        let files = ScratchIndex { path: self.repository.isolated_dir()?.scratch_path() };
        let place = GitPlace { index: Some(&files.path), ..self.place() };
        self.repository.isolated_git(place)?.args(["read-tree", head.as_str()]).read()?;
        Ok(self.build_snapshot(head.clone(), self.branch.clone(), files, None))
    }

    fn build_snapshot(
        &self,
        head: Commit,
        branch: Option<String>,
        files: ScratchIndex,
        index: Option<ScratchIndex>,
    ) -> WorktreeSnapshot {
        let operation = Operation::unfinished_in(&self.git_dir);
        WorktreeSnapshot {
            head,
            branch,
            files,
            index,
            operation,
            fingerprint: None,
            repository: self.repository_file_hashes(),
        }
    }

    /// Replaces the snapshot's hashes of the repository's files with the current ones.
    pub fn refresh_repository_files(&self, snapshot: &mut WorktreeSnapshot) {
        snapshot.repository = self.repository_file_hashes();
    }

    /// Hashes of the repository's files that change git's behavior, such as hooks.
    pub(super) fn repository_file_hashes(&self) -> BTreeMap<String, [u8; 32]> {
        let common = self.repository.common();
        let mut hashes = self.repository.hashes().lock().unwrap_or_else(PoisonError::into_inner);
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

/// Maximum number of directories. With more, a git process is faster.
const MAX_DIRECTORIES: usize = 4000;

/// All directories below `top`, as relative paths. `None` if there are too many.
fn directories(top: &Path) -> Option<Vec<PathBuf>> {
    let (mut found, mut next) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = next.pop() {
        let entries = fs::read_dir(top.join(&directory)).ok()?.flatten();
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        next.extend(inner.map(|entry| directory.join(entry.file_name())));
        found.push(directory);
        if found.len() + next.len() > MAX_DIRECTORIES {
            return None;
        }
    }
    Some(found)
}

/// Cache of hashes of files that rarely change.
#[derive(Debug, Default)]
pub(super) struct FileHashCache(HashMap<PathBuf, (FileStamp, [u8; 32])>);

impl FileHashCache {
    fn get_or_compute(&mut self, file: PathBuf) -> Option<[u8; 32]> {
        let stamp = FileStamp::read(&file)?;
        if let Some((_, hash)) = self.0.get(&file).filter(|(known, _)| *known == stamp) {
            return Some(*hash);
        }
        let is_file = fs::metadata(&file).is_ok_and(|found| found.is_file());
        let hash = Sha256::digest(is_file.then(|| fs::read(&file).ok()).flatten()?).into();
        // A link's target can change without the link.
        if !file.is_symlink() {
            self.0.insert(file, (stamp, hash));
        }
        Some(hash)
    }
}
