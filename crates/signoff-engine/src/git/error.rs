//! What can go wrong with git, one variant per thing a caller could do differently.

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
    /// Git writes paths one to a line, and our log keeps them as text.
    #[error("the path {:?} has a line break or is not UTF-8", .0.display().to_string())]
    OddPath(PathBuf),
    #[error("git is not installed, or not in PATH")]
    NoGit,
    #[error("this git is too old: 2.32 or newer is needed")]
    TooOld,
    #[error("this git is too old to merge without a worktree: 2.40 or newer is needed")]
    TooOldToMerge,
    #[error("the repository has no commits yet")]
    NoCommits,
    #[error("git knows no commit `{0}`")]
    UnknownRevision(String),
    /// Somebody held a lock for longer than we wait.
    #[error("{} is held by another program", .file.display())]
    Locked { file: PathBuf },
    #[error("the worktree {} is gone", .0.display())]
    WorktreeGone(PathBuf),
    /// A directory this program did not make, or made for something else.
    #[error("{} was not made by this program for this", .0.display())]
    NotOurs(PathBuf),
    /// A directory that holds worktrees, or git's own account of them, was replaced by a link.
    #[error("{} is a link; worktrees are kept in real directories only", .0.display())]
    Linked(PathBuf),
    #[error("`{0}` cannot be the name of a branch")]
    BadBranchName(String),
    /// The branch is not ours to use: it is checked out in `by`, or was there before us.
    #[error("the branch {branch} is taken{}", by_whom(.by.as_deref()))]
    BranchTaken { branch: String, by: Option<PathBuf> },
    #[error("the branch {0} is gone")]
    BranchGone(String),
    /// The agent left the loop's branch, and what it made cannot be brought back there without losing something.
    #[error("{} is at {head}, which does not continue its branch {branch}", .worktree.display())]
    Astray { worktree: PathBuf, branch: String, head: Commit },
    #[error("a {operation} was left unfinished in {}", .worktree.display())]
    Unfinished { worktree: PathBuf, operation: Operation },
    /// What the agent committed, or staged, lacks something that it is made of.
    #[error("what was committed in {} is not whole: {why}", .worktree.display())]
    Incomplete { worktree: PathBuf, why: String },
    #[error("{} holds work that is not committed", .0.display())]
    UncommittedWork(PathBuf),
    /// The person's own changes are in the way of a checkout that is to follow its branch.
    #[error("{} has changes that are not committed: {files}", .checkout.display())]
    Dirty { checkout: PathBuf, files: String },
    /// The branch has moved, and its checkout followed but for files that the person changed meanwhile.
    #[error("{} followed its branch, but for what was changed there meanwhile: {}", .checkout.display(), listed(.files))]
    Behind { checkout: PathBuf, from: Commit, to: Commit, files: Vec<PathBuf> },
    #[error("{} in {} is not known to git, and would be overwritten", .file.display(), .checkout.display())]
    WouldOverwrite { checkout: PathBuf, file: PathBuf },
    /// Each time it was to be moved it had moved.
    #[error("{0} moves all the time: somebody else keeps committing to it")]
    KeepsMoving(String),
    #[error("{} leads out of the worktree", .0.display())]
    OutsideWorktree(PathBuf),
    /// Whatever was put back came back: something is still writing.
    #[error("{} keeps changing while it is put back", .0.display())]
    StillChanging(PathBuf),
    #[error("`{command}` did not end and was killed")]
    Stuck { command: String },
    #[error("the disk is full")]
    DiskFull,
    #[error("`{command}` failed: {stderr}")]
    Failed { command: String, stderr: String },
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn listed(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn by_whom(by: Option<&Path>) -> String {
    by.map(|path| format!(" by the worktree {}", path.display())).unwrap_or_default()
}

impl GitError {
    /// For `map_err`: an error of the file system with its place.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            if source.kind() == io::ErrorKind::StorageFull {
                Self::DiskFull
            } else {
                Self::Io { path: path.to_owned(), source }
            }
        }
    }

    /// Whether an agent can have brought this about in its worktree. All else is the machine's or the person's.
    pub fn may_be_an_agents_doing(&self) -> bool {
        match self {
            Self::Linked(_)
            | Self::WorktreeGone(_)
            | Self::NotOurs(_)
            | Self::BranchTaken { .. }
            | Self::BranchGone(_)
            | Self::Astray { .. }
            | Self::Unfinished { .. }
            | Self::Incomplete { .. }
            | Self::OutsideWorktree(_)
            | Self::StillChanging(_)
            | Self::Stuck { .. }
            | Self::Failed { .. }
            | Self::Io { .. } => true,
            Self::NotARepository(_)
            | Self::Bare(_)
            | Self::OddPath(_)
            | Self::NoGit
            | Self::TooOld
            | Self::TooOldToMerge
            | Self::NoCommits
            | Self::UnknownRevision(_)
            | Self::Locked { .. }
            | Self::BadBranchName(_)
            | Self::UncommittedWork(_)
            | Self::Dirty { .. }
            | Self::Behind { .. }
            | Self::WouldOverwrite { .. }
            | Self::KeepsMoving(_)
            | Self::DiskFull => false,
        }
    }

    /// Reads git's own words, which are English by `LC_ALL=C`.
    pub(super) fn from_stderr(command: String, stderr: &[u8]) -> Self {
        let stderr = String::from_utf8_lossy(stderr).trim().to_owned();
        if stderr.contains("No space left on device") {
            return Self::DiskFull;
        }
        match (lock_in(&stderr).or_else(|| half_made(&stderr)), branch_in_the_way(&stderr)) {
            (Some(file), _) => Self::Locked { file },
            (None, Some(branch)) => Self::BranchTaken { branch, by: None },
            (None, None) => Self::Failed { command, stderr },
        }
    }
}

