//! What tasks have changed, asked of git no more often than it may have changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use signoff_core::ids::{Commit, RunId};
use signoff_core::view::TaskRow;
use signoff_engine::git::{Diff, Repository};
use signoff_serve::page::DiffText;
use signoff_store::Store;

use crate::desk::Desk;
use crate::door;
use crate::failure::Failure;

/// An agent writes files without telling anybody; so much later git is asked again.
const STALE: SignedDuration = SignedDuration::from_secs(2);

/// So many diffs are kept, and no more of each than this.
const KEPT: usize = 16;
const LONGEST: usize = 2 * 1024 * 1024;

/// The diffs that were looked at last.
#[derive(Default)]
pub struct Diffs {
    known: Mutex<BTreeMap<u64, Known>>,
}

struct Known {
    /// The last fact of its run when git was asked, and the time.
    seq: u64,
    at: Timestamp,
    diff: Option<DiffText>,
}

impl Diffs {
    /// What a task has changed; none where that cannot be told.
    pub fn of(&self, desk: &Desk, row: &TaskRow) -> Result<Option<DiffText>, Failure> {
        let Some(run) = row.run_id.filter(|_| row.base.is_some()) else { return Ok(None) };
        let (seq, at) = (desk.store.last_seq(RunId(run))?, door::now());
        let is_new = |known: &&Known| known.seq == seq && at.duration_since(known.at) < STALE;
        if let Some(known) = self.known().get(&row.id).filter(is_new) {
            return Ok(known.diff.clone());
        }
        let diff = desk.repository().ok().and_then(|repository| asked(&repository, row)).map(text);
        self.keep(row.id, Known { seq, at, diff: diff.clone() });
        Ok(diff)
    }

    fn keep(&self, task: u64, new: Known) {
        let mut known = self.known();
        known.insert(task, new);
        if known.len() > KEPT {
            let oldest = known.iter().min_by_key(|(_, known)| known.at).map(|(task, _)| *task);
            oldest.map(|task| known.remove(&task));
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// From where the task began to what lies in its worktree, or else to the end of its branch. Looking makes no worktree.
fn asked(repository: &Repository, row: &TaskRow) -> Option<Diff> {
    let (base, branch) = (Commit::new(row.base.as_deref()?), row.branch.as_deref()?);
    let worktree = row.worktree.as_deref().and_then(|path| repository.worktree(Path::new(path)).ok());
    if let Some(worktree) = worktree.filter(|worktree| worktree.is_there()) {
        return worktree.diff(&base).ok();
    }
    let head = repository.head_of(branch).ok()??;
    repository.diff_between(&base, &head.commit).ok()
}

/// As much of a diff as a page can hold.
fn text(diff: Diff) -> DiffText {
    let mut patch = diff.patch;
    // A line is whole or not there.
    let last =
        |patch: &str| patch.bytes().take(LONGEST).rposition(|byte| byte == b'\n').map_or(0, |line| line + 1);
    let end = if patch.len() > LONGEST { last(&patch) } else { patch.len() };
    let left_out = patch.len() - end;
    patch.truncate(end);
    let stat = diff.stat.lines().last().unwrap_or_default().trim().to_owned();
    DiffText { patch, stat, left_out: u64::try_from(left_out).unwrap_or(u64::MAX) }
}
