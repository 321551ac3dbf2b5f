//! What is wrong with a configuration.

use crate::workflow::WorkflowError;

/// A mistake in the configuration, or something it leaves open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// In a file.
    #[error("{file}:{line}: {message}")]
    File { file: String, line: usize, message: String },
    /// In a variable of the environment or a flag.
    #[error("{name}: {message}")]
    Given { name: String, message: String },
    /// In no place one could point at.
    #[error("{message}")]
    Nowhere { message: String },
    /// A workflow was asked for that is neither a preset nor configured.
    #[error("no workflow is called `{name}`: {expected}")]
    UnknownWorkflow { name: String, expected: String },
    /// There is nobody to do the work.
    #[error("no agent is configured")]
    NoAgent,
    /// There are several agents, and nothing says which one is to do this.
    #[error("nothing says which agent does `{role}`: `[roles]` could name one of {}", agents.join(", "))]
    Unassigned { role: &'static str, agents: Vec<String> },
}

impl From<WorkflowError> for ConfigError {
    fn from(error: WorkflowError) -> Self {
        Self::File { file: error.file, line: error.line, message: error.message }
    }
}
