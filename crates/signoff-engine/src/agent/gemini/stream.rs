//! Parses Gemini CLI's output with `-o stream-json`.

use super::read_chat_usage;
use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentError, AgentErrorKind, AgentSummary, ModelSpend, OutputLine, TokenCounts};
use signoff_core::contract::Blocks;

use crate::agent::bounded::summarize_arguments;
use crate::agent::bounded::{self, OpenCalls};
use crate::agent::json_line::{loose, record_unparsed, sanitize};
use crate::agent::{AgentExit, AgentResult, OutputParser, REPORT_SERVER, error_text, truncate};

/// Role of the agent's messages.
const ROLE: &str = "assistant";

/// A longer line is shown in parts.
const MAX_LINE: usize = 4096;

/// A line. Its type decides which fields are set.
#[derive(Deserialize)]
struct GeminiLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    severity: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "loose")]
    error: Option<GeminiFailure<'a>>,
    #[serde(borrow, default)]
    stats: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GeminiFailure<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GeminiStats {
    total_tokens: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached: u64,
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
    summary: AgentSummary,
    /// Text since the last tool use.
    message: Blocks,
    /// The part of it that is not shown yet: an incomplete line.
    pending: String,
    /// Open tool calls by id.
    tools: OpenCalls,
    /// The last error, unless text or a tool call follows. If it stays the last, the agent stopped there.
    last_error: Option<GeminiErrorLine>,
    end: Option<GeminiEnd>,
}

/// An error line before the final line.
struct GeminiErrorLine {
    is_severe: bool,
    message: String,
}

/// The final line.
enum GeminiEnd {
    Success,
    Failure { kind: String, message: String },
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

impl OutputParser for GeminiStream {
    fn parse_line(&mut self, line: &[u8]) -> Vec<OutputLine> {
        let raw = sanitize(line);
        let Ok(line) = serde_json::from_slice::<GeminiLine<'_>>(&raw) else {
            record_unparsed(&raw, ROLE, &mut self.message);
            return Vec::new();
        };
        // The agent continues, so it has not ended.
        if matches!(line.kind.as_ref(), "init" | "message" | "tool_use" | "tool_result") {
            self.end = None;
        }
        match line.kind.as_ref() {
            "init" => self.summary.session = line.session_id.map(Cow::into_owned),
            "message" if line.role.as_deref() == Some("user") => {}
            "message" => match line.content.as_deref().filter(|_| line.role.as_deref() == Some(ROLE)) {
                Some(content) => return self.apply_text(content),
                None => self.message.add_unreadable(truncate(&String::from_utf8_lossy(&raw), 160)),
            },
            "tool_use" => return self.apply_tool_use(line),
            "tool_result" => return self.apply_tool_result(&line),
            "error" => return vec![self.apply_error(&line)],
            "result" => return self.apply_result(line),
            _ => record_unparsed(&raw, ROLE, &mut self.message),
        }
        Vec::new()
    }

    fn finish(&mut self, exit: &AgentExit<'_>) -> AgentResult {
        let answer = std::mem::take(&mut self.message);
        let mut summary = std::mem::take(&mut self.summary);
        let stderr = String::from_utf8_lossy(exit.stderr);
        if stderr.contains("MCP issues detected") {
            summary.reached_report_server = Some(false);
        }
        let error = self.last_error.take();
        summary.error = match self.end.take() {
            Some(GeminiEnd::Success) if error.as_ref().is_some_and(GeminiErrorLine::is_stop) => {
                error.map(GeminiErrorLine::into_error)
            }
            // Gemini CLI does not send a prompt that is too long for the model.
            Some(GeminiEnd::Success) if answer.is_empty() && summary.spent.is_empty() => Some(not_sent_error(&stderr)),
            Some(GeminiEnd::Success) => None,
            Some(GeminiEnd::Failure { message, .. }) if message.is_empty() => {
                let unknown = || AgentError::new(AgentErrorKind::Other, String::new());
                Some(error.map_or_else(unknown, GeminiErrorLine::into_error))
            }
            Some(GeminiEnd::Failure { kind, message }) => Some(parse_error(&kind, message, exit.code)),
            None => {
                let kept = read_chat_usage(exit);
                summary.spent = if kept.is_empty() { summary.spent } else { kept };
                Some(missing_result_error(exit, &stderr))
            }
        };
        AgentResult::new(answer, summary)
    }
}

