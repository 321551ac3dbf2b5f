//! A worktree lent to an agent, and taken back.
//!
//! Git follows, believes and waits for whatever lies in a git directory: a link in place of a file, an object under the
//! name of another, a lock that nobody holds. So whoever is held gets a git directory of its own, in which `HEAD` is on no
//! branch, and a directory in place of the one that all worktrees share: links to what is there, and room for the objects
//! it makes. The worktree's real git directory stays as it is meanwhile, for us and for the person's git.
//!
//! When the agent has ended, its `HEAD`, its index and what it began and did not end are taken over, as plain files or not
//! at all, once the objects that they need are there.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;

use super::disk::{give_back, is_directory, plain_only, remove_if_there, short, write_whole};
use super::stage::copy_index;
use super::tips::is_id;
use super::worktree::has_head;
use super::{GitError, Repository, Worktree};
use crate::draft;
use crate::failpoint;

/// Below what git keeps for us: what was lent, by the names of the git directories.
const HOME: &str = "signoff/lent";

/// The agent's git directory.
const OWN: &str = "own";

/// What it takes for the one that all worktrees share.
const SHARED: &str = "shared";

/// Repositories within the worktree. Their files name this place, so it outlives an attempt.
const MODULES: &str = "modules";

/// What is not shared: the agent's own, ours, or written anew where it stands and not through a link.
const NOT_LINKED: [&str; 4] = ["objects", "lfs", "signoff", PACKED];

const PACKED: &str = "packed-refs";

/// What tells git that something was begun and not ended: files, and directories of files.
const UNFINISHED: [&str; 13] = [
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_TERMS",
    "BISECT_NAMES",
    "BISECT_EXPECTED_REV",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];

/// How the names of files begin that an index may be split into.
const PART_OF_INDEX: &str = "sharedindex.";

/// So many things that were left out are named.
const NAMED: usize = 3;

/// Where the agent's `HEAD` is.
enum Got {
    Commit(Commit),
    /// It went to a branch.
    Branch(String),
    /// Nowhere that git would know.
    Lost,
}

impl Repository {
    fn lent(&self, git_dir: &Path) -> PathBuf {
        self.common().join(HOME).join(git_dir.file_name().unwrap_or_default())
    }

    /// Forgets what was lent together with a git directory that goes.
    pub(super) fn forget_lent(&self, git_dir: &Path) -> Result<(), GitError> {
        remove_if_there(&self.lent(git_dir))
    }
}

impl Worktree {
    /// What somebody may write whom it is lent to, besides its files.
    pub fn lent(&self) -> PathBuf {
        self.repository.lent(&self.git_dir)
    }

    /// Where the objects are that somebody made whom it is lent to.
    pub(super) fn lent_shared(&self) -> PathBuf {
        self.lent().join(SHARED)
    }

    /// Gives it to somebody who may write to nothing of git's but what is its own.
    pub fn lend(&self) -> Result<(), GitError> {
        self.there()?;
        let commit = self.here()?;
        self.withdraw()?;
        let (own, shared) = (self.lent().join(OWN), self.lent_shared());
        self.stand_in(&shared).map_err(GitError::at(&shared))?;
        fs::create_dir_all(&own).map_err(GitError::at(&own))?;
        carry(&self.git_dir, &own).map_err(GitError::at(&own))?;
        let index = self.git_dir.join("index");
        if index.symlink_metadata().is_ok_and(|found| found.is_file()) {
            copy_index(&index, &own.join("index")).map_err(GitError::at(&index))?;
        }
        write_whole(&own.join("gitdir"), &line(&self.path().join(".git")))?;
        write_whole(&own.join("commondir"), &line(&shared))?;
        write_whole(&own.join("HEAD"), format!("{commit}\n").as_bytes())?;
        self.point_to(&own)?;
        failpoint::pass("lent");
        Ok(())
    }

    /// The commit that its real `HEAD` is at; mostly files tell it.
    fn here(&self) -> Result<Commit, GitError> {
        let told = self.detached_at().or_else(|| self.loose_commit());
        told.map_or_else(|| self.head().map(|head| head.commit), Ok)
    }

