//! Git errors, one variant for each case that callers handle differently.

use std::io;
use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;

use super::Operation;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("{} is not inside a git repository", .0.display())]
    NotARepository(PathBuf),
    #[error("{} has no files to work on: it is a bare repository or lies inside of one", .0.display())]
    Bare(PathBuf),
    /// Git prints paths one per line, and the event log stores them as text.
    #[error("the path {:?} has a line break or is not UTF-8", .0.display().to_string())]
    UnsupportedPath(PathBuf),
    #[error("git is not installed, or not in PATH")]
    NoGit,
    #[error("this git is too old: 2.32 or newer is needed")]
    TooOld,
    #[error("this git is too old to merge without a worktree: 2.40 or newer is needed")]
    TooOldToMerge,
    #[error("the repository has no commits yet")]
    NoCommits,
    #[error("unknown revision `{0}`")]
    UnknownRevision(String),
    /// Another process held a lock for longer than the timeout.
    #[error("{} is held by another program", .file.display())]
    Locked { file: PathBuf },
    #[error("the worktree {} does not exist", .0.display())]
    WorktreeGone(PathBuf),
    /// A directory that signoff did not create, or created for another purpose.
    #[error("{} was not created by signoff for this purpose", .0.display())]
    NotOurs(PathBuf),
    /// A directory that contains worktrees, or git's data about them, was replaced by a link.
    #[error("{} is a link; worktrees are kept in real directories only", .0.display())]
    Linked(PathBuf),
    #[error("`{0}` cannot be the name of a branch")]
    BadBranchName(String),
    /// The branch is checked out in `by`, or existed before signoff created its own.
    #[error("the branch {branch} {}", by_worktree(.by.as_deref()))]
    BranchTaken { branch: String, by: Option<PathBuf> },
    #[error("the branch {0} does not exist")]
    BranchGone(String),
    /// The agent left the loop's branch, and its commits cannot be moved there without losing something.
    #[error("{} is at {head}, which does not continue its branch {branch}", .worktree.display())]
    OffBranch { worktree: PathBuf, branch: String, head: Commit },
    #[error("a {operation} was left unfinished in {}", .worktree.display())]
    Unfinished { worktree: PathBuf, operation: Operation },
    /// A commit or the index refers to objects that do not exist.
    #[error("the commits in {} are incomplete: {reason}", .worktree.display())]
    Incomplete { worktree: PathBuf, reason: String },
    #[error("{} has uncommitted changes", .0.display())]
    UncommittedWork(PathBuf),
    /// Uncommitted changes of the user prevent the checkout from following its branch.
    #[error("{} has changes that are not committed: {files}", .checkout.display())]
    Dirty { checkout: PathBuf, files: String },
    /// The branch has moved. Its checkout followed, except for files that the user changed at the same time.
    #[error("{} followed its branch, except for files that changed at the same time: {}", .checkout.display(), join_paths(.files))]
    CheckoutBehind { checkout: PathBuf, from: Commit, to: Commit, files: Vec<PathBuf> },
    #[error("{} in {} is untracked and would be overwritten", .file.display(), .checkout.display())]
    WouldOverwrite { checkout: PathBuf, file: PathBuf },
    /// Every attempt to move the branch found it at another commit.
    #[error("{0} moved during the update: another program commits to it")]
    BranchMoved(String),
    #[error("{} is outside the worktree", .0.display())]
    OutsideWorktree(PathBuf),
    /// Restored files changed again: a process is still writing.
    #[error("{} keeps changing while it is being restored", .0.display())]
    StillChanging(PathBuf),
    #[error("`{command}` did not end and was killed")]
    TimedOut { command: String },
    #[error("the disk is full")]
    DiskFull,
    #[error("`{command}` failed: {stderr}")]
    Failed { command: String, stderr: String },
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Maximum number of files in a message.
pub(super) const MAX_LISTED_FILES: usize = 3;

/// The first of these names and the number of the others.
pub(crate) fn list_first(names: &[String], max: usize) -> String {
    let listed = names.get(..max).unwrap_or(names).join(", ");
    let more = names.len().saturating_sub(max);
    if more > 0 { format!("{listed} and {more} more") } else { listed }
}

