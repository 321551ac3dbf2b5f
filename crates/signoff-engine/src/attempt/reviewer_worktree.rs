//! The files of reviewers: one worktree that all of a round read, a temporary copy for one to build and test in, and
//! files that its agent would execute.
//!
//! The reviewers of a round read the same files at the same time. So the worktree is cleaned and the diff is computed
//! once, and the last reviewer to end undoes all changes. A copy is named after the loop's worktree and the reviewer,
//! which runs there once at a time. A copy that a killed process left has the same name and is replaced.
//!
//! A writer can hide files from the diff: ignored files are in no commit, but an agent that searches the disk still
//! runs them. So for such agents these files must be identical to the base commit.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::settings::AgentConfig;

use super::EngineContext;
use crate::agent;
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::git::{CommitOutcome, CommittedFiles, GitDiff, Worktree, WorktreeChange, WorktreeSnapshot};

/// The path of a reviewer's copy of a worktree.
pub fn path(worktree: &str, reviewer: &ReviewerName) -> PathBuf {
    let own = Path::new(worktree);
    let mut name = own.file_name().unwrap_or_default().to_owned();
    name.push(format!("-copy-{reviewer}"));
    own.with_file_name(name)
}

/// Creates the copy. Returns it with a spec that points to it.
pub fn make(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    reviewer: &ReviewerName,
    commit: &Commit,
) -> Result<(AttemptSpec, Worktree), EngineError> {
    let path = path(&spec.workspace.worktree, reviewer);
    ctx.repository.remove_parallel_worktree(&path)?;
    let copy = ctx.repository.parallel_worktree(&path, || Ok(commit.clone()))?;
    copy.copy_files(ctx.settings.copied_into_worktrees())?;
    let mut moved = spec.clone();
    moved.workspace.worktree = copy.path().display().to_string();
    Ok((moved, copy))
}

/// Removes all copies of a worktree that a killed process left.
pub fn clear(ctx: &EngineContext, worktree: &str) {
    let own = Path::new(worktree);
    let begins = format!("{}-copy-", own.file_name().unwrap_or_default().to_string_lossy());
    let is_copy = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&begins) && path.parent() == own.parent()
    };
    for copy in ctx.repository.worktree_paths().iter().filter(|path| is_copy(path)) {
        // A copy that cannot be removed is replaced when it is needed.
        ctx.repository.remove_parallel_worktree(copy).ok();
    }
}

/// Removes a reviewer's copy.
pub fn discard(ctx: &EngineContext, spec: &AttemptSpec, reviewer: &ReviewerName) {
    let path = path(&spec.workspace.worktree, reviewer);
    if path.symlink_metadata().is_ok() {
        // A copy that cannot be removed is replaced when it is needed.
        ctx.repository.remove_parallel_worktree(&path).ok();
    }
}

/// Maximum number of files and directories to check.
const MOST: usize = 1000;

/// The first file in a task's worktree that an agent would run and that differs from the base commit.
pub fn find_untrusted_file(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    agent: &AgentConfig,
) -> Result<Option<String>, EngineError> {
    let worktree = Path::new(&spec.workspace.worktree);
    let (mut plain, mut left) = (Vec::new(), MOST);
    for path in entries(worktree).into_iter().filter(|path| runs(agent, worktree, path)) {
        if let Err(odd) = files(&path, &mut plain, &mut left) {
            return Ok(Some(relative_path(worktree, &odd)));
        }
    }
    let plain: Vec<PathBuf> =
        plain.iter().filter_map(|path| path.strip_prefix(worktree).ok()).map(Path::to_owned).collect();
    let unlike = ctx.repository.first_difference(spec.base(), worktree, &plain)?;
    Ok(unlike.map(|path| relative_path(worktree, &worktree.join(path))))
}

fn relative_path(worktree: &Path, path: &Path) -> String {
    path.strip_prefix(worktree).unwrap_or(path).display().to_string()
}

fn runs(agent: &AgentConfig, worktree: &Path, path: &Path) -> bool {
    agent::executes_file(agent, &relative_path(worktree, path))
}

