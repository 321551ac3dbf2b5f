//! Parses Claude Code's output, one JSON object per line.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentSummary, DeniedTool, OutputLine};
use signoff_core::contract::Blocks;

use super::outcome::{self, ClaudeOutcome, ClaudeRefusal};
use super::usage::{self, ClaudeUsage, ClaudeUsageLedger};
use crate::agent::bounded::{self, MAX_DENIED, OpenCalls};
use crate::agent::json_line::{record_unparsed, sanitize};
use crate::agent::{AgentExit, AgentResult, OutputParser, REPORT_SERVER, first_line};

/// Type of the agent's messages.
const MESSAGE_TYPE: &str = "assistant";

#[derive(Debug, Default)]
pub struct ClaudeStream {
    session: Option<String>,
    found_reports: Option<bool>,
    /// Tool calls by id.
    calls: OpenCalls,
    denied: Vec<(String, DeniedTool)>,
    usage: ClaudeUsageLedger,
    refusal: ClaudeRefusal,
    /// Text since the last tool use.
    message: Blocks,
    /// The text of its `result` line, which repeats only the last block.
    last_block: String,
    /// The last result. The agent may continue after it.
    result: Option<ClaudeOutcome>,
}

#[derive(Deserialize)]
struct ClaudeLine<'a> {
    r#type: &'a str,
    subtype: Option<&'a str>,
}

#[derive(Deserialize)]
struct ClaudeInit {
    session_id: String,
    model: Option<String>,
    #[serde(default)]
    mcp_servers: Vec<ClaudeMcpServer>,
}

#[derive(Deserialize)]
struct ClaudeMcpServer {
    name: String,
    status: String,
}

#[derive(Deserialize)]
struct ClaudeTurn<'a> {
    #[serde(borrow)]
    message: ClaudeMessage<'a>,
    /// The tool call that started the sub-agent this message belongs to.
    parent_tool_use_id: Option<String>,
    /// Name of the provider's error, if the message is one.
    error: Option<String>,
}

#[derive(Deserialize)]
struct ClaudeMessage<'a> {
    id: Option<String>,
    model: Option<String>,
    #[serde(borrow)]
    content: Vec<ClaudeBlock<'a>>,
    usage: Option<ClaudeUsage>,
}

