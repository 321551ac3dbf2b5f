//! Committing what an agent left, in whatever state it left it.

use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;
use signoff_core::machine::Head;

use super::disk::{content, remove_if_there, write_whole};
use super::repository::Place;
use super::stage::{KeptOut, pathspec};
use super::status::{Kind, Status};
use super::{GitError, Operation, Repository, Worktree, index};

/// How a worktree is after everything in it was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    pub head: Head,
    /// Whether there was anything to commit.
    pub made: bool,
    /// What the agent had begun and not ended. Its files were committed as they were.
    pub unfinished: Option<Operation>,
}

impl Worktree {
    /// Commits everything that is not ignored, untracked files included. The agent must have ended.
    pub fn commit_all(&self, message: &str) -> Result<Committed, GitError> {
        self.commit_all_and(message, None)
    }

    /// The same with one plain file that is wanted, also where it is ignored.
    pub fn commit_all_and(&self, message: &str, wanted: Option<&Path>) -> Result<Committed, GitError> {
        self.there()?;
        self.link()?;
        self.clear_stale_lock()?;
        let unfinished = Operation::left_in(&self.git_dir);
        match unfinished {
            // Its commits are half here and half there; only who began it can tell what was meant.
            Some(operation @ (Operation::Rebase | Operation::Bisect)) => {
                return Err(GitError::Unfinished { worktree: self.path().to_owned(), operation });
            }
            Some(Operation::Merge | Operation::CherryPick | Operation::Revert) | None => {}
        }
        self.look_at_all_files()?;
        self.catch_up()?;
        if let Some(file) = wanted {
            let asked = ["add", "--force", "--"];
            self.repository.sealed(self.place())?.args(asked).args([pathspec("top,literal", file)]).read()?;
        }
        let status = self.repository.status(self.place())?;
        let kept_out = KeptOut::of(&self.git_dir);
        let dirty = kept_out.leaves_work(&status);
        self.come_home(&status, dirty)?;
        let made = (dirty || unfinished.is_some()) && {
            let stages_itself = kept_out.knows_all(&status);
            if !stages_itself {
                self.repository.stage(self.place(), &status, &kept_out)?;
            }
            self.settle_operation(unfinished, &status)?;
            self.commit_staged(message, stages_itself)?
        };
        let head = if made { self.committed_head()? } else { self.head()? };
        Ok(Committed { head, made, unfinished })
    }

    /// Makes sure that git looks at every file as it is: what it does not look at would be neither committed nor
    /// reviewed. An agent can have written anything into the index.
    fn look_at_all_files(&self) -> Result<(), GitError> {
        if self.forget_stat()? {
            return Ok(());
        }
        let own = self.git_dir.join("index");
        // Only a plain file is git's to read; and what git cannot read either is made anew.
        if content(&own).is_some() {
            self.show_hidden().and_then(|()| self.simplify_index()).ok();
            if self.forget_stat()? {
                return Ok(());
            }
        }
        remove_if_there(&own)?;
        self.repository.sealed(self.place())?.args(["read-tree", "HEAD"]).read().map(drop)
    }

    /// Takes out of the index what git believes about files without looking at them. False if there is more to do
    /// than that.
    fn forget_stat(&self) -> Result<bool, GitError> {
        let own = self.git_dir.join("index");
        let bytes = content(&own).unwrap_or_default();
        match index::without_stat(&bytes, self.repository.seal()?.id_bytes()) {
            Some(bare) => write_whole(&own, &bare).map(|()| true),
            None => Ok(false),
        }
    }

