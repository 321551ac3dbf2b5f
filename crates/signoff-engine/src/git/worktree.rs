//! Worktrees, one per loop: their creation, repair and removal. Each can be repeated after a crash at any point.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use signoff_core::ids::Commit;

use super::command::{GitCommand, INDEX_LOCK_TIMEOUT, wait};
use super::commit::ExcludedPaths;
use super::disk::{canonical_path, content, is_directory, is_not_directory, line, remove_if_exists, write_atomic};
use super::head::HeadFile;
use super::repository::{GitDirs, path as path_of};
use super::{GitError, Repository};
use crate::atomic_file::WriteMode;
use crate::failpoint;

/// Marker file in a worktree's git directory: signoff created it, for the branch in it. Empty for a throw-away
/// worktree.
const MARKER: &str = "signoff-owned";

/// What git writes into the file `commondir` of a worktree's git directory.
const STANDARD_COMMON_DIR: &[u8] = b"../..\n";

/// A worktree to create or to reuse.
#[derive(Debug, Clone, Copy)]
pub struct NewWorktree<'a> {
    pub path: &'a Path,
    pub branch: &'a str,
    /// Commit at which a new branch starts.
    pub start: &'a Commit,
}

/// A worktree that signoff created.
#[derive(Debug, Clone)]
pub struct Worktree {
    pub(super) repository: Repository,
    path: PathBuf,
    pub(super) git_dir: PathBuf,
    /// `None` for throw-away worktrees.
    pub(super) branch: Option<String>,
}

impl Repository {
    /// Creates a worktree with its own branch, or reuses the existing one.
    pub fn add_worktree(&self, new: &NewWorktree<'_>) -> Result<Worktree, GitError> {
        if new.branch.starts_with('-') || new.branch.is_empty() {
            return Err(GitError::BadBranchName(new.branch.to_owned()));
        }
        let path = canonical_path(new.path)?;
        // Checking out files may take long and needs no lock.
        self.with_lock(|| self.register_worktree(&path, new))?.check_out_files()
    }

    /// The worktree that signoff created at `path`.
    pub fn worktree(&self, path: &Path) -> Result<Worktree, GitError> {
        let path = canonical_path(path)?;
        let worktree_gone = || GitError::WorktreeGone(path.clone());
        let git_dir =
            self.registered_git_dir(&path)?.filter(|found| has_valid_head(found)).ok_or_else(worktree_gone)?;
        let branch = read_marker(&git_dir).ok_or_else(|| GitError::NotOurs(path.clone()))?;
        Ok(Worktree { repository: self.clone(), path, git_dir, branch })
    }

    pub(super) fn register_worktree(&self, path: &Path, new: &NewWorktree<'_>) -> Result<Worktree, GitError> {
        self.remove_unfinished(path)?;
        if let Some(git_dir) = self.registered_git_dir(path)? {
            let is_marked = read_marker(&git_dir).is_some();
            if is_marked && is_not_directory(path) {
                // Removes what replaced it, without following links.
                remove_if_exists(path)?;
            }
            if is_directory(path) || !is_marked || self.can_restore(&git_dir, new.branch)? {
                return match is_ours(&git_dir, Some(new.branch)) {
                    true => self.claim(path, git_dir, Some(new.branch)),
                    false => Err(GitError::NotOurs(path.to_owned())),
                };
            }
            self.remove_if_deleted(path)?;
        }
        check_vacant(path)?;
        failpoint::pass("place");
        // Usually the branch is new. Its refs are read only if it cannot be created.
        let Err(failure) = self.create_branch(new.branch, new.start, new.start) else {
            failpoint::pass("branched");
            return self.git_worktree_add(path, Some(new.branch), new.branch);
        };
        let known = self.branch_refs(new.branch)?;
        let branch_taken = |by| GitError::BranchTaken { branch: new.branch.to_owned(), by };
        match (known.tip, known.base, known.used_by) {
            (None, _, _) => return Err(failure),
            (Some(_), None, by) => return Err(branch_taken(by)),
            (Some(_), Some(_), Some(by)) => self.remove_if_deleted(&by).map_err(|_| branch_taken(Some(by)))?,
            (Some(_), Some(_), None) => {}
        }
        self.git_worktree_add(path, Some(new.branch), new.branch)
    }

    /// Whether a worktree whose directory is gone can be checked out again: its branch still exists under its
    /// name. A detached `HEAD` counts too, because it may be the only reference to a commit.
    fn can_restore(&self, git_dir: &Path, branch: &str) -> Result<bool, GitError> {
        match HeadFile::read(git_dir).branch() {
            Some(name) => Ok(name == branch && self.has_branch(branch)?),
            None => Ok(true),
        }
    }

