//! What waits in the queue while this program works, and what needs somebody.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use signoff_core::view::{Status, TaskRow};
use signoff_store::Store;

use super::{Standing, Teller};
use crate::desk::Desk;
use crate::failure::Failure;

/// How often it is looked whether something moved.
const MOMENT: Duration = Duration::from_millis(300);

/// Looks at the store in a thread of its own, as long as this is kept.
pub struct Queue(Sender<()>);

impl Queue {
    /// The queue is told only where tasks are taken from it.
    pub fn new(root: PathBuf, takes: bool, teller: Teller) -> Self {
        let (kept, over) = mpsc::channel();
        // What cannot be read is not shown: whoever works says why.
        std::thread::spawn(move || until_told_off(&root, (takes, &over), &teller).ok());
        Self(kept)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Queue").field(&self.0).finish()
    }
}

/// Whether no run has taken a task up.
pub fn is_queued(row: &TaskRow) -> bool {
    row.run_id.is_none() && row.status == Status::Pending
}

fn until_told_off(root: &Path, (takes, over): (bool, &Receiver<()>), teller: &Teller) -> Result<(), Failure> {
    let Some(desk) = Desk::at(root.to_owned())? else { return Ok(()) };
    let (mut version, mut told, mut standing) = (None, None, Standing::default());
    loop {
        if let Some(standings) = standing.news(&desk)? {
            teller.standings(standings);
        }
        let newest = desk.store.version()?;
        if takes && version.replace(newest) != Some(newest) {
            let tasks: Vec<_> = desk.store.tasks()?.into_iter().filter(is_queued).collect();
            if told.as_ref() != Some(&tasks) {
                teller.queue(tasks.clone());
                told = Some(tasks);
            }
        }
        if over.recv_timeout(MOMENT) != Err(RecvTimeoutError::Timeout) {
            return Ok(());
        }
    }
}
