//! What a tracker has for free slots: what is ready there and not a task of ours already.

use std::collections::BTreeSet;

use signoff_core::ids::TaskId;
use signoff_core::source::{State, TaskFile};
use signoff_core::task::TaskSpec;
use signoff_core::view::Status;
use signoff_store::Store;

use super::{BEADS, Tracker, ready};
use crate::dispatcher::is_through;
use crate::error::EngineError;

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
    let claim = |spec: &TaskSpec| spec.tracked.as_ref().is_some_and(|one| claims.contains_key(&one.id));
    let (listed, mut free): (Vec<_>, Vec<_>) = ready(&file).into_iter().partition(claim);
    // They begin where our tasks ended that they come after, though another run worked those.
    let before = |id: &String| claims.get(id).copied().filter(through);
    for spec in &mut free {
        let task = spec.tracked.as_ref().and_then(|one| file.task(&one.id));
        spec.depends_on = task.into_iter().flat_map(|task| &task.depends_on).filter_map(before).collect();
    }
    let status = |by: TaskId| row(by).map_or(Status::Pending, |row| row.status);
    let is_listed =
        |id: &str| listed.iter().any(|spec| spec.tracked.as_ref().is_some_and(|one| one.id == id));
    let failed = |by: TaskId| matches!(status(by), Status::Failed | Status::Stuck);
    let is_done = |id: &str| file.task(id).is_some_and(|task| task.state == State::Done);
    let taken = claims.iter().filter(|(id, by)| is_listed(id) || (failed(**by) && !is_done(id)));
    let taken = taken.map(|(id, by)| Taken { id: id.clone(), by: *by, status: status(*by) }).collect();
    Ok(Offer { file, ready: free, taken })
}
