//! One SQLite database per repository: many readers, one writer at a time, in any number of programs.

mod book;
mod connection;
mod fault;
mod lease_file;
mod left_behind;
mod query;
mod schema;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::Connection;
use signoff_core::command::Command;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::task::TaskSpec;
use signoff_core::view::{QuestionRow, TaskRow};
use signoff_core::wire::{Fact, Recorded};

use crate::book::Book as _;
use crate::journal::{self, Tellers};
use crate::{
    Claims, FindingPlace, Lease, NewTask, QuestionPlace, Rebuilt, Request, RunRow, Store, StoreError,
};
use book::Pages;
use connection::Link;
use lease_file::LeaseFiles;

/// The name of the database in its directory.
const FILE: &str = "signoff.db";

/// How a database is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SqliteOptions {
    /// The most pages the database may have: a disk that is full from there on.
    pub max_pages: Option<u32>,
    /// How long to wait for another program's transaction; 30 seconds if nothing is said.
    pub patience: Option<Duration>,
}

pub struct SqliteStore {
    leases: LeaseFiles,
    desk: Mutex<Desk>,
}

/// What one thread uses at a time.
struct Desk {
    link: Link,
    tellers: Tellers,
    commits: u64,
}

impl SqliteStore {
    /// Opens the database in this directory; makes both if they are not there.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with(dir, SqliteOptions::default())
    }

    /// Opens the database if there is one. For commands that only look.
    pub fn open_if_there(dir: &Path) -> Result<Option<Self>, StoreError> {
        if Self::path(dir).try_exists().map_err(fault::of_file)? {
            Self::open(dir).map(Some)
        } else {
            Ok(None)
        }
    }

    pub fn open_with(dir: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let leases = LeaseFiles::in_dir(dir);
        let link = Link::open(Self::path(dir), options, &leases)?;
        let desk = Desk { link, tellers: Tellers::new(), commits: 0 };
        Ok(Self { leases, desk: Mutex::new(desk) })
    }

    /// The file of the database in this directory.
    pub fn path(dir: &Path) -> PathBuf {
        dir.join(FILE)
    }

    /// How many transactions this store committed: each costs one sync of the disk.
    pub fn commits(&self) -> u64 {
        self.desk().commits
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.desk().link.read(read)
    }

    fn write<T>(
        &self,
        write: impl FnOnce(&mut Pages<'_>, &mut Tellers) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let desk = &mut *self.desk();
        let value = desk.link.write(|transaction| write(&mut Pages(transaction), &mut desk.tellers))?;
        desk.commits += 1;
        Ok(value)
    }
}

impl Store for SqliteStore {
    fn add_tasks(&self, at: Timestamp, tasks: &[NewTask]) -> Result<Vec<TaskId>, StoreError> {
        self.write(|pages, _| journal::add_tasks(pages, at, tasks))
    }

    fn withdraw(&self, at: Timestamp, task: TaskId, by: &str) -> Result<(), StoreError> {
        self.write(|pages, _| journal::withdraw(pages, at, task, by))
    }

    fn reserve_tasks(&self, count: usize) -> Result<Vec<TaskId>, StoreError> {
        self.write(|pages, _| journal::reserve(pages, count))
    }

    fn open_run(&self, at: Timestamp) -> Result<Lease, StoreError> {
        // Nobody may see the run before it is held.
        let (run, guard) = self.write(|pages, _| {
            let run = journal::new_run(pages, at)?;
            Ok((run, self.leases.acquire(run)?))
        })?;
        Ok(Lease::new(run, 1, guard))
    }

    fn acquire(&self, run: RunId) -> Result<Lease, StoreError> {
        self.read(|connection| {
            let known = query::fence(connection, run)?;
            known.map(drop).ok_or(StoreError::NoRun(run))
        })?;
        let guard = self.leases.acquire(run)?;
        let fence = self.write(|pages, _| journal::next_fence(pages, run))?;
        Ok(Lease::new(run, fence, guard))
    }

    fn is_held(&self, run: RunId) -> Result<bool, StoreError> {
        self.leases.is_held(run)
    }

    fn append(&self, lease: &Lease, at: Timestamp, facts: &[Fact]) -> Result<Vec<Recorded>, StoreError> {
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        let (recorded, teller) =
            self.write(|pages, tellers| journal::append(pages, tellers, lease, at, facts))?;
        journal::keep(&mut self.desk().tellers, lease, teller);
        Ok(recorded)
    }

