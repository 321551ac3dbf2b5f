//! The identity of a store file: a file may be deleted and created again under the same name.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use signoff_store::SqliteStore;

/// Identifies the file of a store by device, inode and creation time. Inodes are reused, so both are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreId {
    device: u64,
    number: u64,
    born: Option<SystemTime>,
}

impl StoreId {
    /// Identifies the store in a directory; `None` if there is none.
    pub fn of_directory(directory: &Path) -> Option<Self> {
        let file = SqliteStore::path(directory).metadata().ok()?;
        Some(Self { device: file.dev(), number: file.ino(), born: file.created().ok() })
    }
}
