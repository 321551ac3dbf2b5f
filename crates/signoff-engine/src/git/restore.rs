//! A worktree whose files are there and whose git directory is not: an agent deleted it, or a person pruned.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::worktree::settle;
use super::{GitError, Repository, Worktree};

impl Repository {
    /// Makes git know a worktree of ours again, with its files as they are. Who calls this knows that it was ours.
    pub fn restore_worktree(&self, path: &Path, branch: &str) -> Result<Worktree, GitError> {
        let path = settle(path)?;
        self.in_turn(|| match self.registered(&path)? {
            Some(_) => self.worktree(&path),
            None => self.register_again(&path, branch),
        })
    }

    /// `gitdir` is written last: without it nobody takes this for a worktree, and it is made again.
    fn register_again(&self, path: &Path, branch: &str) -> Result<Worktree, GitError> {
        let known = self.known(branch)?;
        if known.tip.is_none() || known.base.is_none() {
            return Err(GitError::BranchGone(branch.to_owned()));
        }
        let name = path.file_name().unwrap_or_default();
        let git_dir = self.common().join("worktrees").join(name);
        if git_dir.join("gitdir").exists() {
            return Err(GitError::NotOurs(path.to_owned()));
        }
        fs::create_dir_all(&git_dir).map_err(GitError::at(&git_dir))?;
        let write = |name: &str, text: &[u8]| {
            let file = git_dir.join(name);
            fs::write(&file, text).map_err(GitError::at(&file))
        };
        write("HEAD", format!("ref: refs/heads/{branch}\n").as_bytes())?;
        write("commondir", b"../..\n")?;
        let worktree = self.own(path, git_dir.clone(), Some(branch))?;
        // Only the index: what the agent left in the files is work.
        self.sealed(worktree.place())?.args(["read-tree", "HEAD"]).read()?;
        write("gitdir", &[path.join(".git").as_os_str().as_bytes(), b"\n"].concat())?;
        Ok(worktree)
    }
}
