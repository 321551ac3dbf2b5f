//! Ticking what is done in the plan file it came from.
//!
//! In the run's branch when the file is there, as a commit of its own; in the person's file only if they ask for
//! it. Doing it twice changes nothing, so it is done whenever a run goes on.

use std::fs;
use std::path::{Component, Path};

use signoff_core::ids::RunId;
use signoff_core::machine::Stage;
use signoff_core::source;
use signoff_core::task::Origin;

use crate::attempt::Workshop;
use crate::board::{Board, Worked};
use crate::error::EngineError;

/// The places of the tasks that are through.
pub fn through(board: &Board) -> Vec<Origin> {
    let through =
        |worked: &&Worked| matches!(&worked.state.stage, Stage::Done(ending) if ending.outcome.carries_on());
    let tasks = board.loops.values().filter(through).filter_map(|worked| worked.task);
    tasks.filter_map(|task| board.specs.get(&task)?.origin.clone()).collect()
}

/// What could not be ticked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Missed {
    /// The lines have changed.
    pub changed: usize,
    /// The file is a link, or lies behind one: what that leads to is not in the branch.
    pub linked: usize,
}

impl Missed {
    /// The more of two attempts at the same.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { changed: self.changed.max(other.changed), linked: self.linked.max(other.linked) }
    }

    /// What people should know of it.
    pub fn notes(self) -> Vec<String> {
        let Self { changed, linked } = self;
        let changed = (changed > 0)
            .then(|| format!("{changed} done tasks could not be ticked: their lines have changed"));
        let linked = (linked > 0).then(|| {
            format!("{linked} done tasks were not ticked: their file is a link now, and nothing is written through links")
        });
        changed.into_iter().chain(linked).collect()
    }
}

/// Ticks in the branch; how many boxes could not be ticked.
pub fn in_branch(shop: &Workshop, run: RunId, origins: &[Origin]) -> Result<Missed, EngineError> {
    let worktree = shop.layout.run_worktree(run);
    let (changed, missed) = tick_all(&worktree, origins)?;
    if let Some(origin) = changed.last() {
        let message = match changed.len() {
            1 => format!("Tick {} in {}", origin.id, origin.file),
            count => format!("Tick {count} tasks in {}", origin.file),
        };
        let committed = shop.repository.worktree(&worktree)?.commit_all(&message)?;
        let note = shop.layout.ticked(run);
        fs::write(&note, committed.head.commit.as_str())
            .map_err(|error| EngineError::io("write", &note, error))?;
    }
    Ok(missed)
}

/// Ticks in the person's own file.
pub fn in_checkout(shop: &Workshop, origins: &[Origin]) -> Result<Missed, EngineError> {
    Ok(tick_all(shop.repository.checkout(), origins)?.1)
}

fn tick_all<'a>(top: &Path, origins: &'a [Origin]) -> Result<(Vec<&'a Origin>, Missed), EngineError> {
    let (mut changed, mut missed) = (Vec::new(), Missed::default());
    for origin in origins {
        match tick(top, origin)? {
            Ticked::Now => changed.push(origin),
            Ticked::Before => {}
            Ticked::Never => missed.changed += 1,
            Ticked::Linked => missed.linked += 1,
        }
    }
    Ok((changed, missed))
}

enum Ticked {
    Now,
    Before,
    /// Its line is not there any more, or looks like others.
    Never,
    /// Whoever wrote it would decide where that is.
    Linked,
}

/// Whether a file, or a directory on the way to it, is a link.
fn is_linked(top: &Path, file: &Path) -> bool {
    let ways = file.ancestors().filter(|way| !way.as_os_str().is_empty());
    ways.into_iter().any(|way| top.join(way).is_symlink())
}

fn tick(top: &Path, origin: &Origin) -> Result<Ticked, EngineError> {
    let inside = Path::new(&origin.file).components().all(|part| matches!(part, Component::Normal(_)));
    let path = top.join(&origin.file);
    if inside && is_linked(top, Path::new(&origin.file)) {
        return Ok(Ticked::Linked);
    }
    // A file outside of the repository, or one that git does not know, is not in the branch.
    if !inside || !path.is_file() {
        return Ok(Ticked::Before);
    }
    let before = fs::read(&path).map_err(|error| EngineError::io("read", &path, error))?;
    let mut after = before.clone();
    let mut missed = false;
    for mark in &origin.marks {
        match source::tick(&after, mark) {
            Ok(ticked) => after = ticked,
            Err(_) => missed = true,
        }
    }
    if after != before {
        fs::write(&path, after).map_err(|error| EngineError::io("write", &path, error))?;
        return Ok(Ticked::Now);
    }
    Ok(if missed { Ticked::Never } else { Ticked::Before })
}
