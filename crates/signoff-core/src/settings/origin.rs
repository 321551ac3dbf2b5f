//! Where a value comes from, and errors that name the place.

use std::fmt;

use serde::Serialize;

/// Where a value comes from. Lines are counted from one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum SettingOrigin {
    /// Built in.
    Default,
    /// The workflow that is shipped under this name.
    Preset { name: String },
    /// The person's own file.
    Person { file: String, line: usize },
    /// A file of another program.
    Foreign { file: String, line: usize },
    /// The repository's file.
    Repository { file: String, line: usize },
    /// A variable of the environment.
    Environment { name: String },
    /// A flag of the command line.
    Flag { name: String },
    /// The task itself.
    Task,
}

impl SettingOrigin {
    /// An error about a value from there.
    pub(crate) fn error(&self, message: impl Into<String>) -> ConfigError {
        let message = message.into();
        match self {
            Self::Person { file, line } | Self::Foreign { file, line } | Self::Repository { file, line } => {
                ConfigError::File { file: file.clone(), line: *line, message }
            }
            Self::Environment { name } | Self::Flag { name } => ConfigError::Given { name: name.clone(), message },
            Self::Default | Self::Preset { .. } | Self::Task => ConfigError::Nowhere { message },
        }
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("built in"),
            Self::Preset { name } => write!(f, "preset {name}"),
            Self::Person { file, line } | Self::Foreign { file, line } | Self::Repository { file, line } => {
                write!(f, "{file}:{line}")
            }
            Self::Environment { name } | Self::Flag { name } => f.write_str(name),
            Self::Task => f.write_str("the task"),
        }
    }
}

/// A mistake in the configuration, or something it leaves open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// In a file.
    #[error("{file}:{line}: {message}")]
    File { file: String, line: usize, message: String },
    /// In a variable of the environment or a flag.
    #[error("{name}: {message}")]
    Given { name: String, message: String },
    /// In no particular place.
    #[error("{message}")]
    Nowhere { message: String },
    /// A workflow was asked for that is neither a preset nor configured.
    #[error("no workflow is called `{name}`: {expected}")]
    UnknownWorkflow { name: String, expected: String },
    /// No agent can do the work.
    #[error("no agent is configured")]
    NoAgent,
    /// There are several agents, and none of them is chosen for this role.
    #[error("nothing says which agent does `{role}`: `[roles]` could name one of {}", agents.join(", "))]
    Unassigned { role: &'static str, agents: Vec<String> },
}
