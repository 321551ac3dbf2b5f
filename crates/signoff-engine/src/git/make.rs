//! A repository where there was none.

use std::path::Path;

use super::{Git, GitError, Repository};

impl Repository {
    /// Makes a repository of a directory, with everything that lies in it as the first commit.
    pub fn make(git: &Git, directory: &Path, message: &str) -> Result<Self, GitError> {
        let made = git.command(directory).args(["init", "--quiet", "--initial-branch=main"]).run()?;
        if made.code() != Some(0) {
            return Err(made.failure());
        }
        let repository = Self::discover(git, directory)?;
        repository.sealed(repository.here())?.args(["add", "--all"]).read()?;
        let commit = repository.sealed(repository.here())?.args(["commit", "-q", "-F", "-"]);
        commit.input(format!("{message}\n")).read()?;
        Ok(repository)
    }
}
