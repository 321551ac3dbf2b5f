//! What an earlier database left beside itself: a new one does not give its numbers away again.

use std::fs;
use std::path::Path;

/// The highest numbers that files and directories still bear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LeftBehind {
    pub task: u64,
    pub run: u64,
}

impl LeftBehind {
    /// Looks at names only. What cannot be read bears no number.
    pub fn in_dir(dir: &Path) -> Self {
        let named = ["worktrees", "reviews", "leases"].map(|room| names(&dir.join(room))).concat();
        let runs = names(&dir.join("runs"));
        let tasks: Vec<_> = runs.iter().flat_map(|run| names(&dir.join("runs").join(run))).collect();
        let bare = |names: &[String]| names.iter().filter_map(|name| name.parse().ok()).max();
        let marked = |mark: &str| named.iter().filter_map(|name| number_after(name, mark)).max();
        Self {
            task: bare(&tasks).max(marked("task-")).unwrap_or(0),
            run: bare(&runs).max(marked("run-")).unwrap_or(0),
        }
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The number in `task-7`, or in the middle as in `2026-11-15-task-7-review-1.md`.
fn number_after(name: &str, mark: &str) -> Option<u64> {
    let at = name.match_indices(mark).map(|(at, _)| at).find(|&at| at == 0 || name[..at].ends_with('-'))?;
    let rest = &name[at + mark.len()..];
    let digits = rest.split(|char: char| !char.is_ascii_digit()).next()?;
    // Beyond this the database could not count.
    digits.parse().ok().filter(|number| *number < u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_where_we_put_them() {
        assert_eq!(number_after("task-7", "task-"), Some(7));
        assert_eq!(number_after("2026-11-15-task-12-p1-gate-review-3.md", "task-"), Some(12));
        assert_eq!(number_after("worktree-run-4", "run-"), Some(4));
        assert_eq!(number_after("multitask-7", "task-"), None);
        assert_eq!(number_after("task-x", "task-"), None);
        assert_eq!(number_after("task-99999999999999999999", "task-"), None);
    }
}
