//! Following what other programs record: new facts, in order, as they come.

use std::collections::BTreeMap;
use std::sync::Arc;

use signoff_core::ids::RunId;
use signoff_core::wire::{QUEUE, Recorded};
use signoff_store::{SqliteStore, Store};

use crate::failure::Failure;

/// Looks at a store that others write to. It must be a door of its own: what is written through it does not count as news.
pub struct Follow {
    store: Arc<SqliteStore>,
    version: Option<u64>,
    /// The runs that may go on, and the queue, with the last fact seen of each.
    seen: BTreeMap<RunId, u64>,
    /// The last run that was opened when it last looked.
    last: RunId,
}

impl Follow {
    /// From here on: what a run holds already is news where `seen` does not say how much of it was seen.
    pub fn new(store: Arc<SqliteStore>, seen: BTreeMap<RunId, u64>) -> Result<Self, Failure> {
        let last = store.last_run()?.map_or(QUEUE, |run| run.id);
        let queue = store.last_seq(QUEUE)?;
        let mut seen = seen;
        seen.entry(QUEUE).or_insert(queue);
        Ok(Self { store, version: None, seen, last })
    }

    /// From here on, and nothing of what is there already is news. Logs are not read for that, however long they are.
    pub fn from_now(store: Arc<SqliteStore>) -> Result<Self, Failure> {
        let mut seen = BTreeMap::new();
        for run in store.open_runs()? {
            seen.insert(run.id, store.last_seq(run.id)?);
        }
        Self::new(store, seen)
    }

    /// What was recorded since it was last asked. Cheap where nobody wrote anything.
    pub fn news(&mut self) -> Result<Vec<Recorded>, Failure> {
        let version = self.store.version()?;
        if self.version.replace(version) == Some(version) {
            return Ok(Vec::new());
        }
        self.notice_runs()?;
        let mut news = Vec::new();
        for (run, seen) in &mut self.seen {
            let new = self.store.log_after(*run, *seen)?;
            *seen = new.last().map_or(*seen, |recorded| recorded.seq);
            news.extend(new);
        }
        Ok(news)
    }

    /// Runs that were begun since, and those that were taken up again.
    fn notice_runs(&mut self) -> Result<(), Failure> {
        let last = self.store.last_run()?.map_or(QUEUE, |run| run.id);
        let begun = (self.last.0 + 1..=last.0).map(RunId);
        let open = self.store.open_runs()?.into_iter().map(|run| run.id);
        for run in begun.chain(open) {
            self.seen.entry(run).or_insert(0);
        }
        self.last = last;
        Ok(())
    }
}
