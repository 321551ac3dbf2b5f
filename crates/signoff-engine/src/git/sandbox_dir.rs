//! A git directory of its own for a sandboxed agent, and the import of the agent's work from it.
//!
//! Git trusts what it finds in a git directory: a link in place of a file, an object stored under another
//! object's name, a stale lock. So a sandboxed agent gets its own git directory with a detached `HEAD`, and a
//! replacement for the common directory with links to the real entries and space for new objects. The
//! worktree's real git directory stays unchanged for us and for the user's git.
//!
//! After the agent has ended, its `HEAD`, its index and its unfinished operations are imported, only as plain
//! files, and only if all objects they need exist.
//!
//! An agent can store an object under the name of another one. So objects are not moved: git packs what `HEAD`
//! and the index need, and computes every name from the content when it unpacks them. Then git checks that all
//! objects exist.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use signoff_core::hex::hex;
use signoff_core::ids::Commit;

use super::branch::is_id;
use super::commit::copy_index;
use super::disk::{
    is_directory, line, read_short, remove_if_exists, remove_special_files, restore_access, write_atomic,
};
use super::error::{MAX_LISTED_FILES, list_first};
use super::head::HeadFile;
use super::repository::GitDirs;
use super::{GitError, Repository, Worktree};
use crate::atomic_file::{self, WriteMode};
use crate::failpoint;

/// Directory below the common directory that holds the sandbox directories, named like the worktrees' git
/// directories.
const SANDBOX_DIRS: &str = "signoff/lent";

/// The agent's git directory.
const AGENT_GIT_DIR: &str = "own";

/// The agent's replacement for the common directory.
const AGENT_COMMON_DIR: &str = "shared";

/// Submodule repositories of the worktree. Their files contain this path, so it stays between attempts.
const MODULES: &str = "modules";

/// Entries that are not linked: the agent has its own, they belong to signoff, or git rewrites them in place.
const NOT_LINKED: [&str; 4] = ["objects", "lfs", "signoff", PACKED_REFS];

const PACKED_REFS: &str = "packed-refs";

