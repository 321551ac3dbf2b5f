//! Parses the output of `copilot --output-format json`, and its usage file.
//!
//! The final line contains exit code 0 even if the answer was aborted; an earlier line shows that.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{
    AgentError, AgentErrorKind, AgentSummary, DeniedTool, ModelSpend, OutputLine, TokenCounts,
};
use signoff_core::contract::Blocks;

use super::{SESSIONS, USAGE_BEFORE_FILE, USAGE_FILE};
use crate::agent::bounded::summarize_arguments;
use crate::agent::bounded::{self, OpenCalls};
use crate::agent::json_line::{loose, record_unparsed, sanitize};
use crate::agent::{AgentExit, AgentResult, OutputParser, REPORT_SERVER, error_text, first_line};
use crate::attempt::read_start;

/// Type of the agent's messages.
const MESSAGE_TYPE: &str = "assistant.message";

/// State of the parser.
#[derive(Debug, Default)]
pub struct CopilotStream {
    /// Text since the last tool use.
    message: Blocks,
    /// Open tool calls.
    tools: OpenCalls,
    session: Option<String>,
    denied: Vec<DeniedTool>,
    found_reports: Option<bool>,
    trouble: Option<AgentError>,
    /// The exit code in its final line.
    final_code: Option<i64>,
}

#[derive(Deserialize)]
struct CopilotLine<'a> {
    #[serde(rename = "type")]
    kind: CopilotEvent,
    #[serde(default, borrow)]
    data: CopilotData<'a>,
    #[serde(rename = "sessionId")]
    session: Option<String>,
    #[serde(rename = "exitCode")]
    code: Option<i64>,
}

#[derive(Deserialize)]
enum CopilotEvent {
    #[serde(rename = "assistant.message")]
    Message,
    #[serde(rename = "assistant.turn_retry")]
    Retry,
    #[serde(rename = "tool.execution_start")]
    ToolStart,
    #[serde(rename = "tool.execution_complete")]
    ToolEnd,
    #[serde(rename = "session.mcp_server_status_changed")]
    Server,
    #[serde(rename = "session.error")]
    Error,
    #[serde(rename = "abort")]
    Abort,
    #[serde(rename = "result")]
    Result,
    #[serde(other)]
    Unknown,
}

/// Fields of all kinds of lines.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CopilotData<'a> {
    #[serde(deserialize_with = "loose")]
    content: Option<String>,
    #[serde(deserialize_with = "loose")]
    tool_requests: Vec<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "loose")]
    tool_call_id: String,
    #[serde(deserialize_with = "loose")]
    tool_name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    error: CopilotFailure,
    #[serde(deserialize_with = "loose")]
    server_name: String,
    #[serde(deserialize_with = "loose")]
    status: String,
    #[serde(deserialize_with = "loose")]
    reason: String,
    #[serde(deserialize_with = "loose")]
    error_type: String,
    #[serde(deserialize_with = "loose")]
    message: String,
    #[serde(deserialize_with = "loose")]
    status_code: Option<u16>,
}

/// A string for a server, an object for a tool.
#[derive(Deserialize)]
#[serde(untagged)]
enum CopilotFailure {
    Object {
        #[serde(default)]
        code: String,
    },
    Other(serde::de::IgnoredAny),
}

impl Default for CopilotFailure {
    fn default() -> Self {
        Self::Object { code: String::new() }
    }
}

impl CopilotFailure {
    fn is_denied(&self) -> bool {
        matches!(self, Self::Object { code } if code == "denied")
    }
}

impl OutputParser for CopilotStream {
    fn parse_line(&mut self, line: &[u8]) -> Vec<OutputLine> {
        let raw = sanitize(line);
        match serde_json::from_slice(&raw) {
            Ok(CopilotLine { kind: CopilotEvent::Message, data: CopilotData { content: None, .. }, .. }) | Err(_) => {
                record_unparsed(&raw, MESSAGE_TYPE, &mut self.message);
                Vec::new()
            }
            Ok(line) => self.apply(line).into_iter().collect(),
        }
    }

    fn finish(&mut self, exit: &AgentExit<'_>) -> AgentResult {
        let trouble = self.trouble.take().or_else(|| self.missing_end(exit));
        let summary = AgentSummary {
            session: self.session.clone().or_else(|| find_session(exit.home)),
            spent: read_usage(exit.home),
            error: trouble,
            denied: self.denied.clone(),
            reached_report_server: self.found_reports,
            unread_line: None,
        };
        AgentResult::new(std::mem::take(&mut self.message), summary)
    }
}

impl CopilotStream {
    fn apply(&mut self, line: CopilotLine<'_>) -> Option<OutputLine> {
        let CopilotLine { kind, data, session, code } = line;
        match kind {
            CopilotEvent::Message => self.apply_message(data),
            CopilotEvent::Retry => Some(OutputLine::Waits { why: data.reason, delay: None }),
            CopilotEvent::ToolStart => Some(self.apply_tool_start(data)),
            CopilotEvent::ToolEnd => {
                self.message.clear();
                let tool = self.tools.end(&data.tool_call_id)?;
                data.error.is_denied().then(|| {
                    bounded::push_denied(&mut self.denied, &tool);
                    OutputLine::Denied(tool)
                })
            }
            CopilotEvent::Server => {
                self.apply_server_status(&data);
                None
            }
            CopilotEvent::Error => Some(OutputLine::Error(self.apply_error(&data))),
            CopilotEvent::Abort => {
                self.trouble.get_or_insert_with(|| AgentError::new(AgentErrorKind::Other, "its answer was broken off"));
                None
            }
            CopilotEvent::Result => {
                self.session = session;
                self.final_code = code;
                None
            }
            CopilotEvent::Unknown => None,
        }
    }

