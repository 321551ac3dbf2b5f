//! The one place where an error becomes a message, a place, a hint and an exit code.

use std::fmt;
use std::process::ExitCode;

use signoff_core::config::ConfigError;
use signoff_core::source::{self, SourceError};
use signoff_core::workflow::WorkflowError;

use crate::console::plain_text;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Finished, and nothing failed.
    Done,
    /// Something failed: an answer broke its contract, output could not be written.
    Failed,
    /// The command line, or a file it names, is wrong.
    Usage,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => Self::from(0),
            Exit::Failed => Self::from(1),
            Exit::Usage => Self::from(2),
        }
    }
}

/// Why a command gave up, and what the person can do about it.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    message: String,
    place: Option<String>,
    hint: Option<String>,
}

impl Failure {
    /// The command line, or a file it names, is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The work itself failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), place: None, hint: None }
    }

    /// Adds where it happened: `file`, `file:line` or `file:line:column`.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", plain_text(&self.message))?;
        if let Some(place) = &self.place {
            writeln!(f, "  --> {}", plain_text(place))?;
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "hint: {}", plain_text(hint))?;
        }
        Ok(())
    }
}

impl From<WorkflowError> for Failure {
    fn from(error: WorkflowError) -> Self {
        Self::usage(&error.message)
            .at(format!("{}:{}", error.file, error.line))
            .hint("`signoff workflow show task` shows the words a workflow is written in")
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let said = error.to_string();
        match error {
            ConfigError::File { file, line, message } => Self::usage(message)
                .at(format!("{file}:{line}"))
                .hint("mend the file, then look at it with `signoff config`"),
            ConfigError::Given { name, message } => Self::usage(message).at(name),
            ConfigError::Nowhere { message } => Self::usage(message),
            ConfigError::UnknownWorkflow { .. } => {
                Self::usage(said).hint("`signoff workflow list` shows the presets")
            }
            ConfigError::NoAgent => Self::usage(said)
                .hint("run `signoff init`, or write an [agents.NAME] table into signoff.toml"),
            ConfigError::Unassigned { .. } => {
                Self::usage(said).hint("name one as `implement` in [roles] of signoff.toml")
            }
        }
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        let formats = source::Format::ALL.map(source::Format::word).join(", ");
        Self::usage(&error.message)
            .at(format!("{}:{}", error.file, error.line))
            .hint(format!("mend the file, or say what it is with --as: {formats}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_place_and_the_next_step() {
        let failure = Failure::usage("a plan without tasks").at("plan.md:1").hint("write one");
        insta::assert_snapshot!(failure, @r"
        error: a plan without tasks
          --> plan.md:1
        hint: write one
        ");
    }

    #[test]
    fn a_failure_cannot_steer_the_terminal() {
        let failure = Failure::usage("no \u{1b}[31mred\u{1b}[0m file");
        insta::assert_snapshot!(failure, @"error: no [31mred[0m file");
    }
}
