//! What keeps the engine from going on, one variant per thing a caller could do differently.

use std::io;
use std::path::{Path, PathBuf};

use signoff_core::config::ConfigError;
use signoff_store::StoreError;

use crate::git::GitError;
use crate::opening::PromptError;
use crate::tracker::TrackerError;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Tracker(#[from] TrackerError),
    /// A prompt that a person wants used cannot be.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error("cannot {what} {path}: {error}", path = path.display())]
    Io { what: &'static str, path: PathBuf, error: io::Error },
    /// Another task of the same branch is being worked there.
    #[error("somebody else works in {}", worktree.display())]
    Occupied { worktree: PathBuf },
    /// What was to land did not; nothing was changed.
    #[error("{message}")]
    NotLanded { message: String, hint: String },
    /// A part of the program failed in a way nobody foresaw.
    #[error("internal error: {0}")]
    Broken(String),
    /// The run's log does not say what is needed to go on.
    #[error("run {run}: {message}")]
    Log { run: signoff_core::ids::RunId, message: String },
}

impl EngineError {
    pub fn io(what: &'static str, path: &Path, error: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), error }
    }
}
