//! Cache of program versions. A program that has not changed is not asked again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::AgentVersion;
use crate::atomic_file::{AtomicFile, WriteMode};

/// Versions of programs, stored in a file. The cache is empty if the file cannot be read.
#[derive(Debug)]
pub struct VersionCache {
    file: PathBuf,
    entries: BTreeMap<PathBuf, CachedVersion>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CachedVersion {
    changed_ms: u64,
    bytes: u64,
    /// `None` if it did not report a version.
    version: Option<[u32; 3]>,
}

impl VersionCache {
    pub fn open(file: PathBuf) -> Self {
        let known = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Self { file, entries: known.unwrap_or_default() }
    }

    /// The version of a program. The outer `None` means unknown, the inner one that it reports none.
    pub fn get(&self, program: &Path) -> Option<Option<AgentVersion>> {
        let (real, now) = stamp(program)?;
        let entry = self.entries.get(&real).filter(|entry| (entry.changed_ms, entry.bytes) == now)?;
        Some(entry.version.map(|[first, second, third]| AgentVersion(first, second, third)))
    }

    pub fn insert(&mut self, program: &Path, version: Option<AgentVersion>) {
        let Some((real, (changed_ms, bytes))) = stamp(program) else { return };
        let version = version.map(|AgentVersion(first, second, third)| [first, second, third]);
        self.entries.insert(real, CachedVersion { changed_ms, bytes, version });
        let text = serde_json::to_vec(&self.entries).unwrap_or_default();
        // If this fails, the program is asked again next time.
        AtomicFile::write(&self.file, &text, WriteMode::Plain).and_then(AtomicFile::commit).ok();
    }
}

/// The real path of a program, with its modification time and size.
fn stamp(program: &Path) -> Option<(PathBuf, (u64, u64))> {
    let real = program.canonicalize().ok()?;
    let file = real.metadata().ok()?;
    let changed = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((real, (u64::try_from(changed.as_millis()).ok()?, file.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_program_is_not_in_the_cache() {
        let place = tempfile::tempdir().unwrap();
        let (program, file) = (place.path().join("agent"), place.path().join("versions.json"));
        fs::write(&program, "one").unwrap();
        let mut versions = VersionCache::open(file.clone());
        assert_eq!(versions.get(&program), None);
        versions.insert(&program, Some(AgentVersion(1, 2, 3)));
        assert_eq!(VersionCache::open(file.clone()).get(&program), Some(Some(AgentVersion(1, 2, 3))));
        fs::write(&program, "another").unwrap();
        assert_eq!(VersionCache::open(file.clone()).get(&program), None);
        fs::write(&file, "{").unwrap();
        assert_eq!(VersionCache::open(file).get(&program), None);
    }
}
