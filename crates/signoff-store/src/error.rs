//! The errors of a store, one variant per way a caller can react.

use std::io::{self, ErrorKind};

use rusqlite::{ErrorCode, ffi};
use signoff_core::ids::{RunId, TaskId};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no run {0}")]
    NoRun(RunId),
    #[error("there is no task {0}")]
    NoTask(TaskId),
    #[error("run {0} is in use by another signoff process")]
    LeaseHeld(RunId),
    /// Another holder took over the lease; the caller must stop.
    #[error("run {0} was taken over by another signoff process")]
    Fenced(RunId),
    /// Another run has the task, or it was cancelled.
    #[error("task {0} is no longer in the queue")]
    TaskTaken(TaskId),
    /// Another task, which was not cancelled, already has this tracker issue.
    #[error("{id} already belongs to task {by}")]
    IssueClaimed { id: String, by: TaskId },
    #[error("the disk is full")]
    DiskFull,
    /// Another process held the database lock for too long.
    #[error("the database is busy: another program holds it")]
    Busy,
    /// Further writes would go to a deleted file.
    #[error("the database was removed while it was in use")]
    DatabaseRemoved,
    /// Another file is at its path.
    #[error("the database was replaced while it was in use")]
    Replaced,
    #[error("the database was written by a newer signoff (version {found}, this signoff supports version {known})")]
    NewerVersion { found: u32, known: u32 },
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// A row of the log cannot be parsed.
    #[error("run {run}, event {seq}: {message}")]
    Unreadable { run: RunId, seq: u64, message: String },
    #[error("{0}")]
    Other(String),
}

const BUSY: [ErrorCode; 2] = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked];
const DAMAGED: [ErrorCode; 2] = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase];

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let message = error.to_string();
        let Some(failure) = error.sqlite_error() else {
            return Self::Other(message);
        };
        // On a full disk, SQLite cannot grow the index of the write-ahead log.
        let no_room = failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE;
        if BUSY.contains(&failure.code) {
            Self::Busy
        } else if failure.code == ErrorCode::DiskFull || no_room {
            Self::DiskFull
        } else if DAMAGED.contains(&failure.code) {
            Self::Damaged(message)
        } else {
            Self::Other(message)
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        if [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&error.kind()) {
            Self::DiskFull
        } else {
            Self::Other(error.to_string())
        }
    }
}
