//! Creates a repository.

use std::path::Path;

use super::{Git, GitError, Repository};

impl Repository {
    /// Creates a repository in a directory and commits everything in it.
    pub fn init(git: &Git, directory: &Path, message: &str) -> Result<Self, GitError> {
        let made = git.command(directory).args(["init", "--quiet", "--initial-branch=main"]).run()?;
        if made.code() != Some(0) {
            return Err(made.into_error());
        }
        let repository = Self::discover(git, directory)?;
        repository.isolated_git(repository.checkout_place())?.args(["add", "--all"]).read()?;
        let commit = repository.isolated_git(repository.checkout_place())?.args(["commit", "-q", "-F", "-"]);
        commit.input(format!("{message}\n")).read()?;
        Ok(repository)
    }
}
