//! Watch the store for the screen: the queue, which runs are being driven, and which tasks need the user, by the same
//! rules as a bare `signoff`.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use signoff_core::ids::RunId;
use signoff_core::view::inbox::{InboxHints, ProjectSnapshot};
use signoff_core::view::{TaskRow, TaskStatus};
use signoff_store::Store;

use super::{ScreenMessage, ScreenSender};
use crate::{ReadOnlyProject, Result, host, queries};

/// Interval for checking the leases and the database version.
const LEASE_INTERVAL: SignedDuration = SignedDuration::from_millis(300);

/// Interval for reading everything again, because branches move without a recorded fact.
const READ_INTERVAL: SignedDuration = SignedDuration::from_secs(5);

/// Polls the store and returns changes.
#[derive(Debug, Default)]
pub struct InboxWatcher {
    polled_at: Option<Timestamp>,
    read_at: Option<Timestamp>,
    version: Option<u64>,
    /// The unfinished runs, and those of them that a process is driving.
    open: BTreeSet<u64>,
    held: BTreeSet<u64>,
    last: Option<InboxHints>,
}

impl InboxWatcher {
    /// Returns the new state if it changed since the last call. Read new facts only after this call: a process that
    /// has released its lease has recorded all of its facts.
    pub fn poll(&mut self, project: &ReadOnlyProject) -> Result<Option<InboxHints>> {
        let now = host::now();
        if is_fresh(self.polled_at, now, LEASE_INTERVAL) {
            return Ok(None);
        }
        self.polled_at = Some(now);
        let (version, held) = (project.store.version()?, queries::driven_runs(&*project.store, &self.open)?);
        let same = self.version == Some(version) && self.held == held;
        if same && is_fresh(self.read_at, now, READ_INTERVAL) {
            return Ok(None);
        }
        (self.version, self.read_at) = (Some(version), Some(now));
        let hints = self.read(project)?;
        let last = self.last.replace(hints.clone());
        Ok(Some(hints).filter(|hints| last.as_ref() != Some(hints)))
    }

    fn read(&mut self, project: &ReadOnlyProject) -> Result<InboxHints> {
        let (tasks, runs) = (project.tasks_from_tables()?, project.runs()?);
        let may_be_driven = |status: TaskStatus| matches!(status, TaskStatus::InProgress | TaskStatus::Paused);
        let task_runs = tasks.iter().filter(|row| may_be_driven(row.status)).filter_map(|row| row.run_id);
        let open = runs.iter().filter(|run| !run.failed_as_a_whole()).map(|run| run.id);
        self.open = task_runs.chain(open).collect();
        self.held = queries::driven_runs(&*project.store, &self.open)?;
        let abandoned = self.open.difference(&self.held).copied().map(RunId).collect();
        Ok(InboxHints::new(&ProjectSnapshot { tasks: &tasks, runs: &runs, driven: &self.held }, abandoned))
    }
}

fn is_fresh(at: Option<Timestamp>, now: Timestamp, longest: SignedDuration) -> bool {
    at.is_some_and(|at| now.duration_since(at).abs() < longest)
}

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Starts a thread that polls the store until the returned sender is dropped. It sends the queue only if `shows_queue`:
/// if the run takes tasks from the queue.
pub fn watch_queue(project: ReadOnlyProject, shows_queue: bool, sender: ScreenSender) -> Sender<()> {
    let (stop_sender, stop) = mpsc::channel();
    // Errors are ignored here; the dispatcher reports them.
    std::thread::spawn(move || watch(&project, shows_queue, &stop, &sender).ok());
    stop_sender
}

/// Whether a task is pending and belongs to no run.
pub fn is_queued(row: &TaskRow) -> bool {
    row.run_id.is_none() && row.status == TaskStatus::Pending
}

fn watch(project: &ReadOnlyProject, shows_queue: bool, stop: &Receiver<()>, sender: &ScreenSender) -> Result<()> {
    let (mut version, mut sent, mut inbox) = (None, None, InboxWatcher::default());
    loop {
        if let Some(hints) = inbox.poll(project)? {
            sender.send(ScreenMessage::Inbox(hints));
        }
        let newest = project.store.version()?;
        if shows_queue && version.replace(newest) != Some(newest) {
            let tasks: Vec<_> = project.store.tasks()?.into_iter().filter(is_queued).collect();
            if sent.as_ref() != Some(&tasks) {
                sender.send(ScreenMessage::Queue(tasks.clone()));
                sent = Some(tasks);
            }
        }
        if stop.recv_timeout(POLL_INTERVAL) != Err(RecvTimeoutError::Timeout) {
            return Ok(());
        }
    }
}
