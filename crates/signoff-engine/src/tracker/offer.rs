//! What a tracker has for free slots: what is ready there and not a task of ours already.

use std::collections::BTreeSet;

use signoff_core::ids::TaskId;
use signoff_core::source::TaskFile;
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
    /// What would be ready if an earlier task had not been the same.
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
    let (mut free, mut taken) = (Vec::new(), Vec::new());
    for spec in ready(&file) {
        let claim = spec.tracked.as_ref().and_then(|tracked| claims.get_key_value(&tracked.id));
        match claim {
            Some((id, by)) => {
                let status = row(*by).map_or(Status::Pending, |row| row.status);
                taken.push(Taken { id: id.clone(), by: *by, status });
            }
            None => free.push(spec),
        }
    }
    Ok(Offer { file, ready: free, taken })
}
