//! Moves a rejected branch's commits to a branch of their own.

use signoff_core::ids::Commit;

use super::{GitError, Worktree};

impl Worktree {
    /// Resets branch and files to `to`. Everything after it stays on the branch `aside`, including uncommitted
    /// work. Returns whether there was anything to move.
    pub fn park_branch(&self, to: &Commit, parked_branch: &str, message: &str) -> Result<bool, GitError> {
        let head = self.commit_all(message)?.head;
        let Some(branch) = self.branch().filter(|_| head.commit != *to) else { return Ok(false) };
        let name = format!("refs/heads/{parked_branch}");
        let asked = ["update-ref", "-m", "signoff: set aside", &name, head.commit.as_str()];
        self.repository.isolated_git(self.place())?.args(asked).read()?;
        self.move_branch(branch, to)?;
        self.repository.isolated_git(self.place())?.args(["read-tree", "--reset", "-u", "HEAD"]).read()?;
        Ok(true)
    }
}
