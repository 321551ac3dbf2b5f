//! Checks off finished tasks in the plan file that they came from.
//!
//! In the run's branch if it contains the file, as a commit of its own; in the user's file only if they ask for it. It
//! is safe to repeat, and is repeated whenever a run continues.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path};

use signoff_core::ids::RunId;
use signoff_core::machine::Stage;
use signoff_core::source;
use signoff_core::task::PlanOrigin;
use signoff_core::view::{LoopState, RunState};

use crate::atomic_file::LockedTempFile;
use crate::attempt::EngineContext;
use crate::error::EngineError;

/// The plan entries of finished tasks.
pub fn finished_entries(run_state: &RunState) -> Vec<PlanOrigin> {
    let through = |loop_state: &LoopState| matches!(&loop_state.machine.stage, Stage::Done(ending) if ending.outcome.is_completed());
    let tasks =
        run_state.loops.values().filter(|loop_state| through(loop_state)).filter_map(|loop_state| loop_state.task);
    tasks.filter_map(|task| run_state.specs.get(&task)?.origin.clone()).collect()
}

/// Entries that could not be checked off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UncheckedEntries {
    /// Entries whose lines have changed.
    pub changed: usize,
    /// Entries whose file is or lies behind a link. The target of the link is not in the branch.
    pub linked: usize,
}

impl UncheckedEntries {
    /// The larger counts of two attempts.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { changed: self.changed.max(other.changed), linked: self.linked.max(other.linked) }
    }

    /// Notes for the user.
    pub fn notes(self) -> Vec<String> {
        let Self { changed, linked } = self;
        let changed =
            (changed > 0).then(|| format!("could not check off {}: the line has changed", done_tasks(changed)));
        let linked = (linked > 0).then(|| {
            format!(
                "did not check off {}: the file is a link now, and nothing is written through links",
                done_tasks(linked)
            )
        });
        changed.into_iter().chain(linked).collect()
    }
}

fn done_tasks(count: usize) -> String {
    if count == 1 { "1 done task".to_owned() } else { format!("{count} done tasks") }
}

/// Checks off entries in the run's branch.
pub fn in_branch(ctx: &EngineContext, run: RunId, origins: &[PlanOrigin]) -> Result<UncheckedEntries, EngineError> {
    let worktree = ctx.layout.run_worktree(run);
    let (changed, unchecked) = check_off_all(&worktree, origins)?;
    if let Some(origin) = changed.last() {
        let message = match changed.len() {
            1 => format!("Tick {} in {}", origin.id, origin.file),
            count => format!("Tick {count} tasks in {}", origin.file),
        };
        let committed = ctx.repository.worktree(&worktree)?.commit_all(&message)?;
        let note = ctx.layout.checked_off(run);
        fs::write(&note, committed.head.commit.as_str()).map_err(|error| EngineError::io("write", &note, error))?;
    }
    Ok(unchecked)
}

/// Checks off entries in the user's checkout.
pub fn in_checkout(ctx: &EngineContext, origins: &[PlanOrigin]) -> Result<UncheckedEntries, EngineError> {
    Ok(check_off_all(ctx.repository.checkout(), origins)?.1)
}

fn check_off_all<'a>(
    top: &Path,
    origins: &'a [PlanOrigin],
) -> Result<(Vec<&'a PlanOrigin>, UncheckedEntries), EngineError> {
    let (mut changed, mut unchecked) = (Vec::new(), UncheckedEntries::default());
    for origin in origins {
        if check_off(top, origin, &mut unchecked)? {
            changed.push(origin);
        }
    }
    Ok((changed, unchecked))
}

/// Whether a file, or a directory on its path, is a link.
fn is_linked(top: &Path, file: &Path) -> bool {
    let ways = file.ancestors().filter(|way| !way.as_os_str().is_empty());
    ways.into_iter().any(|way| top.join(way).is_symlink())
}

/// Checks off an entry in its file. Returns whether the file changed.
fn check_off(top: &Path, origin: &PlanOrigin, unchecked: &mut UncheckedEntries) -> Result<bool, EngineError> {
    let inside = Path::new(&origin.file).components().all(|part| matches!(part, Component::Normal(_)));
    let path = top.join(&origin.file);
    if inside && is_linked(top, Path::new(&origin.file)) {
        // Writing through a link could change any file.
        unchecked.linked += 1;
        return Ok(false);
    }
    // Files outside of the repository, and files that git does not track, are not in the branch.
    if !inside || !path.is_file() {
        return Ok(false);
    }
    let (after, has_missing) = checked_off(&path, origin).map_err(|error| EngineError::io("read", &path, error))?;
    if after.is_some() {
        return replace(&path, origin).map_err(|error| EngineError::io("write", &path, error));
    }
    unchecked.changed += usize::from(has_missing);
    Ok(false)
}

/// The contents of a plan file with an entry checked off, if that changes the file, and whether a checkbox is missing.
fn checked_off(path: &Path, origin: &PlanOrigin) -> io::Result<(Option<Vec<u8>>, bool)> {
    let before = fs::read(path)?;
    let (mut after, mut has_missing) = (before.clone(), false);
    for mark in &origin.marks {
        match source::tick(&after, mark) {
            Ok(ticked) => after = ticked,
            Err(_) => has_missing = true,
        }
    }
    Ok(((after != before).then_some(after), has_missing))
}

/// Replaces a plan file atomically, reading it again under the lock. A read-only file is an error. Returns whether the
/// file changed.
fn replace(path: &Path, origin: &PlanOrigin) -> io::Result<bool> {
    File::options().write(true).open(path)?;
    let file = LockedTempFile::open(path)?;
    let (after, _) = checked_off(path, origin)?;
    after.map_or(Ok(false), |after| file.commit(&after, path).map(|()| true))
}
