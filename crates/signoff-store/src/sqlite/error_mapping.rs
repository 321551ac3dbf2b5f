//! Converts SQLite and I/O errors to `StoreError`.

use std::io::{self, ErrorKind};

use rusqlite::{Error, ErrorCode, ffi};

use crate::StoreError;

const BUSY: [ErrorCode; 2] = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked];
const DAMAGED: [ErrorCode; 2] = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase];

pub(super) fn from_sqlite(error: Error) -> StoreError {
    let message = error.to_string();
    let Some(failure) = error.sqlite_error() else {
        return StoreError::Other(message);
    };
    // On a full disk, SQLite cannot grow the index of the write-ahead log.
    let no_room = failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE;
    if BUSY.contains(&failure.code) {
        StoreError::Busy
    } else if failure.code == ErrorCode::DiskFull || no_room {
        StoreError::Full
    } else if DAMAGED.contains(&failure.code) {
        StoreError::Damaged(message)
    } else {
        StoreError::Other(message)
    }
}

pub(super) fn from_io(error: io::Error) -> StoreError {
    if [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&error.kind()) {
        StoreError::Full
    } else {
        StoreError::Other(error.to_string())
    }
}
