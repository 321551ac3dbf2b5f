//! Parses Gemini CLI's output with `-o stream-json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentError, AgentErrorKind, ModelSpend, OutputLine, TokenCounts};
use signoff_core::text::shortened;

use super::read_chat_usage;
use crate::agent::bounded::{KeptOutput, summarize_arguments};
use crate::agent::error_text::{self, error_by_line, kind_of_phrase};
use crate::agent::json_line::{DefaultOnError, JsonStream};
use crate::agent::{AgentExit, REPORT_SERVER};

/// Role of the agent's messages.
const ROLE: &str = "assistant";

/// A longer line is shown in parts.
const MAX_LINE: usize = 4096;

/// A line. Its type decides which fields are set.
#[derive(Deserialize)]
struct GeminiLine<'a> {
    #[serde(rename = "type")]
    kind: String,
    session_id: Option<String>,
    role: Option<String>,
    content: Option<String>,
    message: Option<String>,
    tool_name: Option<String>,
    tool_id: Option<String>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    status: Option<String>,
    severity: Option<String>,
    error: DefaultOnError<Option<GeminiFailure>>,
    stats: DefaultOnError<GeminiStats>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GeminiFailure {
    #[serde(rename = "type")]
    kind: String,
    message: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GeminiStats {
    #[serde(flatten)]
    total: GeminiTokens,
    models: BTreeMap<String, GeminiTokens>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct GeminiTokens {
    total_tokens: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached: u64,
}

/// Parser for one run of Gemini CLI.
#[derive(Default)]
pub struct GeminiStream {
    /// The part of the message that is not shown yet: an incomplete line.
    pending: String,
    /// The last error, unless text or a tool call follows. If it stays the last, the agent stopped there.
    last_error: Option<GeminiErrorLine>,
    /// The final line.
    end: Option<Result<(), GeminiFailure>>,
}

/// An error line before the final line.
struct GeminiErrorLine {
    is_severe: bool,
    message: String,
}

/// Tools that readers do not get.
const WRITE_TOOLS: [&str; 8] = [
    "write_file",
    "replace",
    "run_shell_command",
    "exit_plan_mode",
    "invoke_agent",
    "activate_skill",
    "save_memory",
    "web_fetch",
];

impl JsonStream for GeminiStream {
    const MESSAGE_TYPE: &'static str = ROLE;

    fn parse(&mut self, raw: &str, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        let line: GeminiLine<'_> = serde_json::from_str(raw).ok()?;
        // The agent continues, so it has not ended.
        if matches!(line.kind.as_str(), "init" | "message" | "tool_use" | "tool_result") {
            self.end = None;
        }
        match line.kind.as_str() {
            "init" => kept.summary.session = line.session_id,
            "message" if line.role.as_deref() == Some("user") => {}
            "message" => match line.content.filter(|_| line.role.as_deref() == Some(ROLE)) {
                Some(content) => return Some(self.apply_text(&content, kept)),
                None => kept.message.add_unreadable(shortened(raw, 160)),
            },
            "tool_use" => return Some(self.apply_tool_use(line, kept)),
            "tool_result" => return Some(apply_tool_result(line, kept)),
            "error" => return Some(vec![self.apply_error(line)]),
            "result" => return Some(self.apply_result(line, kept)),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn finish(&mut self, exit: &AgentExit<'_>, kept: &mut KeptOutput) -> Option<AgentError> {
        let stderr = String::from_utf8_lossy(exit.stderr);
        if stderr.contains("MCP issues detected") {
            kept.summary.reached_report_server = Some(false);
        }
        let error = self.last_error.take();
        match self.end.take() {
            Some(Ok(())) if error.as_ref().is_some_and(GeminiErrorLine::is_stop) => {
                error.map(GeminiErrorLine::into_error)
            }
            // Gemini CLI does not send a prompt that is too long for the model.
            Some(Ok(())) if kept.message.is_empty() && kept.summary.spent.is_empty() => Some(not_sent_error(&stderr)),
            Some(Ok(())) => None,
            Some(Err(failure)) if failure.message.is_empty() => {
                let unknown = || AgentError::new(AgentErrorKind::Other, String::new());
                Some(error.map_or_else(unknown, GeminiErrorLine::into_error))
            }
            Some(Err(failure)) => Some(parse_error(&failure, exit.code)),
            None => {
                let spent = read_chat_usage(exit);
                if !spent.is_empty() {
                    kept.summary.spent = spent;
                }
                Some(missing_result_error(exit, &stderr))
            }
        }
    }
}

impl GeminiStream {
    fn apply_text(&mut self, text: &str, kept: &mut KeptOutput) -> Vec<OutputLine> {
        if text.is_empty() {
            return Vec::new();
        }
        self.last_error = None;
        kept.message.push(text);
        self.pending.push_str(text);
        match self.pending.rfind('\n') {
            Some(end) => {
                let rest = self.pending.split_off(end + 1);
                self.show(rest)
            }
            None if self.pending.len() > MAX_LINE => self.show(String::new()),
            None => Vec::new(),
        }
    }

    /// Shows the complete lines.
    fn show(&mut self, rest: String) -> Vec<OutputLine> {
        let shown = std::mem::replace(&mut self.pending, rest);
        let text = shown.trim_end();
        if text.is_empty() { Vec::new() } else { vec![OutputLine::Text(text.to_owned())] }
    }

    fn apply_tool_use(&mut self, line: GeminiLine<'_>, kept: &mut KeptOutput) -> Vec<OutputLine> {
        let mut lines = self.show(String::new());
        self.last_error = None;
        let (id, name) = (line.tool_id.unwrap_or_default(), line.tool_name.unwrap_or_default());
        lines.push(kept.begin_tool(&id, name, summarize_arguments(line.parameters)));
        lines
    }

    fn apply_error(&mut self, line: GeminiLine<'_>) -> OutputLine {
        let message = line.message.unwrap_or_default();
        let is_severe = line.severity.as_deref() == Some("error");
        self.last_error = Some(GeminiErrorLine { is_severe, message: shortened(&message, MAX_LINE) });
        OutputLine::Error(message)
    }

    fn apply_result(&mut self, line: GeminiLine<'_>, kept: &mut KeptOutput) -> Vec<OutputLine> {
        // The status counts even if the statistics cannot be parsed.
        kept.summary.spent = usage_by_model(line.stats.0);
        let mut lines = self.show(String::new());
        self.end = Some(if line.status.as_deref() == Some("success") {
            Ok(())
        } else {
            let failure = line.error.0.unwrap_or_default();
            lines.push(OutputLine::Error(failure.message.clone()));
            Err(failure)
        });
        lines
    }
}

fn apply_tool_result(line: GeminiLine<'_>, kept: &mut KeptOutput) -> Vec<OutputLine> {
    kept.message.clear();
    let Some(tool) = kept.calls.end(&line.tool_id.unwrap_or_default()) else { return Vec::new() };
    let failure = line.error.0.filter(|_| line.status.as_deref() == Some("error"));
    if failure.is_none() && tool.tool.starts_with(&format!("mcp_{REPORT_SERVER}_")) {
        kept.summary.reached_report_server = Some(true);
    }
    if failure.is_some_and(|failure| is_denied(&tool.tool, &failure)) { vec![kept.deny(tool)] } else { Vec::new() }
}

/// Lower-case phrases of errors after which Gemini CLI still reports success.
const STOP_PHRASES: [(AgentErrorKind, &[&str]); 2] = [
    (AgentErrorKind::OwnLimit, &["loop detected", "maximum session turns"]),
    (AgentErrorKind::Other, &["agent execution blocked", "agent execution stopped"]),
];

/// Lower-case phrases about unusable answers.
const ANSWER_PHRASES: [(AgentErrorKind, &[&str]); 2] = [
    (AgentErrorKind::OwnLimit, &["exceeded the token limit"]),
    (AgentErrorKind::InvalidResponse, &["empty response", "no final response text", "malformed tool call"]),
];

impl GeminiErrorLine {
    /// Whether the agent stopped because of this error. Other lines are only warnings.
    fn is_stop(&self) -> bool {
        let message = self.message.to_lowercase();
        self.is_severe || kind_of_phrase(&message, &STOP_PHRASES).is_some()
    }

    fn into_error(self) -> AgentError {
        let message = self.message.to_lowercase();
        match kind_of_phrase(&message, &STOP_PHRASES).or_else(|| kind_of_phrase(&message, &ANSWER_PHRASES)) {
            Some(kind) => AgentError::new(kind, self.message),
            None => error_text::parse_error(&self.message, None),
        }
    }
}

/// Whether a tool call was denied. Readers get no write tools, so calls of them fail as unknown.
fn is_denied(tool: &str, failure: &GeminiFailure) -> bool {
    match failure.kind.as_str() {
        "policy_violation" => true,
        "tool_not_registered" => WRITE_TOOLS.contains(&tool),
        _ => failure.message.starts_with("Access denied: plan path"),
    }
}

/// Usage by model, if reported. Only the total includes reasoning.
fn usage_by_model(GeminiStats { total, models }: GeminiStats) -> Vec<ModelSpend> {
    let unsplit = models.is_empty().then_some((None, total));
    let all = models.into_iter().map(|(model, counted)| (Some(model), counted)).chain(unsplit);
    let used = all.filter(|(_, counted)| counted.total_tokens > 0);
    used.map(|(model, counted)| ModelSpend { model, tokens: tokens(counted), cost_micro_usd: None }).collect()
}

fn tokens(counted: GeminiTokens) -> TokenCounts {
    let GeminiTokens { total_tokens, input_tokens, output_tokens, cached } = counted;
    let output = total_tokens.saturating_sub(input_tokens).max(output_tokens);
    TokenCounts { input: input_tokens, cached, written: 0, output }
}

fn parse_error(GeminiFailure { kind, message }: &GeminiFailure, code: Option<i32>) -> AgentError {
    match kind.as_str() {
        "FatalTurnLimitedError" => AgentError::new(AgentErrorKind::OwnLimit, message),
        "FatalAuthenticationError" => AgentError::new(AgentErrorKind::NotLoggedIn, message),
        _ => error_text::parse_error(message, code),
    }
}

fn not_sent_error(stderr: &str) -> AgentError {
    let message = "it reported success without calling a model or printing an answer";
    error_by_line(stderr, &[(AgentErrorKind::PromptTooLong, &["stdin input truncated"])])
        .unwrap_or_else(|| AgentError::new(AgentErrorKind::Other, message))
}

/// Stderr without Gemini CLI's usual messages.
fn strip_usual_lines(stderr: &str) -> String {
    const USUAL: [&str; 5] = ["Warning: ", "YOLO mode", "Ripgrep", "[STARTUP]", "(Use `node"];
    let lines = stderr.lines().filter(|line| !USUAL.iter().any(|usual| line.starts_with(usual)));
    lines.collect::<Vec<_>>().join("\n")
}

/// The error of a process without a final line, from stderr and the exit code.
fn missing_result_error(exit: &AgentExit<'_>, stderr: &str) -> AgentError {
    let by_line = |kind, phrases| error_by_line(stderr, &[(kind, phrases)]);
    let by_code = || match exit.code {
        Some(41) => by_line(AgentErrorKind::NotLoggedIn, &["you must specify", "Auth method"]),
        Some(42) => by_line(AgentErrorKind::SessionGone, &["Error resuming session"]),
        _ => None,
    };
    let by_version = by_line(AgentErrorKind::Version, &["Unknown argument", "Invalid values:"]);
    by_version.or_else(by_code).unwrap_or_else(|| {
        let error = AgentExit { stderr: strip_usual_lines(stderr).as_bytes(), ..*exit }.missing_result_error();
        match exit.code {
            Some(41) => AgentError { kind: AgentErrorKind::NotLoggedIn, ..error },
            Some(53) => AgentError { kind: AgentErrorKind::OwnLimit, ..error },
            _ => error,
        }
    })
}
