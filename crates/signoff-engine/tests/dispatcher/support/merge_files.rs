//! A three-way merge of whole files.

use std::collections::BTreeSet;

use super::memory_repository::Files;

/// Merged files. Conflicting ones contain both sides between markers.
pub struct MergedFiles {
    pub files: Files,
    pub conflicts: Vec<String>,
}

/// Merges two sides that have a common base.
pub fn merge_files(base: &Files, ours: &Files, theirs: &Files) -> MergedFiles {
    let names: BTreeSet<&String> = base.keys().chain(ours.keys()).chain(theirs.keys()).collect();
    let (mut files, mut conflicts) = (Files::new(), Vec::new());
    for name in names {
        let (was, own, other) = (base.get(name), ours.get(name), theirs.get(name));
        let merged = if own == other || was == other {
            own.cloned()
        } else if was == own {
            other.cloned()
        } else {
            conflicts.push(name.clone());
            let side = |text: Option<&String>| text.cloned().unwrap_or_default();
            Some(format!("<<<<<<< ours\n{}=======\n{}>>>>>>> theirs\n", side(own), side(other)))
        };
        files.extend(merged.map(|text| (name.clone(), text)));
    }
    MergedFiles { files, conflicts }
}