#[derive(Deserialize)]
struct ClaudeBlock<'a> {
    r#type: &'a str,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    tool_use_id: Option<String>,
    #[serde(default)]
    is_error: bool,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ClaudeRetry {
    retry_delay_ms: Option<f64>,
    error_status: Option<u16>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct ClaudeRateLimit {
    rate_limit_info: ClaudeRateLimitInfo,
}

#[derive(Deserialize)]
struct ClaudeRateLimitInfo {
    status: String,
    #[serde(rename = "resetsAt")]
    resets_at: Option<i64>,
    #[serde(rename = "rateLimitType")]
    window: Option<String>,
}

#[derive(Deserialize)]
struct ClaudeDeniedTool {
    tool_name: String,
    tool_use_id: String,
}

impl OutputParser for ClaudeStream {
    fn parse_line(&mut self, line: &[u8]) -> Vec<OutputLine> {
        let line = sanitize(line);
        self.parse(&line).unwrap_or_else(|| {
            record_unparsed(&line, MESSAGE_TYPE, &mut self.message);
            Vec::new()
        })
    }

    fn finish(&mut self, exit: &AgentExit<'_>) -> AgentResult {
        let trouble = match &self.result {
            Some(result) => result.error(&self.refusal, exit),
            None => Some(outcome::missing_result_error(exit)),
        };
        let mut message = std::mem::take(&mut self.message);
        if !message.ends_with(&self.last_block) {
            message.add(&self.last_block);
        }
        if self.result.is_none() {
            usage::read_session_usage(exit, &mut self.usage);
        }
        let summary = AgentSummary {
            session: self.session.take(),
            spent: std::mem::take(&mut self.usage).into_usage(exit.resumed),
            error: trouble,
            denied: std::mem::take(&mut self.denied).into_iter().map(|(_, denied)| denied).collect(),
            reached_report_server: self.found_reports,
            unread_line: None,
        };
        AgentResult::new(message, summary)
    }
}

impl ClaudeStream {
    /// Parses a line. Returns `None` if it may be a message and cannot be parsed.
    fn parse(&mut self, line: &[u8]) -> Option<Vec<OutputLine>> {
        let ClaudeLine { r#type, subtype } = serde_json::from_slice(line).ok()?;
        match (r#type, subtype) {
            (MESSAGE_TYPE, _) => self.apply_message(serde_json::from_slice(line).ok()?),
            ("system" | "user" | "rate_limit_event", _) => {
                Some(self.parse_event(line, r#type, subtype).unwrap_or_default())
            }
            ("result", _) => Some(self.apply_result(line)),
            _ => None,
        }
    }

    /// Parses a line that is not a message.
    fn parse_event(&mut self, line: &[u8], kind: &str, subtype: Option<&str>) -> Option<Vec<OutputLine>> {
        match (kind, subtype) {
            ("system", Some("init")) => self.apply_init(serde_json::from_slice(line).ok()?),
            ("system", Some("api_retry")) => {
                return Some(self.apply_retry(&serde_json::from_slice(line).ok()?));
            }
            ("system", Some("permission_denied")) => {
                let ClaudeDeniedTool { tool_name, tool_use_id } = serde_json::from_slice(line).ok()?;
                return Some(self.record_denial(tool_use_id, tool_name, None));
            }
            ("user", _) => return Some(self.apply_tool_results(serde_json::from_slice(line).ok()?)),
            ("rate_limit_event", _) => {
                return Some(self.apply_rate_limit(serde_json::from_slice(line).ok()?));
            }
            _ => {}
        }
        None
    }

    fn apply_init(&mut self, init: ClaudeInit) {
        let found = init.mcp_servers.iter().any(|one| one.name == REPORT_SERVER && one.status == "connected");
        self.found_reports = Some(found || self.found_reports == Some(true));
        self.session = Some(init.session_id);
        self.usage.model = init.model;
        self.result = None;
    }

    fn apply_retry(&mut self, retry: &ClaudeRetry) -> Vec<OutputLine> {
        let seconds = retry.retry_delay_ms.map(|ms| (ms / 1000.0).ceil());
        let delay = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        if retry.error_status == Some(429) {
            self.refusal.asked_to_wait = delay;
        }
        let word = retry.error.as_deref().unwrap_or("an error").replace('_', " ");
        let why = retry.error_status.map_or(word.clone(), |status| format!("{word}, status {status}"));
        vec![OutputLine::Waits { why, delay }]
    }

    fn apply_rate_limit(&mut self, limit: ClaudeRateLimit) -> Vec<OutputLine> {
        let ClaudeRateLimitInfo { status, resets_at, window } = limit.rate_limit_info;
        if status != "rejected" {
            return Vec::new();
        }
        self.refusal.resets_at = resets_at;
        let window = window.map_or_else(|| "a".to_owned(), |window| window.replace('_', " "));
        vec![OutputLine::Waits { why: format!("{window} limit of the subscription"), delay: None }]
    }

    /// Applies a message. Returns `None` if a text block has no text.
    fn apply_message(&mut self, turn: ClaudeTurn<'_>) -> Option<Vec<OutputLine>> {
        let ClaudeTurn { message, parent_tool_use_id, error } = turn;
        if let (Some(id), Some(usage)) = (message.id, message.usage) {
            self.usage.record_message(&id, message.model.as_deref(), usage);
        }
        let failed = error.is_some();
        self.refusal.error_name = error;
        let mut said = Vec::new();
        for block in message.content {
            match (block.r#type, block.text, block.name) {
                (_, Some(text), _) if failed => said.push(OutputLine::Error(text)),
                // Also in a block of another type, because it is addressed to us.
                (_, Some(text), _) if parent_tool_use_id.is_none() => {
                    self.message.add(&text);
                    said.push(OutputLine::Text(text));
                }
                ("text", None, _) => return None,
                ("tool_use", _, Some(name)) => {
                    if parent_tool_use_id.is_none() {
                        self.message.clear();
                    }
                    let about = block.input.map(summarize_input).unwrap_or_default();
                    if let Some(id) = block.id {
                        self.calls.begin(&id, &bounded::tool_call(&name, about.clone()));
                    }
                    said.push(OutputLine::Tool { name, about });
                }
                _ => {}
            }
        }
        Some(said)
    }

    /// Applies tool results. Calls of unavailable tools are denied only here.
    fn apply_tool_results(&mut self, turn: ClaudeTurn<'_>) -> Vec<OutputLine> {
        let mut said = Vec::new();
        for block in turn.message.content {
            let missing =
                block.is_error && block.content.is_some_and(|answer| answer.get().contains("No such tool available"));
            let Some(call) = block.tool_use_id else { continue };
            if let Some(DeniedTool { tool, .. }) = self.calls.get(&call).filter(|_| missing) {
                let tool = tool.clone();
                said.extend(self.record_denial(call, tool, None));
            }
        }
        said
    }

    /// Records a denied call once.
    fn record_denial(&mut self, call: String, tool: String, input: Option<&RawValue>) -> Vec<OutputLine> {
        let call = first_line(&call);
        if self.denied.iter().any(|(known, _)| *known == call) || self.denied.len() == MAX_DENIED {
            return Vec::new();
        }
        let about = || input.map(summarize_input).unwrap_or_default();
        let known = self.calls.get(&call).map(|call| call.about.clone());
        let denied = bounded::tool_call(&tool, known.unwrap_or_else(about));
        self.denied.push((call, denied.clone()));
        vec![OutputLine::Denied(denied)]
    }

    fn apply_result(&mut self, line: &[u8]) -> Vec<OutputLine> {
        // The last result counts, even if it is empty or cannot be parsed.
        (self.result, self.last_block) = (None, String::new());
        let Some(mut result) = ClaudeOutcome::parse(line) else { return Vec::new() };
        self.usage.record_bill(&result.bill);
        self.session = result.session.take().or(self.session.take());
        result.message().unwrap_or_default().clone_into(&mut self.last_block);
        let refused = std::mem::take(&mut result.denials);
        self.result = Some(result);
        let say =
            |one: outcome::ClaudeDenial| self.record_denial(one.tool_use_id, one.tool_name, one.tool_input.as_deref());
        refused.into_iter().flat_map(say).collect()
    }
}

/// Summarizes the arguments of a tool call.
fn summarize_input(input: &RawValue) -> String {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct ClaudeToolInput {
        command: Option<String>,
        file_path: Option<String>,
        notebook_path: Option<String>,
        pattern: Option<String>,
        path: Option<String>,
        url: Option<String>,
        query: Option<String>,
        description: Option<String>,
    }
    let input: ClaudeToolInput = serde_json::from_str(input.get()).unwrap_or_default();
    let known = [
        input.command,
        input.file_path,
        input.notebook_path,
        input.pattern,
        input.path,
        input.url,
        input.query,
        input.description,
    ];
    known.into_iter().flatten().next().map(|text| first_line(&text)).unwrap_or_default()
}
