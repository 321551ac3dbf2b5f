//! A worktree that is not as we left it: its files, its git directory or its branch were deleted, or something else
//! lies in their place. An agent did that, or a person who tidied up.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;

use super::disk::{content, is_directory, is_in_the_way, remove_if_there, settle, write_whole};
use super::worktree::{has_head, mark, marked};
use super::{GitError, NewWorktree, Repository, Worktree};

/// So many names are tried for a git directory before it is given up.
const NAMES: usize = 100;

impl Repository {
    /// Makes a worktree of ours whole again: with its files if they are there, else from its branch.
    ///
    /// Who calls this knows that it was ours, so whatever lies in its place is not spared. What a link leads to is.
    pub fn mend_worktree(&self, new: &NewWorktree<'_>) -> Result<Worktree, GitError> {
        let path = settle(new.path)?;
        let has_files = is_directory(&path);
        let mended = self.in_turn(|| {
            let registered = self.registered(&path)?;
            if has_files {
                let whole = registered.filter(|git_dir| has_head(git_dir));
                return whole.map_or_else(
                    || self.register_again(&path, new.branch),
                    |git_dir| self.own(&path, git_dir, Some(new.branch)),
                );
            }
            remove_if_there(&path)?;
            registered.map_or(Ok(()), |git_dir| mark(&git_dir, Some(new.branch)))?;
            self.register(&path, new)
        })?;
        if has_files { mended.with_index() } else { mended.filled() }
    }

    /// Makes a branch of ours again that was deleted, at the last commit that is known of it.
    pub fn revive_branch(&self, branch: &str, last: &Commit, base: &Commit) -> Result<(), GitError> {
        self.in_turn(|| {
            let known = self.known(branch)?;
            if known.tip.is_some() {
                return Ok(());
            }
            let gone = |_| GitError::BranchGone(branch.to_owned());
            self.resolve(last.as_str()).map_err(gone)?;
            self.put_branch(branch, last, &known.base.unwrap_or_else(|| base.clone()))
        })
    }

    /// `gitdir` is written last: without it nobody takes this for a worktree, and it is made again.
    fn register_again(&self, path: &Path, branch: &str) -> Result<Worktree, GitError> {
        let known = self.known(branch)?;
        if known.tip.is_none() || known.base.is_none() {
            return Err(GitError::BranchGone(branch.to_owned()));
        }
        let git_dir = self.free_git_dir(path, branch)?;
        fs::create_dir_all(&git_dir).map_err(GitError::at(&git_dir))?;
        if !has_head(&git_dir) {
            write_whole(&git_dir.join("HEAD"), format!("ref: refs/heads/{branch}\n").as_bytes())?;
        }
        write_whole(&git_dir.join("commondir"), b"../..\n")?;
        let worktree = self.own(path, git_dir.clone(), Some(branch))?.with_index()?;
        let said = [path.join(".git").as_os_str().as_bytes(), b"\n"].concat();
        write_whole(&git_dir.join("gitdir"), &said)?;
        Ok(worktree)
    }

    /// A place for the git directory of a worktree: where ours was, or any that is nobody's. As git does it, a name
    /// that is taken gets a number.
    fn free_git_dir(&self, path: &Path, branch: &str) -> Result<PathBuf, GitError> {
        let home = self.common().join("worktrees");
        let usual = path.file_name().unwrap_or_default();
        let numbered = (1..NAMES).map(|number| {
            let mut name = OsString::from(usual);
            name.push(number.to_string());
            name
        });
        let mut places = [usual.to_owned()].into_iter().chain(numbered).map(|name| home.join(name));
        let is_free =
            |place: &PathBuf| is_in_the_way(place) || !place.join("gitdir").exists() || is_for(place, branch);
        let free = places.find(is_free);
        let free = free.ok_or_else(|| GitError::NotOurs(path.to_owned()))?;
        if is_in_the_way(&free) {
            remove_if_there(&free)?;
        }
        Ok(free)
    }
}

/// Whether a git directory is that of our worktree for a branch.
fn is_for(git_dir: &Path, branch: &str) -> bool {
    marked(git_dir).is_some_and(|marked| marked.as_deref() == Some(branch))
}

impl Worktree {
    /// Gives it an index if it has none. The files stay: what the agent left in them is work.
    fn with_index(self) -> Result<Self, GitError> {
        if content(&self.git_dir.join("index")).is_none() {
            remove_if_there(&self.git_dir.join("index"))?;
            self.clear_stale_lock()?;
            self.repository.sealed(self.place())?.args(["read-tree", "HEAD"]).read()?;
        }
        Ok(self)
    }
}
