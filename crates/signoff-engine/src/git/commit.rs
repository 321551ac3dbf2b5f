//! Stages and commits the work of an agent that has ended, in whatever state the worktree is.
//!
//! Ignored files, our own files and files copied from the checkout are left out.

use std::ffi::OsString;
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use signoff_core::ids::Commit;
use signoff_core::machine::Head;

use super::disk::{content, parent_directories, remove_if_exists, write_atomic};
use super::isolated_dir::ScratchPath;
use super::repository::{GitDirs, join_nul, path, pathspec, split_nul};
use super::status::{GitStatus, StatusEntry, StatusKind};
use super::{GitError, Operation, Repository, Worktree, index};
use crate::atomic_file::WriteMode;

/// The state of a worktree after everything in it was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitOutcome {
    pub head: Head,
    /// Whether a commit was created.
    pub made: bool,
    /// The operation the agent left unfinished. Its files were committed unchanged.
    pub unfinished: Option<Operation>,
}

impl Worktree {
    /// Commits everything that is not ignored, including untracked files. The agent must have ended.
    pub fn commit_all(&self, message: &str) -> Result<CommitOutcome, GitError> {
        self.commit_all_with(message, None)
    }

    /// Like [`Self::commit_all`], plus one plain file even if it is ignored.
    pub fn commit_all_with(&self, message: &str, extra_file: Option<&Path>) -> Result<CommitOutcome, GitError> {
        self.check_exists()?;
        self.restore_git_file()?;
        self.clear_stale_lock()?;
        let unfinished = Operation::unfinished_in(&self.git_dir);
        match unfinished {
            // Its commits are partly applied; only the agent that started it can finish it.
            Some(operation @ (Operation::Rebase | Operation::Bisect)) => {
                return Err(GitError::Unfinished { worktree: self.path().to_owned(), operation });
            }
            Some(Operation::Merge | Operation::CherryPick | Operation::Revert) | None => {}
        }
        self.refresh_index()?;
        self.sync_to_branch()?;
        if let Some(file) = extra_file {
            self.isolated_git("add --force --")?.args([pathspec("top,literal", file)]).execute()?;
        }
        let status = self.repository.status(self.dirs())?;
        let kept_out = ExcludedPaths::for_worktree(&self.git_dir);
        let dirty = kept_out.has_changes(&status);
        self.return_to_branch(&status, dirty)?;
        let made = (dirty || unfinished.is_some()) && {
            let stages_itself = kept_out.all_tracked(&status);
            if !stages_itself {
                self.repository.stage(self.dirs(), &status, &kept_out)?;
            }
            self.finish_operation(unfinished, &status)?;
            self.commit_staged(message, stages_itself)?
        };
        let head = if made { self.committed_head()? } else { self.head()? };
        Ok(CommitOutcome { head, made, unfinished })
    }

    /// Makes git compare every file. Files that git skips would be neither committed nor reviewed, and an agent can
    /// have written anything into the index.
    fn refresh_index(&self) -> Result<(), GitError> {
        if self.clear_index_stat()? {
            return Ok(());
        }
        let own = self.git_dir.join("index");
        // Git reads only a plain file. An index that git cannot read either is created again.
        if content(&own).is_some() {
            let simplest = "update-index --no-split-index --index-version 2";
            self.clear_skip_flags().and_then(|()| self.isolated_git(simplest)?.execute()).ok();
            if self.clear_index_stat()? {
                return Ok(());
            }
        }
        remove_if_exists(&own)?;
        self.isolated_git("read-tree HEAD")?.execute()
    }

    /// Removes cached file metadata from the index, so that git compares every file. Returns `false` if the index
    /// needs more than that.
    fn clear_index_stat(&self) -> Result<bool, GitError> {
        match self.index_without_stat()? {
            Some(bare) => write_atomic(&self.git_dir.join("index"), &bare, WriteMode::Plain).map(|()| true),
            None => Ok(false),
        }
    }

    /// The index without cached file metadata. `None` if only git can rewrite it.
    pub(super) fn index_without_stat(&self) -> Result<Option<Vec<u8>>, GitError> {
        let bytes = content(&self.git_dir.join("index")).unwrap_or_default();
        Ok(index::without_stat(&bytes, self.repository.isolated_dir()?.id_bytes))
    }

