//! Parses Codex's output, one JSON object per line, and classifies how Codex ended.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentError, AgentErrorKind, ModelSpend, OutputLine, TokenCounts};
use signoff_core::rate_limit::{self, ExitOutput};

use super::rollout::Rollout;
use crate::agent::bounded::{self, KeptOutput};
use crate::agent::error_text::{self, kind_of_phrase, with_wait};
use crate::agent::json_line::{DefaultOnError, JsonStream};
use crate::agent::{AgentExit, REPORT_SERVER, first_line};

/// Type of the agent's messages.
const MESSAGE_TYPE: &str = "agent_message";

#[derive(Debug, Default)]
pub struct CodexStream {
    /// A message that is not completed yet.
    partial: String,
    /// Codex's own count, which covers the whole session after a resume.
    total: Option<CodexUsage>,
    /// How the turn ended, with the text of its error.
    end: Option<Result<(), String>>,
}

#[derive(Deserialize)]
struct CodexLine<'a> {
    r#type: &'a str,
    thread_id: DefaultOnError<Option<String>>,
    message: DefaultOnError<Option<String>>,
    error: DefaultOnError<Option<CodexErrorMessage>>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    usage: DefaultOnError<Option<CodexUsage>>,
}

#[derive(Deserialize)]
struct CodexErrorMessage {
    message: String,
}

/// Token counts of one or several answers.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct CodexUsage {
    /// All input, including cached.
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CodexItem<'a> {
    r#type: &'a str,
    status: DefaultOnError<Option<String>>,
    text: DefaultOnError<Option<String>>,
    message: DefaultOnError<Option<String>>,
    command: DefaultOnError<Option<String>>,
    #[serde(borrow)]
    aggregated_output: Option<&'a RawValue>,
    changes: DefaultOnError<Vec<CodexFileChange>>,
    server: DefaultOnError<Option<String>>,
    tool: DefaultOnError<Option<String>>,
    query: DefaultOnError<Option<String>>,
    error: DefaultOnError<Option<CodexErrorMessage>>,
}

#[derive(Deserialize)]
struct CodexFileChange {
    path: String,
}

impl JsonStream for CodexStream {
    const MESSAGE_TYPE: &'static str = MESSAGE_TYPE;

    fn parse(&mut self, line: &str, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        let line: CodexLine<'_> = serde_json::from_str(line).ok()?;
        match line.r#type {
            "thread.started" => kept.summary.session = line.thread_id.0,
            "turn.started" => self.end = None,
            "turn.completed" => {
                self.total = line.usage.0;
                self.end = Some(Ok(()));
            }
            // The turn failed even if the reason cannot be parsed.
            "turn.failed" => {
                let text = line.error.0.map(|error| error.message);
                self.end = Some(Err(text.unwrap_or_default()));
            }
            step @ ("item.started" | "item.updated" | "item.completed") => {
                return self.apply_item(step, line.item?.get(), kept);
            }
            // The last error is repeated when the turn fails.
            "error" => return Some(line.message.0.map(parse_error_line).into_iter().collect()),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn finish(&mut self, exit: &AgentExit<'_>, kept: &mut KeptOutput) -> Option<AgentError> {
        let rollout = Rollout::read(exit);
        let error = match self.end.take() {
            Some(Ok(())) => None,
            Some(Err(text)) => Some(parse_error(&text, rollout.resets_in(exit))),
            None => Some(missing_end_error(exit)),
        };
        if error.as_ref().is_some_and(|error| error.kind == AgentErrorKind::ReportServer) {
            kept.summary.reached_report_server = Some(false);
        }
        kept.summary.spent = if rollout.spent.is_empty() && !exit.resumed { self.own_count() } else { rollout.spent };
        // The stream omits some calls that Codex's own sandbox denies.
        if !rollout.denied.is_empty() {
            kept.summary.denied = rollout.denied;
        }
        self.complete_message("", kept);
        error
    }
}

impl CodexStream {
    fn apply_item(&mut self, step: &str, raw: &str, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        #[derive(Deserialize)]
        struct CodexItemKind<'a> {
            r#type: &'a str,
        }
        let CodexItemKind { r#type } = serde_json::from_str(raw).ok()?;
        if is_tool_call(r#type, step) {
            kept.message.clear();
            self.partial.clear();
        }
        let item: Option<CodexItem<'_>> = serde_json::from_str(raw).ok();
        match (r#type, step) {
            (MESSAGE_TYPE, "item.completed") => self.apply_message(item?.text.0?, kept),
            (MESSAGE_TYPE, _) => self.apply_partial(item?.text.0?, kept),
            (_, "item.started") => Some(item.and_then(item_started).unwrap_or_default()),
            (_, "item.completed") => Some(item.and_then(|item| self.item_completed(item, kept)).unwrap_or_default()),
            _ => Some(Vec::new()),
        }
    }

