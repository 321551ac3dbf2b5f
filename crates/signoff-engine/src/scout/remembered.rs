//! Versions that were asked for once: a program that has not changed since is not started again for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::Version;
use crate::draft::{Care, Draft};

/// The versions of programs, in a file. One that cannot be read or written remembers nothing.
#[derive(Debug)]
pub struct Remembered {
    file: PathBuf,
    known: BTreeMap<PathBuf, Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    changed_ms: u64,
    bytes: u64,
    /// None if it did not tell.
    version: Option<[u32; 3]>,
}

impl Remembered {
    pub fn at(file: PathBuf) -> Self {
        let known = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Self { file, known: known.unwrap_or_default() }
    }

    /// The version of a program as it lies there now; none if nobody asked, and no version if it did not tell.
    pub fn version(&self, program: &Path) -> Option<Option<Version>> {
        let (real, now) = stamp(program)?;
        let entry = self.known.get(&real).filter(|entry| (entry.changed_ms, entry.bytes) == now)?;
        Some(entry.version.map(|[first, second, third]| Version(first, second, third)))
    }

    pub fn remember(&mut self, program: &Path, version: Option<Version>) {
        let Some((real, (changed_ms, bytes))) = stamp(program) else { return };
        let version = version.map(|Version(first, second, third)| [first, second, third]);
        self.known.insert(real, Entry { changed_ms, bytes, version });
        let text = serde_json::to_vec(&self.known).unwrap_or_default();
        // Whoever cannot be told now is asked again.
        Draft::write(&self.file, &text, Care::Plain).and_then(Draft::put).ok();
    }
}

/// What a program is, and when it was changed.
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
    fn a_program_that_was_changed_is_not_known_any_more() {
        let place = tempfile::tempdir().unwrap();
        let (program, file) = (place.path().join("agent"), place.path().join("versions.json"));
        fs::write(&program, "one").unwrap();
        let mut versions = Remembered::at(file.clone());
        assert_eq!(versions.version(&program), None);
        versions.remember(&program, Some(Version(1, 2, 3)));
        assert_eq!(Remembered::at(file.clone()).version(&program), Some(Some(Version(1, 2, 3))));
        fs::write(&program, "another").unwrap();
        assert_eq!(Remembered::at(file.clone()).version(&program), None);
        fs::write(&file, "{").unwrap();
        assert_eq!(Remembered::at(file).version(&program), None);
    }
}