    /// Text in a message that also calls tools counts as text before the tool use.
    fn apply_message(&mut self, CopilotData { content, tool_requests, .. }: CopilotData<'_>) -> Option<OutputLine> {
        let content = content?;
        if tool_requests.is_empty() {
            self.message.add(&content);
        } else {
            self.message.clear();
        }
        (!content.is_empty()).then_some(OutputLine::Text(content))
    }

    fn apply_tool_start(
        &mut self,
        CopilotData { tool_call_id, tool_name, arguments, .. }: CopilotData<'_>,
    ) -> OutputLine {
        self.message.clear();
        let about = summarize_arguments(arguments);
        self.tools.begin(&tool_call_id, &bounded::tool_call(&tool_name, about.clone()));
        OutputLine::Tool { name: tool_name, about }
    }

    fn apply_server_status(&mut self, CopilotData { server_name, status, .. }: &CopilotData<'_>) {
        if server_name == REPORT_SERVER {
            match status.as_str() {
                "connected" => self.found_reports = Some(true),
                "failed" | "needs-auth" => self.found_reports = Some(false),
                _ => {}
            }
        }
    }

    fn apply_error(&mut self, CopilotData { error_type, message, status_code, .. }: &CopilotData<'_>) -> String {
        let kind = match (error_type.as_str(), error_text::classify(*status_code, message, None)) {
            ("authentication", _) => AgentErrorKind::NotLoggedIn,
            (_, AgentErrorKind::Other) if status_code.is_none() && is_broken(message) => AgentErrorKind::Broken,
            (_, kind) => kind,
        };
        let message = join_lines(message);
        self.trouble.get_or_insert_with(|| AgentError::new(kind, &message));
        message
    }

    fn missing_end(&self, end: &AgentExit<'_>) -> Option<AgentError> {
        match self.final_code {
            Some(0) if end.code == Some(0) => None,
            Some(0) | None => Some(missing_result_error(end)),
            Some(code) => Some(AgentError::new(AgentErrorKind::Other, format!("exit code {code}"))),
        }
    }
}

/// The error of a process without a result. Only stderr shows a missing login or an unknown flag.
fn missing_result_error(end: &AgentExit<'_>) -> AgentError {
    let stderr = String::from_utf8_lossy(end.stderr);
    let first = first_line(&stderr);
    if first.starts_with("Error: No session") {
        return AgentError::new(AgentErrorKind::SessionGone, first);
    }
    if first.contains("unknown option") {
        return AgentError::new(AgentErrorKind::Version, first);
    }
    if error_text::classify(None, &first, None) == AgentErrorKind::NotLoggedIn {
        return AgentError::new(AgentErrorKind::NotLoggedIn, first);
    }
    end.missing_result_error()
}

fn is_broken(message: &str) -> bool {
    ["error decoding response body", "Failed to parse", "HTTP request"].iter().any(|words| message.contains(words))
}

/// Joins all lines.
fn join_lines(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The only session in the agent's new home, if the output did not name one.
fn find_session(home: &Path) -> Option<String> {
    let mut sessions = fs::read_dir(home.join(SESSIONS)).ok()?.flatten();
    let session = sessions.next()?.file_name().into_string().ok()?;
    sessions.next().is_none().then_some(session)
}

/// Maximum size of the usage file.
const MAX_USAGE_FILE: u64 = 1024 * 1024;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CopilotUsageFile {
    model_metrics: BTreeMap<String, CopilotModel>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CopilotModel {
    usage: CopilotUsage,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CopilotUsage {
    /// Including cache reads.
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
}

impl CopilotUsage {
    fn tokens(&self) -> TokenCounts {
        TokenCounts {
            input: self.input_tokens,
            cached: self.cache_read_tokens,
            written: self.cache_write_tokens,
            output: self.output_tokens,
        }
    }
}

/// The usage of this attempt. Copilot's file counts the whole session and contains no cost.
fn read_usage(home: &Path) -> Vec<ModelSpend> {
    let before = read_usage_file(&home.join(USAGE_BEFORE_FILE));
    let spent = |(model, CopilotModel { usage }): (String, CopilotModel)| {
        let before = before.get(&model).map(|model| model.usage.tokens()).unwrap_or_default();
        ModelSpend { model: Some(model), tokens: usage.tokens().minus(before), cost_micro_usd: None }
    };
    read_usage_file(&home.join(USAGE_FILE)).into_iter().map(spent).collect()
}

fn read_usage_file(file: &Path) -> BTreeMap<String, CopilotModel> {
    let used: CopilotUsageFile = serde_json::from_slice(&read_start(file, MAX_USAGE_FILE)).unwrap_or_default();
    used.model_metrics
}
