//! The output of agents, independent of the agent's kind: single lines, and a summary of an attempt.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::shortened;

/// One line of an agent's output, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputLine {
    /// Ordinary output.
    Text(String),
    /// The agent uses a tool. `about` describes the use in a few words.
    Tool { name: String, about: String },
    /// The agent was denied a tool.
    Denied(DeniedTool),
    /// The agent waits for its provider.
    Waiting { reason: String, delay: Option<Duration> },
    /// An error reported by the agent, which may continue.
    Error(String),
}

/// A tool that an agent tried to use without permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedTool {
    pub tool: String,
    /// What the tool was to be used for, in a few words.
    #[serde(default)]
    pub about: String,
}

/// Token counts as providers report them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenCounts {
    /// All input tokens.
    pub input: u64,
    /// Input tokens read from a cache.
    pub cached: u64,
    /// Input tokens written to a cache.
    pub written: u64,
    pub output: u64,
}

/// The usage of one model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelSpend {
    /// The agent's name for the model, if it reports one.
    pub model: Option<String>,
    pub tokens: TokenCounts,
    /// In millionths of a dollar, if the agent reports it.
    pub cost_micro_usd: Option<u64>,
}

/// The summary of an agent's output. The final message is stored separately.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentSummary {
    /// The session id for resuming.
    pub session: Option<String>,
    pub spent: Vec<ModelSpend>,
    /// The error the agent ended with. Without one the attempt succeeded, whatever the exit code.
    #[serde(rename = "trouble")]
    pub error: Option<AgentError>,
    pub denied: Vec<DeniedTool>,
    /// Whether the agent connected to the report server; unknown if it does not say.
    #[serde(rename = "found_reports")]
    pub reached_report_server: Option<bool>,
    /// The start of an unparsable line after the last tool use. It may be part of the answer.
    #[serde(rename = "unreadable")]
    pub unread_line: Option<String>,
}

/// An error that ended an agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AgentError {
    pub kind: AgentErrorKind,
    /// The agent's own message.
    pub message: String,
}

/// The kind of an agent error. It determines the hint and whether to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentErrorKind {
    /// The provider limits the request rate; `seconds` is the requested delay.
    #[serde(rename = "limited")]
    RateLimited { seconds: Option<u64> },
    /// The provider is overloaded.
    Overloaded,
    /// The agent has no valid login or key.
    NotLoggedIn,
    /// The model is unknown or not available to this account.
    #[serde(rename = "model")]
    ModelUnavailable,
    /// The account has no credit, or its quota is used up.
    #[serde(rename = "money")]
    OutOfCredit,
    /// The prompt exceeds the model's context window.
    #[serde(rename = "too_long")]
    PromptTooLong,
    /// The agent reached its own limit on turns or cost.
    #[serde(rename = "bound")]
    OwnLimit,
    /// The provider's response broke off or was invalid.
    #[serde(rename = "broken")]
    InvalidResponse,
    /// The session to resume does not exist any more.
    #[serde(rename = "session")]
    SessionGone,
    /// The agent could not connect to the report server.
    #[serde(rename = "reports")]
    ReportServer,
    /// The agent rejected an argument: its version differs from the supported ones.
    Version,
    /// The agent does not implement the Agent Client Protocol.
    Protocol,
    /// The output ended without a result.
    #[serde(rename = "no_end")]
    NoResult,
    /// Any other error.
    Other,
}

/// Maximum length of an error message, in characters.
const MAX_MESSAGE_CHARS: usize = 600;

impl AgentError {
    pub fn new(kind: AgentErrorKind, message: impl AsRef<str>) -> Self {
        Self { kind, message: shortened(message.as_ref().trim(), MAX_MESSAGE_CHARS) }
    }

    /// The delay before a retry, if a retry after a delay can help. The inner value is none if the provider named no
    /// delay.
    pub fn retry_after(&self) -> Option<Option<Duration>> {
        if let AgentErrorKind::RateLimited { seconds } = self.kind {
            return Some(seconds.map(Duration::from_secs));
        }
        (self.kind == AgentErrorKind::Overloaded).then_some(None)
    }