    /// Removes what a killed `git worktree add` left. Git writes `HEAD` and `commondir` after the file that
    /// registers the worktree, and cannot read the worktree without them.
    pub(super) fn remove_unfinished(&self, path: &Path) -> Result<(), GitError> {
        let is_whole = |git_dir: &Path| has_valid_head(git_dir) && git_dir.join("commondir").exists();
        let is_new = |git_dir: &Path| read_marker(git_dir).is_none() && !git_dir.join("index").exists();
        let unfinished = self.registered_git_dir(path)?.filter(|git_dir| is_new(git_dir) && !is_whole(git_dir));
        let Some(git_dir) = unfinished else { return Ok(()) };
        remove_if_exists(&path.join(".git"))?;
        remove_if_exists(&git_dir)
    }

    /// Removes the git directory of a worktree of ours whose directory was deleted.
    fn remove_if_deleted(&self, path: &Path) -> Result<(), GitError> {
        let ours = self.worktree(path)?;
        if is_directory(path) {
            return Err(GitError::NotOurs(path.to_owned()));
        }
        self.remove_sandbox_dir(&ours.git_dir)?;
        remove_if_exists(&ours.git_dir)
    }

    /// Runs `git worktree add`. Uses `--no-checkout`, so that the marker is written before the files.
    pub(super) fn git_worktree_add(&self, path: &Path, branch: Option<&str>, what: &str) -> Result<Worktree, GitError> {
        let detach = if branch.is_none() { ["--detach"].as_slice() } else { &[] };
        let command = self.isolated_git("worktree add --no-checkout")?.args(detach);
        command.args(["--".as_ref(), path.as_os_str(), what.as_ref()]).read()?;
        failpoint::pass("registered");
        let link = path.join(".git");
        let written = fs::read_to_string(&link).map_err(GitError::at(&link))?;
        let name = Path::new(written.trim_end()).file_name().unwrap_or_default();
        let git_dir = self.common().join("worktrees").join(name);
        self.claim(path, git_dir, branch)
    }

    /// Marks a worktree as ours and points it to the repository instead of the isolated directory.
    pub(super) fn claim(&self, path: &Path, git_dir: PathBuf, branch: Option<&str>) -> Result<Worktree, GitError> {
        write_marker(&git_dir, branch)?;
        let worktree =
            Worktree { repository: self.clone(), path: path.to_owned(), git_dir, branch: branch.map(str::to_owned) };
        if !is_directory(path) {
            // Cached metadata in the index is void without the files.
            fs::create_dir(path).map_err(GitError::at(path))?;
            remove_if_exists(&worktree.git_dir.join("index"))?;
        }
        worktree.restore_git_file()?;
        failpoint::pass("owned");
        Ok(worktree)
    }

    /// The git directory of the worktree registered at `path`.
    ///
    /// Does not read the worktree's own `.git`, which agents can write. Git creates no links here, so links are
    /// rejected.
    pub(super) fn registered_git_dir(&self, path: &Path) -> Result<Option<PathBuf>, GitError> {
        let home = self.common().join("worktrees");
        let link = path.join(".git");
        if home.is_symlink() {
            return Err(GitError::Linked(home));
        }
        let points_there = |git_dir: &PathBuf| {
            let read = content(&git_dir.join("gitdir")).unwrap_or_default();
            is_directory(git_dir) && path_of(read.trim_ascii_end()) == link
        };
        // Git names it after the directory unless that name is in use.
        let usual = path.file_name().map(|name| home.join(name)).filter(points_there);
        if usual.is_some() {
            return Ok(usual);
        }
        let entries = match fs::read_dir(&home) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries.map_err(GitError::at(&home))?,
        };
        Ok(entries.flatten().map(|entry| entry.path()).find(points_there))
    }
}

impl Worktree {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The branch of this worktree. `None` for a throw-away one.
    pub fn branch(&self) -> Option<&str> {
        self.branch.as_deref()
    }

    pub fn exists(&self) -> bool {
        is_directory(&self.path) && is_directory(&self.git_dir)
    }

