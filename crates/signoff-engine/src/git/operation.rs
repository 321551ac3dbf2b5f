//! Git operations that can stop in the middle and wait to be continued.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::disk::content;
use super::repository::path;
use super::{GitError, Repository};

/// An unfinished operation in a worktree.
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

    /// The unfinished operation in a worktree, by its git directory.
    pub(super) fn unfinished_in(git_dir: &Path) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.state_files().iter().any(|name| git_dir.join(name).exists()))
    }

    /// The operation that uses a branch while the worktree's `HEAD` does not name it.
    fn using_branch(branch: &str, git_dir: &Path) -> Option<Self> {
        let full = format!("refs/heads/{branch}");
        let names = |(_, file, name): &(Self, &str, &str)| {
            let text = content(&git_dir.join(file)).unwrap_or_default();
            text.split(|&byte| byte == b'\n').any(|line| line == name.as_bytes())
        };
        let used = [
            (Self::Rebase, "rebase-merge/head-name", full.as_str()),
            (Self::Rebase, "rebase-apply/head-name", &full),
            (Self::Rebase, "rebase-merge/update-refs", &full),
            (Self::Bisect, "BISECT_START", branch),
        ];
        used.into_iter().find(names).map(|(operation, ..)| operation)
    }

    fn state_files(self) -> &'static [&'static str] {
        match self {
            Self::Merge => &["MERGE_HEAD"],
            Self::CherryPick => &["CHERRY_PICK_HEAD", "sequencer"],
            Self::Revert => &["REVERT_HEAD"],
            // `git am` uses `rebase-apply` too.
            Self::Rebase => &["rebase-merge", "rebase-apply"],
            Self::Bisect => &["BISECT_LOG"],
        }
    }

    /// Arguments of the git command that abandons the operation and keeps files, index and `HEAD`.
    pub(super) fn quit_args(self) -> [&'static str; 2] {
        match self {
            Self::Merge => ["merge", "--quit"],
            Self::CherryPick => ["cherry-pick", "--quit"],
            Self::Revert => ["revert", "--quit"],
            Self::Rebase => ["rebase", "--quit"],
            Self::Bisect => ["bisect", "reset"],
        }
    }
}

impl Repository {
    /// Fails if the branch is being rebased or bisected in any worktree.
    pub(super) fn check_no_operation(&self, branch: &str) -> Result<(), GitError> {
        let linked = fs::read_dir(self.common().join("worktrees")).ok().into_iter().flatten().flatten();
        for git_dir in linked.map(|entry| entry.path()).chain([self.common().to_owned()]) {
            if let Some(operation) = Operation::using_branch(branch, &git_dir) {
                let link = content(&git_dir.join("gitdir")).map(|link| path(link.trim_ascii_end()));
                let worktree = link.as_deref().and_then(Path::parent).map(Path::to_owned);
                let worktree: PathBuf = worktree.unwrap_or_else(|| self.root().to_owned());
                return Err(GitError::Unfinished { worktree, operation });
            }
        }
        Ok(())
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
