//! Operations of git that stop in the middle and wait to be continued.

use std::fmt;
use std::path::Path;

/// An operation somebody began in a worktree and did not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Merge,
    CherryPick,
    Revert,
    Rebase,
    Bisect,
}

impl Operation {
    const ALL: [Self; 5] = [Self::Rebase, Self::Bisect, Self::Merge, Self::CherryPick, Self::Revert];

    /// What was left unfinished in a worktree, by its git directory.
    pub(super) fn left_in(git_dir: &Path) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.traces().iter().any(|name| git_dir.join(name).exists()))
    }

    fn traces(self) -> &'static [&'static str] {
        match self {
            Self::Merge => &["MERGE_HEAD"],
            Self::CherryPick => &["CHERRY_PICK_HEAD", "sequencer"],
            Self::Revert => &["REVERT_HEAD"],
            // `rebase-apply` is that of `git am` too.
            Self::Rebase => &["rebase-merge", "rebase-apply"],
            Self::Bisect => &["BISECT_LOG"],
        }
    }

    /// The command that forgets the operation and leaves files, index and `HEAD` as they are.
    pub(super) fn quit(self) -> [&'static str; 2] {
        match self {
            Self::Merge => ["merge", "--quit"],
            Self::CherryPick => ["cherry-pick", "--quit"],
            Self::Revert => ["revert", "--quit"],
            Self::Rebase => ["rebase", "--quit"],
            Self::Bisect => ["bisect", "reset"],
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Merge => "merge",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Rebase => "rebase",
            Self::Bisect => "bisect",
        })
    }
}
