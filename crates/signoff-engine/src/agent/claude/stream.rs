//! Parses Claude Code's output, one JSON object per line.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentError, DeniedTool, OutputLine};

use super::outcome::{self, ClaudeDenial, ClaudeOutcome, ClaudeProviderError, ClaudeUsage, ClaudeUsageLedger};
use crate::agent::bounded::{self, KeptOutput, MAX_DENIED, summarize_arguments};
use crate::agent::json_line::JsonStream;
use crate::agent::{AgentExit, REPORT_SERVER, first_line};

#[derive(Debug, Default)]
pub struct ClaudeStream {
    /// The ids of denied calls. A call is reported several times.
    denied_calls: BTreeSet<String>,
    usage: ClaudeUsageLedger,
    provider_error: ClaudeProviderError,
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

impl JsonStream for ClaudeStream {
    const MESSAGE_TYPE: &'static str = "assistant";

    fn parse(&mut self, line: &str, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        let known: ClaudeLine<'_> = serde_json::from_str(line).ok()?;
        match known.r#type {
            Self::MESSAGE_TYPE => self.apply_message(serde_json::from_str(line).ok()?, kept),
            "system" | "user" | "rate_limit_event" => Some(self.parse_event(line, &known, kept).unwrap_or_default()),
            "result" => Some(self.apply_result(line, kept)),
            _ => None,
        }
    }

    fn finish(&mut self, exit: &AgentExit<'_>, kept: &mut KeptOutput) -> Option<AgentError> {
        if !kept.message.ends_with(&self.last_block) {
            kept.message.add(&self.last_block);
        }
        if self.result.is_none() {
            outcome::read_session_usage(exit, &mut self.usage);
        }
        kept.summary.spent = std::mem::take(&mut self.usage).into_usage(exit.resumed);
        match &self.result {
            Some(result) => result.error(&self.provider_error, exit),
            None => Some(outcome::missing_result_error(exit)),
        }
    }
}

impl ClaudeStream {
    /// Parses a line that is not a message.
    fn parse_event(&mut self, line: &str, known: &ClaudeLine<'_>, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        Some(match (known.r#type, known.subtype) {
            ("system", Some("init")) => self.apply_init(serde_json::from_str(line).ok()?, kept),
            ("system", Some("api_retry")) => self.apply_retry(&serde_json::from_str(line).ok()?),
            ("system", Some("permission_denied")) => self.record_denial(serde_json::from_str(line).ok()?, kept),
            ("user", _) => self.apply_tool_results(serde_json::from_str(line).ok()?, kept),
            ("rate_limit_event", _) => self.apply_rate_limit(serde_json::from_str(line).ok()?),
            _ => Vec::new(),
        })
    }

    fn apply_init(&mut self, init: ClaudeInit, kept: &mut KeptOutput) -> Vec<OutputLine> {
        let found = init.mcp_servers.iter().any(|one| one.name == REPORT_SERVER && one.status == "connected");
        kept.summary.reached_report_server = Some(found || kept.summary.reached_report_server == Some(true));
        kept.summary.session = Some(init.session_id);
        self.usage.model = init.model;
        self.result = None;
        Vec::new()
    }

    fn apply_retry(&mut self, retry: &ClaudeRetry) -> Vec<OutputLine> {
        let seconds = retry.retry_delay_ms.map(|ms| (ms / 1000.0).ceil());
        let delay = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        if retry.error_status == Some(429) {
            self.provider_error.retry_after = delay;
        }
        let word = retry.error.as_deref().unwrap_or("an error").replace('_', " ");
        let reason = retry.error_status.map_or(word.clone(), |status| format!("{word}, status {status}"));
        vec![OutputLine::Waiting { reason, delay }]
    }

    fn apply_rate_limit(&mut self, limit: ClaudeRateLimit) -> Vec<OutputLine> {
        let ClaudeRateLimitInfo { status, resets_at, window } = limit.rate_limit_info;
        if status != "rejected" {
            return Vec::new();
        }
        self.provider_error.resets_at = resets_at;
        let window = window.map_or_else(|| "a".to_owned(), |window| window.replace('_', " "));
        vec![OutputLine::Waiting { reason: format!("{window} limit of the subscription"), delay: None }]
    }

    /// Applies a message. Returns `None` if a text block has no text.
    fn apply_message(&mut self, turn: ClaudeTurn<'_>, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        let ClaudeTurn { message, parent_tool_use_id, error } = turn;
        if let (Some(id), Some(usage)) = (message.id, message.usage) {
            self.usage.record_message(&id, message.model.as_deref(), usage);
        }
        let failed = error.is_some();
        self.provider_error.error_name = error;
        let mut lines = Vec::new();
        for block in message.content {
            match (block.r#type, block.text, block.name) {
                (_, Some(text), _) if failed => lines.push(OutputLine::Error(text)),
                // Also in a block of another type, because it is addressed to us.
                (_, Some(text), _) if parent_tool_use_id.is_none() => {
                    kept.message.add(&text);
                    lines.push(OutputLine::Text(text));
                }
                ("text", None, _) => return None,
                ("tool_use", _, Some(name)) => {
                    if parent_tool_use_id.is_none() {
                        kept.message.clear();
                    }
                    let about = summarize_arguments(block.input);
                    if let Some(id) = block.id {
                        kept.calls.begin(&id, bounded::tool_call(&name, about.clone()));
                    }
                    lines.push(OutputLine::Tool { name, about });
                }
                _ => {}
            }
        }
        Some(lines)
    }

    /// Applies tool results. Calls of unavailable tools are denied only here.
    fn apply_tool_results(&mut self, turn: ClaudeTurn<'_>, kept: &mut KeptOutput) -> Vec<OutputLine> {
        let mut lines = Vec::new();
        for block in turn.message.content {
            let missing =
                block.is_error && block.content.is_some_and(|answer| answer.get().contains("No such tool available"));
            let Some(tool_use_id) = block.tool_use_id.filter(|_| missing) else { continue };
            if let Some(DeniedTool { tool, .. }) = kept.calls.get(&tool_use_id) {
                let denial = ClaudeDenial { tool_name: tool.clone(), tool_use_id, tool_input: None };
                lines.extend(self.record_denial(denial, kept));
            }
        }
        lines
    }

    /// Records a denied call once.
    fn record_denial(&mut self, denial: ClaudeDenial, kept: &mut KeptOutput) -> Vec<OutputLine> {
        let call = first_line(&denial.tool_use_id);
        if self.denied_calls.len() == MAX_DENIED || self.denied_calls.contains(&call) {
            return Vec::new();
        }
        let known = kept.calls.get(&call).map(|call| call.about.clone());
        let about = known.unwrap_or_else(|| summarize_arguments(denial.tool_input.as_deref()));
        self.denied_calls.insert(call);
        vec![kept.deny(bounded::tool_call(&denial.tool_name, about))]
    }

    fn apply_result(&mut self, line: &str, kept: &mut KeptOutput) -> Vec<OutputLine> {
        // The last result counts, even if it is empty or cannot be parsed.
        self.last_block.clear();
        self.result = serde_json::from_str(line).ok();
        let Some(result) = &mut self.result else { return Vec::new() };
        self.usage.record_result(result);
        kept.summary.session = result.session_id.take().or(kept.summary.session.take());
        result.message().unwrap_or_default().clone_into(&mut self.last_block);
        let denials = std::mem::take(&mut result.permission_denials.0);
        denials.into_iter().flat_map(|denial| self.record_denial(denial, kept)).collect()
    }
}
