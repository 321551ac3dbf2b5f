//! A worktree whose branch somebody moved from elsewhere: its files are those of an older commit.

use signoff_core::ids::Commit;

use super::disk::content;
use super::tips::is_id;
use super::{GitError, Worktree};

impl Worktree {
    /// Lets index and files follow the branch: committed as they are, they would take back what was committed
    /// elsewhere. What is not committed here stays; where that is in the way, nothing follows.
    pub(super) fn catch_up(&self) -> Result<(), GitError> {
        let Some((was, tip)) = self.last_seen().zip(self.loose_commit()) else { return Ok(()) };
        // Whoever is here moved it, or it was moved to something else altogether.
        if was == tip || !self.repository.is_ancestor(was.as_str(), tip.as_str()).unwrap_or(false) {
            return Ok(());
        }
        self.repository.sealed(self.place())?.args(["update-index", "-q", "--refresh"]).run()?;
        let asked = ["read-tree", "-m", "-u", was.as_str(), tip.as_str()];
        self.repository.sealed(self.place())?.args(asked).run().map(drop)
    }

    /// Where its `HEAD` was when somebody moved it last from here, as its log says.
    fn last_seen(&self) -> Option<Commit> {
        let log = content(&self.git_dir.join("logs/HEAD"))?;
        let last = log.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
        let id = std::str::from_utf8(last.split(|byte| *byte == b' ').nth(1)?).ok()?;
        is_id(id).then(|| Commit::new(id))
    }
}
