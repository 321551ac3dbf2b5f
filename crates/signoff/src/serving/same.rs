//! Which store it is: somebody may throw one away and begin anew under the same name.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use signoff_store::SqliteStore;

/// The file of a store, whatever its name. A number that is free is given to the next file, so its birth counts as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Same {
    device: u64,
    number: u64,
    born: Option<SystemTime>,
}

impl Same {
    /// The store in a directory; none where there is none.
    pub fn of(directory: &Path) -> Option<Self> {
        let file = SqliteStore::path(directory).metadata().ok()?;
        Some(Self { device: file.dev(), number: file.ino(), born: file.created().ok() })
    }
}
