//! Errors of the engine, one variant per reaction that a caller may choose.

use std::io;
use std::path::{Path, PathBuf};

use signoff_core::settings::ConfigError;
use signoff_core::view::inbox::NextStep;
use signoff_store::StoreError;

use crate::custom_prompts::PromptError;
use crate::git::GitError;
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
    /// A custom prompt file cannot be used.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error("cannot {what} {path}: {error}", path = path.display())]
    Io { what: &'static str, path: PathBuf, error: io::Error },
    /// Another task of the same branch works in this worktree.
    #[error("worktree {} is in use by another task", worktree.display())]
    WorktreeInUse { worktree: PathBuf },
    /// The work did not land; nothing was changed.
    #[error("{message}")]
    NotLanded { message: String, hint: String },
    /// The work did not land because it contains the work of a task that is not approved; nothing was changed.
    #[error("{what} builds on task {task}, which is not approved")]
    ContainsUnapproved { what: String, task: signoff_core::ids::TaskId, next: Box<NextStep> },
    /// A bug in signoff.
    #[error("internal error: {0}")]
    Internal(String),
    /// The run's log lacks a fact that is needed to continue.
    #[error("run {run}: {message}")]
    Log { run: signoff_core::ids::RunId, message: String },
}

impl EngineError {
    pub fn io(what: &'static str, path: &Path, error: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), error }
    }
}
