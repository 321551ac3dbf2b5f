//! Undoes changes by agents that must not change files.
//!
//! The reviewers of a cycle read the same worktree at the same time. So it is cleaned and the diff is computed once, and
//! the last reviewer to end undoes all changes.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signoff_core::ids::{Commit, ReviewerName};

use crate::error::EngineError;
use crate::git::{CommitOutcome, CommittedFiles, GitDiff, Worktree, WorktreeChange, WorktreeSnapshot};

/// The worktrees that are being read, by path.
#[derive(Debug, Default)]
pub struct ReadOnlyGuards(Mutex<HashMap<PathBuf, Arc<Mutex<WorktreeReads>>>>);

/// The state of one worktree.
#[derive(Debug, Default)]
struct WorktreeReads {
    session: Option<ReadSession>,
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
    all_readers: BTreeSet<ReviewerName>,
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
    pub fn begin_read(
        &self,
        worktree: &Worktree,
        since: &Commit,
        commit: &Commit,
        reviewer: &ReviewerName,
    ) -> Result<Arc<GitDiff>, EngineError> {
        let state = self.state(worktree);
        let mut reads = lock(&state);
        let same = |one: &&mut ReadSession| one.commit == *commit && one.since == *since;
        if let Some(session) = reads.session.as_mut().filter(same) {
            if session.readers.is_empty() {
                // There were no readers meanwhile, so none of them changed the repository.
                worktree.refresh_repository_files(&mut session.snapshot);
            }
            session.readers.insert(reviewer.clone());
            session.all_readers.insert(reviewer.clone());
            return Ok(session.diff.clone());
        }
        let is_fresh = reads.committed.as_ref() == Some(commit);
        let snapshot = match reads.files.take().filter(|_| is_fresh) {
            Some(files) => worktree.snapshot_with(commit, files)?,
            None => worktree.snapshot_at_commit(commit)?,
        };
        if !is_fresh {
            // Changes of an earlier reader are not part of the work.
            worktree.undo_since(&snapshot)?;
        }
        let diff = Arc::new(worktree.diff_between(since, commit)?);
        let (commit, since, readers) = (commit.clone(), since.clone(), BTreeSet::from([reviewer.clone()]));
        let all_readers = readers.clone();
        reads.session = Some(ReadSession { commit, since, snapshot, diff: diff.clone(), readers, all_readers });
        Ok(diff)
    }

    /// Undoes all changes when the last reader has ended. Until then other readers may still be running.
    pub fn end_read(
        &self,
        worktree: &Worktree,
        commit: &Commit,
        reviewer: &ReviewerName,
    ) -> Result<UndoneChanges, EngineError> {
        let state = self.state(worktree);
        let mut reads = lock(&state);
        let Some(session) = reads.session.as_mut().filter(|one| one.commit == *commit) else {
            let changes = worktree.undo_since(&worktree.snapshot_at_commit(commit)?)?;
            return Ok(UndoneChanges { is_changed: !changes.is_empty(), changes, by: vec![reviewer.clone()] });
        };
        session.readers.remove(reviewer);
        session.all_readers.insert(reviewer.clone());
        let by = session.all_readers.iter().cloned().collect();
        if !session.readers.is_empty() {
            return Ok(UndoneChanges {
                is_changed: worktree.is_changed_since(&session.snapshot)?,
                changes: Vec::new(),
                by,
            });
        }
        session.all_readers.clear();
        let changes = worktree.undo_since(&session.snapshot)?;
        // These changes have been reported.
        worktree.refresh_repository_files(&mut session.snapshot);
        Ok(UndoneChanges { is_changed: !changes.is_empty(), changes, by })
    }

    /// A writer is about to start.
    pub fn writer_started(&self, worktree: &Worktree) {
        let state = self.state(worktree);
        let mut reads = lock(&state);
        (reads.committed, reads.files) = (None, None);
    }

    /// A writer has ended, and everything is committed.
    pub fn writer_committed(&self, worktree: &Worktree, committed: &CommitOutcome) -> Result<(), EngineError> {
        let files = if committed.made { worktree.committed_files()? } else { None };
        let state = self.state(worktree);
        let mut reads = lock(&state);
        (reads.committed, reads.files) = (Some(committed.head.commit.clone()), files);
        Ok(())
    }

    /// Whether a worktree is at this commit and unchanged since its readers ended, as far as can be seen without git.
    pub fn is_unchanged_since_read(&self, worktree: &Worktree, commit: &Commit) -> bool {
        let state = self.state(worktree);
        let reads = lock(&state);
        let session = reads.session.as_ref().filter(|one| one.commit == *commit && one.readers.is_empty());
        session.is_some_and(|one| worktree.is_untouched_since(&one.snapshot))
    }

    /// Forgets a worktree without readers.
    pub fn forget(&self, path: &Path) {
        lock(&self.0).remove(&fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    }

    fn state(&self, worktree: &Worktree) -> Arc<Mutex<WorktreeReads>> {
        lock(&self.0).entry(worktree.path().to_owned()).or_default().clone()
    }
}

/// Ignores poisoning: the next reader undoes what a panicked reader left.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
