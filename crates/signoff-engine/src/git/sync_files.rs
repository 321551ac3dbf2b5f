//! Updates a worktree's files after its branch moved elsewhere.

use signoff_core::ids::Commit;

use super::disk::content;
use super::refs::is_id;
use super::{GitError, Worktree};

impl Worktree {
    /// Updates index and files to the branch. Otherwise the next commit would revert what was committed elsewhere.
    /// Keeps uncommitted changes; if they conflict, changes nothing.
    pub(super) fn sync_to_branch(&self) -> Result<(), GitError> {
        let Some((was, tip)) = self.last_reflog_commit().zip(self.branch_file_commit()) else {
            return Ok(());
        };
        // `HEAD` was moved in this worktree, or the branch was moved to an unrelated commit.
        if was == tip || !self.repository.is_ancestor(was.as_str(), tip.as_str()).unwrap_or(false) {
            return Ok(());
        }
        self.repository.isolated_git(self.place())?.args(["update-index", "-q", "--refresh"]).run()?;
        let asked = ["read-tree", "-m", "-u", was.as_str(), tip.as_str()];
        self.repository.isolated_git(self.place())?.args(asked).run().map(drop)
    }

    /// The commit of the last `HEAD` update in this worktree, from its reflog.
    fn last_reflog_commit(&self) -> Option<Commit> {
        let log = content(&self.git_dir.join("logs/HEAD"))?;
        let last = log.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
        let id = std::str::from_utf8(last.split(|byte| *byte == b' ').nth(1)?).ok()?;
        is_id(id).then(|| Commit::new(id))
    }
}
