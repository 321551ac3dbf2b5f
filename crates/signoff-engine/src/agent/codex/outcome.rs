//! Classifies how Codex ended, by its error text.

use std::time::Duration;

use signoff_core::agent_output::{AgentError, AgentErrorKind};
use signoff_core::rate_limit::{self, ExitOutput};

use crate::agent::AgentExit;

/// The error of a failed turn. `resets_in` is the time until the subscription's limit resets, if known.
pub fn parse_error(words: &str, resets_in: Option<Duration>) -> AgentError {
    let kind = match kind_by_status(words).or_else(|| kind_by_phrase(words)) {
        Some(AgentErrorKind::Limited { .. }) => {
            let wait = retry_delay(words).or(resets_in);
            AgentErrorKind::Limited { seconds: wait.map(|wait| wait.as_secs_f64().ceil() as u64) }
        }
        Some(kind) => kind,
        None => AgentErrorKind::Other,
    };
    AgentError::new(kind, words)
}

/// Parses `try again in 4.5s`.
fn retry_delay(words: &str) -> Option<Duration> {
    rate_limit::detect(&ExitOutput { code: 1, stdout: &[], stderr: words.as_bytes() })?.retry_after
}

/// Parses `unexpected status 401 Unauthorized: …` and `last status: 429 Too Many Requests`.
fn kind_by_status(words: &str) -> Option<AgentErrorKind> {
    let behind = words.split_once("status")?.1.trim_start_matches([':', ' ']);
    let number = behind.split(|letter: char| !letter.is_ascii_digit()).next()?;
    match number.parse::<u16>().ok()? {
        401 | 403 => Some(AgentErrorKind::NotLoggedIn),
        402 => Some(AgentErrorKind::OutOfCredit),
        413 => Some(AgentErrorKind::PromptTooLong),
        429 => Some(AgentErrorKind::Limited { seconds: None }),
        500..=599 => Some(AgentErrorKind::Overloaded),
        404 if words.contains("model") => Some(AgentErrorKind::Model),
        _ => None,
    }
}

/// Lower-case phrases of Codex. The first match counts.
const PHRASES: [(&str, AgentErrorKind); 21] = [
    ("no rollout found for thread", AgentErrorKind::SessionGone),
    ("usage limit", AgentErrorKind::Limited { seconds: None }),
    ("rate limit", AgentErrorKind::Limited { seconds: None }),
    ("quota exceeded", AgentErrorKind::OutOfCredit),
    ("exceeded your current quota", AgentErrorKind::OutOfCredit),
    ("high demand", AgentErrorKind::Overloaded),
    ("overloaded", AgentErrorKind::Overloaded),
    ("at capacity", AgentErrorKind::Overloaded),
    ("context window", AgentErrorKind::PromptTooLong),
    ("input exceeds the maximum length", AgentErrorKind::PromptTooLong),
    ("missing environment variable", AgentErrorKind::NotLoggedIn),
    ("not logged in", AgentErrorKind::NotLoggedIn),
    ("sign in again", AgentErrorKind::NotLoggedIn),
    ("access token could not be refreshed", AgentErrorKind::NotLoggedIn),
    ("stream disconnected", AgentErrorKind::Broken),
    ("connection failed", AgentErrorKind::Broken),
    ("required mcp servers failed", AgentErrorKind::ReportServer),
    ("error: unexpected argument", AgentErrorKind::Version),
    ("error: unrecognized subcommand", AgentErrorKind::Version),
    ("error: invalid value", AgentErrorKind::Version),
    ("unknown feature flag", AgentErrorKind::Version),
];

fn kind_by_phrase(words: &str) -> Option<AgentErrorKind> {
    let words = words.to_lowercase();
    let fits = |(phrase, kind): &(&str, AgentErrorKind)| words.contains(phrase).then_some(*kind);
    let unknown = ["does not exist", "not supported", "model_not_found"];
    let model = || words.contains("model") && unknown.iter().any(|phrase| words.contains(phrase));
    PHRASES.iter().find_map(fits).or_else(|| model().then_some(AgentErrorKind::Model))
}

/// The error of a process whose turn did not end. If it did not start, stderr contains the reason.
pub fn missing_end_error(exit: &AgentExit<'_>) -> AgentError {
    let stderr = String::from_utf8_lossy(exit.stderr);
    let said = stderr.lines().map(str::trim).rev().find_map(|line| Some((line, kind_by_phrase(line)?)));
    match said {
        Some((line, kind @ AgentErrorKind::ReportServer)) => AgentError::new(kind, report_server_error(line)),
        Some((
            line,
            kind @ (AgentErrorKind::Version
            | AgentErrorKind::PromptTooLong
            | AgentErrorKind::NotLoggedIn
            | AgentErrorKind::SessionGone),
        )) => AgentError::new(kind, line),
        Some(_) | None => exit.missing_result_error(),
    }
}

/// The reason why it did not reach the report server, without internal details.
fn report_server_error(line: &str) -> String {
    const PREFIX: &str = "required MCP servers failed to initialize: ";
    let why = line.rsplit_once(PREFIX).map_or(line, |(_, why)| why);
    let why = why.rsplit_once("] error: ").map_or(why, |(_, why)| why);
    format!("{PREFIX}{why}")
}

pub fn is_about_reports(trouble: &AgentError) -> bool {
    trouble.kind == AgentErrorKind::ReportServer
}

/// Messages of programs that were denied write access.
const DENIED_PHRASES: [&str; 5] = [
    "Permission denied",
    "Read-only file system",
    "Operation not permitted",
    // Git, if it cannot create a temporary file.
    "unable to create temporary",
    "blocked by read-only sandbox",
];

/// Whether the output of a command shows that write access was denied.
pub fn is_write_denied(output: &str) -> bool {
    DENIED_PHRASES.iter().any(|words| output.contains(words))
}
