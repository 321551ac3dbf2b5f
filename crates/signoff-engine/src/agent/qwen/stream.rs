//! Parses Qwen Code's output with `-o stream-json`.

use super::read_chat_usage;
use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentError, AgentErrorKind, AgentSummary, OutputLine, TokenCounts};
use signoff_core::contract::Blocks;

use crate::agent::bounded::summarize_arguments;
use crate::agent::bounded::{self, MAX_DENIED};
use crate::agent::json_line::{loose, record_unparsed, sanitize};
use crate::agent::{AgentExit, AgentResult, OutputParser, REPORT_SERVER, error_text};

/// A line. Its type decides which fields are set.
#[derive(Deserialize)]
struct QwenLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    mcp_servers: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    /// The tool call that started the sub-agent this line belongs to.
    #[serde(borrow, default)]
    parent_tool_use_id: Option<Cow<'a, str>>,
    #[serde(default)]
    is_error: bool,
    #[serde(borrow, default, deserialize_with = "loose")]
    result: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "loose")]
    error: Option<QwenFailure<'a>>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    permission_denials: Option<&'a RawValue>,
}

/// Parses a field. An invalid one does not affect the rest of the line.
fn parse_part<'a, T: Deserialize<'a>>(part: Option<&'a RawValue>) -> Option<T> {
    part.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

#[derive(Deserialize)]
struct QwenRetry {
    #[serde(rename = "delayMs")]
    delay_ms: Option<u64>,
}

#[derive(Deserialize)]
struct QwenMcpServer<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
}

#[derive(Deserialize)]
struct QwenMessage<'a> {
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Vec<QwenPart<'a>>,
    #[serde(default)]
    usage: QwenUsage,
}

#[derive(Deserialize)]
struct QwenPart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
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
struct QwenFailure<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct QwenDenial<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
    #[serde(borrow, default)]
    tool_input: Option<&'a RawValue>,
}

/// Type of the agent's messages.
const MESSAGE_TYPE: &str = "assistant";

impl QwenMessage<'_> {
    /// Whether every text part has a text.
    fn is_complete(&self) -> bool {
        self.content.iter().all(|part| part.kind != "text" || part.text.is_some())
    }
}

/// Parser for one run of Qwen Code.
#[derive(Default)]
pub struct QwenStream {
    summary: AgentSummary,
    /// Text since the last tool use.
    message: Blocks,
    /// Whether the provider was asked again, without an answer yet.
    retrying: bool,
    end: Option<QwenEnd>,
}

/// The final line.
enum QwenEnd {
    /// `last_block` is the text of its `result` line. It repeats the last message, or one before a tool use.
    Success {
        last_block: String,
    },
    /// All retries failed.
    Unanswered,
    Failure {
        message: String,
    },
}

impl OutputParser for QwenStream {
    fn parse_line(&mut self, line: &[u8]) -> Vec<OutputLine> {
        let raw = sanitize(line);
        let Ok(line) = serde_json::from_slice::<QwenLine<'_>>(&raw) else {
            record_unparsed(&raw, MESSAGE_TYPE, &mut self.message);
            return Vec::new();
        };
        // The agent continues, so it has not ended.
        if matches!((line.kind.as_ref(), line.subtype.as_deref()), ("system", Some("init")) | ("assistant" | "user", _))
        {
            self.end = None;
        }
        match (line.kind.as_ref(), line.subtype.as_deref()) {
            ("system", Some("init")) => self.apply_init(line),
            ("system", Some("retry")) => {
                self.retrying = true;
                let delay =
                    parse_part(line.data).and_then(|QwenRetry { delay_ms }| delay_ms).map(Duration::from_millis);
                return vec![OutputLine::Waits { why: "its provider is asked again".to_owned(), delay }];
            }
            (MESSAGE_TYPE, _) => {
                let own = line.parent_tool_use_id.is_none();
                match parse_part(line.message).filter(QwenMessage::is_complete) {
                    Some(message) => return self.apply_message(message, own),
                    None => record_unparsed(&raw, MESSAGE_TYPE, &mut self.message),
                }
            }
            ("result", _) => return self.apply_result(line),
            ("system" | "user", _) => {}
            _ => record_unparsed(&raw, MESSAGE_TYPE, &mut self.message),
        }
        Vec::new()
    }

    fn finish(&mut self, exit: &AgentExit<'_>) -> AgentResult {
        let mut summary = std::mem::take(&mut self.summary);
        let kept = summary.session.as_deref().map(|session| read_chat_usage(exit, session)).unwrap_or_default();
        if !kept.is_empty() {
            summary.spent = kept;
        }
        let mut message = std::mem::take(&mut self.message);
        summary.error = match self.end.take() {
            Some(QwenEnd::Success { .. }) if message.is_empty() && summary.spent.is_empty() => {
                let words = "it reported success without calling a model or printing an answer";
                Some(AgentError::new(AgentErrorKind::Other, words))
            }
            Some(QwenEnd::Success { last_block }) => {
                // If the message is empty, the result line repeats text from before a tool use, which is no answer.
                if !message.is_empty() && !message.ends_with(&last_block) {
                    message.add(&last_block);
                }
                None
            }
            Some(QwenEnd::Unanswered) => {
                let words = "its provider was asked again and again, and answered nothing";
                Some(AgentError::new(AgentErrorKind::Broken, words))
            }
            Some(QwenEnd::Failure { message }) => Some(error_text::parse_error(&message, None)),
            None => Some(missing_result_error(exit)),
        };
        AgentResult::new(message, summary)
    }
}

