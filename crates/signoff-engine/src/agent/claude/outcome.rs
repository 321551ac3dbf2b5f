//! Parses Claude Code's `result` line, or the error output if there is none.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentError, AgentErrorKind};

use super::usage::ClaudeUsage;
use crate::agent::AgentExit;
use crate::agent::error_text::{kind_by_status, kind_of_phrase};
use crate::agent::json_line::Loose;

/// The last error of the provider.
#[derive(Debug, Default)]
pub struct ClaudeRefusal {
    /// Claude Code's name of the error.
    pub error_name: Option<String>,
    /// The wait the provider asked for.
    pub asked_to_wait: Option<Duration>,
    /// When the subscription's limit resets, in seconds since 1970.
    pub resets_at: Option<i64>,
}

/// A `result` line. Fields besides the result itself may be missing or invalid.
#[derive(Debug, Deserialize)]
pub struct ClaudeOutcome {
    subtype: String,
    is_error: bool,
    result: Option<String>,
    #[serde(default)]
    errors: Vec<String>,
    terminal_reason: Option<String>,
    api_error_status: Option<u16>,
    pub session_id: Option<String>,
    pub permission_denials: Loose<Vec<ClaudeDenial>>,
    /// The usage by model since the previous result.
    pub model_usage_since_last_result: Loose<Option<BTreeMap<String, ClaudeUsage>>>,
    pub usage: Loose<Option<ClaudeUsage>>,
    pub total_cost_usd: Loose<Option<f64>>,
}

/// A denied tool call.
#[derive(Debug, Deserialize)]
pub struct ClaudeDenial {
    pub tool_name: String,
    pub tool_use_id: String,
    pub tool_input: Option<Box<RawValue>>,
}

impl ClaudeOutcome {
    /// The final message, or `None` after an error.
    pub fn message(&self) -> Option<&str> {
        self.result.as_deref().filter(|_| self.is_success())
    }

    fn is_success(&self) -> bool {
        !self.is_error && self.subtype == "success"
    }

    pub fn error(&self, refusal: &ClaudeRefusal, exit: &AgentExit<'_>) -> Option<AgentError> {
        if self.is_success() {
            return None;
        }
        let words = self.error_text();
        Some(AgentError::new(self.error_kind(&words, refusal, exit), &words))
    }

    /// The error text, without diagnostics that are meant for Claude Code's developers.
    fn error_text(&self) -> String {
        let Self { result, errors, terminal_reason, .. } = self;
        let errors: Vec<&str> =
            errors.iter().map(String::as_str).filter(|error| !error.starts_with("[ede_diagnostic]")).collect();
        let said = result.clone().into_iter().chain([errors.join("; ")]).chain(terminal_reason.clone());
        said.into_iter().find(|words| !words.is_empty()).unwrap_or_default()
    }

    fn error_kind(&self, words: &str, refusal: &ClaudeRefusal, exit: &AgentExit<'_>) -> AgentErrorKind {
        match (self.subtype.as_str(), self.terminal_reason.as_deref()) {
            ("error_max_turns" | "error_max_budget_usd", _) => return AgentErrorKind::OwnLimit,
            (_, Some("prompt_too_long")) => return AgentErrorKind::PromptTooLong,
            _ => {}
        }
        let limited = || AgentErrorKind::Limited { seconds: refusal.wait_seconds(words, exit) };
        match refusal.error_name.as_deref() {
            Some("rate_limit") => return limited(),
            None if words.contains("limit reached") => return limited(),
            Some("authentication_failed") => return AgentErrorKind::NotLoggedIn,
            Some("billing_error") => return AgentErrorKind::OutOfCredit,
            Some("model_not_found") => return AgentErrorKind::Model,
            Some("overloaded") => return AgentErrorKind::Overloaded,
            _ => {}
        }
        let status = self.api_error_status.or_else(|| parse_status(words));
        match (status.and_then(kind_by_status), refusal.error_name.as_deref()) {
            (Some(AgentErrorKind::Limited { .. }), _) => limited(),
            (Some(kind), _) => kind,
            // Without a status there was no response, or no readable one.
            (None, Some("server_error" | "unknown")) if status.is_none() => AgentErrorKind::Broken,
            (None, _) => kind_by_phrase(words).unwrap_or(AgentErrorKind::Other),
        }
    }
}

impl ClaudeRefusal {
    /// The wait, if it is known.
    fn wait_seconds(&self, words: &str, exit: &AgentExit<'_>) -> Option<u64> {
        let resets_at = self.resets_at.or_else(|| parse_reset(words));
        let until = resets_at.map(|at| at.saturating_sub(exit.ended_at.as_second()).max(0));
        let until = until.and_then(|seconds| u64::try_from(seconds).ok());
        until.or_else(|| self.asked_to_wait.map(|delay| delay.as_secs()))
    }
}

/// Parses older versions' `usage limit reached|1794810000`.
fn parse_reset(words: &str) -> Option<i64> {
    words.split_once("limit reached|")?.1.trim().parse().ok()
}

/// Parses older versions' `API Error: 529 …`.
fn parse_status(words: &str) -> Option<u16> {
    let rest = words.strip_prefix("API Error: ")?;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// Beginnings of errors in older versions, which have only a text.
const BEGINNINGS: [(AgentErrorKind, &[&str]); 4] = [
    (AgentErrorKind::SessionGone, &["No conversation found with session ID"]),
    (AgentErrorKind::NotLoggedIn, &["Invalid API key", "Not logged in"]),
    (AgentErrorKind::OutOfCredit, &["Credit balance is too low"]),
    (AgentErrorKind::PromptTooLong, &["Prompt is too long"]),
];

fn kind_by_phrase(words: &str) -> Option<AgentErrorKind> {
    let known = BEGINNINGS.iter().find(|(_, group)| group.iter().any(|start| words.starts_with(start)));
    let too_long = || words.contains("context window limit").then_some(AgentErrorKind::PromptTooLong);
    let no_model = || (words.contains("model") && words.contains("not supported")).then_some(AgentErrorKind::Model);
    known.map(|(kind, _)| *kind).or_else(too_long).or_else(no_model)
}

/// Phrases in stderr about a process that did not start.
const START_ERRORS: [(AgentErrorKind, &[&str]); 4] = [
    (AgentErrorKind::Version, &["error: unknown option", "error: option"]),
    (AgentErrorKind::SessionGone, &["No conversation found with session ID"]),
    (AgentErrorKind::PromptTooLong, &["stdin input exceeds"]),
    (AgentErrorKind::ReportServer, &["Invalid MCP configuration"]),
];

/// The error of a process without a result. If it did not start, stderr contains the reason.
pub fn missing_result_error(exit: &AgentExit<'_>) -> AgentError {
    let kind = kind_of_phrase(&String::from_utf8_lossy(exit.stderr), &START_ERRORS);
    AgentError { kind: kind.unwrap_or(AgentErrorKind::NoResult), ..exit.missing_result_error() }
}
