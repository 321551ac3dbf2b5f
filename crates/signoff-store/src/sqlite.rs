//! The SQLite back end: one database per repository, for any number of processes.

mod connection;
mod existing_ids;
mod lease_file;
mod query;
mod transaction;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, Params, Row, params};
use signoff_core::command::LoopCommand;
use signoff_core::ids::{LoopId, QuestionId, RunId, TaskId};
use signoff_core::notify::NotificationKey;
use signoff_core::task::TaskSpec;
use signoff_core::view::{QuestionRow, RunState, TaskRow, Transition};
use signoff_core::wire::{Fact, RecordedFact, TaskFact};

use crate::operations::{self, NewFacts, RunCache, TransitionObserver};
use crate::record::{FINDING_COLUMNS, QUESTION_COLUMNS, RUN_COLUMNS, TASK_COLUMNS};
use crate::transaction::Transaction as _;
use crate::{
    CommandRequest, DeliveryRecord, FindingRef, Lease, NewTask, QuestionRef, RebuildStats, Store, StoreError,
    StoredRun, TrackerClaims,
};
use connection::SqliteConnection;
use lease_file::LeaseFiles;
use query::{EVENT_COLUMNS, cells, parse_recorded, to_integer};
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
    options: SqliteOptions,
    session: Mutex<SqliteSession>,
    /// Shared by the connections of [`SqliteStore::reconnect`]. It is locked after the session, and before a transaction
    /// begins.
    cache: Arc<Mutex<RunCache>>,
}

/// The connection, used by one thread at a time.
struct SqliteSession {
    connection: SqliteConnection,
    commits: u64,
}

