//! What other programs leave in the store: a person's answers and wishes, and new tasks.

use signoff_core::ids::RunId;
use signoff_store::Request;

use super::{Dispatcher, pick};
use crate::error::EngineError;

impl Dispatcher<'_> {
    /// Looks for what is new. Asking is next to free when nothing is.
    pub(super) fn look_around(&mut self) -> Result<(), EngineError> {
        let version = self.store.version()?;
        if version == self.seen {
            return Ok(());
        }
        self.seen = version;
        let runs: Vec<RunId> = self.runs.keys().copied().collect();
        for run in runs {
            for request in self.store.requests(run)? {
                self.answer(run, request)?;
            }
        }
        self.open_for_new_tasks()
    }

    fn answer(&mut self, run: RunId, request: Request) -> Result<(), EngineError> {
        let Request { id, loop_id, command } = request;
        let refusal = self.obey(run, &loop_id, command)?;
        Ok(self.store.settle(id, refusal.as_deref())?)
    }

    /// While the queue is watched, tasks that were added since are worked in a run of their own.
    fn open_for_new_tasks(&mut self) -> Result<(), EngineError> {
        if !self.drive.watch
            || self.interrupt.is_some()
            || pick::ready(&*self.store, &self.drive.only, 1)?.is_empty()
        {
            return Ok(());
        }
        let lease = self.store.open_run(crate::clock::now())?;
        let facts = crate::open::queue(&self.shop.settings, self.shop.jobs, self.drive.no_ask)?;
        self.open(lease, facts)
    }
}
