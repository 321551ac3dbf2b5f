//! Worktrees: one for each loop, made so that a crash at any moment can be taken up again.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;

use super::disk::{content, is_directory, is_in_the_way, remove_if_there, settle, write_whole};
use super::repository::{Place, path as path_of};
use super::{GitError, Repository};
use crate::clear;
use crate::failpoint;

/// In a worktree's git directory: made by us, and for which branch (none: a throw-away one).
const MARKER: &str = "signoff-owned";

/// A worktree to be made, or to be taken up again.
#[derive(Debug, Clone, Copy)]
pub struct NewWorktree<'a> {
    pub path: &'a Path,
    pub branch: &'a str,
    /// Where the branch begins, if it is not there yet.
    pub start: &'a Commit,
}

/// A worktree this program made.
#[derive(Debug, Clone)]
pub struct Worktree {
    pub(super) repository: Repository,
    path: PathBuf,
    pub(super) git_dir: PathBuf,
    /// None for throw-away worktrees.
    pub(super) branch: Option<String>,
}

impl Repository {
    /// Makes a worktree on a branch of its own, or takes up the one that is there.
    pub fn add_worktree(&self, new: &NewWorktree<'_>) -> Result<Worktree, GitError> {
        if new.branch.starts_with('-') || new.branch.is_empty() {
            return Err(GitError::BadBranchName(new.branch.to_owned()));
        }
        let path = settle(new.path)?;
        // Filling it with files may take long, and needs no turn.
        self.in_turn(|| self.register(&path, new))?.filled()
    }

    /// Makes a throw-away worktree of a commit.
    pub fn add_detached(&self, path: &Path, commit: &Commit) -> Result<Worktree, GitError> {
        let path = settle(path)?;
        let made = self.in_turn(|| {
            self.forget_unfinished(&path)?;
            match self.registered(&path)? {
                Some(_) => Err(GitError::NotOurs(path.clone())),
                None => vacant(&path).and_then(|()| self.git_adds(&path, None, commit.as_str())),
            }
        });
        made?.filled()
    }

    /// The throw-away worktree at `path`, or a new one of the commit.
    pub fn detached(
        &self,
        path: &Path,
        commit: impl FnOnce() -> Result<Commit, GitError>,
    ) -> Result<Worktree, GitError> {
        let path = settle(path)?;
        // Killed before the marker was written: nobody but us leaves a worktree without an index.
        let is_ours = |git_dir: &PathBuf| match marked(git_dir) {
            Some(branch) => branch.is_none(),
            None => !git_dir.join("index").exists(),
        };
        self.in_turn(|| self.forget_unfinished(&path))?;
        match self.registered(&path)? {
            Some(git_dir) if is_ours(&git_dir) && is_directory(&path) => {
                self.in_turn(|| self.own(&path, git_dir, None))?.filled()
            }
            Some(git_dir) if is_ours(&git_dir) && !is_in_the_way(&path) => {
                self.in_turn(|| remove_if_there(&git_dir))?;
                self.add_detached(&path, &commit()?)
            }
            Some(_) | None => self.add_detached(&path, &commit()?),
        }
    }

    /// The worktree this program made at `path`.
    pub fn worktree(&self, path: &Path) -> Result<Worktree, GitError> {
        let path = settle(path)?;
        let gone = || GitError::WorktreeGone(path.clone());
        let git_dir = self.registered(&path)?.filter(|found| has_head(found)).ok_or_else(gone)?;
        let branch = marked(&git_dir).ok_or_else(|| GitError::NotOurs(path.clone()))?;
        Ok(Worktree { repository: self.clone(), path, git_dir, branch })
    }

    pub(super) fn register(&self, path: &Path, new: &NewWorktree<'_>) -> Result<Worktree, GitError> {
        self.forget_unfinished(path)?;
        if let Some(git_dir) = self.registered(path)? {
            let is_ours = marked(&git_dir).is_some();
            if is_ours && is_in_the_way(path) {
                // Whatever took its place goes, and nothing that it leads to.
                remove_if_there(path)?;
            }
            if is_directory(path) || !is_ours || self.leads_to(&git_dir, new.branch)? {
                return self.take_up(path, git_dir, new.branch);
            }
            self.forget_if_gone(path)?;
        }
        vacant(path)?;
        failpoint::pass("place");
        // A new branch is the rule: only where it cannot be made it is asked what there is.
        let Err(failure) = self.create_branch(new.branch, new.start) else {
            failpoint::pass("branched");
            return self.git_adds(path, Some(new.branch), new.branch);
        };
        let known = self.known(new.branch)?;
        let taken = |by| GitError::BranchTaken { branch: new.branch.to_owned(), by };
        match (known.tip, known.base, known.used_by) {
            (None, _, _) => return Err(failure),
            (Some(_), None, by) => return Err(taken(by)),
            (Some(_), Some(_), Some(by)) => self.forget_if_gone(&by).map_err(|_| taken(Some(by)))?,
            (Some(_), Some(_), None) => {}
        }
        self.git_adds(path, Some(new.branch), new.branch)
    }

