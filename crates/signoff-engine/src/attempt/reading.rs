//! What all readers of one worktree share: the state they must leave it in, and the diff they are shown.
//!
//! The reviewers of a round look at the same files at the same time. So the files are put in order and the diff
//! is taken once, and whoever ends puts back what was changed, one after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signoff_core::ids::Commit;

use crate::error::EngineError;
use crate::git::{Diff, Snapshot, Worktree};

/// The worktrees that are being read, by path.
#[derive(Debug, Default)]
pub struct Readings(Mutex<HashMap<String, Arc<Mutex<Known>>>>);

/// What is known of one worktree.
#[derive(Debug, Default)]
struct Known {
    reading: Option<Reading>,
    /// Everything in it was committed as this, and nobody has written since.
    committed: Option<Commit>,
}

#[derive(Debug)]
struct Reading {
    commit: Commit,
    since: Commit,
    snapshot: Snapshot,
    diff: Arc<Diff>,
}

impl Readings {
    /// The diff of a worktree at a commit, which is put in order first.
    pub fn begin(
        &self,
        worktree: &Worktree,
        commit: &Commit,
        since: &Commit,
    ) -> Result<Arc<Diff>, EngineError> {
        let place = self.place(worktree);
        let mut known = lock(&place);
        if let Some(same) = known.reading.as_ref().filter(|one| one.commit == *commit && one.since == *since)
        {
            return Ok(same.diff.clone());
        }
        let snapshot = worktree.snapshot_of(commit)?;
        if known.committed.as_ref() != Some(commit) {
            // Whatever an earlier reader left behind is not part of the work.
            worktree.undo_since(&snapshot)?;
        }
        let diff = Arc::new(worktree.diff_between(since, commit)?);
        known.reading =
            Some(Reading { commit: commit.clone(), since: since.clone(), snapshot, diff: diff.clone() });
        Ok(diff)
    }

    /// Puts back what was changed since; the changes, in words.
    pub fn end(&self, worktree: &Worktree, commit: &Commit) -> Result<Vec<String>, EngineError> {
        let place = self.place(worktree);
        let known = lock(&place);
        let changes = match known.reading.as_ref().filter(|one| one.commit == *commit) {
            Some(reading) => worktree.undo_since(&reading.snapshot)?,
            None => worktree.undo_since(&worktree.snapshot_of(commit)?)?,
        };
        Ok(changes.iter().map(ToString::to_string).collect())
    }

    /// Somebody is about to write.
    pub fn writing(&self, worktree: &Worktree) {
        lock(&self.place(worktree)).committed = None;
    }

    /// A writer has ended, and everything is committed.
    pub fn committed(&self, worktree: &Worktree, commit: &Commit) {
        lock(&self.place(worktree)).committed = Some(commit.clone());
    }

    fn place(&self, worktree: &Worktree) -> Arc<Mutex<Known>> {
        let key = worktree.path().display().to_string();
        lock(&self.0).entry(key).or_default().clone()
    }
}

/// A reader that panicked leaves nothing half done that the next one would not put in order.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
