//! The SQLite back end: one database per repository, for any number of processes.

mod connection;
mod error_mapping;
mod lease_file;
mod query;
mod transaction;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::Connection;
use signoff_core::command::LoopCommand;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::task::TaskSpec;
use signoff_core::view::{QuestionRow, RunState, TaskRow, Transition};
use signoff_core::wire::{Fact, RecordedFact};

use crate::operations::{self, NewFacts, Projectors};
use crate::transaction::Transaction as _;
use crate::{
    Claims, CommandRequest, FindingRef, Lease, NewTask, QuestionRef, RebuildStats, Store, StoreError, StoredRun,
};
use connection::SqliteConnection;
use lease_file::LeaseFiles;
use transaction::SqliteTransaction;

/// The file name of the database.
const DATABASE_FILE: &str = "signoff.db";

/// Options for opening a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SqliteOptions {
    /// Maximum number of pages. Tests use it to simulate a full disk.
    pub max_pages: Option<u32>,
    /// How long to wait for another process's transaction; 30 seconds by default.
    pub busy_timeout: Option<Duration>,
}

pub struct SqliteStore {
    leases: LeaseFiles,
    session: Mutex<SqliteSession>,
}

/// The connection and its caches, used by one thread at a time.
struct SqliteSession {
    connection: SqliteConnection,
    projectors: Projectors,
    commits: u64,
}

impl SqliteStore {
    /// Opens the database in this directory, and creates both if they do not exist.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with_options(dir, SqliteOptions::default())
    }

    /// Opens the database if it exists. For read-only commands.
    pub fn open_existing(dir: &Path) -> Result<Option<Self>, StoreError> {
        if Self::path(dir).try_exists().map_err(error_mapping::from_io)? { Self::open(dir).map(Some) } else { Ok(None) }
    }

    pub fn open_with_options(dir: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let leases = LeaseFiles::in_dir(dir);
        let connection = SqliteConnection::open(Self::path(dir), options, &leases)?;
        let session = SqliteSession { connection, projectors: Projectors::new(), commits: 0 };
        Ok(Self { leases, session: Mutex::new(session) })
    }

    /// The path of the database in this directory.
    pub fn path(dir: &Path) -> PathBuf {
        dir.join(DATABASE_FILE)
    }

    /// Number of committed transactions. Each costs one disk sync.
    pub fn commits(&self) -> u64 {
        self.session().commits
    }

    fn session(&self) -> MutexGuard<'_, SqliteSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.session().connection.read(read)
    }

    fn write<T>(
        &self,
        write: impl FnOnce(&mut SqliteTransaction<'_>, &mut Projectors) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let session = &mut *self.session();
        let value = session
            .connection
            .write(|transaction| write(&mut SqliteTransaction(transaction), &mut session.projectors))?;
        session.commits += 1;
        Ok(value)
    }
}

impl Store for SqliteStore {
    fn add_tasks(&self, at: Timestamp, tasks: &[NewTask]) -> Result<Vec<TaskId>, StoreError> {
        self.write(|tx, _| operations::add_tasks(tx, at, tasks))
    }

    fn withdraw(&self, at: Timestamp, task: TaskId, by: &str) -> Result<(), StoreError> {
        self.write(|tx, _| operations::withdraw(tx, at, task, by))
    }

    fn reserve_tasks(&self, count: usize) -> Result<Vec<TaskId>, StoreError> {
        self.write(|tx, _| operations::reserve(tx, count))
    }