/// Where there is a branch `a` there cannot be a branch `a/b`.
fn branch_in_the_way(stderr: &str) -> Option<String> {
    let (before, _) = stderr.split_once("' exists; cannot create '")?;
    before.rsplit_once("'refs/heads/").map(|(_, branch)| branch.to_owned())
}

fn lock_in(stderr: &str) -> Option<PathBuf> {
    let (before, _) = stderr.split_once("': File exists")?;
    let (_, file) = before.rsplit_once("Unable to create '")?;
    file.ends_with(".lock").then(|| PathBuf::from(file))
}

/// A worktree that somebody is just making: until its first files are written, git cannot list the others either.
fn half_made(stderr: &str) -> Option<PathBuf> {
    let (_, after) = stderr.split_once("failed to read ")?;
    let (worktree, _) = after.trim_start_matches('\'').split_once("/commondir")?;
    worktree.contains("/worktrees/").then(|| PathBuf::from(worktree))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stderr: &str) -> String {
        GitError::from_stderr("git x".to_owned(), stderr.as_bytes()).to_string()
    }

    #[test]
    fn git_s_words_become_facts() {
        insta::assert_snapshot!(of("fatal: Unable to create '/r/.git/index.lock': File exists.\n\nAnother git"), @"/r/.git/index.lock is held by another program");
        insta::assert_snapshot!(of("fatal: update_ref failed: cannot lock ref 'refs/heads/x': Unable to create '/r/.git/refs/heads/x.lock': File exists."), @"/r/.git/refs/heads/x.lock is held by another program");
        insta::assert_snapshot!(of("fatal: cannot lock ref 'refs/heads/a/b': 'refs/heads/a' exists; cannot create 'refs/heads/a/b'"), @"the branch a is taken");
        insta::assert_snapshot!(of("error: unable to write file a: No space left on device"), @"the disk is full");
        insta::assert_snapshot!(of("fatal: failed to read /r/.git/worktrees/task-3/commondir: Success"), @"/r/.git/worktrees/task-3 is held by another program");
        insta::assert_snapshot!(of("fatal: no\n"), @"`git x` failed: fatal: no");
    }
}
