//! The state of a worktree: parsed output of `git status`, and unfinished operations.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use signoff_core::ids::Commit;

use super::disk::content;
use super::repository::{GitPlace, path};
use super::{GitError, Repository};

/// Differences between a worktree, its index and `HEAD`.
#[derive(Debug, Default)]
pub(super) struct GitStatus {
    /// `None` before the first commit.
    pub(super) head: Option<Commit>,
    /// `None` if `HEAD` is detached.
    pub(super) branch: Option<String>,
    pub(super) entries: Vec<StatusEntry>,
}

/// A path that differs from `HEAD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatusEntry {
    pub(super) path: PathBuf,
    pub(super) kind: StatusKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusKind {
    Tracked {
        staged: bool,
        file: FileState,
    },
    Unmerged,
    Untracked,
    /// A repository inside the worktree.
    Nested,
}

/// A tracked file compared with the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileState {
    Unchanged,
    Changed,
    Deleted,
}

impl Repository {
    /// Runs `git status`. Does not write to the worktree's own index; a temporary index is refreshed, so that
    /// the next status need not read all files.
    pub(super) fn status(&self, place: GitPlace<'_>) -> Result<GitStatus, GitError> {
        let asked = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames"];
        let freshen = if place.index.is_some() { "1" } else { "0" };
        let command = self.isolated_git_at(place, asked)?.env("GIT_OPTIONAL_LOCKS", freshen);
        // Otherwise git would start another git in each submodule, which would use the submodule's configuration.
        let printed = command.args(["--ignore-submodules=dirty"]).read()?;
        Ok(GitStatus::parse(&printed))
    }
}

impl GitStatus {
    fn parse(printed: &[u8]) -> Self {
        let mut status = Self::default();
        for record in printed.split(|&byte| byte == 0) {
            if let Some(header) = record.strip_prefix(b"# ") {
                status.parse_header(&String::from_utf8_lossy(header));
            } else {
                status.entries.extend(StatusEntry::parse(record));
            }
        }
        status
    }

    fn parse_header(&mut self, header: &str) {
        match header.split_once(' ') {
            Some(("branch.oid", commit)) if commit != "(initial)" => self.head = Some(Commit::new(commit)),
            Some(("branch.head", name)) if name != "(detached)" => self.branch = Some(name.to_owned()),
            Some(_) | None => {}
        }
    }
}

impl StatusEntry {
    fn parse(record: &[u8]) -> Option<Self> {
        let (kind, rest) = (record.first()?, record.get(2..)?);
        // The fields before the path contain no spaces.
        let (kind, fields) = match kind {
            // The agent staged a repository of its own, which git reports as a submodule.
            b'1' if rest.starts_with(b"A") && rest.get(3) == Some(&b'S') => (StatusKind::Nested, 7),
            b'1' => (tracked_kind(rest), 7),
            b'u' => (StatusKind::Unmerged, 9),
            b'?' if rest.ends_with(b"/") => (StatusKind::Nested, 0),
            b'?' => (StatusKind::Untracked, 0),
            _ => return None,
        };
        let name = rest.splitn(fields + 1, |&byte| byte == b' ').nth(fields)?;
        Some(Self { path: path(name.strip_suffix(b"/").unwrap_or(name)), kind })
    }
}

fn tracked_kind(fields: &[u8]) -> StatusKind {
    let file = match fields.get(1) {
        Some(b'.') | None => FileState::Unchanged,
        Some(b'D') => FileState::Deleted,
        Some(_) => FileState::Changed,
    };
    StatusKind::Tracked { staged: fields.first() != Some(&b'.'), file }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_contain_any_byte() {
        let printed = b"# branch.oid 12ab\0# branch.head l\xc3\xb6p\0\
        1 .M N... 100644 100644 100644 aa aa a b\n c\0\
        1 A. N... 000000 100644 100644 00 aa \"q\"\0\
        u UU N... 100644 100644 100644 100644 aa bb cc both\0\
        ? \xff\xfe\0? ne st/\0";
        let status = GitStatus::parse(printed);
        assert_eq!((status.head, status.branch.as_deref()), (Some(Commit::from("12ab")), Some("l\u{f6}p")));
        let entry = |name: &[u8], kind| StatusEntry { path: path(name), kind };
        assert_eq!(
            status.entries,
            [
                entry(b"a b\n c", StatusKind::Tracked { staged: false, file: FileState::Changed }),
                entry(b"\"q\"", StatusKind::Tracked { staged: true, file: FileState::Unchanged }),
                entry(b"both", StatusKind::Unmerged),
                entry(b"\xff\xfe", StatusKind::Untracked),
                entry(b"ne st", StatusKind::Nested),
            ]
        );
    }

    #[test]
    fn before_the_first_commit_there_is_no_head() {
        let status = GitStatus::parse(b"# branch.oid (initial)\0# branch.head main\0");
        assert_eq!((status.head, status.branch.as_deref()), (None, Some("main")));
    }
}