impl GeminiStream {
    fn apply_text(&mut self, text: &str) -> Vec<OutputLine> {
        if text.is_empty() {
            return Vec::new();
        }
        self.last_error = None;
        self.message.push(text);
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

    fn apply_tool_use(&mut self, line: GeminiLine<'_>) -> Vec<OutputLine> {
        let mut said = self.show(String::new());
        self.message.clear();
        self.last_error = None;
        let name = line.tool_name.unwrap_or_default().into_owned();
        let about = summarize_arguments(line.parameters);
        self.tools.begin(&line.tool_id.unwrap_or_default(), &bounded::tool_call(&name, about.clone()));
        said.push(OutputLine::Tool { name, about });
        said
    }

    fn apply_tool_result(&mut self, line: &GeminiLine<'_>) -> Vec<OutputLine> {
        self.message.clear();
        let Some(tool) = self.tools.end(line.tool_id.as_deref().unwrap_or_default()) else {
            return Vec::new();
        };
        let failure = line.error.as_ref().filter(|_| line.status.as_deref() == Some("error"));
        if failure.is_none() && tool.tool.starts_with(&format!("mcp_{REPORT_SERVER}_")) {
            self.summary.reached_report_server = Some(true);
        }
        if !failure.is_some_and(|failure| is_denied(&tool.tool, failure)) {
            return Vec::new();
        }
        bounded::push_denied(&mut self.summary.denied, &tool);
        vec![OutputLine::Denied(tool)]
    }

    fn apply_error(&mut self, line: &GeminiLine<'_>) -> OutputLine {
        let message = line.message.as_deref().unwrap_or_default();
        let severe = line.severity.as_deref() == Some("error");
        self.last_error = Some(GeminiErrorLine { is_severe: severe, message: truncate(message, MAX_LINE) });
        OutputLine::Error(message.to_owned())
    }

    fn apply_result(&mut self, line: GeminiLine<'_>) -> Vec<OutputLine> {
        // The status counts even if the statistics cannot be parsed.
        let stats: GeminiStats = line.stats.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        self.summary.spent = usage_by_model(&stats);
        let mut said = self.show(String::new());
        self.end = Some(if line.status.as_deref() == Some("success") {
            GeminiEnd::Success
        } else {
            let GeminiFailure { kind, message } = line.error.unwrap_or_default();
            said.push(OutputLine::Error(message.clone().into_owned()));
            GeminiEnd::Failure { kind: kind.into_owned(), message: message.into_owned() }
        });
        said
    }
}

/// Lower-case phrases of errors after which Gemini CLI still reports success.
const STOP_PHRASES: [(&str, AgentErrorKind); 4] = [
    ("loop detected", AgentErrorKind::OwnLimit),
    ("maximum session turns", AgentErrorKind::OwnLimit),
    ("agent execution blocked", AgentErrorKind::Other),
    ("agent execution stopped", AgentErrorKind::Other),
];

/// Lower-case phrases about unusable answers.
const ANSWER_PHRASES: [(&str, AgentErrorKind); 4] = [
    ("exceeded the token limit", AgentErrorKind::OwnLimit),
    ("empty response", AgentErrorKind::Broken),
    ("no final response text", AgentErrorKind::Broken),
    ("malformed tool call", AgentErrorKind::Broken),
];

impl GeminiErrorLine {
    /// Whether the agent stopped because of this error. Other lines are only warnings.
    fn is_stop(&self) -> bool {
        let message = self.message.to_lowercase();
        self.is_severe || STOP_PHRASES.iter().any(|(words, _)| message.contains(words))
    }

