//! The connection to the database: opened when needed, dropped when it failed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::lease_file::LeaseFiles;
use super::{SqliteOptions, fault, schema};
use crate::StoreError;

/// How long a program waits for another one's transaction if nothing else is said.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many pages the write-ahead log takes before they are moved into the database, which costs two syncs. Who
/// opens the database first reads the whole log, so it stays short.
const CHECKPOINT_PAGES: u32 = 250;
/// A page in the log, with what is noted about it.
const BYTES_PER_PAGE: u64 = 4096 + 24;
/// How many statements are kept ready.
const STATEMENTS: usize = 64;

pub(super) struct Link {
    path: PathBuf,
    options: SqliteOptions,
    connection: Option<Connection>,
    /// Which file it is, where files can be told from each other.
    file: Option<(u64, u64)>,
    /// How often it was opened again: a new connection counts the changes of others anew.
    renewals: u64,
}

impl Link {
    pub fn open(path: PathBuf, options: SqliteOptions, leases: &LeaseFiles) -> Result<Self, StoreError> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(fault::of_file)?;
        }
        let mut link = Self { path, options, connection: None, file: None, renewals: 0 };
        let mut connection = link.connect(OpenFlags::SQLITE_OPEN_CREATE).map_err(fault::of)?;
        schema::bring_up_to_date(&mut connection, leases)?;
        link.connection = Some(connection);
        link.file = file_at(&link.path);
        Ok(link)
    }

    fn connect(&self, flags: OpenFlags) -> rusqlite::Result<Connection> {
        let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.options.patience.unwrap_or(PATIENCE))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // A fact is on the disk before anybody acts upon it.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
        // Every program would pay for it with two syncs at its end, and the next one with two at its start.
        keep_log_on_close(&connection, true)?;
        if let Some(pages) = self.options.max_pages {
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        }
        Ok(connection)
    }

    fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        if self.connection.is_none() {
            // A database that is gone by now must not come back empty.
            self.connection = Some(self.connect(OpenFlags::empty()).map_err(fault::of)?);
            self.renewals += 1;
        }
        self.connection.as_mut().ok_or(StoreError::Busy)
    }

    pub fn read<T>(
        &mut self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        read(self.connection()?)
    }

    /// One transaction: all of it is on the disk when this returns, or nothing happened.
    pub fn write<T>(
        &mut self,
        write: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let there = file_at(&self.path);
        if there != self.file {
            return Err(if there.is_none() { StoreError::Gone } else { StoreError::Replaced });
        }
        let connection = self.connection()?;
        let result = transact(connection, write);
        if result.as_ref().is_err_and(is_of_the_database) {
            // A connection whose commit failed can stay useless for good.
            self.connection = None;
        }
        result
    }

    /// Changes whenever somebody else wrote.
    pub fn version(&mut self) -> Result<u64, StoreError> {
        let sql = "PRAGMA data_version";
        let changes = self.connection()?.query_row(sql, [], |row| row.get::<_, u32>(0)).map_err(fault::of)?;
        Ok(self.renewals << 32 | u64::from(changes))
    }
}

/// The log of a program that ends stays where it is while it is short. What the next program finds in it, it cannot
/// know to be moved already: a long one is moved now, or it would grow and grow.
impl Drop for Link {
    fn drop(&mut self) {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let bytes = std::fs::metadata(log).map_or(0, |log| log.len());
        if bytes > u64::from(CHECKPOINT_PAGES) * BYTES_PER_PAGE
            && let Some(connection) = &self.connection
        {
            // If this fails the next program tries again.
            keep_log_on_close(connection, false).ok();
        }
    }
}

fn keep_log_on_close(connection: &Connection, keep: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep).map(drop)
}

fn transact<T>(
    connection: &mut Connection,
    write: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    // The lock is taken at once: what is read in here stays true until the commit.
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault::of)?;
    let value = write(&transaction)?;
    transaction.commit().map_err(fault::of)?;
    Ok(value)
}

fn is_of_the_database(error: &StoreError) -> bool {
    match error {
        StoreError::Full | StoreError::Busy | StoreError::Damaged(_) | StoreError::Other(_) => true,
        StoreError::NoRun(_)
        | StoreError::NoTask(_)
        | StoreError::Held(_)
        | StoreError::Fenced(_)
        | StoreError::Taken(_)
        | StoreError::Claimed { .. }
        | StoreError::Gone
        | StoreError::Replaced
        | StoreError::Newer { .. }
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