/// Collects the regular files at a path. Other file types, and too many files, are an error with the path.
fn files(path: &Path, plain: &mut Vec<PathBuf>, left: &mut usize) -> Result<(), PathBuf> {
    *left = left.checked_sub(1).ok_or_else(|| path.to_owned())?;
    let kind = path.symlink_metadata().map_err(|_| path.to_owned())?.file_type();
    if kind.is_dir() {
        return entries(path).iter().try_for_each(|path| files(path, plain, left));
    }
    plain.push(path.to_owned());
    // The target of a link is not checked.
    if kind.is_file() { Ok(()) } else { Err(path.to_owned()) }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The worktrees that are being read, by path.
#[derive(Debug, Default)]
pub struct ReadOnlyGuards(Mutex<HashMap<PathBuf, Arc<Mutex<WorktreeReads>>>>);

/// The state of one worktree.
#[derive(Debug, Default)]
struct WorktreeReads {
    reading: Option<ReadSession>,
    /// The commit that contains everything in the worktree, as long as no writer has started since.
    committed: Option<Commit>,
    /// The files of that commit, until they are part of a snapshot.
    files: Option<CommittedFiles>,
}

#[derive(Debug)]
struct ReadSession {
    commit: Commit,
    since: Commit,
    snapshot: WorktreeSnapshot,
    diff: Arc<GitDiff>,
    /// The current readers, and all readers since changes were last undone.
    readers: BTreeSet<ReviewerName>,
    took_part: BTreeSet<ReviewerName>,
}

/// Changes made during a read-only phase, and the agents that may have made them.
#[derive(Debug, Default)]
pub struct UndoneChanges {
    /// Whether the files differed from the commit when this reader ended.
    pub is_changed: bool,
    pub changes: Vec<WorktreeChange>,
    pub by: Vec<ReviewerName>,
}

impl ReadOnlyGuards {
    /// Cleans a worktree for a reader and returns its diff.
    pub fn begin(
        &self,
        worktree: &Worktree,
        since: &Commit,
        commit: &Commit,
        who: &ReviewerName,
    ) -> Result<Arc<GitDiff>, EngineError> {
        let place = self.place(worktree);
        let mut known = lock(&place);
        let same = |one: &&mut ReadSession| one.commit == *commit && one.since == *since;
        if let Some(reading) = known.reading.as_mut().filter(same) {
            if reading.readers.is_empty() {
                // There were no readers meanwhile, so none of them changed the repository.
                worktree.refresh_repository_files(&mut reading.snapshot);
            }
            reading.readers.insert(who.clone());
            reading.took_part.insert(who.clone());
            return Ok(reading.diff.clone());
        }
        let is_fresh = known.committed.as_ref() == Some(commit);
        let snapshot = match known.files.take().filter(|_| is_fresh) {
            Some(files) => worktree.snapshot_with(commit, files)?,
            None => worktree.snapshot_at_commit(commit)?,
        };
        if !is_fresh {
            // Changes of an earlier reader are not part of the work.
            worktree.undo_since(&snapshot)?;
        }
        let diff = Arc::new(worktree.diff_between(since, commit)?);
        let (commit, since, readers) = (commit.clone(), since.clone(), BTreeSet::from([who.clone()]));
        let took_part = readers.clone();
        known.reading = Some(ReadSession { commit, since, snapshot, diff: diff.clone(), readers, took_part });
        Ok(diff)
    }

    /// Undoes all changes when the last reader has ended. Until then other readers may still be running.
    pub fn end(&self, worktree: &Worktree, commit: &Commit, who: &ReviewerName) -> Result<UndoneChanges, EngineError> {
        let place = self.place(worktree);
        let mut known = lock(&place);
        let Some(reading) = known.reading.as_mut().filter(|one| one.commit == *commit) else {
            let changes = worktree.undo_since(&worktree.snapshot_at_commit(commit)?)?;
            return Ok(UndoneChanges { is_changed: !changes.is_empty(), changes, by: vec![who.clone()] });
        };
        reading.readers.remove(who);
        reading.took_part.insert(who.clone());
        let by = reading.took_part.iter().cloned().collect();
        if !reading.readers.is_empty() {
            return Ok(UndoneChanges {
                is_changed: worktree.is_changed_since(&reading.snapshot)?,
                changes: Vec::new(),
                by,
            });
        }
        reading.took_part.clear();
        let changes = worktree.undo_since(&reading.snapshot)?;
        // These changes have been reported.
        worktree.refresh_repository_files(&mut reading.snapshot);
        Ok(UndoneChanges { is_changed: !changes.is_empty(), changes, by })
    }

    /// A writer is about to start.
    pub fn writing(&self, worktree: &Worktree) {
        let place = self.place(worktree);
        let mut known = lock(&place);
        (known.committed, known.files) = (None, None);
    }

    /// A writer has ended, and everything is committed.
    pub fn committed(&self, worktree: &Worktree, committed: &CommitOutcome) -> Result<(), EngineError> {
        let files = if committed.made { worktree.committed_files()? } else { None };
        let place = self.place(worktree);
        let mut known = lock(&place);
        (known.committed, known.files) = (Some(committed.head.commit.clone()), files);
        Ok(())
    }

    /// Whether a worktree is at this commit and unchanged since its readers ended, as far as can be seen without git.
    pub fn is_as_read(&self, worktree: &Worktree, commit: &Commit) -> bool {
        let place = self.place(worktree);
        let known = lock(&place);
        let reading = known.reading.as_ref().filter(|one| one.commit == *commit && one.readers.is_empty());
        reading.is_some_and(|one| worktree.is_untouched_since(&one.snapshot))
    }

    /// Forgets a worktree without readers.
    pub fn forget(&self, path: &Path) {
        lock(&self.0).remove(&fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    }

    fn place(&self, worktree: &Worktree) -> Arc<Mutex<WorktreeReads>> {
        lock(&self.0).entry(worktree.path().to_owned()).or_default().clone()
    }
}

/// Ignores poisoning: the next reader undoes what a panicked reader left.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
