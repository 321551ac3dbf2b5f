//! File metadata that shows whether a file changed, without reading it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Changes whenever a file is written, replaced, or its mode changes. Programs cannot set the ctime back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileStamp {
    inode: u64,
    length: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of the entry at `path`. Does not follow links.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        Some(Self {
            inode: found.ino(),
            length: found.len(),
            mode: found.mode(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}