    /// A hint for the user. `agent` is the agent's name in the configuration.
    pub fn hint(&self, agent: &str) -> Option<String> {
        let hint = match self.kind {
            AgentErrorKind::NotLoggedIn => {
                &format!("log in with the agent itself, or give it its key; then `signoff agents --check {agent}`")
            }
            AgentErrorKind::ModelUnavailable => &format!("`[agents.{agent}] model` names the model"),
            AgentErrorKind::OutOfCredit => "top up the account, or set `fallback` to another agent",
            AgentErrorKind::PromptTooLong => "make the task smaller",
            AgentErrorKind::Version => {
                &format!("update the agent; `signoff agents` shows the installed version of {agent}")
            }
            AgentErrorKind::ReportServer => {
                "the agent must reach 127.0.0.1; with `contract = \"markdown\"` it needs no server"
            }
            AgentErrorKind::Protocol => {
                &format!("set `[agents.{agent}] command` to the program and the arguments that enable the protocol")
            }
            AgentErrorKind::OwnLimit => {
                &format!("raise it where it is set: `[agents.{agent}] args` and `env`, or the agent's own settings")
            }
            AgentErrorKind::InvalidResponse | AgentErrorKind::Other if self.is_connection_error() => {
                "check the network, the proxy variables and the address of the provider"
            }
            AgentErrorKind::InvalidResponse => {
                "try again; if the error persists, check the status page of the provider"
            }
            AgentErrorKind::NoResult | AgentErrorKind::Other => {
                &format!("`signoff agents --check {agent}` tries it by itself")
            }
            AgentErrorKind::RateLimited { .. } | AgentErrorKind::Overloaded | AgentErrorKind::SessionGone => {
                return None;
            }
        };
        Some(hint.to_owned())
    }

    /// The hint while the agent is being checked by itself. `program` is the command to start by hand.
    pub fn hint_for_check(&self, agent: &str, program: &str) -> Option<String> {
        let is_unknown = matches!(self.kind, AgentErrorKind::NoResult | AgentErrorKind::Other);
        if is_unknown && !self.is_connection_error() { Some(manual_check_hint(program)) } else { self.hint(agent) }
    }

    /// Whether the message shows that the provider could not be reached.
    fn is_connection_error(&self) -> bool {
        const SIGNS: &str = "connection refused|connectionrefused|econnrefused|enotfound|eai_again|ehostunreach|\
            enetunreach|etimedout|getaddrinfo|dns error|name resolution|could not resolve|unable to connect|\
            could not connect|error trying to connect";
        let message = self.message.to_lowercase();
        SIGNS.split('|').any(|sign| message.contains(sign))
    }
}

/// The hint for an unknown failure.
pub fn manual_check_hint(program: &str) -> String {
    format!("start `{program}` by hand and send it a prompt, or read its log")
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            AgentErrorKind::RateLimited { .. } => "rate limited",
            AgentErrorKind::Overloaded => "its provider is overloaded",
            AgentErrorKind::NotLoggedIn => "not logged in",
            AgentErrorKind::ModelUnavailable => "the model cannot be used",
            AgentErrorKind::OutOfCredit => "the account has no credit",
            AgentErrorKind::PromptTooLong => "the prompt is too long for the model",
            AgentErrorKind::OwnLimit => "it reached its own turn or cost limit",
            AgentErrorKind::InvalidResponse | AgentErrorKind::Other if self.is_connection_error() => {
                "its provider could not be reached"
            }
            AgentErrorKind::InvalidResponse => "the provider's response was incomplete",
            AgentErrorKind::SessionGone => "its session no longer exists",
            AgentErrorKind::ReportServer => "it could not reach the server for reports",
            AgentErrorKind::Version => "it does not understand its command line",
            AgentErrorKind::Protocol => "it does not speak the Agent Client Protocol",
            AgentErrorKind::NoResult => "it ended without a result",
            AgentErrorKind::Other => "it ended with an error",
        };
        if self.message.is_empty() { f.write_str(what) } else { write!(f, "{what}: {}", self.message) }
    }
}