    fn stand_in(&self, shared: &Path) -> io::Result<()> {
        let real = self.repository.common();
        let objects = shared.join("objects");
        for directory in ["info", "pack"] {
            fs::create_dir_all(objects.join(directory))?;
        }
        fs::write(objects.join("info/alternates"), line(&real.join("objects")))?;
        for entry in fs::read_dir(real)? {
            let name = entry?.file_name();
            let is_lock = Path::new(&name).extension().is_some_and(|end| end == "lock");
            if !is_lock && NOT_LINKED.iter().all(|other| name != *other) {
                symlink(real.join(&name), shared.join(&name))?;
            }
        }
        match fs::copy(real.join(PACKED), shared.join(PACKED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Takes it back from whoever it was lent to and has ended, with all it did to `HEAD` and index; tells what was left
    /// out. Where objects are missing nothing of that is taken over. Files stay as they are.
    pub fn take_back(&self) -> Result<Vec<String>, GitError> {
        let own = self.lent().join(OWN);
        if self.lent().symlink_metadata().is_err() {
            return self.tidy_own();
        }
        let mut notes = Vec::new();
        let was_there = is_directory(self.path());
        if !was_there {
            // Whoever deleted it lost only what was not committed.
            remove_if_there(self.path())?;
            fs::create_dir(self.path()).map_err(GitError::at(self.path()))?;
        }
        let taken = self.take_over(&own, &mut notes).map_err(|error| {
            let is_agents = error.may_be_an_agents_doing();
            let worktree = self.path().to_owned();
            if is_agents { GitError::Incomplete { worktree, why: error.to_string() } } else { error }
        });
        match &taken {
            Ok(()) | Err(GitError::Incomplete { .. }) => {}
            // There may be room next time.
            Err(_) => return taken.map(|()| notes),
        }
        failpoint::pass("taken_over");
        self.link()?;
        if !was_there {
            remove_if_there(&self.git_dir.join("index"))?;
            self.clone().filled()?;
        }
        self.withdraw()?;
        failpoint::pass("taken_back");
        taken.map(|()| notes)
    }

    fn take_over(&self, own: &Path, notes: &mut Vec<String>) -> Result<(), GitError> {
        for directory in [&self.lent(), own, &self.lent_shared()] {
            give_back(directory)?;
        }
        let mut odd = Vec::new();
        if is_directory(own) {
            plain_only(own, |path| odd.push(path.strip_prefix(own).unwrap_or(path).to_owned()))?;
        }
        notes.extend(left_out(&odd));
        let got = got(own);
        let merged = short(&own.join("MERGE_HEAD")).unwrap_or_default();
        let mut ids: Vec<&str> = merged.lines().filter(|line| is_id(line)).collect();
        let here = self.here()?;
        match &got {
            Got::Commit(commit) if *commit != here => ids.push(commit.as_str()),
            Got::Commit(_) | Got::Branch(_) => {}
            Got::Lost => notes.push("the git directory of the worktree was deleted; made again".to_owned()),
        }
        let index = self.bring_over(&ids, &here, &own.join("index"))?;
        carry(own, &self.git_dir).map_err(GitError::at(&self.git_dir))?;
        match index {
            Some(index) => self.replace_index(&index)?,
            // It is made again from `HEAD`.
            None => remove_if_there(&self.git_dir.join("index"))?,
        }
        self.go_to(&got, &here)
    }

    /// With a line in the log of `HEAD`, by which it is known that it was moved here and not elsewhere.
    fn go_to(&self, got: &Got, here: &Commit) -> Result<(), GitError> {
        let said = "signoff: taken back";
        match got {
            Got::Commit(commit) if commit != here => {
                let asked = ["update-ref", "--no-deref", "-m", said, "HEAD", commit.as_str()];
                self.repository.sealed(self.place())?.args(asked).read().map(drop)
            }
            // What cannot be the name of a branch leads nowhere.
            Got::Branch(name) => {
                let asked = ["symbolic-ref", "-m", said, "HEAD", name];
                self.repository.sealed(self.place())?.args(asked).run().map(drop)
            }
            Got::Commit(_) | Got::Lost => Ok(()),
        }
    }

    /// What was lent is there no more, but for repositories within the worktree.
    fn withdraw(&self) -> Result<(), GitError> {
        let (lent, own) = (self.lent(), self.lent().join(OWN));
        if !is_directory(&own.join(MODULES)) || !is_directory(&own) || !is_directory(&lent) {
            return remove_if_there(&lent);
        }
        remove_all_but(&lent, OWN)?;
        remove_all_but(&own, MODULES)
    }

    /// The git directory of one who was not held: what git of ours would follow, or wait for in vain, goes.
    fn tidy_own(&self) -> Result<Vec<String>, GitError> {
        if !is_directory(&self.git_dir) {
            return Ok(Vec::new());
        }
        let mut odd = Vec::new();
        plain_only(&self.git_dir, |path| {
            odd.push(path.strip_prefix(&self.git_dir).unwrap_or(path).to_owned());
        })?;
        Ok(left_out(&odd).into_iter().collect())
    }
}

fn got(own: &Path) -> Got {
    let head = short(&own.join("HEAD")).filter(|_| is_directory(own) && has_head(own)).unwrap_or_default();
    match head.trim_end().strip_prefix("ref: ") {
        Some(name) => Got::Branch(name.to_owned()),
        None if is_id(head.trim_end()) => Got::Commit(Commit::new(head.trim_end())),
        None => Got::Lost,
    }
}

/// Makes what is unfinished in one git directory the same in another, and brings what its index may need.
fn carry(from: &Path, to: &Path) -> io::Result<()> {
    let parts = fs::read_dir(from).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let parts = parts.filter(|name| name.to_string_lossy().starts_with(PART_OF_INDEX));
    for name in UNFINISHED.into_iter().map(OsString::from).chain(parts) {
        let (from, to) = (from.join(&name), to.join(&name));
        draft::remove_if_there(&to)?;
        let Ok(found) = from.symlink_metadata() else { continue };
        if found.is_file() {
            fs::copy(&from, &to)?;
        } else if found.is_dir() {
            fs::create_dir(&to)?;
            for entry in fs::read_dir(&from)? {
                let entry = entry?;
                if entry.file_type()?.is_file() {
                    fs::copy(entry.path(), to.join(entry.file_name()))?;
                }
            }
        }
    }
    Ok(())
}

fn remove_all_but(directory: &Path, kept: &str) -> Result<(), GitError> {
    for entry in fs::read_dir(directory).map_err(GitError::at(directory))?.flatten() {
        if entry.file_name() != kept {
            remove_if_there(&entry.path())?;
        }
    }
    Ok(())
}

/// What is told of what lay there and is no plain file.
fn left_out(odd: &[PathBuf]) -> Option<String> {
    let named: Vec<String> =
        odd.iter().take(NAMED).map(|path| format!("{:?}", path.display().to_string())).collect();
    let more = odd.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = named.join(", ");
    (!odd.is_empty())
        .then(|| format!("links or pipes were put into its git directory; taken away: {named}{more}"))
}

fn line(path: &Path) -> Vec<u8> {
    [path.as_os_str().as_bytes(), b"\n"].concat()
}