impl QwenStream {
    fn apply_init(&mut self, line: QwenLine<'_>) {
        self.summary.session = line.session_id.map(Cow::into_owned);
        let servers: Vec<QwenMcpServer<'_>> = parse_part(line.mcp_servers).unwrap_or_default();
        let server = servers.iter().find(|server| server.name == REPORT_SERVER);
        self.summary.reached_report_server = server.map(|server| server.status == "connected");
    }

    fn apply_message(&mut self, message: QwenMessage<'_>, own: bool) -> Vec<OutputLine> {
        self.count_tokens(&message);
        let said: Vec<OutputLine> = message.content.into_iter().filter_map(parse_output_part).collect();
        for one in said.iter().filter(|_| own) {
            self.retrying = false;
            match one {
                OutputLine::Text(text) => self.message.add(text),
                OutputLine::Tool { .. } => self.message.clear(),
                OutputLine::Denied(_) | OutputLine::Error(_) | OutputLine::Waits { .. } => {}
            }
        }
        said
    }

    /// The end of a run whose `result` line reports success.
    fn success_end(&self, result: &str) -> QwenEnd {
        if self.retrying {
            return QwenEnd::Unanswered;
        }
        QwenEnd::Success { last_block: result.to_owned() }
    }

    /// Counts each turn separately, because the final line counts the whole session, including earlier processes.
    fn count_tokens(&mut self, message: &QwenMessage<'_>) {
        let QwenUsage { input_tokens, output_tokens, cache_read_input_tokens } = message.usage;
        if input_tokens == 0 && output_tokens == 0 {
            return;
        }
        let tokens =
            TokenCounts { input: input_tokens, cached: cache_read_input_tokens, written: 0, output: output_tokens };
        bounded::add_tokens(&mut self.summary.spent, message.model.as_deref(), tokens);
    }

    fn apply_result(&mut self, line: QwenLine<'_>) -> Vec<OutputLine> {
        let denied =
            |denial: QwenDenial<'_>| bounded::tool_call(&denial.tool_name, summarize_arguments(denial.tool_input));
        let denials: Vec<QwenDenial<'_>> = parse_part(line.permission_denials).unwrap_or_default();
        self.summary.denied = denials.into_iter().take(MAX_DENIED).map(denied).collect();
        if self.summary.session.is_none() {
            self.summary.session = line.session_id.map(Cow::into_owned);
        }
        let mut said: Vec<OutputLine> = self.summary.denied.iter().cloned().map(OutputLine::Denied).collect();
        self.end = Some(if line.is_error || line.subtype.as_deref() != Some("success") {
            let message = line.error.unwrap_or_default().message.into_owned();
            said.push(OutputLine::Error(message.clone()));
            QwenEnd::Failure { message }
        } else {
            self.success_end(&line.result.unwrap_or_default())
        });
        said
    }
}

fn parse_output_part(part: QwenPart<'_>) -> Option<OutputLine> {
    if part.kind == "tool_use" {
        let name = part.name.unwrap_or_default().into_owned();
        return Some(OutputLine::Tool { name, about: summarize_arguments(part.input) });
    }
    // Also in a part of another type, because it is addressed to us.
    part.text.map(|text| OutputLine::Text(text.into_owned()))
}

/// The error of a process without a final line, from stderr.
fn missing_result_error(exit: &AgentExit<'_>) -> AgentError {
    let stderr = String::from_utf8_lossy(exit.stderr);
    let line = |words: &str| stderr.lines().find(|line| line.contains(words)).map(|line| line.trim().to_owned());
    if let Some(unknown) = line("Unknown argument").or_else(|| line("Invalid values:")) {
        return AgentError::new(AgentErrorKind::Version, unknown);
    }
    if let Some(bound) = line("Reached max session turns").or_else(|| line("Run aborted:")) {
        return AgentError::new(AgentErrorKind::OwnLimit, bound);
    }
    if let Some(unknown) = line("No saved session found") {
        return AgentError::new(AgentErrorKind::SessionGone, unknown);
    }
    exit.missing_result_error()
}
