//! Handles requests of other processes: the user's commands and new tasks.

use signoff_core::ids::RunId;
use signoff_store::CommandRequest;

use super::{Dispatcher, pick};
use crate::error::EngineError;

impl Dispatcher<'_> {
    /// Checks the store for new requests. Cheap if there are none.
    pub(super) fn poll_store(&mut self) -> Result<(), EngineError> {
        let version = self.store.version()?;
        if version == self.seen_version {
            return Ok(());
        }
        self.seen_version = version;
        let runs: Vec<RunId> = self.runs.keys().copied().collect();
        for run in runs {
            for request in self.store.pending_requests(run)? {
                self.handle_request(run, request)?;
            }
        }
        self.open_for_new_tasks()
    }

    fn handle_request(&mut self, run: RunId, request: CommandRequest) -> Result<(), EngineError> {
        let CommandRequest { id, loop_id, command } = request;
        let refusal = self.execute(run, &loop_id, command)?;
        Ok(self.store.answer_request(id, refusal.as_deref())?)
    }

    /// In watch mode, opens a run for tasks that were added since.
    fn open_for_new_tasks(&mut self) -> Result<(), EngineError> {
        if !self.drive.watch || self.interrupt.is_some() || pick::ready(&*self.store, &self.drive.only, 1)?.is_empty() {
            return Ok(());
        }
        let lease = self.store.open_run(crate::clock::now())?;
        let facts = crate::start_run::queue(&self.ctx.settings, self.ctx.jobs, self.drive.no_ask)?;
        self.open(lease, facts)
    }
}
