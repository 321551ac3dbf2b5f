//! What can go wrong with a store, one variant per thing a caller could do differently.

use signoff_core::ids::{RunId, TaskId};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no run {0}")]
    NoRun(RunId),
    #[error("there is no task {0}")]
    NoTask(TaskId),
    #[error("another signoff works on run {0}")]
    Held(RunId),
    /// The lease was taken over meanwhile: whoever sees this must stop.
    #[error("run {0} was taken over by another signoff")]
    Fenced(RunId),
    /// Another run has it, or it was called off.
    #[error("task {0} is no longer in the queue")]
    Taken(TaskId),
    /// An earlier task has what this one was to be, and was not called off.
    #[error("{id} is task {by} already")]
    Claimed { id: String, by: TaskId },
    #[error("the disk is full")]
    Full,
    /// Somebody held the database for too long.
    #[error("the database is busy: another program holds it")]
    Busy,
    /// What is written now would be found by nobody.
    #[error("the database was removed while it was in use")]
    Gone,
    /// Another file is in its place.
    #[error("the database was replaced while it was in use")]
    Replaced,
    #[error("the database was written by a newer signoff (version {found}, this one knows {known})")]
    Newer { found: u32, known: u32 },
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// A row of the log that cannot be read.
    #[error("run {run}, fact {seq}: {message}")]
    Unreadable { run: RunId, seq: u64, message: String },
    #[error("{0}")]
    Other(String),
}
