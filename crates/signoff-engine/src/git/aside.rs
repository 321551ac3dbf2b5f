//! Work that is not to be built upon: it leaves the branch, and is kept under a name of its own.

use signoff_core::ids::Commit;

use super::{GitError, Worktree};

impl Worktree {
    /// Puts branch and files back to `to`, where nothing of what came after it is wanted any more. What was there stays
    /// on the branch `aside`, uncommitted work included. Tells whether there was anything.
    pub fn set_aside(&self, to: &Commit, aside: &str, message: &str) -> Result<bool, GitError> {
        let head = self.commit_all(message)?.head;
        let Some(branch) = self.branch().filter(|_| head.commit != *to) else { return Ok(false) };
        let name = format!("refs/heads/{aside}");
        let asked = ["update-ref", "-m", "signoff: set aside", &name, head.commit.as_str()];
        self.repository.sealed(self.place())?.args(asked).read()?;
        self.move_branch(branch, to)?;
        self.repository.sealed(self.place())?.args(["read-tree", "--reset", "-u", "HEAD"]).read()?;
        Ok(true)
    }
}