    /// Whether a worktree whose directory is gone can be filled again: its branch was neither renamed nor deleted.
    /// Where `HEAD` is on no branch it may be all that holds a commit.
    fn leads_to(&self, git_dir: &Path, branch: &str) -> Result<bool, GitError> {
        let head = content(&git_dir.join("HEAD")).unwrap_or_default();
        match head.trim_ascii_end().strip_prefix(b"ref: refs/heads/") {
            Some(name) => Ok(name == branch.as_bytes() && self.has_branch(branch)?),
            None => Ok(true),
        }
    }

    /// Removes what a killed `git worktree add` left. Git writes `HEAD` and `commondir` after the file by which the
    /// worktree is known, and cannot read the worktree without them.
    fn forget_unfinished(&self, path: &Path) -> Result<(), GitError> {
        let is_whole = |git_dir: &Path| has_head(git_dir) && git_dir.join("commondir").exists();
        let is_new = |git_dir: &Path| marked(git_dir).is_none() && !git_dir.join("index").exists();
        let unfinished = self.registered(path)?.filter(|git_dir| is_new(git_dir) && !is_whole(git_dir));
        let Some(git_dir) = unfinished else { return Ok(()) };
        remove_if_there(&path.join(".git"))?;
        clear::remove(&git_dir).map_err(GitError::at(&git_dir))
    }

    /// Forgets a worktree of ours whose directory was deleted.
    fn forget_if_gone(&self, path: &Path) -> Result<(), GitError> {
        let ours = self.worktree(path)?;
        if is_directory(path) {
            return Err(GitError::NotOurs(path.to_owned()));
        }
        self.forget_lent(&ours.git_dir)?;
        clear::remove(&ours.git_dir).map_err(GitError::at(&ours.git_dir))
    }

    /// Without `--no-checkout` the files would be in place before the worktree is known to be ours.
    fn git_adds(&self, path: &Path, branch: Option<&str>, what: &str) -> Result<Worktree, GitError> {
        let detach = if branch.is_none() { ["--detach"].as_slice() } else { &[] };
        let command = self.sealed(self.here())?.args(["worktree", "add", "--no-checkout"]).args(detach);
        command.args(["--".as_ref(), path.as_os_str(), what.as_ref()]).read()?;
        failpoint::pass("registered");
        let link = path.join(".git");
        let written = fs::read_to_string(&link).map_err(GitError::at(&link))?;
        let name = Path::new(written.trim_end()).file_name().unwrap_or_default();
        let git_dir = self.common().join("worktrees").join(name);
        self.own(path, git_dir, branch)
    }

    /// Takes up a worktree that is registered already.
    fn take_up(&self, path: &Path, git_dir: PathBuf, branch: &str) -> Result<Worktree, GitError> {
        match marked(&git_dir) {
            Some(Some(marked)) if marked == branch => {}
            // Killed before the marker was written: nobody but us leaves a worktree without an index.
            None if !git_dir.join("index").exists() => {}
            Some(_) | None => return Err(GitError::NotOurs(path.to_owned())),
        }
        self.own(path, git_dir, Some(branch))
    }

    /// Marks a worktree as ours, and points it to the repository instead of the stand-in.
    pub(super) fn own(
        &self,
        path: &Path,
        git_dir: PathBuf,
        branch: Option<&str>,
    ) -> Result<Worktree, GitError> {
        mark(&git_dir, branch)?;
        let worktree = Worktree {
            repository: self.clone(),
            path: path.to_owned(),
            git_dir,
            branch: branch.map(str::to_owned),
        };
        if !is_directory(path) {
            // What the index remembers of the files is void with them.
            fs::create_dir(path).map_err(GitError::at(path))?;
            remove_if_there(&worktree.git_dir.join("index"))?;
        }
        worktree.link()?;
        failpoint::pass("owned");
        Ok(worktree)
    }