    /// Clears the flags that make git skip a file.
    fn clear_skip_flags(&self) -> Result<(), GitError> {
        let listed = self.isolated_git("ls-files -v -z")?.read()?;
        let is_hidden = |line: &&[u8]| line.first().is_some_and(|tag| tag.is_ascii_lowercase() || *tag == b'S');
        let hidden: Vec<&[u8]> = listed.split(|byte| *byte == 0).filter(is_hidden).collect();
        if hidden.is_empty() {
            return Ok(());
        }
        let paths: Vec<u8> =
            hidden.iter().flat_map(|line| line.get(2..).unwrap_or_default().iter().chain(&[0])).copied().collect();
        for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
            self.isolated_git("update-index")?.args([flag, "-z", "--stdin"]).input(paths.clone()).execute()?;
        }
        Ok(())
    }

    /// Keeps a resolved merge and quits any other operation. The files stay; the operation's state is removed.
    fn finish_operation(&self, unfinished: Option<Operation>, status: &GitStatus) -> Result<(), GitError> {
        let conflicts = status.entries.iter().any(|entry| entry.kind == StatusKind::Unmerged);
        match unfinished {
            None => Ok(()),
            Some(Operation::Merge) if !conflicts => Ok(()),
            Some(operation) => self.isolated_git(operation.quit_args())?.execute(),
        }
    }

    /// Commits, and returns whether there was a difference. A status may show one although the content is the
    /// same. With `all`, tracked files need not be staged.
    fn commit_staged(&self, message: &str, all: bool) -> Result<bool, GitError> {
        // Not through a pipe: if this process is killed while git reads the message, git would commit a part of it.
        let command =
            self.isolated_git("commit -q --no-verify --no-gpg-sign --allow-empty-message --cleanup=verbatim")?;
        let command = if all { command.args(["--all"]) } else { command };
        let ended = command.args(["-m".to_owned(), format!("{}\n", message.trim_end())]).run()?;
        if ended.code() == Some(1) {
            let nothing = self.isolated_git("diff --cached --quiet --no-ext-diff HEAD")?.run()?.into_bool()?;
            return if nothing { Ok(false) } else { Err(ended.into_error()) };
        }
        ended.success().map(|_| true)
    }

    /// The worktree's current content, committed or not, as a commit on top of its head. An agent may be running.
    pub fn snapshot_commit(&self) -> Result<Commit, GitError> {
        self.check_exists()?;
        self.repository.snapshot_at(self.dirs())
    }
}

impl Repository {
    /// The user's checkout with all uncommitted and untracked files, as a commit on top of `HEAD`.
    ///
    /// Writes only objects: no ref, no index, no file.
    pub fn snapshot_commit(&self) -> Result<Commit, GitError> {
        self.snapshot_at(self.checkout_dirs())
    }

    /// The files of the checkout that differ from `HEAD`.
    pub fn uncommitted(&self) -> Result<Vec<PathBuf>, GitError> {
        Ok(self.status(self.checkout_dirs())?.entries.into_iter().map(|entry| entry.path).collect())
    }

    fn snapshot_at(&self, here: GitDirs<'_>) -> Result<Commit, GitError> {
        let scratch = self.scratch_index(here.git_dir)?;
        let dirs = here.with_index(&scratch);
        let status = self.status(dirs)?;
        self.stage(dirs, &status, &ExcludedPaths::for_worktree(here.git_dir))?;
        let tree = self.isolated_git_at(dirs, "write-tree")?.read_line()?;
        let parent = status.head.iter().flat_map(|head| ["-p", head.as_str()]);
        let command = self.isolated_git_at(dirs, "commit-tree --no-gpg-sign")?.args([&tree]).args(parent);
        Ok(Commit::new(command.input("Snapshot of a checkout\n").read_line()?))
    }
}

/// Signoff's own directory, which is never committed.
const SIGNOFF_DIR: &str = ".signoff";

/// File in a worktree's git directory that lists the copied files, NUL-terminated.
const COPIED_LIST: &str = "signoff-copied";

/// Paths in a worktree that are not committed. By default none.
#[derive(Debug, Default)]
pub(super) struct ExcludedPaths {
    paths: Vec<PathBuf>,
}

impl ExcludedPaths {
    pub(super) fn for_worktree(git_dir: &Path) -> Self {
        let copied = content(&git_dir.join(COPIED_LIST)).unwrap_or_default();
        let copied = split_nul(&copied).map(path);
        Self { paths: std::iter::once(PathBuf::from(SIGNOFF_DIR)).chain(copied).collect() }
    }

    /// Excludes these paths as well.
    pub(super) fn with(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.paths.extend(paths);
        self
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        self.paths.iter().any(|kept| path.starts_with(kept))
    }

