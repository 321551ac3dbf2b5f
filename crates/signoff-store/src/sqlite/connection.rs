//! The connection to the database: opened on demand and dropped after an error; and the migrations of its schema.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::SqliteOptions;
use super::existing_ids::ExistingIds;
use super::lease_file::LeaseFiles;
use super::transaction::SqliteTransaction;
use crate::transaction::{Counter, Transaction as _};
use crate::{StoreError, operations};

/// Default time to wait for another process's transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of pages in the write-ahead log before a checkpoint, which costs two syncs. The first process to open the
/// database reads the whole log, so it must stay short.
const CHECKPOINT_PAGES: u32 = 250;
/// Size of a page in the write-ahead log, with its header.
const BYTES_PER_PAGE: u64 = 4096 + 24;
/// Capacity of the prepared statement cache.
const STATEMENT_CACHE_SIZE: usize = 64;

pub(super) struct SqliteConnection {
    path: PathBuf,
    options: SqliteOptions,
    connection: Option<Connection>,
    /// Device and inode of the file, on platforms that have them.
    file_id: Option<(u64, u64)>,
    /// Number of reconnects. `data_version` starts again with each connection.
    reconnects: u64,
}

impl SqliteConnection {
    pub fn open(path: PathBuf, options: SqliteOptions, leases: &LeaseFiles) -> Result<Self, StoreError> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let mut this = Self { path, options, connection: None, file_id: None, reconnects: 0 };
        let mut connection = this.connect(OpenFlags::SQLITE_OPEN_CREATE)?;
        migrate(&mut connection, leases)?;
        this.connection = Some(connection);
        this.file_id = file_at(&this.path);
        Ok(this)
    }

    fn connect(&self, flags: OpenFlags) -> rusqlite::Result<Connection> {
        let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.options.busy_timeout.unwrap_or(BUSY_TIMEOUT))?;
        connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
        // Facts must be on disk before their effects begin.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
        // A checkpoint on close would cost two syncs at exit and two at the next start.
        keep_wal_on_close(&connection, true)?;
        if let Some(pages) = self.options.max_pages {
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        }
        Ok(connection)
    }

    fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        if self.connection.is_none() {
            // Do not recreate a database that was removed.
            self.connection = Some(self.connect(OpenFlags::empty())?);
            self.reconnects += 1;
        }
        self.connection.as_mut().ok_or(StoreError::Busy)
    }

    pub fn read<T>(&mut self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        read(self.connection()?)
    }

    /// Runs one transaction. It is on disk when this returns, or rolled back.
    pub fn write<T>(&mut self, write: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let current = file_at(&self.path);
        if current != self.file_id {
            return Err(if current.is_none() { StoreError::DatabaseRemoved } else { StoreError::Replaced });
        }
        let connection = self.connection()?;
        let result = transact(connection, write);
        if result.as_ref().is_err_and(is_database_error) {
            // A connection may not recover from a failed commit.
            self.connection = None;
        }
        result
    }

    /// A number that changes whenever another connection writes.
    pub fn version(&mut self) -> Result<u64, StoreError> {
        let changes = self.connection()?.query_row("PRAGMA data_version", [], |row| row.get::<_, u32>(0))?;
        Ok(self.reconnects << 32 | u64::from(changes))
    }
}

/// Checkpoints a long write-ahead log on close; a short one stays. The next process cannot tell which pages were
/// already checkpointed, so without this the log would keep growing.
impl Drop for SqliteConnection {
    fn drop(&mut self) {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let bytes = std::fs::metadata(log).map_or(0, |log| log.len());
        if bytes > u64::from(CHECKPOINT_PAGES) * BYTES_PER_PAGE
            && let Some(connection) = &self.connection
        {
            // If this fails, the next process tries again.
            keep_wal_on_close(connection, false).ok();
        }
    }
}

fn keep_wal_on_close(connection: &Connection, keep: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep).map(drop)
}

fn transact<T>(
    connection: &mut Connection,
    write: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    // Take the write lock at once, so that reads stay valid until the commit.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let value = write(&transaction)?;
    transaction.commit()?;
    Ok(value)
}

fn is_database_error(error: &StoreError) -> bool {
    match error {
        StoreError::DiskFull | StoreError::Busy | StoreError::Damaged(_) | StoreError::Other(_) => true,
        StoreError::NoRun(_)
        | StoreError::NoTask(_)
        | StoreError::LeaseHeld(_)
        | StoreError::Fenced(_)
        | StoreError::TaskTaken(_)
        | StoreError::IssueClaimed { .. }
        | StoreError::DatabaseRemoved
        | StoreError::Replaced
        | StoreError::NewerVersion { .. }
        | StoreError::Unreadable { .. } => false,
    }
}

#[cfg(unix)]
fn file_at(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn file_at(_path: &Path) -> Option<(u64, u64)> {
    None
}

const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_log_and_tables.sql"),
    include_str!("../../migrations/sqlite/0002_approved_commit.sql"),
    include_str!("../../migrations/sqlite/0003_trackers.sql"),
    include_str!("../../migrations/sqlite/0004_run_stage.sql"),
    include_str!("../../migrations/sqlite/0005_estimated_cost.sql"),
    include_str!("../../migrations/sqlite/0006_events_by_loop.sql"),
    include_str!("../../migrations/sqlite/0007_task_state.sql"),
    include_str!("../../migrations/sqlite/0008_receipts.sql"),
];

const LATEST_VERSION: u32 = MIGRATIONS.len() as u32;

/// Runs the missing migrations. If there are none, this reads only the first page of the file.
fn migrate(connection: &mut Connection, leases: &LeaseFiles) -> Result<(), StoreError> {
    let found = version(connection)?;
    if found == LATEST_VERSION {
        return Ok(());
    }
    if found > LATEST_VERSION {
        return Err(StoreError::NewerVersion { found, known: LATEST_VERSION });
    }
    // SQLite itself does not serialize two processes that create the database at the same time.
    let _lock = leases.lock_schema()?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    let missing = MIGRATIONS.get(found as usize..).unwrap_or_default();
    missing.iter().try_for_each(|sql| transaction.execute_batch(sql))?;
    // New columns are empty until the tables are rebuilt, and texts in the tables are those of the earlier version.
    if found > 0 {
        operations::rebuild(&mut SqliteTransaction(&transaction))?;
    }
    if found == 0 {
        skip_existing_ids(&mut SqliteTransaction(&transaction), ExistingIds::scan(&leases.store_dir))?;
    }
    transaction.pragma_update(None, "user_version", LATEST_VERSION.max(found))?;
    Ok(transaction.commit()?)
}

/// Sets the counters of a new database past the ids that already exist on disk.
fn skip_existing_ids(tx: &mut SqliteTransaction<'_>, existing: ExistingIds) -> Result<(), StoreError> {
    for (counter, last) in [(Counter::Task, existing.task), (Counter::Run, existing.run)] {
        if last > 0 {
            tx.set_counter(counter, last)?;
        }
    }
    Ok(())
}

fn version(connection: &Connection) -> Result<u32, StoreError> {
    let found = connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))?;
    // signoff never writes a negative version.
    u32::try_from(found).map_err(|_| StoreError::Damaged("not a signoff database".into()))
}
