//! What all readers of one worktree share: the state they must leave it in, and the diff they are shown.
//!
//! The reviewers of a round look at the same files at the same time. So the files are put in order and the diff
//! is taken once, and whoever ends last puts back what was changed.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signoff_core::ids::{Commit, ReviewerName};

use crate::error::EngineError;
use crate::git::{Change, Committed, CommittedFiles, Diff, Snapshot, Worktree};

/// The worktrees that are being read, by path.
#[derive(Debug, Default)]
pub struct Readings(Mutex<HashMap<PathBuf, Arc<Mutex<Known>>>>);

/// What is known of one worktree.
#[derive(Debug, Default)]
struct Known {
    reading: Option<Reading>,
    /// Everything in it was committed as this, and nobody has written since.
    committed: Option<Commit>,
    /// The files of that commit, until they are part of a snapshot.
    files: Option<CommittedFiles>,
}

#[derive(Debug)]
struct Reading {
    commit: Commit,
    since: Commit,
    snapshot: Snapshot,
    diff: Arc<Diff>,
    /// Who is at it now, and who was since it was last put in order.
    readers: BTreeSet<ReviewerName>,
    took_part: BTreeSet<ReviewerName>,
}

/// What was changed by those who should only have read, and who they can have been.
#[derive(Debug, Default)]
pub struct Undone {
    /// Whether the files were not those of the commit when this reader ended.
    pub is_changed: bool,
    pub changes: Vec<Change>,
    pub by: Vec<ReviewerName>,
}

impl Readings {
    /// The diff of a worktree at a commit, which is put in order first.
    pub fn begin(
        &self,
        worktree: &Worktree,
        (commit, since): (&Commit, &Commit),
        who: &ReviewerName,
    ) -> Result<Arc<Diff>, EngineError> {
        let place = self.place(worktree);
        let mut known = lock(&place);
        let same = |one: &&mut Reading| one.commit == *commit && one.since == *since;
        if let Some(reading) = known.reading.as_mut().filter(same) {
            if reading.readers.is_empty() {
                // Nobody read meanwhile: whoever changed the repository was none of them.
                worktree.accept_repository(&mut reading.snapshot);
            }
            reading.readers.insert(who.clone());
            reading.took_part.insert(who.clone());
            return Ok(reading.diff.clone());
        }
        let is_fresh = known.committed.as_ref() == Some(commit);
        let snapshot = match known.files.take().filter(|_| is_fresh) {
            Some(files) => worktree.snapshot_with(commit, files)?,
            None => worktree.snapshot_of(commit)?,
        };
        if !is_fresh {
            // Whatever an earlier reader left behind is not part of the work.
            worktree.undo_since(&snapshot)?;
        }
        let diff = Arc::new(worktree.diff_between(since, commit)?);
        let (commit, since, readers) = (commit.clone(), since.clone(), BTreeSet::from([who.clone()]));
        let took_part = readers.clone();
        known.reading = Some(Reading { commit, since, snapshot, diff: diff.clone(), readers, took_part });
        Ok(diff)
    }

    /// Puts back what was changed since, once the last one has ended: what others do is still going on until then.
    pub fn end(
        &self,
        worktree: &Worktree,
        commit: &Commit,
        who: &ReviewerName,
    ) -> Result<Undone, EngineError> {
        let place = self.place(worktree);
        let mut known = lock(&place);
        let Some(reading) = known.reading.as_mut().filter(|one| one.commit == *commit) else {
            let changes = worktree.undo_since(&worktree.snapshot_of(commit)?)?;
            return Ok(Undone { is_changed: !changes.is_empty(), changes, by: vec![who.clone()] });
        };
        reading.readers.remove(who);
        reading.took_part.insert(who.clone());
        let by = reading.took_part.iter().cloned().collect();
        if !reading.readers.is_empty() {
            return Ok(Undone {
                is_changed: worktree.is_changed_since(&reading.snapshot)?,
                changes: Vec::new(),
                by,
            });
        }
        reading.took_part.clear();
        let changes = worktree.undo_since(&reading.snapshot)?;
        // What is left so has been told.
        worktree.accept_repository(&mut reading.snapshot);
        Ok(Undone { is_changed: !changes.is_empty(), changes, by })
    }

    /// Somebody is about to write.
    pub fn writing(&self, worktree: &Worktree) {
        let place = self.place(worktree);
        let mut known = lock(&place);
        (known.committed, known.files) = (None, None);
    }

    /// A writer has ended, and everything is committed.
    pub fn committed(&self, worktree: &Worktree, committed: &Committed) -> Result<(), EngineError> {
        let files = if committed.made { worktree.committed_files()? } else { None };
        let place = self.place(worktree);
        let mut known = lock(&place);
        (known.committed, known.files) = (Some(committed.head.commit.clone()), files);
        Ok(())
    }

    /// Whether a worktree is at this commit and just as its readers left it, as far as can be told without git.
    pub fn is_as_read(&self, worktree: &Worktree, commit: &Commit) -> bool {
        let place = self.place(worktree);
        let known = lock(&place);
        let reading = known.reading.as_ref().filter(|one| one.commit == *commit && one.readers.is_empty());
        reading.is_some_and(|one| worktree.is_untouched_since(&one.snapshot))
    }

    /// Nobody reads there any more.
    pub fn forget(&self, path: &Path) {
        lock(&self.0).remove(&fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    }

    fn place(&self, worktree: &Worktree) -> Arc<Mutex<Known>> {
        lock(&self.0).entry(worktree.path().to_owned()).or_default().clone()
    }
}

/// A reader that panicked leaves nothing half done that the next one would not put in order.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
