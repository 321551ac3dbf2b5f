//! Parses Claude Code's `result` line, or the error output if there is none.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentError, AgentErrorKind};

use super::usage::ClaudeBill;
use crate::agent::AgentExit;

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

/// The parsed `result` line.
#[derive(Debug)]
pub struct ClaudeOutcome {
    pub session: Option<String>,
    pub denials: Vec<ClaudeDenial>,
    pub bill: ClaudeBill,
    line: ClaudeResultLine,
}

#[derive(Debug, Deserialize)]
struct ClaudeResultLine {
    subtype: String,
    is_error: bool,
    result: Option<String>,
    #[serde(default)]
    errors: Vec<String>,
    terminal_reason: Option<String>,
    api_error_status: Option<u16>,
    session_id: Option<String>,
}

/// A denied tool call.
#[derive(Debug, Deserialize)]
pub struct ClaudeDenial {
    pub tool_name: String,
    pub tool_use_id: String,
    pub tool_input: Option<Box<RawValue>>,
}

impl ClaudeOutcome {
    /// Parses a `result` line. Fields besides the result itself may be missing or invalid.
    pub fn parse(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct ResultExtras<'a> {
            #[serde(borrow)]
            permission_denials: Option<&'a RawValue>,
            #[serde(borrow)]
            model_usage_since_last_result: Option<&'a RawValue>,
            #[serde(borrow)]
            usage: Option<&'a RawValue>,
            #[serde(borrow)]
            total_cost_usd: Option<&'a RawValue>,
        }
        let mut known: ClaudeResultLine = serde_json::from_slice(line).ok()?;
        let extras: ResultExtras<'_> = serde_json::from_slice(line).ok()?;
        Some(Self {
            session: known.session_id.take(),
            denials: parse_part(extras.permission_denials).unwrap_or_default(),
            bill: ClaudeBill {
                since_last: parse_part(extras.model_usage_since_last_result),
                usage: parse_part(extras.usage),
                total_cost_usd: parse_part(extras.total_cost_usd),
            },
            line: known,
        })
    }

    /// The final message, or `None` after an error.
    pub fn message(&self) -> Option<&str> {
        self.line.result.as_deref().filter(|_| self.is_success())
    }

    fn is_success(&self) -> bool {
        !self.line.is_error && self.line.subtype == "success"
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
        let ClaudeResultLine { result, errors, terminal_reason, .. } = &self.line;
        let errors: Vec<&str> =
            errors.iter().map(String::as_str).filter(|error| !error.starts_with("[ede_diagnostic]")).collect();
        let said = result.clone().into_iter().chain([errors.join("; ")]).chain(terminal_reason.clone());
        said.into_iter().find(|words| !words.is_empty()).unwrap_or_default()
    }

    fn error_kind(&self, words: &str, refusal: &ClaudeRefusal, exit: &AgentExit<'_>) -> AgentErrorKind {
        match (self.line.subtype.as_str(), self.line.terminal_reason.as_deref()) {
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
        match (self.line.api_error_status.or_else(|| parse_status(words)), refusal.error_name.as_deref()) {
            (Some(401 | 403), _) => AgentErrorKind::NotLoggedIn,
            (Some(402), _) => AgentErrorKind::OutOfCredit,
            (Some(404), _) => AgentErrorKind::Model,
            (Some(413), _) => AgentErrorKind::PromptTooLong,
            (Some(429), _) => limited(),
            (Some(500..=599), _) => AgentErrorKind::Overloaded,
            // Without a status there was no response, or no readable one.
            (None, Some("server_error" | "unknown")) => AgentErrorKind::Broken,
            _ => kind_by_phrase(words).unwrap_or(AgentErrorKind::Other),
        }
    }
}

fn parse_part<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
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

/// The kind of an error that has only a text, as in older versions.
fn kind_by_phrase(words: &str) -> Option<AgentErrorKind> {
    let begins = |start: &str| words.starts_with(start);
    if begins("No conversation found with session ID") {
        Some(AgentErrorKind::SessionGone)
    } else if begins("Invalid API key") || begins("Not logged in") {
        Some(AgentErrorKind::NotLoggedIn)
    } else if begins("Credit balance is too low") {
        Some(AgentErrorKind::OutOfCredit)
    } else if begins("Prompt is too long") || words.contains("context window limit") {
        Some(AgentErrorKind::PromptTooLong)
    } else if words.contains("model") && words.contains("not supported") {
        Some(AgentErrorKind::Model)
    } else {
        None
    }
}

/// The error of a process without a result. If it did not start, stderr contains the reason.
pub fn missing_result_error(exit: &AgentExit<'_>) -> AgentError {
    let stderr = String::from_utf8_lossy(exit.stderr);
    let says = |words: &str| stderr.contains(words);
    let kind = if says("error: unknown option") || says("error: option") {
        AgentErrorKind::Version
    } else if says("No conversation found with session ID") {
        AgentErrorKind::SessionGone
    } else if says("stdin input exceeds") {
        AgentErrorKind::PromptTooLong
    } else if says("Invalid MCP configuration") {
        AgentErrorKind::ReportServer
    } else {
        AgentErrorKind::NoResult
    };
    AgentError { kind, ..exit.missing_result_error() }
}