    fn into_error(self) -> AgentError {
        let message = self.message.to_lowercase();
        let known = STOP_PHRASES.iter().chain(&ANSWER_PHRASES).find(|(words, _)| message.contains(words));
        match known {
            Some((_, kind)) => AgentError::new(*kind, self.message),
            None => error_text::parse_error(&self.message, None),
        }
    }
}

/// Whether a tool call was denied. Readers get no write tools, so calls of them fail as unknown.
fn is_denied(tool: &str, failure: &GeminiFailure<'_>) -> bool {
    match failure.kind.as_ref() {
        "policy_violation" => true,
        "tool_not_registered" => WRITE_TOOLS.contains(&tool),
        _ => failure.message.starts_with("Access denied: plan path"),
    }
}

/// Usage by model, if reported. Only the total includes reasoning.
fn usage_by_model(stats: &GeminiStats) -> Vec<ModelSpend> {
    let by_model = stats.models.iter().map(|(model, counted)| (Some(model.clone()), *counted));
    let GeminiStats { total_tokens, input_tokens, output_tokens, cached, .. } = *stats;
    let whole = (None, GeminiTokens { total_tokens, input_tokens, output_tokens, cached });
    let all = by_model.chain(stats.models.is_empty().then_some(whole));
    let used = all.filter(|(_, counted)| counted.total_tokens > 0);
    used.map(|(model, counted)| ModelSpend { model, tokens: tokens(counted), cost_micro_usd: None }).collect()
}

fn tokens(counted: GeminiTokens) -> TokenCounts {
    let GeminiTokens { total_tokens, input_tokens, output_tokens, cached } = counted;
    let output = total_tokens.saturating_sub(input_tokens).max(output_tokens);
    TokenCounts { input: input_tokens, cached, written: 0, output }
}

fn parse_error(kind: &str, message: String, code: Option<i32>) -> AgentError {
    match kind {
        "FatalTurnLimitedError" => AgentError::new(AgentErrorKind::OwnLimit, message),
        "FatalAuthenticationError" => AgentError::new(AgentErrorKind::NotLoggedIn, message),
        _ => error_text::parse_error(&message, code),
    }
}

fn not_sent_error(stderr: &str) -> AgentError {
    let cut = stderr.lines().find(|line| line.contains("stdin input truncated"));
    match cut {
        Some(line) => AgentError::new(AgentErrorKind::PromptTooLong, line.trim()),
        None => {
            AgentError::new(AgentErrorKind::Other, "it reported success without calling a model or printing an answer")
        }
    }
}

/// Stderr without Gemini CLI's usual messages.
fn strip_usual_lines(stderr: &str) -> String {
    const USUAL: [&str; 5] = ["Warning: ", "YOLO mode", "Ripgrep", "[STARTUP]", "(Use `node"];
    let lines = stderr.lines().filter(|line| !USUAL.iter().any(|usual| line.starts_with(usual)));
    lines.collect::<Vec<_>>().join("\n")
}

/// The error of a process without a final line, from stderr and the exit code.
fn missing_result_error(exit: &AgentExit<'_>, stderr: &str) -> AgentError {
    let line = |words: &str| stderr.lines().find(|line| line.contains(words)).map(|line| line.trim().to_owned());
    if let Some(unknown) = line("Unknown argument").or_else(|| line("Invalid values:")) {
        return AgentError::new(AgentErrorKind::Version, unknown);
    }
    let trouble = AgentExit { stderr: strip_usual_lines(stderr).as_bytes(), ..*exit }.missing_result_error();
    match exit.code {
        Some(41) => {
            let said = line("you must specify").or_else(|| line("Auth method"));
            AgentError::new(AgentErrorKind::NotLoggedIn, said.unwrap_or(trouble.message))
        }
        Some(53) => AgentError { kind: AgentErrorKind::OwnLimit, ..trouble },
        Some(42) => match line("Error resuming session") {
            Some(said) => AgentError::new(AgentErrorKind::SessionGone, said),
            None => trouble,
        },
        _ => trouble,
    }
}
