//! Parses Qwen Code's output with `-o stream-json`.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentError, AgentErrorKind, OutputLine, TokenCounts};

use super::read_chat_usage;
use crate::agent::bounded::{self, KeptOutput, MAX_DENIED, summarize_arguments};
use crate::agent::error_text::{self, error_by_line};
use crate::agent::json_line::{DefaultOnError, JsonStream};
use crate::agent::{AgentExit, REPORT_SERVER};

/// A line. Its type decides which fields are set. An invalid field does not affect the rest of the line.
#[derive(Deserialize)]
struct QwenLine<'a> {
    #[serde(rename = "type")]
    kind: String,
    subtype: Option<String>,
    session_id: Option<String>,
    mcp_servers: DefaultOnError<Vec<QwenMcpServer>>,
    #[serde(borrow)]
    message: DefaultOnError<Option<QwenMessage<'a>>>,
    /// The tool call that started the sub-agent this line belongs to.
    parent_tool_use_id: Option<String>,
    #[serde(default)]
    is_error: bool,
    result: DefaultOnError<String>,
    error: DefaultOnError<QwenFailure>,
    data: DefaultOnError<QwenRetry>,
    #[serde(borrow)]
    permission_denials: DefaultOnError<Vec<QwenDenial<'a>>>,
}

#[derive(Deserialize, Default)]
struct QwenRetry {
    #[serde(rename = "delayMs")]
    delay_ms: Option<u64>,
}

#[derive(Deserialize)]
struct QwenMcpServer {
    name: String,
    status: String,
}

#[derive(Deserialize)]
struct QwenMessage<'a> {
    model: Option<String>,
    #[serde(borrow, default)]
    content: Vec<QwenPart<'a>>,
    #[serde(default)]
    usage: QwenUsage,
}

#[derive(Deserialize)]
struct QwenPart<'a> {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct QwenUsage {
    /// Including cache reads.
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct QwenFailure {
    message: String,
}

#[derive(Deserialize)]
struct QwenDenial<'a> {
    tool_name: String,
    #[serde(borrow)]
    tool_input: Option<&'a RawValue>,
}

impl QwenMessage<'_> {
    /// Whether every text part has a text.
    fn is_complete(&self) -> bool {
        self.content.iter().all(|part| part.kind != "text" || part.text.is_some())
    }
}

/// Parser for one run of Qwen Code.
#[derive(Default)]
pub struct QwenStream {
    /// Whether the provider was asked again, without an answer yet.
    retrying: bool,
    /// The final line. The text of its `result` repeats the last message, or one before a tool use.
    end: Option<Result<String, AgentError>>,
}

impl JsonStream for QwenStream {
    const MESSAGE_TYPE: &'static str = "assistant";

    fn parse(&mut self, line: &str, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        let line: QwenLine<'_> = serde_json::from_str(line).ok()?;
        let kind = (line.kind.as_str(), line.subtype.as_deref());
        // The agent continues, so it has not ended.
        if matches!(kind, ("system", Some("init")) | ("assistant" | "user", _)) {
            self.end = None;
        }
        match kind {
            ("system", Some("init")) => {
                kept.summary.session = line.session_id;
                let server = line.mcp_servers.0.iter().find(|server| server.name == REPORT_SERVER);
                kept.summary.reached_report_server = server.map(|server| server.status == "connected");
            }
            ("system", Some("retry")) => {
                self.retrying = true;
                let delay = line.data.0.delay_ms.map(Duration::from_millis);
                return Some(vec![OutputLine::Waiting { reason: "retrying the provider".to_owned(), delay }]);
            }
            (Self::MESSAGE_TYPE, _) => {
                let own = line.parent_tool_use_id.is_none();
                return Some(self.apply_message(line.message.0.filter(QwenMessage::is_complete)?, own, kept));
            }
            ("result", _) => return Some(self.apply_result(line, kept)),
            ("system" | "user", _) => {}
            _ => return None,
        }
        Some(Vec::new())
    }

