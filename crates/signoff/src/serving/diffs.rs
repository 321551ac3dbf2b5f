//! What tasks have changed, asked of git no more often than it may have changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use signoff_core::ids::{Commit, RunId};
use signoff_core::prompt::LeftOutWhy;
use signoff_core::view::TaskRow;
use signoff_engine::git::{Diff, LeftOutFile, Repository};
use signoff_serve::page::DiffText;
use signoff_store::Store;

use super::same::Same;
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
    /// Which store it was in.
    of: Option<Same>,
    diff: Option<DiffText>,
}

impl Diffs {
    /// What a task has changed, or why that cannot be told; none where it has not begun.
    pub fn of(&self, desk: &Desk, row: &TaskRow) -> Result<Option<DiffText>, Failure> {
        let Some(run) = row.run_id.filter(|_| row.base.is_some()) else { return Ok(None) };
        let (seq, at) = (desk.store.last_seq(RunId(run))?, door::now());
        let of = Same::of(desk.layout().root());
        let is_new =
            |known: &&Known| known.seq == seq && known.of == of && at.duration_since(known.at) < STALE;
        if let Some(known) = self.known().get(&row.id).filter(is_new) {
            return Ok(known.diff.clone());
        }
        let diff = desk.repository().and_then(|repository| asked(&repository, row));
        let diff = diff.map_or_else(|failure| Some(none(&failure)), |diff| diff.map(text));
        self.keep(row.id, Known { seq, at: door::now(), of, diff: diff.clone() });
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

/// From where the task began to what lies in its worktree, or else to the end of its branch. Looking makes no worktree, and
/// writes nothing into the repository.
fn asked(repository: &Repository, row: &TaskRow) -> Result<Option<Diff>, Failure> {
    let (Some(base), Some(branch)) = (row.base.as_deref().map(Commit::new), row.branch.as_deref()) else {
        return Ok(None);
    };
    let worktree = row.worktree.as_deref().and_then(|path| repository.worktree(Path::new(path)).ok());
    if let Some(worktree) = worktree.filter(|worktree| worktree.is_there()) {
        return Ok(Some(worktree.glance(&base)?));
    }
    let Some(head) = repository.head_of(branch)? else { return Ok(None) };
    Ok(Some(repository.diff_between(&base, &head.commit)?))
}

/// What is told in place of a diff that could not be made.
fn none(failure: &Failure) -> DiffText {
    let place = failure.place().map(|place| format!(" ({place})")).unwrap_or_default();
    DiffText { stat: format!("No diff: {}{place}", failure.message()), ..DiffText::default() }
}

/// A file that the diff does not show, and why.
fn not_shown(file: LeftOutFile) -> (String, String) {
    let why = match file.why {
        LeftOutWhy::Binary => "a binary file".to_owned(),
        LeftOutWhy::Huge { bytes } => format!("too large to be shown: {bytes} bytes"),
    };
    (file.path, why)
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
    let not_shown = diff.left_out.into_iter().map(not_shown).collect();
    DiffText { patch, stat, left_out: u64::try_from(left_out).unwrap_or(u64::MAX), not_shown }
}