    fn apply_message(&mut self, text: String, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        self.complete_message(&text, kept);
        Some(vec![OutputLine::Text(text)])
    }

    /// Stores a message that may be extended.
    fn apply_partial(&mut self, text: String, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        if !text.starts_with(&self.partial) {
            self.complete_message("", kept);
        }
        self.partial = text;
        Some(Vec::new())
    }

    /// Adds a message. Keeps a partial message that it does not extend.
    fn complete_message(&mut self, text: &str, kept: &mut KeptOutput) {
        let partial = std::mem::take(&mut self.partial);
        if !text.starts_with(&partial) {
            kept.message.add(&partial);
        }
        kept.message.add(text);
    }

    fn item_completed(&mut self, item: CodexItem<'_>, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        let failed = item.status.0.as_deref() == Some("failed");
        let denied = match item.r#type {
            "reasoning" | "todo_list" => return None,
            "error" => return Some(vec![OutputLine::Error(item.message.0?)]),
            "mcp_tool_call" => {
                if item.server.0.as_deref() == Some(REPORT_SERVER) && !failed {
                    kept.summary.reached_report_server = Some(true);
                }
                item.error.0.filter(|error| error.message.contains("requires approval"))?;
                bounded::tool_call(&item.tool.0?, first_line(&item.server.0?))
            }
            "command_execution" if failed && is_write_denied(item.aggregated_output?.get()) => {
                bounded::tool_call("shell", first_line(&strip_shell(&item.command.0?)))
            }
            "file_change" if failed => bounded::tool_call("patch", first_line(&paths(&item.changes.0))),
            "command_execution" | "file_change" | "collab_tool_call" | "web_search" => return None,
            // The text of an unknown item counts, because it is addressed to us.
            _ => return self.apply_message(item.text.0?, kept),
        };
        Some(vec![kept.deny(denied)])
    }

    fn own_count(&self) -> Vec<ModelSpend> {
        let spent = |usage: CodexUsage| ModelSpend { tokens: usage.tokens(), ..ModelSpend::default() };
        self.total.map(spent).into_iter().collect()
    }
}

fn item_started(item: CodexItem<'_>) -> Option<Vec<OutputLine>> {
    let (name, about) = match item.r#type {
        "command_execution" => ("shell".to_owned(), strip_shell(&item.command.0?)),
        "file_change" => ("patch".to_owned(), paths(&item.changes.0)),
        "mcp_tool_call" => (item.tool.0?, item.server.0?),
        "web_search" => ("web_search".to_owned(), item.query.0.unwrap_or_default()),
        _ => return None,
    };
    Some(vec![OutputLine::Tool { name, about: first_line(&about) }])
}

impl CodexUsage {
    pub fn tokens(self) -> TokenCounts {
        TokenCounts {
            input: self.input_tokens,
            cached: self.cached_input_tokens,
            written: self.cache_write_input_tokens,
            output: self.output_tokens,
        }
    }
}

/// Whether this is a tool call, so that earlier text is not the final message.
fn is_tool_call(kind: &str, step: &str) -> bool {
    match kind {
        "command_execution" | "file_change" | "mcp_tool_call" | "collab_tool_call" | "web_search" => true,
        // The to-do list is completed at the end.
        "todo_list" => step != "item.completed",
        // Unknown items do not clear the text.
        _ => false,
    }
}