    /// The git directory of the worktree registered at `path`.
    ///
    /// The worktree's own `.git` is not asked: agents can write to it. Git makes no links here; whoever does leads us
    /// elsewhere.
    pub(super) fn registered(&self, path: &Path) -> Result<Option<PathBuf>, GitError> {
        let home = self.common().join("worktrees");
        let link = path.join(".git");
        if home.is_symlink() {
            return Err(GitError::Linked(home));
        }
        let points_there = |git_dir: &PathBuf| {
            let read = content(&git_dir.join("gitdir")).unwrap_or_default();
            is_directory(git_dir) && path_of(read.trim_ascii_end()) == link
        };
        // Git names it after the directory unless that name is taken.
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

    /// The branch this worktree is for; none if it is a throw-away one.
    pub fn branch(&self) -> Option<&str> {
        self.branch.as_deref()
    }

    pub fn is_there(&self) -> bool {
        is_directory(&self.path) && is_directory(&self.git_dir)
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place { git_dir: &self.git_dir, work_tree: &self.path, index: None, objects: None }
    }

    pub(super) fn there(&self) -> Result<(), GitError> {
        if self.is_there() { Ok(()) } else { Err(GitError::WorktreeGone(self.path.clone())) }
    }

    /// Makes `.git` say where the repository is, whatever an agent put there. Tells whether it said something else.
    pub(super) fn link(&self) -> Result<bool, GitError> {
        // A `.git` somewhere else may be a whole repository.
        self.there()?;
        self.share()?;
        self.point_to(&self.git_dir)
    }

    /// Makes `.git` name a git directory. Tells whether it said something else.
    pub(super) fn point_to(&self, git_dir: &Path) -> Result<bool, GitError> {
        let link = self.path.join(".git");
        let said = [b"gitdir: ", git_dir.as_os_str().as_bytes(), b"\n"].concat();
        if content(&link).is_some_and(|found| found == said) {
            return Ok(false);
        }
        remove_if_there(&link)?;
        fs::write(&link, said).map_err(GitError::at(&link))?;
        Ok(true)
    }

    /// Checks the files out, unless that was done before.
    pub(super) fn filled(self) -> Result<Self, GitError> {
        if !self.git_dir.join("index").exists() {
            self.clear_stale_lock()?;
            // Git writes the index last: without one, an earlier attempt was cut off.
            self.repository.sealed(self.place())?.args(["read-tree", "--reset", "-u", "HEAD"]).read()?;
        }
        Ok(self)
    }

    /// Removes an `index.lock` whose owner died.
    ///
    /// Nobody of ours is at work here when this is called, and a git that is alive holds its lock for moments
    /// only: what stays as long as our patience lasts belongs to nobody.
    pub(super) fn clear_stale_lock(&self) -> Result<(), GitError> {
        let lock = self.git_dir.join("index.lock");
        let freed = self.repository.git().wait_briefly(|| Ok((!lock.exists()).then_some(())))?;
        if freed.is_none() { remove_if_there(&lock) } else { Ok(()) }
    }
}

/// Writes down that a worktree is ours, and for which branch.
pub(super) fn mark(git_dir: &Path, branch: Option<&str>) -> Result<(), GitError> {
    // Half of it would be the marker of a throw-away worktree.
    write_whole(&git_dir.join(MARKER), branch.unwrap_or_default().as_bytes())
}

/// The branch a worktree of ours is for; nothing if it is not ours.
pub(super) fn marked(git_dir: &Path) -> Option<Option<String>> {
    let branch = String::from_utf8(content(&git_dir.join(MARKER))?).ok()?;
    Some((!branch.is_empty()).then_some(branch))
}

/// Whether git would take this for a git directory.
pub(super) fn has_head(git_dir: &Path) -> bool {
    let head = content(&git_dir.join("HEAD")).unwrap_or_default();
    let head = head.trim_ascii_end();
    head.starts_with(b"ref: refs/") || (head.len() >= 40 && head.iter().all(u8::is_ascii_hexdigit))
}

/// Whether a worktree can be made here without taking anything away.
fn vacant(path: &Path) -> Result<(), GitError> {
    let is_full = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    if is_full || is_in_the_way(path) { Err(GitError::NotOurs(path.to_owned())) } else { Ok(()) }
}
