//! Translators between signoff and one kind of agent each: job to command line, output to final message.
//!
//! An adapter starts nothing, decides nothing and keeps nothing.

mod command;
mod demo;

use signoff_core::config::{self, AgentKind};
use signoff_core::limited::{Ended, Refused};

/// What an agent is asked for, as far as its command line depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    pub agent: &'a config::Agent,
    pub model: Option<&'a str>,
    /// signoff itself, for agents that are part of it.
    pub program: &'a str,
}

/// A command line. The prompt comes on stdin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    pub program: String,
    pub arguments: Vec<String>,
    /// Set, or taken away where there is no value.
    pub environment: Vec<(String, Option<String>)>,
}

/// One kind of agent.
pub trait Agent: Send + Sync {
    fn command_line(&self, order: &Order<'_>) -> CommandLine;

    /// The final message in what it wrote to stdout.
    fn final_message(&self, stdout: Vec<u8>) -> Vec<u8>;

    /// Whether it ended because its provider refuses it for now.
    fn refused(&self, ended: &Ended<'_>) -> Option<Refused>;
}

/// The translator for a kind of agent; none for those that cannot be driven yet.
pub fn of(kind: AgentKind) -> Option<Box<dyn Agent>> {
    match kind {
        AgentKind::Command => Some(Box::new(command::Command)),
        AgentKind::Demo => Some(Box::new(demo::Demo)),
        AgentKind::Checks => None,
        AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Opencode
        | AgentKind::Qwen
        | AgentKind::Copilot
        | AgentKind::Acp => None,
    }
}