    pub(super) fn dirs(&self) -> GitDirs<'_> {
        GitDirs::new(&self.git_dir, &self.path)
    }

    /// A git command in this worktree, as [`Repository::isolated_git_at`].
    pub(super) fn isolated_git(&self, subcommand: &'static str) -> Result<GitCommand<'_>, GitError> {
        self.repository.isolated_git_at(self.dirs(), subcommand)
    }

    pub(super) fn check_exists(&self) -> Result<(), GitError> {
        if self.exists() { Ok(()) } else { Err(GitError::WorktreeGone(self.path.clone())) }
    }

    /// Restores the `.git` file and the path of the common directory, which an agent may have replaced. Returns
    /// whether the `.git` file was different.
    pub(super) fn restore_git_file(&self) -> Result<bool, GitError> {
        // Without the git directory, `.git` may be a whole repository.
        self.check_exists()?;
        // The user's git would use its settings.
        remove_if_exists(&self.git_dir.join("config.worktree"))?;
        let common = self.git_dir.join("commondir");
        if content(&common).is_none_or(|content| content != STANDARD_COMMON_DIR) {
            write_atomic(&common, STANDARD_COMMON_DIR, WriteMode::Plain)?;
        }
        self.point_to(&self.git_dir)
    }

    /// Makes the `.git` file name a git directory. Returns whether it was different.
    pub(super) fn point_to(&self, git_dir: &Path) -> Result<bool, GitError> {
        let link = self.path.join(".git");
        let expected = [b"gitdir: ".as_slice(), &line(git_dir)].concat();
        if content(&link).is_some_and(|found| found == expected) {
            return Ok(false);
        }
        remove_if_exists(&link)?;
        fs::write(&link, expected).map_err(GitError::at(&link))?;
        Ok(true)
    }

    /// Sets index and files to a revision.
    pub(super) fn reset_to(&self, revision: &str) -> Result<(), GitError> {
        self.isolated_git("read-tree --reset -u")?.args([revision]).execute()
    }

    /// Checks out the files, unless that was done before.
    pub(super) fn check_out_files(self) -> Result<Self, GitError> {
        if !self.git_dir.join("index").exists() {
            self.clear_stale_lock()?;
            // Git writes the index last: without it, an earlier checkout was interrupted.
            self.reset_to("HEAD")?;
        }
        Ok(self)
    }

    /// Removes an `index.lock` whose owner died.
    ///
    /// No process of ours works here when this is called, and a live git holds the lock only briefly. A lock that
    /// outlives the timeout is stale.
    pub(super) fn clear_stale_lock(&self) -> Result<(), GitError> {
        let lock = self.git_dir.join("index.lock");
        let timeout = self.repository.git().lock_timeout.min(INDEX_LOCK_TIMEOUT);
        let freed = wait(timeout, || Ok((!lock.exists()).then_some(())))?;
        if freed.is_none() { remove_if_exists(&lock) } else { Ok(()) }
    }
}

/// Writes the marker of a worktree of ours.
pub(super) fn write_marker(git_dir: &Path, branch: Option<&str>) -> Result<(), GitError> {
    // A partial marker would look like that of a throw-away worktree.
    write_atomic(&git_dir.join(MARKER), branch.unwrap_or_default().as_bytes(), WriteMode::Plain)
}

/// The branch in the marker of a worktree. The outer `None` means that it is not ours.
pub(super) fn read_marker(git_dir: &Path) -> Option<Option<String>> {
    let branch = String::from_utf8(content(&git_dir.join(MARKER))?).ok()?;
    Some((!branch.is_empty()).then_some(branch))
}

/// Whether signoff created a worktree for this branch, or as a throw-away one.
pub(super) fn is_ours(git_dir: &Path, branch: Option<&str>) -> bool {
    match read_marker(git_dir) {
        Some(marked) => marked.as_deref() == branch,
        // The process was killed early: only signoff leaves a worktree without an index.
        None => !git_dir.join("index").exists(),
    }
}

/// Whether git would accept this as a git directory.
pub(super) fn has_valid_head(git_dir: &Path) -> bool {
    HeadFile::read(git_dir) != HeadFile::Invalid
}

/// Fails unless a worktree can be created here without removing anything.
pub(super) fn check_vacant(path: &Path) -> Result<(), GitError> {
    let is_full = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    if is_full || is_not_directory(path) { Err(GitError::NotOurs(path.to_owned())) } else { Ok(()) }
}

/// Maximum number of names that are tried for a git directory.
const MAX_NAMES: usize = 100;