    /// Takes back what tells git not to look at a file.
    fn show_hidden(&self) -> Result<(), GitError> {
        let listed = self.repository.sealed(self.place())?.args(["ls-files", "-v", "-z"]).read()?;
        let is_hidden =
            |line: &&[u8]| line.first().is_some_and(|tag| tag.is_ascii_lowercase() || *tag == b'S');
        let hidden: Vec<&[u8]> = listed.split(|byte| *byte == 0).filter(is_hidden).collect();
        if hidden.is_empty() {
            return Ok(());
        }
        let paths: Vec<u8> = hidden
            .iter()
            .flat_map(|line| line.get(2..).unwrap_or_default().iter().chain(&[0]))
            .copied()
            .collect();
        for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
            let asked = ["update-index", flag, "-z", "--stdin"];
            self.repository.sealed(self.place())?.args(asked).input(paths.clone()).read()?;
        }
        Ok(())
    }

    /// Has git write the index in its plainest form.
    fn simplify_index(&self) -> Result<(), GitError> {
        let asked = ["update-index", "--no-split-index", "--index-version", "2"];
        self.repository.sealed(self.place())?.args(asked).read().map(drop)
    }

    /// Keeps a merge that is resolved, and forgets all else: the files stay, the operation's state goes.
    fn settle_operation(&self, unfinished: Option<Operation>, status: &Status) -> Result<(), GitError> {
        let conflicts = status.entries.iter().any(|entry| entry.kind == Kind::Unmerged);
        match unfinished {
            None => Ok(()),
            Some(Operation::Merge) if !conflicts => Ok(()),
            Some(operation) => self.repository.sealed(self.place())?.args(operation.quit()).read().map(drop),
        }
    }

    /// Tells whether there was a difference to commit; a status may see one where the content is the same. With
    /// `all`, files that git knows need not be staged before.
    fn commit_staged(&self, message: &str, all: bool) -> Result<bool, GitError> {
        let asked = ["commit", "-q", "--no-verify", "--no-gpg-sign", "--allow-empty-message"];
        // Not through a pipe: if this program is killed while git waits for the rest, git would take what it has.
        let command = self.repository.sealed(self.place())?.args(asked).args(["--cleanup=verbatim"]);
        let command = if all { command.args(["--all"]) } else { command };
        let ended = command.args(["-m".to_owned(), format!("{}\n", message.trim_end())]).run()?;
        if ended.code() == Some(1) {
            let asked = ["diff", "--cached", "--quiet", "--no-ext-diff", "HEAD"];
            let nothing = self.repository.sealed(self.place())?.args(asked).run()?.yes()?;
            return if nothing { Ok(false) } else { Err(ended.failure()) };
        }
        ended.success().map(|_| true)
    }

    /// Brings `HEAD` back to the loop's branch where the agent went elsewhere, with what it made there.
    fn come_home(&self, status: &Status, dirty: bool) -> Result<(), GitError> {
        let Some(branch) = self.branch() else { return Ok(()) };
        let gone = || GitError::BranchGone(branch.to_owned());
        let head = status.head.as_ref().ok_or_else(gone)?;
        if status.branch.as_deref() == Some(branch) {
            return Ok(());
        }
        let known = self.repository.known(branch)?;
        // A branch that was renamed or deleted begins again where it began.
        let tip = known.tip.map(|tip| tip.commit).or(known.base).ok_or_else(gone)?;
        if self.repository.is_ancestor(tip.as_str(), head.as_str())? {
            self.move_branch(branch, head)
        } else if !dirty && self.repository.is_ancestor(head.as_str(), tip.as_str())? {
            self.move_branch(branch, &tip)?;
            self.repository
                .sealed(self.place())?
                .args(["read-tree", "--reset", "-u", "HEAD"])
                .read()
                .map(drop)
        } else {
            let worktree = self.path().to_owned();
            Err(GitError::Astray { worktree, branch: branch.to_owned(), head: head.clone() })
        }
    }

    /// Puts the branch at a commit and `HEAD` on the branch; files and index stay.
    pub(super) fn move_branch(&self, branch: &str, commit: &Commit) -> Result<(), GitError> {
        let name = format!("refs/heads/{branch}");
        let asked = ["update-ref", "-m", "signoff: brought back", &name, commit.as_str()];
        self.repository.sealed(self.place())?.args(asked).read()?;
        self.repository.sealed(self.place())?.args(["symbolic-ref", "HEAD", &name]).read().map(drop)
    }
}

impl Worktree {
    /// The worktree as it is, while somebody works in it: all that is uncommitted, as a commit on top of its head.
    pub fn snapshot_commit(&self) -> Result<Commit, GitError> {
        self.there()?;
        self.repository.snapshot_at(self.place())
    }
}

impl Repository {
    /// The person's checkout with all that is uncommitted and untracked, as a commit on top of `HEAD`.
    ///
    /// Only objects are written: no ref, no index, no file.
    pub fn snapshot_commit(&self) -> Result<Commit, GitError> {
        self.snapshot_at(self.here())
    }

    /// The files of the checkout that are not as `HEAD` has them.
    pub fn uncommitted(&self) -> Result<Vec<PathBuf>, GitError> {
        Ok(self.status(self.here())?.entries.into_iter().map(|entry| entry.path).collect())
    }

    fn snapshot_at(&self, here: Place<'_>) -> Result<Commit, GitError> {
        let scratch = self.scratch_index(here.git_dir)?;
        let place = Place { index: Some(&scratch.path), ..here };
        let status = self.status(place)?;
        self.stage(place, &status, &KeptOut::of(here.git_dir))?;
        let tree = self.sealed(place)?.args(["write-tree"]).read_line()?;
        let parent = status.head.iter().flat_map(|head| ["-p", head.as_str()]);
        let command = self.sealed(place)?.args(["commit-tree", "--no-gpg-sign", &tree]).args(parent);
        Ok(Commit::new(command.input("Snapshot of a checkout\n").read_line()?))
    }
}
