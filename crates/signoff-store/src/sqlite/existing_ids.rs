//! The ids that files of an earlier database still use, so that a new database does not assign them again.

use std::fs;
use std::path::Path;

/// The highest ids in the names of files and directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ExistingIds {
    pub task: u64,
    pub run: u64,
}

impl ExistingIds {
    /// Scans file names. Unreadable directories are skipped.
    pub fn scan(dir: &Path) -> Self {
        let named = ["worktrees", "reviews", "leases"].map(|subdir| names(&dir.join(subdir))).concat();
        let runs = names(&dir.join("runs"));
        let tasks: Vec<_> = runs.iter().flat_map(|run| names(&dir.join("runs").join(run))).collect();
        let plain_ids = |names: &[String]| names.iter().filter_map(|name| name.parse().ok()).max();
        let prefixed_ids = |mark: &str| named.iter().filter_map(|name| id_after(name, mark)).max();
        Self {
            task: plain_ids(&tasks).max(prefixed_ids("task-")).unwrap_or(0),
            run: plain_ids(&runs).max(prefixed_ids("run-")).unwrap_or(0),
        }
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The number in `task-7`, or in the middle as in `2026-11-15-task-7-review-1.md`.
fn id_after(name: &str, mark: &str) -> Option<u64> {
    let at = name.match_indices(mark).map(|(at, _)| at).find(|&at| at == 0 || name[..at].ends_with('-'))?;
    let rest = &name[at + mark.len()..];
    let digits = rest.split(|char: char| !char.is_ascii_digit()).next()?;
    // Larger ids would overflow the counters.
    digits.parse().ok().filter(|number| *number < u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_file_names() {
        assert_eq!(id_after("task-7", "task-"), Some(7));
        assert_eq!(id_after("2026-11-15-task-12-p1-gate-review-3.md", "task-"), Some(12));
        assert_eq!(id_after("worktree-run-4", "run-"), Some(4));
        assert_eq!(id_after("multitask-7", "task-"), None);
        assert_eq!(id_after("task-x", "task-"), None);
        assert_eq!(id_after("task-99999999999999999999", "task-"), None);
    }
}