fn join_paths(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn by_worktree(by: Option<&Path>) -> String {
    by.map_or_else(|| "already exists".to_owned(), |path| format!("is checked out in {}", path.display()))
}

impl GitError {
    /// For `map_err`: wraps a file system error with its path.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            if source.kind() == io::ErrorKind::StorageFull {
                Self::DiskFull
            } else {
                Self::Io { path: path.to_owned(), source }
            }
        }
    }

    /// Whether an agent can have caused this error in its worktree. The machine or the user causes all others.
    pub fn may_be_caused_by_agent(&self) -> bool {
        match self {
            Self::Linked(_)
            | Self::WorktreeGone(_)
            | Self::NotOurs(_)
            | Self::BranchTaken { .. }
            | Self::BranchGone(_)
            | Self::OffBranch { .. }
            | Self::Unfinished { .. }
            | Self::Incomplete { .. }
            | Self::OutsideWorktree(_)
            | Self::StillChanging(_)
            | Self::TimedOut { .. }
            | Self::Failed { .. }
            | Self::Io { .. } => true,
            Self::NotARepository(_)
            | Self::Bare(_)
            | Self::UnsupportedPath(_)
            | Self::NoGit
            | Self::TooOld
            | Self::TooOldToMerge
            | Self::NoCommits
            | Self::UnknownRevision(_)
            | Self::Locked { .. }
            | Self::BadBranchName(_)
            | Self::UncommittedWork(_)
            | Self::Dirty { .. }
            | Self::CheckoutBehind { .. }
            | Self::WouldOverwrite { .. }
            | Self::BranchMoved(_)
            | Self::DiskFull => false,
        }
    }

    /// Parses git's messages, which are English because of `LC_ALL=C`.
    pub(super) fn from_stderr(command: String, stderr: &[u8]) -> Self {
        let stderr = String::from_utf8_lossy(stderr).trim().to_owned();
        if stderr.contains("No space left on device") {
            return Self::DiskFull;
        }
        match (lock_file(&stderr).or_else(|| incomplete_worktree(&stderr)), conflicting_branch(&stderr)) {
            (Some(file), _) => Self::Locked { file },
            (None, Some(branch)) => Self::BranchTaken { branch, by: None },
            (None, None) => Self::Failed { command, stderr },
        }
    }
}

/// A branch `a` excludes a branch `a/b`.
fn conflicting_branch(stderr: &str) -> Option<String> {
    let (before, _) = stderr.split_once("' exists; cannot create '")?;
    before.rsplit_once("'refs/heads/").map(|(_, branch)| branch.to_owned())
}

fn lock_file(stderr: &str) -> Option<PathBuf> {
    let (before, _) = stderr.split_once("': File exists")?;
    let (_, file) = before.rsplit_once("Unable to create '")?;
    file.ends_with(".lock").then(|| PathBuf::from(file))
}

/// A worktree that another process is creating. Until its first files exist, git cannot list any worktree.
fn incomplete_worktree(stderr: &str) -> Option<PathBuf> {
    let (_, after) = stderr.split_once("failed to read ")?;
    let (worktree, _) = after.trim_start_matches('\'').split_once("/commondir")?;
    worktree.contains("/worktrees/").then(|| PathBuf::from(worktree))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message_from(stderr: &str) -> String {
        GitError::from_stderr("git x".to_owned(), stderr.as_bytes()).to_string()
    }

    #[test]
    fn git_messages_become_typed_errors() {
        insta::assert_snapshot!(message_from("fatal: Unable to create '/r/.git/index.lock': File exists.\n\nAnother git"), @"/r/.git/index.lock is held by another program");
        insta::assert_snapshot!(message_from("fatal: update_ref failed: cannot lock ref 'refs/heads/x': Unable to create '/r/.git/refs/heads/x.lock': File exists."), @"/r/.git/refs/heads/x.lock is held by another program");
        insta::assert_snapshot!(message_from("fatal: cannot lock ref 'refs/heads/a/b': 'refs/heads/a' exists; cannot create 'refs/heads/a/b'"), @"the branch a already exists");
        insta::assert_snapshot!(message_from("error: unable to write file a: No space left on device"), @"the disk is full");
        insta::assert_snapshot!(message_from("fatal: failed to read /r/.git/worktrees/task-3/commondir: Success"), @"/r/.git/worktrees/task-3 is held by another program");
        insta::assert_snapshot!(message_from("fatal: no\n"), @"`git x` failed: fatal: no");
    }
}
