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

/// Ticks in the branch; how many boxes could not be found any more.
pub fn in_branch(shop: &Workshop, run: RunId, origins: &[Origin]) -> Result<usize, EngineError> {
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
pub fn in_checkout(shop: &Workshop, origins: &[Origin]) -> Result<usize, EngineError> {
    Ok(tick_all(shop.repository.checkout(), origins)?.1)
}

fn tick_all<'a>(top: &Path, origins: &'a [Origin]) -> Result<(Vec<&'a Origin>, usize), EngineError> {
    let (mut changed, mut missed) = (Vec::new(), 0);
    for origin in origins {
        match tick(top, origin)? {
            Ticked::Now => changed.push(origin),
            Ticked::Before => {}
            Ticked::Never => missed += 1,
        }
    }
    Ok((changed, missed))
}

enum Ticked {
    Now,
    Before,
    /// Its line is not there any more, or looks like others.
    Never,
}

fn tick(top: &Path, origin: &Origin) -> Result<Ticked, EngineError> {
    let inside = Path::new(&origin.file).components().all(|part| matches!(part, Component::Normal(_)));
    let path = top.join(&origin.file);
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
