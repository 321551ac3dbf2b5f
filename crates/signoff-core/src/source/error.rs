//! The error for a task file that could not be parsed.

/// A file that cannot be parsed as tasks, with the location and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct SourceError {
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    pub message: String,
}

impl SourceError {
    pub fn new(file: impl Into<String>, line: u32, message: impl Into<String>) -> Self {
        Self { file: file.into(), line, message: message.into() }
    }
}
