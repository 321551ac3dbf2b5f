//! Watches the queue and the state of all tasks while this process works.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use signoff_core::view::{TaskRow, TaskStatus};
use signoff_store::Store;

use super::{InboxWatcher, ScreenSender};
use crate::{CliError, ReadOnlyProject};

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Polls the store in a thread until it is dropped.
pub struct QueueWatcher(Sender<()>);

impl QueueWatcher {
    /// Starts the thread. `takes` tells whether to send the queue: only if the run takes tasks from it.
    pub fn new(root: PathBuf, takes: bool, sender: ScreenSender) -> Self {
        let (kept, over) = mpsc::channel();
        // Errors are ignored here; the dispatcher reports them.
        std::thread::spawn(move || run(&root, takes, &over, &sender).ok());
        Self(kept)
    }
}

impl std::fmt::Debug for QueueWatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Queue").field(&self.0).finish()
    }
}

/// Whether a task is pending and belongs to no run.
pub fn is_queued(row: &TaskRow) -> bool {
    row.run_id.is_none() && row.status == TaskStatus::Pending
}

fn run(root: &Path, takes: bool, over: &Receiver<()>, sender: &ScreenSender) -> Result<(), CliError> {
    let Some(project) = ReadOnlyProject::open_at(root.to_owned())? else { return Ok(()) };
    let (mut version, mut sent, mut inbox) = (None, None, InboxWatcher::default());
    loop {
        if let Some(standings) = inbox.poll(&project)? {
            sender.inbox(standings);
        }
        let newest = project.store.version()?;
        if takes && version.replace(newest) != Some(newest) {
            let tasks: Vec<_> = project.store.tasks()?.into_iter().filter(is_queued).collect();
            if sent.as_ref() != Some(&tasks) {
                sender.queue(tasks.clone());
                sent = Some(tasks);
            }
        }
        if over.recv_timeout(POLL_INTERVAL) != Err(RecvTimeoutError::Timeout) {
            return Ok(());
        }
    }
}
