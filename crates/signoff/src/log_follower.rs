//! Follows the logs of all runs: returns the facts that other processes append, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use signoff_core::ids::RunId;
use signoff_core::wire::{QUEUE, RecordedFact};
use signoff_store::{SqliteStore, Store};

use crate::CliError;

/// Polls a store for new facts. It needs its own connection: writes on the same connection are not noticed.
pub struct LogFollower {
    store: Arc<SqliteStore>,
    version: Option<u64>,
    /// The followed runs and the queue, each with the sequence number of its last returned fact.
    seen: BTreeMap<RunId, u64>,
    /// The latest run at the last poll.
    last_run: RunId,
}

impl LogFollower {
    /// Follows all open runs and the queue. `seen` gives the last known fact of a run; of other runs, all existing
    /// facts are returned as new.
    pub fn new(store: Arc<SqliteStore>, seen: BTreeMap<RunId, u64>) -> Result<Self, CliError> {
        let last = store.last_run()?.map_or(QUEUE, |run| run.id);
        let queue = store.last_seq(QUEUE)?;
        let mut seen = seen;
        seen.entry(QUEUE).or_insert(queue);
        Ok(Self { store, version: None, seen, last_run: last })
    }

    /// Follows all open runs and the queue, skipping existing facts. Does not read the logs.
    pub fn from_now(store: Arc<SqliteStore>) -> Result<Self, CliError> {
        let mut seen = BTreeMap::new();
        for run in store.open_runs()? {
            seen.insert(run.id, store.last_seq(run.id)?);
        }
        Self::new(store, seen)
    }

    /// Returns the facts recorded since the last call. Cheap if the database did not change.
    pub fn poll(&mut self) -> Result<Vec<RecordedFact>, CliError> {
        let version = self.store.version()?;
        if self.version.replace(version) == Some(version) {
            return Ok(Vec::new());
        }
        self.add_new_runs()?;
        let mut news = Vec::new();
        for (run, seen) in &mut self.seen {
            let new = self.store.log_after(*run, *seen)?;
            *seen = new.last().map_or(*seen, |recorded| recorded.seq);
            news.extend(new);
        }
        Ok(news)
    }

    /// Adds runs that were opened or resumed since the last call.
    fn add_new_runs(&mut self) -> Result<(), CliError> {
        let last = self.store.last_run()?.map_or(QUEUE, |run| run.id);
        let begun = (self.last_run.0 + 1..=last.0).map(RunId);
        let open = self.store.open_runs()?.into_iter().map(|run| run.id);
        for run in begun.chain(open) {
            self.seen.entry(run).or_insert(0);
        }
        self.last_run = last;
        Ok(())
    }
}
