//! What `git status` says, as data.

use std::path::PathBuf;

use signoff_core::ids::Commit;

use super::repository::{Place, path};
use super::{GitError, Repository};

/// The state of a worktree against its index and `HEAD`.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// None before the first commit.
    pub(super) head: Option<Commit>,
    /// None where `HEAD` is detached.
    pub(super) branch: Option<String>,
    pub(super) entries: Vec<Entry>,
}

/// One path that is not as `HEAD` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tracked {
        staged: bool,
        file: FileState,
    },
    Unmerged,
    Untracked,
    /// A whole repository inside the worktree.
    Nested,
}

/// A tracked file against the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileState {
    Same,
    Changed,
    Gone,
}

impl Repository {
    /// Looks at a worktree; writes nothing, not even a fresher index. Only an index of our own is freshened, so
    /// that the next look need not read all files again.
    pub(super) fn status(&self, place: Place<'_>) -> Result<Status, GitError> {
        let asked = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames"];
        let freshen = if place.index.is_some() { "1" } else { "0" };
        let command = self.sealed(place)?.env("GIT_OPTIONAL_LOCKS", freshen).args(asked);
        // Git would start another git within each, which does what is configured there.
        let printed = command.args(["--ignore-submodules=dirty"]).read()?;
        Ok(Status::parse(&printed))
    }
}

impl Status {
    fn parse(printed: &[u8]) -> Self {
        let mut status = Self::default();
        for record in printed.split(|&byte| byte == 0) {
            if let Some(header) = record.strip_prefix(b"# ") {
                status.take_header(&String::from_utf8_lossy(header));
            } else {
                status.entries.extend(Entry::parse(record));
            }
        }
        status
    }

    fn take_header(&mut self, header: &str) {
        match header.split_once(' ') {
            Some(("branch.oid", commit)) if commit != "(initial)" => self.head = Some(Commit::new(commit)),
            Some(("branch.head", name)) if name != "(detached)" => self.branch = Some(name.to_owned()),
            Some(_) | None => {}
        }
    }
}

impl Entry {
    fn parse(record: &[u8]) -> Option<Self> {
        let (kind, rest) = (record.first()?, record.get(2..)?);
        // The fields before the path have no spaces.
        let (kind, fields) = match kind {
            // An agent has staged a repository of its own, which git takes for a mere link to a commit.
            b'1' if rest.starts_with(b"A") && rest.get(3) == Some(&b'S') => (Kind::Nested, 7),
            b'1' => (tracked(rest), 7),
            b'u' => (Kind::Unmerged, 9),
            b'?' if rest.ends_with(b"/") => (Kind::Nested, 0),
            b'?' => (Kind::Untracked, 0),
            _ => return None,
        };
        let name = rest.splitn(fields + 1, |&byte| byte == b' ').nth(fields)?;
        Some(Self { path: path(name.strip_suffix(b"/").unwrap_or(name)), kind })
    }
}

fn tracked(fields: &[u8]) -> Kind {
    let file = match fields.get(1) {
        Some(b'.') | None => FileState::Same,
        Some(b'D') => FileState::Gone,
        Some(_) => FileState::Changed,
    };
    Kind::Tracked { staged: fields.first() != Some(&b'.'), file }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_hold_anything() {
        let printed = b"# branch.oid 12ab\0# branch.head l\xc3\xb6p\0\
            1 .M N... 100644 100644 100644 aa aa a b\n c\0\
            1 A. N... 000000 100644 100644 00 aa \"q\"\0\
            u UU N... 100644 100644 100644 100644 aa bb cc both\0\
            ? \xff\xfe\0? ne st/\0";
        let status = Status::parse(printed);
        assert_eq!((status.head, status.branch.as_deref()), (Some(Commit::from("12ab")), Some("l\u{f6}p")));
        let entry = |name: &[u8], kind| Entry { path: path(name), kind };
        assert_eq!(
            status.entries,
            [
                entry(b"a b\n c", Kind::Tracked { staged: false, file: FileState::Changed }),
                entry(b"\"q\"", Kind::Tracked { staged: true, file: FileState::Same }),
                entry(b"both", Kind::Unmerged),
                entry(b"\xff\xfe", Kind::Untracked),
                entry(b"ne st", Kind::Nested),
            ]
        );
    }

    #[test]
    fn before_the_first_commit_there_is_no_head() {
        let status = Status::parse(b"# branch.oid (initial)\0# branch.head main\0");
        assert_eq!((status.head, status.branch.as_deref()), (None, Some("main")));
    }
}