    fn log_after(&self, run: RunId, seq: u64) -> Result<Vec<Recorded>, StoreError> {
        self.read(|connection| {
            journal::known(&Pages(connection), run)?;
            Pages(connection).log_after(run, seq)
        })
    }

    fn log_part(&self, run: RunId, seq: u64, most: usize) -> Result<Vec<Recorded>, StoreError> {
        self.read(|connection| {
            journal::known(&Pages(connection), run)?;
            query::log_part(connection, run, seq, most)
        })
    }

    fn log_of_loop(&self, run: RunId, loop_id: &LoopId) -> Result<Vec<Recorded>, StoreError> {
        self.read(|connection| {
            journal::known(&Pages(connection), run)?;
            query::log_of_loop(connection, run, loop_id)
        })
    }

    fn last_seq(&self, run: RunId) -> Result<u64, StoreError> {
        self.read(|connection| Pages(connection).last_seq(run))
    }

    fn runs(&self) -> Result<Vec<RunRow>, StoreError> {
        self.read(query::runs)
    }

    fn open_runs(&self) -> Result<Vec<RunRow>, StoreError> {
        self.read(query::open_runs)
    }

    fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        self.read(|connection| query::run(connection, run))
    }

    fn failed_runs(&self) -> Result<Vec<RunRow>, StoreError> {
        self.read(query::failed_runs)
    }

    fn last_run(&self) -> Result<Option<RunRow>, StoreError> {
        self.read(query::last_run)
    }

    fn tasks(&self) -> Result<Vec<TaskRow>, StoreError> {
        self.read(query::tasks)
    }

    fn task(&self, task: TaskId) -> Result<Option<TaskRow>, StoreError> {
        self.read(|connection| query::task(connection, task))
    }

    fn task_spec(&self, task: TaskId) -> Result<Option<TaskSpec>, StoreError> {
        self.read(|connection| query::task_spec(connection, task))
    }

    fn queued(&self, after: TaskId, most: usize) -> Result<Vec<(TaskId, Vec<TaskId>)>, StoreError> {
        self.read(|connection| query::queued(connection, after, most))
    }

    fn claims(&self, tracker: &str) -> Result<Claims, StoreError> {
        self.read(|connection| Pages(connection).claims(tracker, None))
    }

    fn loop_of(&self, task: TaskId) -> Result<Option<(RunId, LoopId)>, StoreError> {
        self.read(|connection| query::loop_of(connection, task))
    }

    fn questions(&self) -> Result<Vec<QuestionRow>, StoreError> {
        self.read(query::questions)
    }

    fn question(&self, number: u64) -> Result<Option<QuestionPlace>, StoreError> {
        self.read(|connection| query::question(connection, number))
    }

    fn findings(&self, prefix: &str) -> Result<Vec<FindingPlace>, StoreError> {
        self.read(|connection| query::findings(connection, prefix))
    }

    fn post(&self, run: RunId, loop_id: &LoopId, command: &Command) -> Result<u64, StoreError> {
        self.write(|pages, _| pages.post(run, loop_id, command))
    }

    fn requests(&self, run: RunId) -> Result<Vec<Request>, StoreError> {
        self.read(|connection| query::requests(connection, run))
    }

    fn settle(&self, request: u64, refusal: Option<&str>) -> Result<(), StoreError> {
        self.write(|pages, _| pages.settle(request, refusal))
    }

    fn answer(&self, request: u64) -> Result<Option<Result<(), String>>, StoreError> {
        self.read(|connection| query::answer(connection, request))
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.desk().link.version()
    }

    fn rebuild(&self) -> Result<Rebuilt, StoreError> {
        self.write(|pages, _| journal::rebuild(pages))
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            // Others write meanwhile; log and tables are compared as of one moment.
            let moment = connection.unchecked_transaction().map_err(fault::of)?;
            let mut wrong = Vec::new();
            for found in [query::integrity(&moment), journal::check(&Pages(&moment))] {
                match found {
                    Ok(lines) => wrong.extend(lines),
                    Err(StoreError::Damaged(message)) => wrong.push(message),
                    Err(other) => return Err(other),
                }
            }
            wrong.dedup();
            Ok(wrong)
        })
    }
}