    /// Whether git tracks every changed file and none of them is excluded.
    pub(super) fn all_tracked(&self, status: &GitStatus) -> bool {
        let known =
            |entry: &StatusEntry| matches!(entry.kind, StatusKind::Tracked { .. }) && !self.contains(&entry.path);
        status.entries.iter().all(known)
    }

    /// Whether there is a change to commit.
    pub(super) fn has_changes(&self, status: &GitStatus) -> bool {
        status.entries.iter().any(|entry| !self.contains(&entry.path))
    }
}

impl Repository {
    /// A copy of the index in `git_dir`. It keeps the cached file metadata, so that staging does not read all
    /// files.
    pub(super) fn scratch_index(&self, git_dir: &Path) -> Result<ScratchPath, GitError> {
        let scratch = self.scratch()?;
        let index = git_dir.join("index");
        if !index.is_file() || index.is_symlink() {
            return Ok(scratch);
        }
        match copy_index(&index, &scratch.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::at(&index)(error)),
            Ok(()) | Err(_) => Ok(scratch),
        }
    }

    /// Stages every difference to `HEAD` except for excluded paths.
    pub(super) fn stage(
        &self,
        dirs: GitDirs<'_>,
        status: &GitStatus,
        excluded: &ExcludedPaths,
    ) -> Result<(), GitError> {
        self.unstage(dirs, status, excluded)?;
        let nested = status.entries.iter().filter(|entry| entry.kind == StatusKind::Nested);
        let nested = nested.map(|entry| entry.path.as_path()).filter(|path| !excluded.contains(path));
        let nested: Vec<&Path> = nested.collect();
        // Git rejects exclusions of paths it would not add anyway, so only listed paths are excluded.
        let listed = |path: &&PathBuf| status.entries.iter().any(|entry| entry.path.starts_with(path));
        let known = self.submodules_at(dirs)?;
        let left_out = excluded.paths.iter().filter(listed).chain(&known).map(PathBuf::as_path);
        let left_out = left_out.chain(nested.iter().copied());
        let left_out: Vec<OsString> = left_out.map(|path| pathspec("exclude,top,literal", path)).collect();
        self.isolated_git_at(dirs, "add -A -- .")?.args(left_out).execute()?;
        let moved =
            |entry: &&StatusEntry| matches!(entry.kind, StatusKind::Tracked { .. }) && known.contains(&entry.path);
        let moved = status.entries.iter().filter(moved).filter(|entry| !excluded.contains(&entry.path));
        let moved = moved.map(|entry| entry.path.clone()).collect();
        self.stage_nested(dirs, &nested, moved)
    }

    /// Registered submodules of a worktree. To add one, git would start another git in it, with the submodule's
    /// configuration.
    fn submodules_at(&self, dirs: GitDirs<'_>) -> Result<Vec<PathBuf>, GitError> {
        let own = dirs.git_dir.join("index");
        let bytes = content(dirs.index.unwrap_or(&own)).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(known) = index::submodules(&bytes, self.isolated_dir()?.id_bytes) {
            return Ok(known);
        }
        let listed = self.isolated_git_at(dirs, "ls-files --stage --full-name -z")?.read()?;
        let known = listed.split(|&byte| byte == 0).filter(|entry| entry.starts_with(b"160000 "));
        Ok(known.filter_map(|entry| entry.splitn(2, |&byte| byte == b'\t').nth(1)).map(path).collect())
    }

    /// Unstages excluded paths that the agent staged.
    fn unstage(&self, dirs: GitDirs<'_>, status: &GitStatus, excluded: &ExcludedPaths) -> Result<(), GitError> {
        let staged = |entry: &&StatusEntry| matches!(entry.kind, StatusKind::Tracked { staged: true, .. });
        let staged = status.entries.iter().filter(staged).filter(|entry| excluded.contains(&entry.path));
        let paths: Vec<OsString> = staged.map(|entry| pathspec("top,literal", &entry.path)).collect();
        if paths.is_empty() {
            return Ok(());
        }
        self.isolated_git_at(dirs, "reset -q --")?.args(paths).execute()
    }

    /// Stages the files of repositories that an agent created inside the worktree.
    ///
    /// By default git would record such a repository as a link to a commit that exists nowhere else, and its
    /// content would be lost. Known submodules that moved to another commit are staged as submodules.
    fn stage_nested(
        &self,
        dirs: GitDirs<'_>,
        nested: &[&Path],
        moved_submodules: Vec<PathBuf>,
    ) -> Result<(), GitError> {
        let mut files = join_nul(moved_submodules.iter().map(PathBuf::as_path));
        for repository in nested {
            self.list_nested(dirs, repository, &mut files)?;
        }
        if files.is_empty() {
            return Ok(());
        }
        self.isolated_git_at(dirs, "update-index --add --remove --replace -z --stdin")?.input(files).execute()
    }

    fn list_nested(&self, dirs: GitDirs<'_>, nested: &Path, files: &mut Vec<u8>) -> Result<(), GitError> {
        let empty = self.scratch()?;
        let inside = dirs.work_tree.join(nested);
        let within = GitDirs { work_tree: &inside, ..dirs.with_index(&empty) };
        let listed = self.isolated_git_at(within, "ls-files --others --exclude-standard -z")?.read()?;
        for name in split_nul(&listed) {
            let file = nested.join(path(name));
            match name.strip_suffix(b"/") {
                Some(deeper) => self.list_nested(dirs, &nested.join(path(deeper)), files)?,
                None => files.extend(join_nul([file.as_path()])),
            }
        }
        Ok(())
    }
}