/// Parses an error. `Reconnecting... 1/5 (why)` is only a retry.
fn parse_error_line(text: String) -> OutputLine {
    let Some(again) = text.strip_prefix("Reconnecting...") else { return OutputLine::Error(text) };
    let reason = again.split_once('(').map_or(again, |(_, reason)| reason.trim_end_matches(')'));
    OutputLine::Waiting { reason: reason.trim().to_owned(), delay: None }
}

/// A command without the shell that runs it.
fn strip_shell(text: &str) -> String {
    let inner = text.split_once(" -lc ").map_or(text, |(_, inner)| inner);
    let quoted = |quote| inner.strip_prefix(quote).and_then(|inner| inner.strip_suffix(quote));
    quoted('\'').or_else(|| quoted('"')).unwrap_or(inner).to_owned()
}

fn paths(changes: &[CodexFileChange]) -> String {
    changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>().join(", ")
}

/// The error of a failed turn. `resets_in` is the time until the subscription's limit resets, if known.
fn parse_error(text: &str, resets_in: Option<Duration>) -> AgentError {
    let kind = kind_by_status(text).or_else(|| kind_by_phrase(text)).unwrap_or(AgentErrorKind::Other);
    let wait = retry_delay(text).or(resets_in).map(|wait| wait.as_secs_f64().ceil() as u64);
    AgentError::new(with_wait(kind, wait), text)
}

/// Parses `try again in 4.5s`.
fn retry_delay(text: &str) -> Option<Duration> {
    rate_limit::detect(&ExitOutput { code: 1, stdout: &[], stderr: text.as_bytes() })?.retry_after
}

/// Parses `unexpected status 401 Unauthorized: …` and `last status: 429 Too Many Requests`.
fn kind_by_status(text: &str) -> Option<AgentErrorKind> {
    let behind = text.split_once("status")?.1.trim_start_matches([':', ' ']);
    let number = behind.split(|letter: char| !letter.is_ascii_digit()).next()?;
    let kind = error_text::kind_by_status(number.parse().ok()?);
    kind.filter(|kind| *kind != AgentErrorKind::ModelUnavailable || text.contains("model"))
}

/// Lower-case phrases of Codex. The first match counts.
const PHRASES: [(AgentErrorKind, &[&str]); 9] = [
    (AgentErrorKind::SessionGone, &["no rollout found for thread"]),
    (AgentErrorKind::RateLimited { seconds: None }, &["usage limit", "rate limit"]),
    (AgentErrorKind::OutOfCredit, &["quota exceeded", "exceeded your current quota"]),
    (AgentErrorKind::Overloaded, &["high demand", "overloaded", "at capacity"]),
    (AgentErrorKind::PromptTooLong, &["context window", "input exceeds the maximum length"]),
    (
        AgentErrorKind::NotLoggedIn,
        &["missing environment variable", "not logged in", "sign in again", "access token could not be refreshed"],
    ),
    (AgentErrorKind::InvalidResponse, &["stream disconnected", "connection failed"]),
    (AgentErrorKind::ReportServer, &["required mcp servers failed"]),
    (
        AgentErrorKind::Version,
        &[
            "error: unexpected argument",
            "error: unrecognized subcommand",
            "error: invalid value",
            "unknown feature flag",
        ],
    ),
];

fn kind_by_phrase(text: &str) -> Option<AgentErrorKind> {
    let text = text.to_lowercase();
    let unknown = ["does not exist", "not supported", "model_not_found"];
    let model = || text.contains("model") && unknown.iter().any(|phrase| text.contains(phrase));
    kind_of_phrase(&text, &PHRASES).or_else(|| model().then_some(AgentErrorKind::ModelUnavailable))
}

/// The error of a process whose turn did not end. If it did not start, stderr contains the reason.
fn missing_end_error(exit: &AgentExit<'_>) -> AgentError {
    let stderr = String::from_utf8_lossy(exit.stderr);
    let known = stderr.lines().map(str::trim).rev().find_map(|line| Some((line, kind_by_phrase(line)?)));
    match known {
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
    let reason = line.rsplit_once(PREFIX).map_or(line, |(_, reason)| reason);
    let reason = reason.rsplit_once("] error: ").map_or(reason, |(_, reason)| reason);
    format!("{PREFIX}{reason}")
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
    DENIED_PHRASES.iter().any(|phrase| output.contains(phrase))
}
