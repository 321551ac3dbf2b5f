//! Arguments of `__acp`.

use std::path::PathBuf;
use std::time::Duration;

/// The agent to start, and the options besides the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcpArgs {
    /// The agent may only read.
    pub read_only: bool,
    /// URL and token of the report server.
    pub report: Option<(String, String)>,
    pub resume_session: Option<String>,
    pub model: Option<String>,
    pub program: String,
    pub arguments: Vec<String>,
}

/// The arguments with the prompt and the working directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcpJob {
    pub args: AcpArgs,
    pub prompt: String,
    /// The agent's working directory.
    pub directory: PathBuf,
    /// Time limit for the handshake.
    pub handshake_timeout: Duration,
}

/// Invalid arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcpArgsError {
    #[error("{0} is not a flag of `__acp`")]
    Flag(String),
    #[error("`__acp` needs `-- COMMAND`")]
    Command,
    #[error("the variable {0} with the token is not set")]
    Token(String),
}

impl AcpArgs {
    pub fn parse(
        mut words: impl Iterator<Item = String>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, AcpArgsError> {
        let mut args = Self::default();
        while let Some(word) = words.next() {
            let mut next = || words.next().ok_or(AcpArgsError::Command);
            match word.as_str() {
                "--read" => args.read_only = true,
                "--report" => {
                    let (url, name) = (next()?, next()?);
                    args.report = Some((url, variable(&name).ok_or(AcpArgsError::Token(name))?));
                }
                "--resume" => args.resume_session = Some(next()?),
                "--model" => args.model = Some(next()?),
                "--" => {
                    args.program = next()?;
                    args.arguments = words.collect();
                    return Ok(args);
                }
                _ => return Err(AcpArgsError::Flag(word)),
            }
        }
        Err(AcpArgsError::Command)
    }
}