impl TokenCounts {
    pub fn plus(self, more: Self) -> Self {
        self.combined(more, u64::saturating_add)
    }

    /// Subtracts an earlier total from a running total.
    pub fn minus(self, before: Self) -> Self {
        self.combined(before, u64::saturating_sub)
    }

    fn combined(self, other: Self, by: fn(u64, u64) -> u64) -> Self {
        Self {
            input: by(self.input, other.input),
            cached: by(self.cached, other.cached),
            written: by(self.written, other.written),
            output: by(self.output, other.output),
        }
    }
}

impl OutputLine {
    /// Formats this as one line of text.
    pub fn display_line(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Tool { name, about } if about.is_empty() => format!("[{name}]"),
            Self::Tool { name, about } => format!("[{name}] {about}"),
            Self::Denied(DeniedTool { tool, about }) if about.is_empty() => format!("[{tool}] (not allowed)"),
            Self::Denied(DeniedTool { tool, about }) => format!("[{tool}] {about} (not allowed)"),
            Self::Waiting { reason, delay: Some(delay) } => format!("(waits {} s: {reason})", delay.as_secs()),
            Self::Waiting { reason, delay: None } => format!("(waits: {reason})"),
            Self::Error(message) => format!("(error: {message})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_errors_have_their_own_hint() {
        let describe = |kind, message: &str| {
            let error = AgentError::new(kind, message);
            format!("{error} | {}", error.hint("a").unwrap_or_default())
        };
        let unreached = "check the network, the proxy variables and the address of the provider";
        for words in
            ["API Error: Connection refused", "getaddrinfo EAI_AGAIN api.example", "connect ETIMEDOUT 10.0.0.1:443"]
        {
            let expected = format!("its provider could not be reached: {words} | {unreached}");
            assert_eq!(describe(AgentErrorKind::InvalidResponse, words), expected);
            assert_eq!(describe(AgentErrorKind::Other, words), expected);
        }
        assert_eq!(
            describe(AgentErrorKind::InvalidResponse, "terminated"),
            "the provider's response was incomplete: terminated | try again; if the error persists, check the \
             status page of the provider"
        );
    }

    #[test]
    fn check_hints_do_not_suggest_a_check() {
        for kind in
            [AgentErrorKind::NoResult, AgentErrorKind::Other, AgentErrorKind::Protocol, AgentErrorKind::InvalidResponse]
        {
            let hint = AgentError::new(kind, "x").hint_for_check("a", "/bin/agent").unwrap();
            assert!(!hint.contains("--check"), "{hint}");
        }
    }

    #[test]
    fn long_messages_are_truncated() {
        let error = AgentError::new(AgentErrorKind::Other, format!(" boom {}", "é".repeat(3_000_000)));
        assert_eq!(error.message.chars().count(), MAX_MESSAGE_CHARS + 1);
        assert!(error.message.starts_with("boom é") && error.message.ends_with("é…"));
        assert_eq!(AgentError::new(AgentErrorKind::Other, "boom\n").message, "boom");
    }

    #[test]
    fn empty_details_leave_no_gap() {
        let denied = |about: &str| OutputLine::Denied(DeniedTool { tool: "bash".to_owned(), about: about.to_owned() });
        assert_eq!(denied("").display_line(), "[bash] (not allowed)");
        assert_eq!(denied("touch x").display_line(), "[bash] touch x (not allowed)");
        let tool = |about: &str| OutputLine::Tool { name: "read".to_owned(), about: about.to_owned() };
        assert_eq!(
            (tool("").display_line(), tool("a.txt").display_line()),
            ("[read]".to_owned(), "[read] a.txt".to_owned())
        );
    }
}
