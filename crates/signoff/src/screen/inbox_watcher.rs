//! Watches which runs are being driven and which tasks need the user, by the same rules as a bare `signoff`.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use signoff_core::ids::RunId;
use signoff_core::view::TaskStatus;
use signoff_core::view::inbox::ProjectSnapshot;
use signoff_store::Store;
use signoff_term::tui::InboxHints;

use crate::{CliError, ReadOnlyProject, host};

/// Interval for checking the leases and the database version.
const LEASE_INTERVAL: SignedDuration = SignedDuration::from_millis(300);

/// Interval for reading everything again, because branches move without a recorded fact.
const READ_INTERVAL: SignedDuration = SignedDuration::from_secs(5);

/// Polls the store and returns changes.
#[derive(Debug, Default)]
pub struct InboxWatcher {
    looked_at: Option<Timestamp>,
    read_at: Option<Timestamp>,
    version: Option<u64>,
    /// The unfinished runs, and those of them that a process is driving.
    open: BTreeSet<RunId>,
    held: BTreeSet<RunId>,
    last: Option<InboxHints>,
}

impl InboxWatcher {
    /// Returns the new state if it changed since the last call. Read new facts only after this call: a process that
    /// has released its lease has recorded all of its facts.
    pub fn poll(&mut self, project: &ReadOnlyProject) -> Result<Option<InboxHints>, CliError> {
        let now = host::now();
        if is_fresh(self.looked_at, now, LEASE_INTERVAL) {
            return Ok(None);
        }
        self.looked_at = Some(now);
        let (version, held) = (project.store.version()?, held(project, &self.open)?);
        let same = self.version == Some(version) && self.held == held;
        if same && is_fresh(self.read_at, now, READ_INTERVAL) {
            return Ok(None);
        }
        (self.version, self.read_at) = (Some(version), Some(now));
        let standings = self.read(project)?;
        let last = self.last.replace(standings.clone());
        Ok(Some(standings).filter(|standings| last.as_ref() != Some(standings)))
    }

    fn read(&mut self, project: &ReadOnlyProject) -> Result<InboxHints, CliError> {
        let (tasks, runs) = (project.tasks_from_tables()?, project.runs()?);
        let is_taken_up = |status: TaskStatus| matches!(status, TaskStatus::InProgress | TaskStatus::Paused);
        let taken_up = tasks.iter().filter(|row| is_taken_up(row.status)).filter_map(|row| row.run_id);
        let open = runs.iter().filter(|run| !run.failed_as_a_whole()).map(|run| run.id);
        self.open = taken_up.chain(open).map(RunId).collect();
        self.held = held(project, &self.open)?;
        let left = self.open.difference(&self.held).copied().collect();
        let driven = self.held.iter().map(|run| run.0).collect();
        Ok(InboxHints::new(&ProjectSnapshot { tasks: &tasks, runs: &runs, driven: &driven }, left))
    }
}

fn is_fresh(at: Option<Timestamp>, now: Timestamp, longest: SignedDuration) -> bool {
    at.is_some_and(|at| now.duration_since(at).abs() < longest)
}

/// Returns the runs that a process is driving now.
fn held(project: &ReadOnlyProject, runs: &BTreeSet<RunId>) -> Result<BTreeSet<RunId>, CliError> {
    let mut held = BTreeSet::new();
    for run in runs {
        if project.store.is_held(*run)? {
            held.insert(*run);
        }
    }
    Ok(held)
}
