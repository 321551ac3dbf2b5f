//! A cache of task diffs, so that git runs only when a diff may have changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use signoff_core::ids::{Commit, RunId};
use signoff_core::prompt::OmissionReason;
use signoff_core::view::TaskRow;
use signoff_engine::git::{GitDiff, OmittedFile, Repository};
use signoff_serve::page::{DiffText, HiddenFile};
use signoff_store::Store;

use super::StoreId;
use crate::{CliError, ReadOnlyProject, Result, host};

/// Maximum age of a cached diff: an agent writes files without recording a fact.
const MAX_AGE: SignedDuration = SignedDuration::from_secs(2);

/// Maximum number of cached diffs, and the maximum size of each in bytes.
const MAX_DIFFS: usize = 16;
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// The most recently requested diffs.
#[derive(Default)]
pub struct DiffCache {
    diffs: Mutex<BTreeMap<u64, CachedDiff>>,
}

struct CachedDiff {
    /// The last fact of its run when git ran, and the time.
    seq: u64,
    at: Timestamp,
    /// The store the task was in.
    store: Option<StoreId>,
    diff: Option<DiffText>,
}

impl DiffCache {
    /// Returns the diff of a task, or the reason why there is none; `None` if the task has not started.
    pub fn get(&self, project: &ReadOnlyProject, row: &TaskRow) -> Result<Option<DiffText>> {
        let Some(run) = row.run_id.filter(|_| row.base.is_some()) else { return Ok(None) };
        let (seq, at) = (project.store.last_seq(RunId(run))?, host::now());
        let store_id = StoreId::from_directory(project.layout().root());
        let is_new = |cached: &&CachedDiff| {
            cached.seq == seq && cached.store == store_id && at.duration_since(cached.at) < MAX_AGE
        };
        if let Some(cached) = self.lock().get(&row.id).filter(is_new) {
            return Ok(cached.diff.clone());
        }
        let diff = project.repository().and_then(|repository| compute(&repository, row));
        let diff = diff.map_or_else(|failure| Some(error_text(&failure)), |diff| diff.map(truncated));
        self.keep(row.id, CachedDiff { seq, at: host::now(), store: store_id, diff: diff.clone() });
        Ok(diff)
    }

    fn keep(&self, task: u64, new: CachedDiff) {
        let mut cache = self.lock();
        cache.insert(task, new);
        if cache.len() > MAX_DIFFS {
            let oldest = cache.iter().min_by_key(|(_, cached)| cached.at).map(|(task, _)| *task);
            oldest.map(|task| cache.remove(&task));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, CachedDiff>> {
        self.diffs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Computes the diff from the task's base to its worktree, or to the tip of its branch if it has no worktree. It
/// creates no worktree and writes nothing into the repository.
fn compute(repository: &Repository, row: &TaskRow) -> Result<Option<GitDiff>> {
    let (Some(base), Some(branch)) = (row.base.as_deref().map(Commit::new), row.branch.as_deref()) else {
        return Ok(None);
    };
    let worktree = row.worktree.as_deref().and_then(|path| repository.worktree(Path::new(path)).ok());
    if let Some(worktree) = worktree.filter(|worktree| worktree.exists()) {
        return Ok(Some(worktree.preview_diff(&base)?));
    }
    let Some(head) = repository.head_of(branch)? else { return Ok(None) };
    Ok(Some(repository.diff_between(&base, &head.commit)?))
}

/// The text shown in place of a diff that failed.
fn error_text(failure: &CliError) -> DiffText {
    let location = failure.location.as_ref().map(|location| format!(" ({location})")).unwrap_or_default();
    DiffText { stat: format!("No diff: {}{location}", failure.message), ..DiffText::default() }
}

/// A file that the diff omits, with the reason.
fn hidden_file(file: OmittedFile) -> HiddenFile {
    let reason = match file.reason {
        OmissionReason::Binary => "a binary file".to_owned(),
        OmissionReason::Huge { bytes } => format!("too large to show ({} MiB)", bytes.div_ceil(1 << 20)),
    };
    HiddenFile { path: file.path, reason }
}

/// Truncates a diff to the size a page can show.
fn truncated(diff: GitDiff) -> DiffText {
    let mut patch = diff.patch;
    // Cut at a line break.
    let last = |patch: &str| patch.bytes().take(MAX_BYTES).rposition(|byte| byte == b'\n').map_or(0, |line| line + 1);
    let end = if patch.len() > MAX_BYTES { last(&patch) } else { patch.len() };
    let left_out = patch.len() - end;
    patch.truncate(end);
    let stat = diff.stat.lines().last().unwrap_or_default().trim().to_owned();
    let not_shown = diff.omitted.into_iter().map(hidden_file).collect();
    DiffText { patch, stat, left_out: u64::try_from(left_out).unwrap_or(u64::MAX), not_shown }
}
