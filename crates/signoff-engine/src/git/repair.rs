//! Repairs a worktree whose files, git directory or branch were deleted or replaced, by an agent or by the user.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;

use super::disk::{canonical_path, content, is_directory, is_not_directory, remove_if_exists, write_atomic};
use super::worktree::{has_valid_head, read_marker, write_marker};
use super::{GitError, NewWorktree, Repository, Worktree};

/// Maximum number of names that are tried for a git directory.
const MAX_NAMES: usize = 100;

impl Repository {
    /// Repairs a worktree of ours. Keeps its files if they exist, and otherwise checks out its branch.
    ///
    /// The caller knows that the worktree was ours, so anything else at its path is removed. Link targets are not.
    pub fn repair_worktree(&self, new: &NewWorktree<'_>) -> Result<Worktree, GitError> {
        let path = canonical_path(new.path)?;
        let has_files = is_directory(&path);
        let mended = self.with_lock(|| {
            let registered = self.registered_git_dir(&path)?;
            if has_files {
                let whole = registered.filter(|git_dir| has_valid_head(git_dir));
                return whole.map_or_else(
                    || self.register_existing(&path, new.branch),
                    |git_dir| self.claim(&path, git_dir, Some(new.branch)),
                );
            }
            remove_if_exists(&path)?;
            registered.map_or(Ok(()), |git_dir| write_marker(&git_dir, Some(new.branch)))?;
            self.register_worktree(&path, new)
        })?;
        if has_files { mended.ensure_index() } else { mended.check_out_files() }
    }

    /// Recreates a deleted branch of ours at its last known commit.
    pub fn restore_branch(&self, branch: &str, last: &Commit, base: &Commit) -> Result<(), GitError> {
        self.with_lock(|| {
            let known = self.branch_refs(branch)?;
            if known.tip.is_some() {
                return Ok(());
            }
            let gone = |_| GitError::BranchGone(branch.to_owned());
            self.resolve(last.as_str()).map_err(gone)?;
            self.create_branch_at(branch, last, &known.base.unwrap_or_else(|| base.clone()))
        })
    }

    /// Writes `gitdir` last: without it the directory is not a worktree yet, and the next call recreates it.
    fn register_existing(&self, path: &Path, branch: &str) -> Result<Worktree, GitError> {
        let known = self.branch_refs(branch)?;
        if known.tip.is_none() || known.base.is_none() {
            return Err(GitError::BranchGone(branch.to_owned()));
        }
        let git_dir = self.free_git_dir(path, branch)?;
        fs::create_dir_all(&git_dir).map_err(GitError::at(&git_dir))?;
        if !has_valid_head(&git_dir) {
            write_atomic(&git_dir.join("HEAD"), format!("ref: refs/heads/{branch}\n").as_bytes())?;
        }
        write_atomic(&git_dir.join("commondir"), b"../..\n")?;
        let worktree = self.claim(path, git_dir.clone(), Some(branch))?.ensure_index()?;
        let link = [path.join(".git").as_os_str().as_bytes(), b"\n"].concat();
        write_atomic(&git_dir.join("gitdir"), &link)?;
        Ok(worktree)
    }

    /// A path for the git directory of a worktree: the previous one, or one that is unused. Like git, appends a
    /// number to a name that is in use.
    fn free_git_dir(&self, path: &Path, branch: &str) -> Result<PathBuf, GitError> {
        let home = self.common().join("worktrees");
        let usual = path.file_name().unwrap_or_default();
        let numbered = (1..MAX_NAMES).map(|number| {
            let mut name = OsString::from(usual);
            name.push(number.to_string());
            name
        });
        let mut places = [usual.to_owned()].into_iter().chain(numbered).map(|name| home.join(name));
        let is_free = |place: &PathBuf| {
            is_not_directory(place) || !place.join("gitdir").exists() || belongs_to_branch(place, branch)
        };
        let free = places.find(is_free);
        let free = free.ok_or_else(|| GitError::NotOurs(path.to_owned()))?;
        if is_not_directory(&free) {
            remove_if_exists(&free)?;
        }
        Ok(free)
    }
}

/// Whether a git directory is that of our worktree for a branch.
fn belongs_to_branch(git_dir: &Path, branch: &str) -> bool {
    read_marker(git_dir).is_some_and(|marked| marked.as_deref() == Some(branch))
}

impl Worktree {
    /// Creates the index if it is missing. Keeps the files, because they may contain the agent's work.
    fn ensure_index(self) -> Result<Self, GitError> {
        if content(&self.git_dir.join("index")).is_none() {
            remove_if_exists(&self.git_dir.join("index"))?;
            self.clear_stale_lock()?;
            self.repository.isolated_git(self.place())?.args(["read-tree", "HEAD"]).read()?;
        }
        Ok(self)
    }
}