    fn open_run(&self, at: Timestamp) -> Result<Lease, StoreError> {
        // The run must not be visible before its lease is held.
        let (run, guard) = self.write(|tx, projectors| {
            operations::remove_finished_projectors(projectors);
            let run = operations::new_run(tx, at)?;
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
        let fence = self.write(|tx, projectors| {
            operations::remove_finished_projectors(projectors);
            operations::next_fence(tx, run)
        })?;
        Ok(Lease::new(run, fence, guard))
    }

    fn is_held(&self, run: RunId) -> Result<bool, StoreError> {
        self.leases.is_held(run)
    }

    fn load(&self, lease: &Lease, observe: &mut dyn FnMut(&Transition)) -> Result<RunState, StoreError> {
        let mut state = RunState::new(lease.run());
        let projector =
            self.read(|connection| operations::replay(&SqliteTransaction(connection), lease, &mut state, observe))?;
        operations::keep_projector(&mut self.session().projectors, lease, projector);
        Ok(state)
    }

    fn append_to(
        &self,
        state: &mut RunState,
        lease: &Lease,
        at: Timestamp,
        facts: &[Fact],
    ) -> Result<Vec<Transition>, StoreError> {
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        let (new, seq) = (NewFacts { at, facts }, state.seq);
        let appended = self.write(|tx, projectors| operations::append(tx, projectors, lease, new, state));
        if appended.is_err() && state.seq != seq {
            // Some facts were applied, and none is in the log.
            let specs = std::mem::take(&mut state.specs);
            *state = RunState::new(lease.run());
            state.specs = specs;
        }
        let (transitions, projector) = appended?;
        operations::keep_projector(&mut self.session().projectors, lease, projector);
        Ok(transitions)
    }

    fn log_after(&self, run: RunId, seq: u64) -> Result<Vec<RecordedFact>, StoreError> {
        self.read(|connection| {
            operations::check_run_exists(&SqliteTransaction(connection), run)?;
            SqliteTransaction(connection).log_after(run, seq)
        })
    }

    fn log_page(&self, run: RunId, seq: u64, most: usize) -> Result<Vec<RecordedFact>, StoreError> {
        self.read(|connection| {
            operations::check_run_exists(&SqliteTransaction(connection), run)?;
            query::log_page(connection, run, seq, most)
        })
    }

    fn loop_log(&self, run: RunId, loop_id: &LoopId) -> Result<Vec<RecordedFact>, StoreError> {
        self.read(|connection| {
            operations::check_run_exists(&SqliteTransaction(connection), run)?;
            query::loop_log(connection, run, loop_id)
        })
    }

    fn last_seq(&self, run: RunId) -> Result<u64, StoreError> {
        self.read(|connection| SqliteTransaction(connection).last_seq(run))
    }

    fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        self.read(query::runs)
    }

    fn open_runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        self.read(query::open_runs)
    }

    fn run(&self, run: RunId) -> Result<Option<StoredRun>, StoreError> {
        self.read(|connection| query::run(connection, run))
    }

    fn failed_runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        self.read(query::failed_runs)
    }

    fn last_run(&self) -> Result<Option<StoredRun>, StoreError> {
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
        self.read(|connection| SqliteTransaction(connection).claims(tracker, None))
    }

    fn loop_for_task(&self, task: TaskId) -> Result<Option<(RunId, LoopId)>, StoreError> {
        self.read(|connection| query::loop_for_task(connection, task))
    }

    fn questions(&self) -> Result<Vec<QuestionRow>, StoreError> {
        self.read(query::questions)
    }

    fn question(&self, number: u64) -> Result<Option<QuestionRef>, StoreError> {
        self.read(|connection| query::question(connection, number))
    }

    fn findings(&self, prefix: &str) -> Result<Vec<FindingRef>, StoreError> {
        self.read(|connection| query::findings(connection, prefix))
    }

    fn post_request(&self, run: RunId, loop_id: &LoopId, command: &LoopCommand) -> Result<u64, StoreError> {
        self.write(|tx, _| tx.post_request(run, loop_id, command))
    }

    fn pending_requests(&self, run: RunId) -> Result<Vec<CommandRequest>, StoreError> {
        self.read(|connection| query::pending_requests(connection, run))
    }

    fn answer_request(&self, request: u64, refusal: Option<&str>) -> Result<(), StoreError> {
        self.write(|tx, _| tx.answer_request(request, refusal))
    }

    fn request_answer(&self, request: u64) -> Result<Option<Result<(), String>>, StoreError> {
        self.read(|connection| query::request_answer(connection, request))
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.session().connection.version()
    }

    fn rebuild(&self) -> Result<RebuildStats, StoreError> {
        self.write(|tx, _| operations::rebuild(tx))
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            // Other processes may write meanwhile; compare the log and the tables in one snapshot.
            let snapshot = connection.unchecked_transaction().map_err(error_mapping::from_sqlite)?;
            let mut problems = Vec::new();
            for found in [query::integrity(&snapshot), operations::check(&SqliteTransaction(&snapshot))] {
                match found {
                    Ok(lines) => problems.extend(lines),
                    Err(StoreError::Damaged(message)) => problems.push(message),
                    Err(other) => return Err(other),
                }
            }
            problems.dedup();
            Ok(problems)
        })
    }
}