impl Repository {
    /// Repairs a worktree of ours. Keeps its files if they exist, and otherwise checks out its branch.
    ///
    /// The caller checked that the worktree was ours, so anything else at its path is removed. Link targets are not.
    pub fn repair_worktree(&self, new: &NewWorktree<'_>) -> Result<Worktree, GitError> {
        let path = canonical_path(new.path)?;
        let has_files = is_directory(&path);
        let repaired = self.with_lock(|| {
            let registered = self.registered_git_dir(&path)?;
            if has_files {
                let intact = registered.filter(|git_dir| has_valid_head(git_dir));
                return intact.map_or_else(
                    || self.register_existing(&path, new.branch),
                    |git_dir| self.claim(&path, git_dir, Some(new.branch)),
                );
            }
            remove_if_exists(&path)?;
            registered.map_or(Ok(()), |git_dir| write_marker(&git_dir, Some(new.branch)))?;
            self.register_worktree(&path, new)
        })?;
        if has_files { repaired.ensure_index() } else { repaired.check_out_files() }
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
            write_atomic(&git_dir.join("HEAD"), format!("ref: refs/heads/{branch}\n").as_bytes(), WriteMode::Plain)?;
        }
        write_atomic(&git_dir.join("commondir"), STANDARD_COMMON_DIR, WriteMode::Plain)?;
        let worktree = self.claim(path, git_dir.clone(), Some(branch))?.ensure_index()?;
        write_atomic(&git_dir.join("gitdir"), &line(&path.join(".git")), WriteMode::Plain)?;
        Ok(worktree)
    }

    /// A path for the git directory of a worktree: the previous one, or one that is unused. Like git, appends a
    /// number to a name that is in use.
    fn free_git_dir(&self, path: &Path, branch: &str) -> Result<PathBuf, GitError> {
        let home = self.common().join("worktrees");
        let usual = path.file_name().unwrap_or_default();
        let mut places = (0..MAX_NAMES).map(|number| {
            let mut name = OsString::from(usual);
            if number > 0 {
                name.push(number.to_string());
            }
            home.join(name)
        });
        let is_free = |git_dir: &PathBuf| {
            let is_same = || read_marker(git_dir).is_some_and(|marked| marked.as_deref() == Some(branch));
            is_not_directory(git_dir) || !git_dir.join("gitdir").exists() || is_same()
        };
        let free = places.find(is_free).ok_or_else(|| GitError::NotOurs(path.to_owned()))?;
        if is_not_directory(&free) {
            remove_if_exists(&free)?;
        }
        Ok(free)
    }
}

impl Worktree {
    /// Creates the index if it is missing. Keeps the files, because they may contain the agent's work.
    fn ensure_index(self) -> Result<Self, GitError> {
        if content(&self.git_dir.join("index")).is_none() {
            remove_if_exists(&self.git_dir.join("index"))?;
            self.clear_stale_lock()?;
            self.isolated_git("read-tree HEAD")?.execute()?;
        }
        Ok(self)
    }
}

/// What to do with uncommitted work when its worktree is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UncommittedPolicy {
    Keep,
    Discard,
}

impl Repository {
    /// Removes a worktree that signoff created. Keeps its branch.
    pub fn remove_worktree(&self, path: &Path, uncommitted: UncommittedPolicy) -> Result<(), GitError> {
        let path = canonical_path(path)?;
        let worktree = self.worktree(&path)?;
        if uncommitted == UncommittedPolicy::Keep && worktree.exists() {
            worktree.import_from_sandbox()?;
            worktree.check_nothing_lost()?;
        }
        self.delete_worktree(&path, &worktree.git_dir)
    }

    /// Deletes the directories of a worktree.
    pub(super) fn delete_worktree(&self, path: &Path, git_dir: &Path) -> Result<(), GitError> {
        remove_if_exists(path)?;
        self.remove_sandbox_dir(git_dir)?;
        // Removed last, so that an interrupted call can be repeated.
        self.with_lock(|| remove_if_exists(git_dir))
    }
}

impl Worktree {
    fn check_nothing_lost(&self) -> Result<(), GitError> {
        let status = self.repository.status(self.dirs())?;
        if ExcludedPaths::for_worktree(&self.git_dir).has_changes(&status) {
            return Err(GitError::UncommittedWork(self.path().to_owned()));
        }
        match (self.branch(), status.head) {
            // Commits on a detached `HEAD` may be on no branch at all.
            (Some(branch), Some(head)) if status.branch.as_deref() != Some(branch) => {
                let tip = format!("refs/heads/{branch}");
                if self.repository.is_ancestor(head.as_str(), &tip)? {
                    return Ok(());
                }
                let worktree = self.path().to_owned();
                Err(GitError::OffBranch { worktree, branch: branch.to_owned(), head })
            }
            (_, _) => Ok(()),
        }
    }
}
