//! Parses the output of `opencode run --format json`.
//!
//! There is no final line: the run succeeded if its last step ended with `stop` and no line is an error.

use std::collections::BTreeMap;

use serde::Deserialize;
use signoff_core::agent_output::{
    AgentError, AgentErrorKind, AgentSummary, DeniedTool, ModelSpend, OutputLine, TokenCounts,
};
use signoff_core::contract::Blocks;

use crate::agent::bounded;
use crate::agent::json_line::{loose, record_unparsed, sanitize};
use crate::agent::{AgentExit, AgentResult, OutputParser, REPORT_SERVER, error_text, first_line};

/// Type of the agent's messages, and key of their text.
const MESSAGE_TYPE: &str = "text";

/// State of the parser.
#[derive(Debug, Default)]
pub struct OpencodeStream {
    session: Option<String>,
    /// Text since the last tool use.
    texts: Blocks,
    /// Why the last step ended. `None` while a step runs.
    finish_reason: Option<String>,
    steps: u32,
    tokens: TokenCounts,
    dollars: f64,
    denied: Vec<DeniedTool>,
    found_reports: Option<bool>,
    trouble: Option<AgentError>,
}

#[derive(Deserialize)]
struct OpencodeLine {
    #[serde(rename = "type")]
    kind: OpencodeEvent,
    #[serde(rename = "sessionID", default)]
    session: String,
    #[serde(default)]
    part: OpencodePart,
    #[serde(default, deserialize_with = "loose")]
    error: Option<OpencodeFailure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OpencodeEvent {
    StepStart,
    Text,
    Reasoning,
    ToolUse,
    StepFinish,
    Error,
    #[serde(other)]
    Unknown,
}

/// Fields of all kinds of lines.
#[derive(Deserialize, Default)]
#[serde(default)]
struct OpencodePart {
    #[serde(deserialize_with = "loose")]
    text: Option<String>,
    #[serde(deserialize_with = "loose")]
    tool: String,
    #[serde(deserialize_with = "loose")]
    state: OpencodeToolState,
    #[serde(deserialize_with = "loose")]
    reason: String,
    #[serde(deserialize_with = "loose")]
    tokens: StepTokens,
    #[serde(deserialize_with = "loose")]
    cost: f64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OpencodeToolState {
    #[serde(deserialize_with = "loose")]
    title: String,
    #[serde(deserialize_with = "loose")]
    error: String,
    #[serde(deserialize_with = "loose")]
    input: OpencodeToolInput,
}

/// The arguments of a tool that are shown. For an unknown tool, its name.
#[derive(Deserialize, Default)]
#[serde(default)]
struct OpencodeToolInput {
    tool: LenientString,
    error: LenientString,
    command: LenientString,
    #[serde(rename = "filePath")]
    file: LenientString,
}

/// A string, or empty for any other value, because models pass anything to tools.
#[derive(Default)]
struct LenientString(String);

impl<'de> Deserialize<'de> for LenientString {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        loose(deserializer).map(Self)
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct StepTokens {
    /// Without cache reads and writes.
    #[serde(deserialize_with = "loose")]
    input: u64,
    /// Without reasoning.
    #[serde(deserialize_with = "loose")]
    output: u64,
    #[serde(deserialize_with = "loose")]
    reasoning: u64,
    #[serde(deserialize_with = "loose")]
    cache: OpencodeCacheTokens,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OpencodeCacheTokens {
    #[serde(deserialize_with = "loose")]
    read: u64,
    #[serde(deserialize_with = "loose")]
    write: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OpencodeFailure {
    name: String,
    data: OpencodeFailureData,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct OpencodeFailureData {
    message: String,
    status_code: Option<u16>,
    response_headers: BTreeMap<String, LenientString>,
    response_body: String,
    metadata: OpencodeErrorMetadata,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OpencodeErrorMetadata {
    code: LenientString,
}

impl OutputParser for OpencodeStream {
    fn parse_line(&mut self, line: &[u8]) -> Vec<OutputLine> {
        let raw = sanitize(line);
        match serde_json::from_slice(&raw) {
            Ok(OpencodeLine { kind: OpencodeEvent::Text, part: OpencodePart { text: None, .. }, .. }) | Err(_) => {
                record_unparsed(&raw, MESSAGE_TYPE, &mut self.texts);
                Vec::new()
            }
            Ok(line) => self.apply(line).into_iter().collect(),
        }
    }

    fn finish(&mut self, exit: &AgentExit<'_>) -> AgentResult {
        let trouble = self.trouble.take().or_else(|| self.missing_end(exit));
        let summary = AgentSummary {
            session: self.session.clone(),
            spent: self.spent().into_iter().collect(),
            error: trouble,
            denied: self.denied.clone(),
            reached_report_server: self.found_reports,
            unread_line: None,
        };
        AgentResult::new(std::mem::take(&mut self.texts), summary)
    }
}

impl OpencodeStream {
    fn apply(&mut self, line: OpencodeLine) -> Option<OutputLine> {
        let OpencodeLine { kind, session, part, error } = line;
        let own = self.is_own(session);
        match kind {
            OpencodeEvent::StepStart => {
                self.steps += 1;
                if own {
                    self.finish_reason = None;
                }
                None
            }
            // The text of an unknown line counts, because it is addressed to us.
            OpencodeEvent::Text | OpencodeEvent::Unknown => {
                let text = part.text?;
                if own {
                    self.texts.add(&text);
                }
                Some(OutputLine::Text(text))
            }
            OpencodeEvent::Reasoning => None,
            OpencodeEvent::ToolUse => {
                if own {
                    self.texts.clear();
                }
                Some(self.apply_tool(part.tool, part.state))
            }
            OpencodeEvent::StepFinish => {
                self.count(&part);
                if own {
                    // opencode prints no line for calls of unknown tools; only this reason shows that one happened.
                    if part.reason == "tool-calls" {
                        self.texts.clear();
                    }
                    self.finish_reason = Some(part.reason);
                }
                None
            }
            OpencodeEvent::Error => Some(OutputLine::Error(self.apply_error(error.unwrap_or_default()))),
        }
    }

    /// Whether a line belongs to the main session and not to a sub-agent's.
    fn is_own(&mut self, session: String) -> bool {
        match &self.session {
            Some(own) => *own == session,
            None => {
                self.session = (!session.is_empty()).then_some(session);
                true
            }
        }
    }

    fn count(&mut self, step: &OpencodePart) {
        let StepTokens { input, output, reasoning, cache } = &step.tokens;
        self.tokens = self.tokens.plus(TokenCounts {
            input: input.saturating_add(cache.read).saturating_add(cache.write),
            cached: cache.read,
            written: cache.write,
            output: output.saturating_add(*reasoning),
        });
        self.dollars += step.cost.max(0.0);
    }

    fn spent(&self) -> Option<ModelSpend> {
        // The cost is 0 if opencode has no price.
        let micro = (self.dollars * 1e6).round() as u64;
        let cost_micro_usd = (micro > 0).then_some(micro);
        (self.tokens != TokenCounts::default()).then_some(ModelSpend {
            model: None,
            tokens: self.tokens,
            cost_micro_usd,
        })
    }

    fn apply_tool(&mut self, tool: String, OpencodeToolState { title, error, input }: OpencodeToolState) -> OutputLine {
        let OpencodeToolInput { tool: meant, error: wrong, command, file } = input;
        if tool == "invalid" {
            return if wrong.0.contains("unavailable tool") {
                self.record_denial(bounded::tool_call(&meant.0, String::new()))
            } else {
                OutputLine::Tool { name: meant.0, about: first_line(&wrong.0) }
            };
        }
        let about = [title, command.0, file.0].iter().find(|text| !text.is_empty()).map(|text| first_line(text));
        let about = about.unwrap_or_default();
        if error.contains("rejected permission") || error.contains("specified a rule") {
            return self.record_denial(bounded::tool_call(&tool, about));
        }
        if error.is_empty() && tool.strip_prefix(REPORT_SERVER).is_some_and(|rest| rest.starts_with('_')) {
            self.found_reports = Some(true);
        }
        OutputLine::Tool { name: tool, about }
    }

    fn record_denial(&mut self, denied: DeniedTool) -> OutputLine {
        bounded::push_denied(&mut self.denied, &denied);
        OutputLine::Denied(denied)
    }

    fn apply_error(&mut self, OpencodeFailure { name, data }: OpencodeFailure) -> String {
        let message = if data.message.is_empty() { name } else { first_line(&data.message) };
        let message = if self.steps == 0 && message.starts_with("Unexpected server error") {
            // The only known cause of this error is an unknown model.
            format!("{message} (before its first step: `opencode models` lists the models that it knows)")
        } else {
            message
        };
        let kind = error_kind(&data, &message);
        self.trouble.get_or_insert_with(|| AgentError::new(kind, message.clone()));
        message
    }

    fn missing_end(&self, end: &AgentExit<'_>) -> Option<AgentError> {
        match self.finish_reason.as_deref() {
            Some("stop") => None,
            Some("length") => Some(AgentError::new(AgentErrorKind::OwnLimit, "its last answer was cut at its longest")),
            Some("tool-calls" | "") | None => Some(missing_result_error(end)),
            Some(reason) => Some(AgentError::new(AgentErrorKind::Other, format!("its last step ended with {reason}"))),
        }
    }
}

/// The error of a process without a final step. Only stderr shows an unknown session.
fn missing_result_error(end: &AgentExit<'_>) -> AgentError {
    let trouble = end.missing_result_error();
    if trouble.message.contains("Session not found") {
        return AgentError { kind: AgentErrorKind::SessionGone, ..trouble };
    }
    trouble
}

fn error_kind(data: &OpencodeFailureData, message: &str) -> AgentErrorKind {
    let seconds = data.response_headers.get("retry-after").and_then(|word| word.0.trim().parse().ok());
    // A broken connection has a code of its own.
    let broken = !data.metadata.code.0.is_empty();
    let kind = error_text::classify(data.status_code, &format!("{message}\n{}", data.response_body), seconds);
    let unknown = kind == AgentErrorKind::Other && data.status_code.is_none();
    if broken && unknown { AgentErrorKind::Broken } else { kind }
}
