//! Commits the work of an agent that has ended, in whatever state the worktree is.

use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;
use signoff_core::machine::Head;

use super::disk::{content, remove_if_exists, write_atomic};
use super::repository::GitPlace;
use super::stage::{ExcludedPaths, pathspec};
use super::status::{GitStatus, StatusKind};
use super::{GitError, Operation, Repository, Worktree, index};

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
            // Its commits are partly applied; only the agent that started it knows what it intended.
            Some(operation @ (Operation::Rebase | Operation::Bisect)) => {
                return Err(GitError::Unfinished { worktree: self.path().to_owned(), operation });
            }
            Some(Operation::Merge | Operation::CherryPick | Operation::Revert) | None => {}
        }
        self.refresh_index()?;
        self.sync_to_branch()?;
        if let Some(file) = extra_file {
            self.isolated_git(["add", "--force", "--"])?.args([pathspec("top,literal", file)]).execute()?;
        }
        let status = self.repository.status(self.place())?;
        let kept_out = ExcludedPaths::for_worktree(&self.git_dir);
        let dirty = kept_out.has_changes(&status);
        self.return_to_branch(&status, dirty)?;
        let made = (dirty || unfinished.is_some()) && {
            let stages_itself = kept_out.all_tracked(&status);
            if !stages_itself {
                self.repository.stage(self.place(), &status, &kept_out)?;
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
            self.clear_skip_flags().and_then(|()| self.simplify_index()).ok();
            if self.clear_index_stat()? {
                return Ok(());
            }
        }
        remove_if_exists(&own)?;
        self.isolated_git(["read-tree", "HEAD"])?.execute()
    }

    /// Removes cached file metadata from the index, so that git compares every file. Returns `false` if the index
    /// needs more than that.
    fn clear_index_stat(&self) -> Result<bool, GitError> {
        let own = self.git_dir.join("index");
        let bytes = content(&own).unwrap_or_default();
        match index::without_stat(&bytes, self.repository.isolated_dir()?.id_bytes()) {
            Some(bare) => write_atomic(&own, &bare).map(|()| true),
            None => Ok(false),
        }
    }

    /// Clears the flags that make git skip a file.
    fn clear_skip_flags(&self) -> Result<(), GitError> {
        let listed = self.isolated_git(["ls-files", "-v", "-z"])?.read()?;
        let is_hidden = |line: &&[u8]| line.first().is_some_and(|tag| tag.is_ascii_lowercase() || *tag == b'S');
        let hidden: Vec<&[u8]> = listed.split(|byte| *byte == 0).filter(is_hidden).collect();
        if hidden.is_empty() {
            return Ok(());
        }
        let paths: Vec<u8> =
            hidden.iter().flat_map(|line| line.get(2..).unwrap_or_default().iter().chain(&[0])).copied().collect();
        for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
            self.isolated_git(["update-index", flag, "-z", "--stdin"])?.input(paths.clone()).execute()?;
        }
        Ok(())
    }

    /// Makes git write the index in its simplest format.
    fn simplify_index(&self) -> Result<(), GitError> {
        self.isolated_git(["update-index", "--no-split-index", "--index-version", "2"])?.execute()
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
        let asked = ["commit", "-q", "--no-verify", "--no-gpg-sign", "--allow-empty-message"];
        // Not through a pipe: if this process is killed while git reads the message, git would commit a part of it.
        let command = self.isolated_git(asked)?.args(["--cleanup=verbatim"]);
        let command = if all { command.args(["--all"]) } else { command };
        let ended = command.args(["-m".to_owned(), format!("{}\n", message.trim_end())]).run()?;
        if ended.code() == Some(1) {
            let asked = ["diff", "--cached", "--quiet", "--no-ext-diff", "HEAD"];
            let nothing = self.isolated_git(asked)?.run()?.into_bool()?;
            return if nothing { Ok(false) } else { Err(ended.into_error()) };
        }
        ended.success().map(|_| true)
    }

    /// The worktree's current content, committed or not, as a commit on top of its head. An agent may be running.
    pub fn snapshot_commit(&self) -> Result<Commit, GitError> {
        self.check_exists()?;
        self.repository.snapshot_at(self.place())
    }
}

impl Repository {
    /// The user's checkout with all uncommitted and untracked files, as a commit on top of `HEAD`.
    ///
    /// Writes only objects: no ref, no index, no file.
    pub fn snapshot_commit(&self) -> Result<Commit, GitError> {
        self.snapshot_at(self.checkout_place())
    }

    /// The files of the checkout that differ from `HEAD`.
    pub fn uncommitted(&self) -> Result<Vec<PathBuf>, GitError> {
        Ok(self.status(self.checkout_place())?.entries.into_iter().map(|entry| entry.path).collect())
    }

    fn snapshot_at(&self, here: GitPlace<'_>) -> Result<Commit, GitError> {
        let scratch = self.scratch_index(here.git_dir)?;
        let place = here.with_index(&scratch);
        let status = self.status(place)?;
        self.stage(place, &status, &ExcludedPaths::for_worktree(here.git_dir))?;
        let tree = self.isolated_git_at(place, ["write-tree"])?.read_line()?;
        let parent = status.head.iter().flat_map(|head| ["-p", head.as_str()]);
        let command = self.isolated_git_at(place, ["commit-tree", "--no-gpg-sign", &tree])?.args(parent);
        Ok(Commit::new(command.input("Snapshot of a checkout\n").read_line()?))
    }
}
