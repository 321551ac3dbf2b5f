//! Where a value comes from.

use std::fmt;

use serde::Serialize;

use super::ConfigError;

/// Where a value comes from. Lines are counted from one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum Origin {
    /// Built in.
    Default,
    /// The workflow that is shipped under this name.
    Preset { name: String },
    /// The person's own file.
    Person { file: String, line: usize },
    /// A file of another program, which is read as it is.
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

impl Origin {
    /// An error about what was said there.
    pub(super) fn error(&self, message: impl Into<String>) -> ConfigError {
        let message = message.into();
        match self {
            Self::Person { file, line } | Self::Foreign { file, line } | Self::Repository { file, line } => {
                ConfigError::File { file: file.clone(), line: *line, message }
            }
            Self::Environment { name } | Self::Flag { name } => {
                ConfigError::Given { name: name.clone(), message }
            }
            Self::Default | Self::Preset { .. } | Self::Task => ConfigError::Nowhere { message },
        }
    }
}

impl fmt::Display for Origin {
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

/// A value with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// What holds where nobody says anything.
    pub(super) fn built_in(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    /// The value, unless it is only the built-in one.
    pub(super) fn written(&self) -> Option<&T> {
        (self.origin != Origin::Default).then_some(&self.value)
    }
}
