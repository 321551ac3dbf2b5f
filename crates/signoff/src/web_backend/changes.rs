//! Detects changes for the web pages: new facts, runs that start or stop, and new agent output.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use signoff_core::ids::LoopId;
use signoff_core::wire::{Fact, QUEUE, RecordedFact};
use signoff_engine::layout::DIRECTORY;
use signoff_serve::web::{ChangeSet, Watcher};
use signoff_store::{SqliteStore, Store};

use crate::Result;
use crate::queries::{self, LogFollower};

/// The leases are checked on every 20th poll, because a killed process records nothing.
const LEASE_POLLS: u64 = 20;

/// Agent output and the identity of the store are checked on every 4th poll.
const OUTPUT_POLLS: u64 = 4;

pub struct ChangeWatcher {
    /// The directory of the store.
    store_dir: PathBuf,
    /// `None` as long as there is no store.
    open: Option<FollowedStore>,
    /// The error if the store could not be opened or read.
    error: Option<String>,
    polls: u64,
    /// The length of each running attempt's transcript.
    transcript_lengths: BTreeMap<PathBuf, u64>,
}

struct FollowedStore {
    /// Identifies the opened file. A deleted file stays readable but never changes.
    id: Option<StoreId>,
    store: Arc<SqliteStore>,
    follower: LogFollower,
    driven: BTreeSet<u64>,
}

impl ChangeWatcher {
    pub fn new(root: &Path) -> Self {
        let store_dir = root.join(DIRECTORY);
        let mut watcher = Self { store_dir, open: None, error: None, polls: 0, transcript_lengths: BTreeMap::new() };
        watcher.open();
        watcher
    }

    /// Opens the store. Returns true if it was opened or if the error is a new one.
    fn open(&mut self) -> bool {
        let (open, error) = match FollowedStore::new(&self.store_dir) {
            Ok(open) => (open, None),
            Err(failure) => (None, Some(failure.message)),
        };
        let changed = open.is_some() || error != self.error;
        (self.open, self.error) = (open, error);
        changed
    }
}

impl Watcher for ChangeWatcher {
    fn poll(&mut self) -> ChangeSet {
        self.polls += 1;
        // The store was deleted or replaced.
        let replaced = self.open.take_if(|open| {
            self.polls.is_multiple_of(OUTPUT_POLLS) && StoreId::from_directory(&self.store_dir) != open.id
        });
        let Some(open) = &mut self.open else {
            let changed = self.open() || replaced.is_some();
            return if changed { ChangeSet::everything() } else { ChangeSet::default() };
        };
        let mut change = match open.poll(self.polls.is_multiple_of(LEASE_POLLS)) {
            Ok(change) => change,
            Err(failure) => {
                // The pages show the error.
                (self.open, self.error) = (None, Some(failure.message));
                return ChangeSet::everything();
            }
        };
        if self.polls.is_multiple_of(OUTPUT_POLLS) {
            change.transcripts.extend(self.tasks_with_output());
        }
        change
    }
}

impl ChangeWatcher {
    /// Returns the tasks whose agents have written output since the last call.
    fn tasks_with_output(&mut self) -> BTreeSet<u64> {
        let links = fs::read_dir(self.store_dir.join("live")).into_iter().flatten().flatten();
        let mut lengths = BTreeMap::new();
        let mut tasks = BTreeSet::new();
        for attempt in links.filter_map(|link| fs::read_link(link.path()).ok()) {
            let length = attempt.join("stdout").metadata().map_or(0, |file| file.len());
            if self.transcript_lengths.get(&attempt).copied().unwrap_or(0) != length {
                tasks.extend(task_of(&attempt));
            }
            lengths.insert(attempt, length);
        }
        self.transcript_lengths = lengths;
        tasks
    }
}

/// The task of an attempt, from its directory: the parent is named after the loop.
fn task_of(attempt: &Path) -> Option<u64> {
    let name = attempt.parent()?.file_name()?.to_str()?;
    task_of_loop(&LoopId::new(name))
}

impl FollowedStore {
    fn new(store_dir: &Path) -> Result<Option<Self>> {
        // Read the identity before opening: a file replaced in between is noticed by the next poll.
        let id = StoreId::from_directory(store_dir);
        let Some(store) = SqliteStore::open_existing(store_dir)?.map(Arc::new) else { return Ok(None) };
        let follower = LogFollower::from_now(store.clone())?;
        let driven = open_runs_driven(&store)?;
        Ok(Some(Self { id, store, follower, driven }))
    }

    fn poll(&mut self, check_leases: bool) -> Result<ChangeSet> {
        let mut facts = Vec::new();
        for (run, seq) in self.follower.poll()? {
            facts.extend(self.store.log_after(run, seq)?);
        }
        let mut change = change_of(&facts);
        if check_leases {
            let driven = open_runs_driven(&self.store)?;
            change.everything |= driven != self.driven;
            self.driven = driven;
        }
        Ok(change)
    }
}

/// The open runs that a process is driving now.
fn open_runs_driven(store: &SqliteStore) -> Result<BTreeSet<u64>> {
    let open: Vec<u64> = store.open_runs()?.iter().map(|run| run.id.0).collect();
    Ok(queries::driven_runs(store, &open)?)
}

/// Returns the tasks and runs that these facts are about.
fn change_of(facts: &[RecordedFact]) -> ChangeSet {
    let mut change = ChangeSet::default();
    for recorded in facts {
        if recorded.run != QUEUE {
            change.runs.insert(recorded.run.0);
        }
        match &recorded.fact {
            Fact::Task(task, _) => {
                change.tasks.insert(task.0);
            }
            Fact::Loop(loop_id, _) => change.tasks.extend(task_of_loop(loop_id)),
            Fact::Run(_) => {}
        }
    }
    change
}

/// The task that a loop works on or reviews; `None` for a loop of the run itself.
fn task_of_loop(loop_id: &LoopId) -> Option<u64> {
    let own = loop_id.checkpoint_target().map(|(own, _)| own);
    own.as_ref().unwrap_or(loop_id).as_str().parse().ok()
}

/// The identity of a store file, because a file may be deleted and created again under the same name: device, inode and
/// creation time. Inodes are reused, so both are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreId {
    device: u64,
    inode: u64,
    created: Option<SystemTime>,
}

impl StoreId {
    /// Identifies the store in a directory; `None` if there is none.
    pub fn from_directory(directory: &Path) -> Option<Self> {
        let file = SqliteStore::path(directory).metadata().ok()?;
        Some(Self { device: file.dev(), inode: file.ino(), created: file.created().ok() })
    }
}