/// Copies an index with its modification time.
///
/// A file as old as the index may have changed right after git compared it, so git compares it again. With a
/// newer time on the copy git would not.
pub(super) fn copy_index(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let times = FileTimes::new().set_modified(fs::metadata(from)?.modified()?);
    File::options().write(true).open(to)?.set_times(times)
}

impl Worktree {
    /// Copies the named files from the checkout if they exist there and not in the worktree.
    ///
    /// They are never committed, ignored or not: an untracked file may be a secret.
    pub fn copy_files(&self, names: &[String]) -> Result<Vec<PathBuf>, GitError> {
        self.check_exists()?;
        let mut copied = Vec::new();
        for name in names.iter().map(Path::new) {
            if self.copy_file(name)? {
                copied.push(name.to_owned());
            }
        }
        Ok(copied)
    }

    /// Records again which of the named files were copied, after the record was lost with the git directory.
    pub fn restore_copied_list(&self, names: &[String]) -> Result<(), GitError> {
        let is_copy = |name: &&Path| {
            let both = [self.repository.checkout(), self.path()];
            is_relative_inside(name) && both.iter().all(|top| fs::symlink_metadata(top.join(name)).is_ok())
        };
        for name in names.iter().map(Path::new).filter(is_copy) {
            // A file that the branch contains is not a copy, and is committed like any other.
            let listed = self.isolated_git("ls-tree -z --name-only --full-tree HEAD --")?.args([name]).read()?;
            if listed.is_empty() && !ExcludedPaths::for_worktree(&self.git_dir).contains(name) {
                self.record_copied(name)?;
            }
        }
        Ok(())
    }

    /// Copies a file if it exists and its destination does not. Returns whether it was copied.
    fn copy_file(&self, name: &Path) -> Result<bool, GitError> {
        let [from_top, to_top] = [self.repository.checkout(), self.path()];
        if !is_relative_inside(name) || has_linked_parent(from_top, name) || has_linked_parent(to_top, name) {
            return Err(GitError::OutsideWorktree(name.to_owned()));
        }
        let (from, to) = (from_top.join(name), to_top.join(name));
        let found = fs::symlink_metadata(&from).ok().filter(|found| !found.is_dir());
        let Some(found) = found.filter(|_| fs::symlink_metadata(&to).is_err()) else { return Ok(false) };
        // Recorded first, so that every copy is known to be a possible secret.
        self.record_copied(name)?;
        if let Some(directory) = to.parent() {
            fs::create_dir_all(directory).map_err(GitError::at(directory))?;
        }
        let copied = match found.is_symlink() {
            true => fs::read_link(&from).and_then(|target| symlink(target, &to)),
            false => fs::copy(&from, &to).map(drop),
        };
        copied.map_err(GitError::at(&to)).map(|()| true)
    }

    fn record_copied(&self, name: &Path) -> Result<(), GitError> {
        let file = self.git_dir.join(COPIED_LIST);
        let mut noted = content(&file).unwrap_or_default();
        noted.extend(join_nul([name]));
        write_atomic(&file, &noted, WriteMode::Plain)
    }
}

fn is_relative_inside(name: &Path) -> bool {
    let mut components = name.components().peekable();
    components.peek().is_some() && components.all(|part| matches!(part, Component::Normal(part) if part != ".git"))
}

/// Whether a directory on the path to `name` is a link.
fn has_linked_parent(top: &Path, name: &Path) -> bool {
    parent_directories(name).any(|above| top.join(above).is_symlink())
}
