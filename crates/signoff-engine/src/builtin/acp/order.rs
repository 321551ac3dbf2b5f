//! What `__acp` is asked for.

use std::path::PathBuf;
use std::time::Duration;

/// The agent, and what it is to do besides the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Order {
    /// It only looks.
    pub reads: bool,
    /// Where it reports, with the token.
    pub report: Option<(String, String)>,
    pub resumes: Option<String>,
    pub model: Option<String>,
    pub program: String,
    pub arguments: Vec<String>,
}

/// An order with all that it is carried out with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Job {
    pub order: Order,
    pub prompt: String,
    /// Where the agent works.
    pub directory: PathBuf,
    /// How long it may take to answer the greeting.
    pub greeting: Duration,
}

/// A command line that this program did not write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    #[error("{0} is no flag of `__acp`")]
    Flag(String),
    #[error("`__acp` needs `-- COMMAND`")]
    Command,
    #[error("the variable {0} with the token is not set")]
    Token(String),
}

impl Order {
    pub fn read(
        mut words: impl Iterator<Item = String>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Unclear> {
        let mut order = Self::default();
        while let Some(word) = words.next() {
            let mut next = || words.next().ok_or(Unclear::Command);
            match word.as_str() {
                "--read" => order.reads = true,
                "--report" => {
                    let (url, name) = (next()?, next()?);
                    order.report = Some((url, variable(&name).ok_or(Unclear::Token(name))?));
                }
                "--resume" => order.resumes = Some(next()?),
                "--model" => order.model = Some(next()?),
                "--" => {
                    order.program = next()?;
                    order.arguments = words.collect();
                    return Ok(order);
                }
                _ => return Err(Unclear::Flag(word)),
            }
        }
        Err(Unclear::Command)
    }
}