impl SqliteStore {
    /// Opens the database in this directory, and creates both if they do not exist.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with_options(dir, SqliteOptions::default())
    }

    /// Opens the database if it exists. For read-only commands.
    pub fn open_existing(dir: &Path) -> Result<Option<Self>, StoreError> {
        if Self::path(dir).try_exists()? { Self::open(dir).map(Some) } else { Ok(None) }
    }

    pub fn open_with_options(dir: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        Self::connect(dir, options, Arc::default())
    }

    /// Opens another connection, which sees what this one writes as the writes of another process. Both share the runs
    /// that they have read.
    pub fn reconnect(&self) -> Result<Self, StoreError> {
        Self::connect(&self.leases.store_dir, self.options, self.cache.clone())
    }

    fn connect(dir: &Path, options: SqliteOptions, cache: Arc<Mutex<RunCache>>) -> Result<Self, StoreError> {
        let leases = LeaseFiles { store_dir: dir.to_owned() };
        let connection = SqliteConnection::open(Self::path(dir), options, &leases)?;
        let session = SqliteSession { connection, commits: 0 };
        Ok(Self { leases, options, session: Mutex::new(session), cache })
    }

    /// Passes the transition of every event that this process applies to `observer`, also of events that are only read.
    pub fn set_observer(&self, observer: Arc<dyn TransitionObserver>) {
        self.cache().set_observer(observer);
    }

    /// Applies at most `limit` of the events of a run that this process has not applied, for its observer. Returns
    /// whether all are applied now.
    pub fn advance(&self, run: RunId, limit: usize) -> Result<bool, StoreError> {
        self.read_cached(|tx, cache| operations::advance(tx, cache, run, limit))
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

    fn cache(&self) -> MutexGuard<'_, RunCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, read: impl FnOnce(&SqliteTransaction<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.session().connection.read(|connection| read(&SqliteTransaction(connection)))
    }

    fn select<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.read(|tx| query::select(tx.0, sql, params, read))
    }

    /// The first row of a query.
    fn first<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.select(sql, params, read)?.into_iter().next())
    }

    fn select_runs(&self, clause: &str, params: impl Params) -> Result<Vec<StoredRun>, StoreError> {
        self.select(&format!("SELECT {} FROM runs {clause}", RUN_COLUMNS.join(", ")), params, |row| cells(row).run())
    }

    fn select_tasks(&self, clause: &str, params: impl Params) -> Result<Vec<TaskRow>, StoreError> {
        self.select(&format!("SELECT {} FROM tasks {clause}", TASK_COLUMNS.join(", ")), params, |row| cells(row).task())
    }

    /// Reads a snapshot: other processes may write between the statements.
    fn read_cached<T>(
        &self,
        read: impl FnOnce(&SqliteTransaction<'_>, &mut RunCache) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (mut session, mut cache) = (self.session(), self.cache());
        session.connection.read(|connection| {
            let snapshot = connection.unchecked_transaction()?;
            read(&SqliteTransaction(&snapshot), &mut cache)
        })
    }

    fn write<T>(
        &self,
        write: impl FnOnce(&mut SqliteTransaction<'_>, &mut RunCache) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (mut session, mut cache) = (self.session(), self.cache());
        let result = session.connection.write(|transaction| write(&mut SqliteTransaction(transaction), &mut cache));
        cache.end_transaction(result.is_ok());
        session.commits += u64::from(result.is_ok());
        result
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
        let (run, guard) = self.write(|tx, cache| {
            let run = operations::new_run(tx, cache, at)?;
            Ok((run, self.leases.acquire(run)?))
        })?;
        Ok(Lease::new(run, 1, guard))
    }

    fn acquire(&self, run: RunId) -> Result<Lease, StoreError> {
        self.read(|tx| tx.fence(run)?.ok_or(StoreError::NoRun(run)))?;
        let guard = self.leases.acquire(run)?;
        let fence = self.write(|tx, cache| operations::next_fence(tx, cache, run))?;
        Ok(Lease::new(run, fence, guard))
    }

    fn is_held(&self, run: RunId) -> Result<bool, StoreError> {
        self.leases.is_held(run)
    }

    fn load(&self, run: RunId, observe: &mut dyn FnMut(&Transition)) -> Result<RunState, StoreError> {
        self.read_cached(|tx, cache| operations::load(tx, cache, run, observe))
    }

    fn preload(&self, run: RunId) -> Result<RunState, StoreError> {
        self.read_cached(|tx, cache| operations::preload(tx, cache, run))
    }

    fn run_state(&self, run: RunId) -> Result<RunState, StoreError> {
        self.read_cached(|tx, cache| operations::run_state(tx, cache, run))
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
        let appended = self.write(|tx, cache| operations::append(tx, cache, lease, new, state));
        if appended.is_err() && state.seq != seq {
            // Some facts were applied, and none is in the log.
            operations::reset(state, RunState::new(lease.run()));
        }
        appended
    }

    fn log_after(&self, run: RunId, seq: u64) -> Result<Vec<RecordedFact>, StoreError> {
        self.log_page(run, seq, usize::MAX)
    }

    fn log_page(&self, run: RunId, seq: u64, limit: usize) -> Result<Vec<RecordedFact>, StoreError> {
        self.read(|tx| {
            operations::check_run_exists(tx, run)?;
            tx.log_page(run, seq, limit)
        })
    }

    fn loop_log(&self, run: RunId, loop_id: &LoopId) -> Result<Vec<RecordedFact>, StoreError> {
        // Two index lookups, merged. With OR, SQLite would scan the whole run.
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM events WHERE run_id = ?1 AND loop_id IS NULL UNION ALL \
             SELECT {EVENT_COLUMNS} FROM events WHERE run_id = ?1 AND loop_id = ?2 ORDER BY seq"
        );
        self.read(|tx| {
            operations::check_run_exists(tx, run)?;
            query::select(tx.0, &sql, params![to_integer(run.0), loop_id.as_str()], parse_recorded)
        })
    }

    fn last_seq(&self, run: RunId) -> Result<u64, StoreError> {
        self.read(|tx| tx.last_seq(run))
    }

    fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        self.select_runs("ORDER BY id", [])
    }

    fn open_runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        self.select_runs("WHERE open ORDER BY id", [])
    }

    fn run(&self, run: RunId) -> Result<Option<StoredRun>, StoreError> {
        Ok(self.select_runs("WHERE id = ?", [to_integer(run.0)])?.pop())
    }

    fn failed_runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        self.select_runs("WHERE status = 'failed' AND group_count IS NOT NULL ORDER BY id", [])
    }

    fn last_run(&self) -> Result<Option<StoredRun>, StoreError> {
        Ok(self.select_runs("ORDER BY id DESC LIMIT 1", [])?.pop())
    }

    fn tasks(&self) -> Result<Vec<TaskRow>, StoreError> {
        self.select_tasks("ORDER BY id", [])
    }

    fn task(&self, task: TaskId) -> Result<Option<TaskRow>, StoreError> {
        Ok(self.select_tasks("WHERE id = ?", [to_integer(task.0)])?.pop())
    }

    fn task_spec(&self, task: TaskId) -> Result<Option<TaskSpec>, StoreError> {
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM events WHERE task_id = ? AND kind = 'task.added' ORDER BY position LIMIT 1"
        );
        let added = self.first(&sql, [to_integer(task.0)], parse_recorded)?;
        Ok(added.and_then(|recorded| match recorded.fact {
            Fact::Task(_, TaskFact::Added { spec, .. }) => Some(*spec),
            Fact::Task(_, TaskFact::Withdrawn { .. }) | Fact::Run(_) | Fact::Loop(..) => None,
        }))
    }

    fn queued(&self, after: TaskId, limit: usize) -> Result<Vec<(TaskId, Vec<TaskId>)>, StoreError> {
        let sql = "SELECT id, depends_on FROM tasks
                   WHERE run_id IS NULL AND status = 'pending' AND id > ? ORDER BY id LIMIT ?";
        self.select(sql, [to_integer(after.0), to_integer(limit as u64)], |row| {
            let mut cells = cells(row);
            Ok((TaskId(cells.number()?), cells.list()?.into_iter().map(TaskId).collect()))
        })
    }

    fn claims(&self, tracker: &str) -> Result<TrackerClaims, StoreError> {
        self.read(|tx| tx.claims(tracker, None))
    }

    fn loop_for_task(&self, task: TaskId) -> Result<Option<(RunId, LoopId)>, StoreError> {
        let sql = "SELECT run_id, loop_id FROM tasks WHERE id = ? AND run_id NOTNULL AND loop_id NOTNULL";
        self.first(sql, [to_integer(task.0)], |row| {
            let mut cells = cells(row);
            Ok((RunId(cells.number()?), LoopId::new(cells.text()?)))
        })
    }

    fn questions(&self) -> Result<Vec<QuestionRow>, StoreError> {
        let columns = QUESTION_COLUMNS.join(", ");
        let sql = format!("SELECT {columns} FROM questions WHERE closed_at IS NULL ORDER BY id");
        self.select(&sql, [], |row| cells(row).question())
    }

    fn question(&self, number: u64) -> Result<Option<QuestionRef>, StoreError> {
        let sql = "SELECT run_id, loop_id, number, closed_at IS NULL FROM questions WHERE id = ?";
        self.first(sql, [to_integer(number)], |row| {
            let mut cells = cells(row);
            Ok(QuestionRef {
                run: RunId(cells.number()?),
                loop_id: LoopId::new(cells.text()?),
                question: QuestionId(cells.number()?),
                open: cells.number()? != 0,
            })
        })
    }

    fn findings(&self, prefix: &str) -> Result<Vec<FindingRef>, StoreError> {
        let sql = format!(
            "SELECT {} FROM findings WHERE id >= ?1 AND substr(id, 1, length(?1)) = ?1 ORDER BY id, run_id, loop_id",
            FINDING_COLUMNS.join(", ")
        );
        self.select(&sql, [prefix], |row| cells(row).finding())
    }

    fn post_request(&self, run: RunId, loop_id: &LoopId, command: &LoopCommand) -> Result<u64, StoreError> {
        let command = serde_json::to_string(command).map_err(|error| StoreError::Other(error.to_string()))?;
        self.write(|tx, _| {
            tx.fence(run)?.ok_or(StoreError::NoRun(run))?;
            let sql = "INSERT INTO requests (run_id, loop_id, command) VALUES (?, ?, ?)";
            tx.execute(sql, params![to_integer(run.0), loop_id.as_str(), command])?;
            Ok(tx.0.last_insert_rowid().unsigned_abs())
        })
    }

    fn pending_requests(&self, run: RunId) -> Result<Vec<CommandRequest>, StoreError> {
        let sql = "SELECT id, loop_id, command FROM requests WHERE run_id = ? AND settled = 0 ORDER BY id";
        self.select(sql, [to_integer(run.0)], |row| {
            let mut cells = cells(row);
            let (id, loop_id, command) = (cells.number()?, LoopId::new(cells.text()?), cells.text()?);
            let command: LoopCommand = serde_json::from_str(&command)
                .map_err(|error| StoreError::Damaged(format!("request {id} cannot be read: {error}")))?;
            Ok(CommandRequest { id, loop_id, command })
        })
    }

    fn answer_request(&self, request: u64, refusal: Option<&str>) -> Result<(), StoreError> {
        let sql = "UPDATE requests SET settled = 1, refusal = ? WHERE id = ?";
        let answered = self.write(|tx, _| tx.execute(sql, params![refusal, to_integer(request)]))?;
        (answered > 0).then_some(()).ok_or_else(|| operations::unknown_request(request))
    }

    fn request_answer(&self, request: u64) -> Result<Option<Result<(), String>>, StoreError> {
        let sql = "SELECT settled, refusal FROM requests WHERE id = ?";
        let read = |row: &Row<'_>| Ok((row.get::<_, bool>(0)?, row.get::<_, Option<String>>(1)?));
        let found = self.read(|tx| Ok(tx.0.query_row(sql, [to_integer(request)], read).optional()?))?;
        let (settled, refusal) = found.ok_or_else(|| operations::unknown_request(request))?;
        Ok(settled.then(|| refusal.map_or(Ok(()), Err)))
    }

    fn record_delivery(&self, record: &DeliveryRecord) -> Result<(), StoreError> {
        let DeliveryRecord { message, channel, at, delivered } = record;
        let about = message.about.as_ref().map_or("", LoopId::as_str);
        let (run, seq, event) = (to_integer(message.run.0), to_integer(message.seq), message.event.into_str());
        self.write(|tx, _| {
            tx.execute(
                "DELETE FROM receipts
                 WHERE at < ? AND NOT (delivered AND run_id IN (SELECT id FROM runs WHERE open))",
                [(*at - DeliveryRecord::RETENTION).to_string()],
            )?;
            tx.execute(
                "INSERT INTO receipts (run_id, seq, event, about, channel, at, delivered) VALUES (?, ?, ?, ?, ?, ?, ?)
                 ON CONFLICT DO UPDATE SET at = excluded.at, delivered = 1 WHERE excluded.delivered",
                params![run, seq, event, about, channel, at.to_string(), delivered],
            )?;
            Ok(())
        })
    }

    fn deliveries(&self, now: Timestamp) -> Result<Vec<DeliveryRecord>, StoreError> {
        let sql = "SELECT run_id, seq, event, about, channel, at, delivered FROM receipts
                   WHERE delivered OR at >= ? ORDER BY run_id, seq, event, about, channel";
        self.select(sql, [(now - DeliveryRecord::RETENTION).to_string()], |row| {
            let mut cells = cells(row);
            Ok(DeliveryRecord {
                message: NotificationKey {
                    run: RunId(cells.number()?),
                    seq: cells.number()?,
                    event: cells.keyword()?,
                    about: Some(cells.text()?).filter(|about| !about.is_empty()).map(LoopId::new),
                },
                channel: cells.text()?,
                at: cells.time()?,
                delivered: cells.number()? != 0,
            })
        })
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.session().connection.version()
    }

    fn rebuild(&self) -> Result<RebuildStats, StoreError> {
        self.write(|tx, _| operations::rebuild(tx))
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.read(|tx| {
            // Other processes may write meanwhile; compare the log and the tables in one snapshot.
            let transaction = tx.0.unchecked_transaction()?;
            let snapshot = SqliteTransaction(&transaction);
            let mut problems = Vec::new();
            for found in [snapshot.integrity(), operations::check(&snapshot)] {
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
