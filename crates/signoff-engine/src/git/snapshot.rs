//! What a worktree was like before somebody who must not change it looked at it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use sha2::{Digest, Sha256};
use signoff_core::ids::Commit;

use super::disk::content;
use super::repository::Place;
use super::stage::{KeptOut, ScratchIndex};
use super::stamp::Stamp;
use super::{GitError, Operation, Worktree, index};

/// A worktree's state, to be put back by [`Worktree::undo_since`].
#[derive(Debug)]
pub struct Snapshot {
    pub(super) head: Commit,
    pub(super) branch: Option<String>,
    /// All files as they were. It is not the worktree's own index, so no flag set there can hide a change.
    pub(super) files: ScratchIndex,
    /// The worktree's index, where it was not the same as `files`.
    pub(super) index: Option<ScratchIndex>,
    pub(super) operation: Option<Operation>,
    /// What the files, the branch and the index looked like from outside, where they were known to be the commit's.
    pub(super) footprint: Option<Footprint>,
    pub(super) repository: BTreeMap<String, [u8; 32]>,
}

/// All files of a commit, and what changes with any of them.
#[derive(Debug)]
pub(super) struct Footprint {
    paths: BTreeSet<PathBuf>,
    print: u64,
}

/// The files of a commit that was made just now, to take a snapshot with.
#[derive(Debug)]
pub struct CommittedFiles(ScratchIndex);

impl Worktree {
    /// The files as they were committed a moment ago: then the index says the same as the commit. None if git is to be
    /// asked for them.
    pub fn committed_files(&self) -> Result<Option<CommittedFiles>, GitError> {
        let bytes = content(&self.git_dir.join("index")).unwrap_or_default();
        let Some(bare) = index::without_stat(&bytes, self.repository.seal()?.id_bytes()) else {
            return Ok(None);
        };
        let files = ScratchIndex { path: self.repository.seal()?.scratch() };
        fs::write(&files.path, bare).map_err(GitError::at(&files.path))?;
        Ok(Some(CommittedFiles(files)))
    }

    /// A snapshot of what was committed as `head`.
    pub fn snapshot_with(&self, head: &Commit, files: CommittedFiles) -> Result<Snapshot, GitError> {
        self.there()?;
        let footprint = self.footprint(&files.0)?;
        let snapshot = self.remembered(head.clone(), self.branch.clone(), files.0, None);
        Ok(Snapshot { footprint, ..snapshot })
    }

    fn footprint(&self, files: &ScratchIndex) -> Result<Option<Footprint>, GitError> {
        let bytes = fs::read(&files.path).map_err(GitError::at(&files.path))?;
        let names = index::names(&bytes, self.repository.seal()?.id_bytes());
        // A file can also be added where there was none of the commit.
        let Some((names, directories)) = names.zip(directories(self.path())) else { return Ok(None) };
        let paths =
            names.into_iter().chain(directories).chain([PathBuf::new(), PathBuf::from(".git")]).collect();
        let print = self.repository.footprint(self.place(), &paths);
        Ok(Some(Footprint { paths, print }))
    }

    /// Whether nobody has touched anything since the snapshot: then there is nothing to ask git for.
    pub fn is_untouched_since(&self, snapshot: &Snapshot) -> bool {
        let same = |then: &Footprint| self.repository.footprint(self.place(), &then.paths) == then.print;
        Operation::left_in(&self.git_dir) == snapshot.operation
            && snapshot.footprint.as_ref().is_some_and(same)
    }

    /// Remembers the worktree as it is: one git process if everything is committed.
    pub fn snapshot(&self) -> Result<Snapshot, GitError> {
        self.there()?;
        let files = self.repository.scratch_index(&self.git_dir)?;
        let place = Place { index: Some(&files.path), ..self.place() };
        let status = self.repository.status(place)?;
        let head = status.head.clone().ok_or(GitError::NoCommits)?;
        let mut index = None;
        if !status.entries.is_empty() {
            index = Some(self.repository.scratch_index(&self.git_dir)?);
            self.repository.stage(place, &status, &KeptOut::nothing())?;
        }
        Ok(self.remembered(head, status.branch, files, index))
    }

    /// As if a snapshot had been taken when everything was committed as `head`: for what a crash interrupted.
    pub fn snapshot_of(&self, head: &Commit) -> Result<Snapshot, GitError> {
        self.there()?;
        let files = ScratchIndex { path: self.repository.seal()?.scratch() };
        let place = Place { index: Some(&files.path), ..self.place() };
        self.repository.sealed(place)?.args(["read-tree", head.as_str()]).read()?;
        Ok(self.remembered(head.clone(), self.branch.clone(), files, None))
    }

    fn remembered(
        &self,
        head: Commit,
        branch: Option<String>,
        files: ScratchIndex,
        index: Option<ScratchIndex>,
    ) -> Snapshot {
        let operation = Operation::left_in(&self.git_dir);
        Snapshot {
            head,
            branch,
            files,
            index,
            operation,
            footprint: None,
            repository: self.repository_files(),
        }
    }

    /// Takes the repository's own files as they are now: what became of them is known.
    pub fn accept_repository(&self, snapshot: &mut Snapshot) {
        snapshot.repository = self.repository_files();
    }

    /// Hashes of the repository's files that change what git does, hooks above all.
    pub(super) fn repository_files(&self) -> BTreeMap<String, [u8; 32]> {
        let common = self.repository.common();
        let mut hashes = self.repository.hashes().lock().unwrap_or_else(PoisonError::into_inner);
        let mut files = BTreeMap::new();
        for name in ["config", "config.worktree", "info/attributes", "info/exclude", "refs/stash"] {
            files.extend(hashes.of(common.join(name)).map(|hash| (name.to_owned(), hash)));
        }
        let own = hashes.of(self.git_dir.join("config.worktree"));
        files.extend(own.map(|hash| ("worktree config".to_owned(), hash)));
        for hook in fs::read_dir(common.join("hooks")).into_iter().flatten().flatten() {
            let name = format!("hooks/{}", hook.file_name().to_string_lossy());
            files.extend(hashes.of(hook.path()).map(|hash| (name, hash)));
        }
        files
    }
}

/// With more directories than this git is quicker to ask.
const MOST_DIRECTORIES: usize = 4000;

/// All directories below `top`, seen from there; none if they are too many.
fn directories(top: &Path) -> Option<Vec<PathBuf>> {
    let (mut found, mut next) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = next.pop() {
        let entries = fs::read_dir(top.join(&directory)).ok()?.flatten();
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        next.extend(inner.map(|entry| directory.join(entry.file_name())));
        found.push(directory);
        if found.len() + next.len() > MOST_DIRECTORIES {
            return None;
        }
    }
    Some(found)
}

/// Hashes of files that hardly ever change and are asked for often.
#[derive(Debug, Default)]
pub(super) struct Hashes(HashMap<PathBuf, (Stamp, [u8; 32])>);

impl Hashes {
    fn of(&mut self, file: PathBuf) -> Option<[u8; 32]> {
        let stamp = Stamp::of(&file)?;
        if let Some((_, hash)) = self.0.get(&file).filter(|(known, _)| *known == stamp) {
            return Some(*hash);
        }
        let is_file = fs::metadata(&file).is_ok_and(|found| found.is_file());
        let hash = Sha256::digest(is_file.then(|| fs::read(&file).ok()).flatten()?).into();
        // What lies behind a link can change without it.
        if !file.is_symlink() {
            self.0.insert(file, (stamp, hash));
        }
        Some(hash)
    }
}
