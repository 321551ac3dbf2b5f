//! What a tracker has for free slots: what is ready there and not a task of ours already.

use std::collections::BTreeSet;

use signoff_core::group::RunEvent;
use signoff_core::ids::TaskId;
use signoff_core::source::{State, TaskFile};
use signoff_core::task::TaskSpec;
use signoff_core::view::Status;
use signoff_core::wire::{Fact, RunFact};
use signoff_store::Store;

use super::{BEADS, Tracker, ready};
use crate::board::Board;
use crate::dispatcher::is_through;
use crate::error::EngineError;
use crate::place::Wish;

/// An answer of the tracker, beside what the store knows.
#[derive(Debug)]
pub struct Offer {
    pub file: TaskFile,
    /// What can be begun, the most urgent first.
    pub ready: Vec<TaskSpec>,
    /// What would be ready if an earlier task had not been the same, and what earlier tasks failed at.
    pub taken: Vec<Taken>,
}

/// A task that is ours already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub id: String,
    pub by: TaskId,
    pub status: Status,
}

/// A wish that knows which tasks of ours come first, where a tracker tells of them only when a task is claimed.
pub fn come_after(store: &dyn Store, mut wish: Wish, after: &[String]) -> Result<Wish, EngineError> {
    if after.is_empty() {
        return Ok(wish);
    }
    let claims = store.claims(BEADS)?;
    for task in after.iter().filter_map(|id| claims.get(id)) {
        if !wish.spec.depends_on.contains(task) {
            wish.spec.depends_on.push(*task);
        }
    }
    Ok(wish)
}

/// Asks a tracker, and leaves out what earlier tasks are.
pub fn offer(tracker: &Tracker, store: &dyn Store) -> Result<Offer, EngineError> {
    let claims = store.claims(BEADS)?;
    let rows = if claims.is_empty() { Vec::new() } else { store.tasks()? };
    let row = |by: TaskId| rows.iter().find(|row| row.id == by.0);
    // Nobody closes anything in a file that is only read.
    let through = |by: &TaskId| row(*by).is_some_and(is_through);
    let done: BTreeSet<String> = match tracker.supply.is_told() {
        true => BTreeSet::new(),
        false => claims.iter().filter(|(_, by)| through(by)).map(|(id, _)| id.clone()).collect(),
    };
    let file = tracker.read(&done)?;
    let (mut listed, mut free) = (BTreeSet::new(), Vec::new());
    for mut spec in ready(&file) {
        let Some(tracked) = &mut spec.tracked else { continue };
        tracked.reopened = claims.get(&tracked.id).copied();
        match tracked.reopened {
            Some(by) if !through(&by) || !is_open_again(tracker, store, (&tracked.id, by))? => {
                listed.insert(tracked.id.clone());
            }
            Some(_) | None => free.push(spec),
        }
    }
    // They begin where our tasks ended that they come after, though another run worked those.
    let before = |id: &String| claims.get(id).copied().filter(through);
    for spec in &mut free {
        let task = spec.tracked.as_ref().and_then(|one| file.task(&one.id));
        spec.depends_on = task.into_iter().flat_map(|task| &task.depends_on).filter_map(before).collect();
    }
    let status = |by: TaskId| row(by).map_or(Status::Pending, |row| row.status);
    let failed = |by: TaskId| matches!(status(by), Status::Failed | Status::Stuck);
    let is_done = |id: &str| file.task(id).is_some_and(|task| task.state == State::Done);
    let taken = claims.iter().filter(|(id, by)| listed.contains(*id) || (failed(**by) && !is_done(id)));
    let taken = taken.map(|(id, by)| Taken { id: id.clone(), by: *by, status: status(*by) }).collect();
    Ok(Offer { file, ready: free, taken })
}

/// Whether a task that we closed there was opened again. It may have been listed before it was closed, so the tracker is
/// asked once more.
fn is_open_again(
    tracker: &Tracker,
    store: &dyn Store,
    (id, by): (&str, TaskId),
) -> Result<bool, EngineError> {
    Ok(tracker.supply.is_told() && is_closed(store, by)? && tracker.is_open(id)?)
}

/// Whether it is on record that its tracker was told that a task is done.
fn is_closed(store: &dyn Store, task: TaskId) -> Result<bool, EngineError> {
    let Some((run, loop_id)) = store.loop_of(task)? else { return Ok(false) };
    let log = store.log(run)?;
    if Board::of(run, &log).machine.unclosed.contains(&loop_id) {
        return Ok(false);
    }
    let closed = Fact::Run(RunFact::Moved(RunEvent::TaskClosed { loop_id }));
    Ok(log.iter().any(|recorded| recorded.fact == closed))
}