    fn finish(&mut self, exit: &AgentExit<'_>, kept: &mut KeptOutput) -> Option<AgentError> {
        let session = kept.summary.session.as_deref();
        let spent = session.map(|session| read_chat_usage(exit, session)).unwrap_or_default();
        if !spent.is_empty() {
            kept.summary.spent = spent;
        }
        match self.end.take() {
            Some(Ok(_)) if kept.message.is_empty() && kept.summary.spent.is_empty() => {
                let message = "it reported success without calling a model or printing an answer";
                Some(AgentError::new(AgentErrorKind::Other, message))
            }
            Some(Ok(last_block)) => {
                // If the message is empty, the result line repeats text from before a tool use, which is no answer.
                if !kept.message.is_empty() && !kept.message.ends_with(&last_block) {
                    kept.message.add(&last_block);
                }
                None
            }
            Some(Err(error)) => Some(error),
            None => Some(missing_result_error(exit)),
        }
    }
}

impl QwenStream {
    fn apply_message(&mut self, message: QwenMessage<'_>, own: bool, kept: &mut KeptOutput) -> Vec<OutputLine> {
        count_tokens(&message, kept);
        let lines: Vec<OutputLine> = message.content.into_iter().filter_map(parse_output_part).collect();
        for one in lines.iter().filter(|_| own) {
            self.retrying = false;
            match one {
                OutputLine::Text(text) => kept.message.add(text),
                OutputLine::Tool { .. } => kept.message.clear(),
                OutputLine::Denied(_) | OutputLine::Error(_) | OutputLine::Waiting { .. } => {}
            }
        }
        lines
    }

    fn apply_result(&mut self, line: QwenLine<'_>, kept: &mut KeptOutput) -> Vec<OutputLine> {
        let denied =
            |denial: QwenDenial<'_>| bounded::tool_call(&denial.tool_name, summarize_arguments(denial.tool_input));
        kept.summary.denied = line.permission_denials.0.into_iter().take(MAX_DENIED).map(denied).collect();
        if kept.summary.session.is_none() {
            kept.summary.session = line.session_id;
        }
        let mut lines: Vec<OutputLine> = kept.summary.denied.iter().cloned().map(OutputLine::Denied).collect();
        self.end = Some(if line.is_error || line.subtype.as_deref() != Some("success") {
            let message = line.error.0.message;
            let error = error_text::parse_error(&message, None);
            lines.push(OutputLine::Error(message));
            Err(error)
        } else if self.retrying {
            Err(AgentError::new(AgentErrorKind::InvalidResponse, "all retries failed"))
        } else {
            Ok(line.result.0)
        });
        lines
    }
}

/// Counts each turn separately, because the final line counts the whole session, including earlier processes.
fn count_tokens(message: &QwenMessage<'_>, kept: &mut KeptOutput) {
    let QwenUsage { input_tokens: input, output_tokens: output, cache_read_input_tokens: cached } = message.usage;
    if input != 0 || output != 0 {
        kept.add_tokens(message.model.as_deref(), TokenCounts { input, cached, written: 0, output });
    }
}

fn parse_output_part(part: QwenPart<'_>) -> Option<OutputLine> {
    if part.kind == "tool_use" {
        let name = part.name.unwrap_or_default();
        return Some(OutputLine::Tool { name, about: summarize_arguments(part.input) });
    }
    // Also in a part of another type, because it is addressed to us.
    part.text.map(OutputLine::Text)
}

/// Phrases in stderr about a process without a final line.
const MISSING_RESULT_PHRASES: [(AgentErrorKind, &[&str]); 3] = [
    (AgentErrorKind::Version, &["Unknown argument", "Invalid values:"]),
    (AgentErrorKind::OwnLimit, &["Reached max session turns", "Run aborted:"]),
    (AgentErrorKind::SessionGone, &["No saved session found"]),
];

/// The error of a process without a final line, from stderr.
fn missing_result_error(exit: &AgentExit<'_>) -> AgentError {
    let stderr = String::from_utf8_lossy(exit.stderr);
    error_by_line(&stderr, &MISSING_RESULT_PHRASES).unwrap_or_else(|| exit.missing_result_error())
}