/// Files and directories by which git recognizes an unfinished operation.
const OPERATION_FILES: [&str; 13] = [
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

/// Prefix of the files of a split index.
const SHARED_INDEX_PREFIX: &str = "sharedindex.";

impl Repository {
    fn sandbox_dir(&self, git_dir: &Path) -> PathBuf {
        self.common().join(SANDBOX_DIRS).join(git_dir.file_name().unwrap_or_default())
    }

    /// Removes the sandbox directory of a worktree whose git directory is being removed.
    pub(super) fn remove_sandbox_dir(&self, git_dir: &Path) -> Result<(), GitError> {
        remove_if_exists(&self.sandbox_dir(git_dir))
    }
}

impl Worktree {
    /// The directory outside the worktree's files that a sandboxed agent may write.
    pub fn sandbox_dir(&self) -> PathBuf {
        self.repository.sandbox_dir(&self.git_dir)
    }

    /// The agent's common directory, which holds the objects it created.
    pub(super) fn sandbox_common_dir(&self) -> PathBuf {
        self.sandbox_dir().join(AGENT_COMMON_DIR)
    }

    /// Creates the sandbox directory and points the worktree at it. The agent may write to no other git files.
    pub fn enter_sandbox_dir(&self) -> Result<(), GitError> {
        self.check_exists()?;
        let commit = self.current_commit()?;
        self.clear_sandbox_dir()?;
        let (agent_git_dir, shared) = (self.sandbox_dir().join(AGENT_GIT_DIR), self.sandbox_common_dir());
        self.create_common_dir(&shared).map_err(GitError::at(&shared))?;
        fs::create_dir_all(&agent_git_dir).map_err(GitError::at(&agent_git_dir))?;
        copy_operation_state(&self.git_dir, &agent_git_dir).map_err(GitError::at(&agent_git_dir))?;
        let index = self.git_dir.join("index");
        if index.symlink_metadata().is_ok_and(|found| found.is_file()) {
            copy_index(&index, &agent_git_dir.join("index")).map_err(GitError::at(&index))?;
        }
        write_atomic(&agent_git_dir.join("gitdir"), &line(&self.path().join(".git")), WriteMode::Plain)?;
        write_atomic(&agent_git_dir.join("commondir"), &line(&shared), WriteMode::Plain)?;
        write_atomic(&agent_git_dir.join("HEAD"), format!("{commit}\n").as_bytes(), WriteMode::Plain)?;
        self.point_to(&agent_git_dir)?;
        failpoint::pass("sandbox_entered");
        Ok(())
    }

    /// The commit of the real `HEAD`, read from files where possible.
    fn current_commit(&self) -> Result<Commit, GitError> {
        let read = self.detached_commit().or_else(|| self.branch_file_commit());
        read.map_or_else(|| self.head().map(|head| head.commit), Ok)
    }

    fn create_common_dir(&self, shared: &Path) -> io::Result<()> {
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
        match fs::copy(real.join(PACKED_REFS), shared.join(PACKED_REFS)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Imports the `HEAD` and index of an agent that has ended, removes the sandbox directory, and returns
    /// notes about skipped entries. If objects are missing, nothing is imported. Files in the worktree stay
    /// unchanged.
    pub fn import_from_sandbox(&self) -> Result<Vec<String>, GitError> {
        let own = self.sandbox_dir().join(AGENT_GIT_DIR);
        if self.sandbox_dir().symlink_metadata().is_err() {
            // An agent without a sandbox works in the real git directory.
            return Ok(clean_git_dir(&self.git_dir)?.into_iter().collect());
        }
        let mut notes = Vec::new();
        let was_there = is_directory(self.path());
        if !was_there {
            // The worktree directory was deleted; only uncommitted work is lost.
            remove_if_exists(self.path())?;
            fs::create_dir(self.path()).map_err(GitError::at(self.path()))?;
        }
        let imported = self.import_state(&own, &mut notes).map_err(|error| {
            let is_agents = error.may_be_caused_by_agent();
            let worktree = self.path().to_owned();
            if is_agents { GitError::Incomplete { worktree, reason: error.to_string() } } else { error }
        });
        match &imported {
            Ok(()) | Err(GitError::Incomplete { .. }) => {}
            // A later call may find free disk space.
            Err(_) => return imported.map(|()| notes),
        }
        failpoint::pass("sandbox_imported");
        self.restore_git_file()?;
        if !was_there {
            remove_if_exists(&self.git_dir.join("index"))?;
            self.clone().check_out_files()?;
        }
        self.clear_sandbox_dir()?;
        failpoint::pass("sandbox_removed");
        imported.map(|()| notes)
    }

    fn import_state(&self, agent_git_dir: &Path, notes: &mut Vec<String>) -> Result<(), GitError> {
        for directory in [&self.sandbox_dir(), agent_git_dir, &self.sandbox_common_dir()] {
            restore_access(directory)?;
        }
        notes.extend(clean_git_dir(agent_git_dir)?);
        let agent_head = if is_directory(agent_git_dir) { HeadFile::read(agent_git_dir) } else { HeadFile::Invalid };
        let merged = read_short(&agent_git_dir.join("MERGE_HEAD")).unwrap_or_default();
        let mut ids: Vec<&str> = merged.lines().filter(|line| is_id(line)).collect();
        let here = self.current_commit()?;
        match &agent_head {
            HeadFile::Commit(commit) if *commit != here => ids.push(commit.as_str()),
            HeadFile::Commit(_) | HeadFile::Ref(_) => {}
            HeadFile::Invalid => notes.push("the git directory of the worktree was deleted; recreated".to_owned()),
        }
        let index = self.import_objects(&ids, &here, &agent_git_dir.join("index"))?;
        copy_operation_state(agent_git_dir, &self.git_dir).map_err(GitError::at(&self.git_dir))?;
        match index {
            Some(index) => self.replace_index(&index)?,
            // Git recreates it from `HEAD`.
            None => remove_if_exists(&self.git_dir.join("index"))?,
        }
        self.move_head_to(&agent_head, &here)
    }

    /// Moves the real `HEAD` to the agent's. The reflog message shows that the move came from the sandbox.
    fn move_head_to(&self, agent_head: &HeadFile, here: &Commit) -> Result<(), GitError> {
        let message = "signoff: import from sandbox";
        match agent_head {
            HeadFile::Commit(commit) if commit != here => {
                self.isolated_git("update-ref --no-deref -m")?.args([message, "HEAD", commit.as_str()]).execute()
            }
            // An invalid branch name is ignored.
            HeadFile::Ref(name) => self.isolated_git("symbolic-ref -m")?.args([message, "HEAD", name]).run().map(drop),
            HeadFile::Commit(_) | HeadFile::Invalid => Ok(()),
        }
    }

    /// Removes the sandbox directory except for submodule repositories.
    fn clear_sandbox_dir(&self) -> Result<(), GitError> {
        let (sandbox_dir, own) = (self.sandbox_dir(), self.sandbox_dir().join(AGENT_GIT_DIR));
        if !is_directory(&own.join(MODULES)) || !is_directory(&own) || !is_directory(&sandbox_dir) {
            return remove_if_exists(&sandbox_dir);
        }
        remove_all_but(&sandbox_dir, AGENT_GIT_DIR)?;
        remove_all_but(&own, MODULES)
    }
}

/// Removes links and stale locks that our git would follow from a git directory. Returns a note about them.
fn clean_git_dir(git_dir: &Path) -> Result<Option<String>, GitError> {
    let mut named = Vec::new();
    if is_directory(git_dir) {
        remove_special_files(git_dir, |path| {
            let path = path.strip_prefix(git_dir).unwrap_or(path);
            named.push(format!("{:?}", path.display().to_string()));
        })?;
    }
    let note =
        || format!("links or pipes were put into its git directory; removed: {}", list_first(&named, MAX_LISTED_FILES));
    Ok((!named.is_empty()).then(note))
}

/// Copies the state of unfinished operations and the parts of a split index from one git directory to another.
fn copy_operation_state(from: &Path, to: &Path) -> io::Result<()> {
    let parts = fs::read_dir(from).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let parts = parts.filter(|name| name.to_string_lossy().starts_with(SHARED_INDEX_PREFIX));
    for name in OPERATION_FILES.into_iter().map(OsString::from).chain(parts) {
        let (from, to) = (from.join(&name), to.join(&name));
        atomic_file::remove_if_exists(&to)?;
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
            remove_if_exists(&entry.path())?;
        }
    }
    Ok(())
}

/// From this number of objects on they stay in one pack, as in `git fetch`.
const KEEP_PACK_FROM: u32 = 100;

/// Position of the object count in a pack's header.
const OBJECT_COUNT: std::ops::Range<usize> = 8..12;

impl Worktree {
    /// Imports the objects of these commits and an index that `from` does not reach. Returns the index if git
    /// can read it.
    pub(super) fn import_objects(
        &self,
        ids: &[&str],
        from: &Commit,
        index: &Path,
    ) -> Result<Option<PathBuf>, GitError> {
        let shared = self.sandbox_common_dir();
        let has_objects = is_directory(&shared) && self.prepare_objects(&shared.join("objects"))?;
        if is_directory(&shared) {
            self.import_lfs_objects(&shared.join("lfs"))?;
        }
        let own_index = index.symlink_metadata().is_ok_and(|found| found.is_file()).then(|| index.to_owned());
        if !has_objects && ids.is_empty() {
            return Ok(own_index);
        }
        let with_index = own_index.map(|own| self.copy_objects(ids, from, has_objects, &own).map(|()| own));
        match with_index {
            Some(Err(GitError::Failed { .. })) | None => {}
            Some(brought) => return brought.map(Some),
        }
        // An unreadable index must not cost the commits.
        self.copy_objects(ids, from, has_objects, &self.repository.scratch()?.path).map(|()| None)
    }

    /// Whether the agent created objects. Removes `info`, so that the agent's alternates are not used.
    fn prepare_objects(&self, objects: &Path) -> Result<bool, GitError> {
        if !is_directory(objects) {
            return Ok(false);
        }
        remove_if_exists(&objects.join("info"))?;
        let has_objects = !remove_special_files(objects, |_| {})?.is_empty();
        if has_objects {
            let info = objects.join("info");
            fs::create_dir(&info).map_err(GitError::at(&info))?;
            let real = format!("{}\n", self.repository.common().join("objects").display());
            fs::write(info.join("alternates"), real).map_err(GitError::at(&info))?;
        }
        Ok(has_objects)
    }

    fn copy_objects(&self, ids: &[&str], from: &Commit, has_objects: bool, index: &Path) -> Result<(), GitError> {
        let dirs = GitDirs { index: Some(index), ..self.dirs() };
        if has_objects {
            let pack = self.repository.scratch()?;
            self.pack(ids, from, dirs, &pack.path)?;
            self.unpack(&pack.path)?;
        }
        let command =
            self.repository.isolated_git_at(dirs, "rev-list --objects --quiet --single-worktree --indexed-objects")?;
        let command = command.args(ids);
        command.args(["--not", from.as_str(), "--"]).execute()
    }

    fn pack(&self, ids: &[&str], from: &Commit, dirs: GitDirs<'_>, pack: &Path) -> Result<(), GitError> {
        let mut file = File::create_new(pack).map_err(GitError::at(pack))?;
        let list: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let command =
            self.repository.isolated_git_at(dirs, "pack-objects --revs --indexed-objects --local --stdout -q")?;
        let command = command.input(format!("{list}^{from}\n"));
        let command = command.env("GIT_OBJECT_DIRECTORY", self.sandbox_common_dir().join("objects"));
        command.stream(|printed| io::copy(printed, &mut file).map(drop))
    }

    fn unpack(&self, pack: &Path) -> Result<(), GitError> {
        let mut head = [0; 12];
        let read = File::open(pack).and_then(|mut file| file.read_exact(&mut head));
        read.map_err(GitError::at(pack))?;
        let count = head.get(OBJECT_COUNT).and_then(|count| count.try_into().ok()).map_or(0, u32::from_be_bytes);
        let command = if count < KEEP_PACK_FROM { "unpack-objects -q" } else { "index-pack --stdin --fix-thin" };
        self.isolated_git(command)?.input_file(pack).execute()
    }

    /// Imports Git LFS files, which are named after the hash of their content.
    fn import_lfs_objects(&self, lfs: &Path) -> Result<(), GitError> {
        let objects = lfs.join("objects");
        if is_directory(lfs) && is_directory(&objects) {
            for file in remove_special_files(&objects, |_| {})? {
                self.import_lfs_file(&file)?;
            }
        }
        Ok(())
    }

    fn import_lfs_file(&self, path: &Path) -> Result<(), GitError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (Some(first), Some(second)) = (name.get(..2), name.get(2..4)) else { return Ok(()) };
        let home = self.repository.common().join("lfs/objects").join(first).join(second);
        if name.len() != 64 || home.join(&name).exists() {
            return Ok(());
        }
        let scratch = self.repository.scratch()?;
        fs::copy(path, &scratch.path).map_err(GitError::at(path))?;
        if hash_of(&scratch.path).map_err(GitError::at(&scratch.path))? != name {
            return Ok(());
        }
        fs::create_dir_all(&home).map_err(GitError::at(&home))?;
        fs::rename(&scratch.path, home.join(&name)).map_err(GitError::at(&home))
    }
}

fn hash_of(path: &Path) -> io::Result<String> {
    let mut file = BufReader::new(File::open(path)?);
    let mut hash = Sha256::new();
    loop {
        let part = file.fill_buf()?;
        if part.is_empty() {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(part);
        let length = part.len();
        file.consume(length);
    }
}
