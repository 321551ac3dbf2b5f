//! Parses Codex's output, one JSON object per line.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentSummary, DeniedTool, ModelSpend, OutputLine, TokenCounts};
use signoff_core::contract::Blocks;

use super::outcome;
use super::rollout::Rollout;
use crate::agent::bounded;
use crate::agent::json_line::{loose, record_unparsed, sanitize};
use crate::agent::{AgentExit, AgentResult, OutputParser, REPORT_SERVER, first_line};

/// Type of the agent's messages.
const MESSAGE_TYPE: &str = "agent_message";

#[derive(Debug, Default)]
pub struct CodexStream {
    session: Option<String>,
    found_reports: Option<bool>,
    denied: Vec<DeniedTool>,
    /// Text since the last tool use.
    message: Blocks,
    /// A message that is not completed yet.
    partial: String,
    /// Codex's own count, which covers the whole session after a resume.
    total: Option<CodexUsage>,
    end: Option<CodexEnd>,
}

/// How the turn ended.
#[derive(Debug)]
enum CodexEnd {
    Success,
    Failure(String),
}

#[derive(Deserialize)]
struct CodexLine<'a> {
    r#type: &'a str,
    #[serde(default, deserialize_with = "loose")]
    thread_id: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    message: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    error: Option<CodexErrorMessage>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "loose")]
    usage: Option<CodexUsage>,
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

#[derive(Deserialize)]
struct CodexItem<'a> {
    r#type: &'a str,
    #[serde(borrow, default, deserialize_with = "loose")]
    status: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "loose")]
    text: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    message: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    command: Option<String>,
    #[serde(borrow)]
    aggregated_output: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "loose")]
    changes: Vec<CodexFileChange>,
    #[serde(default, deserialize_with = "loose")]
    server: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    tool: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    query: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    error: Option<CodexErrorMessage>,
}

#[derive(Deserialize)]
struct CodexFileChange {
    path: String,
}

impl OutputParser for CodexStream {
    fn parse_line(&mut self, line: &[u8]) -> Vec<OutputLine> {
        let line = sanitize(line);
        self.parse(&line).unwrap_or_else(|| {
            record_unparsed(&line, MESSAGE_TYPE, &mut self.message);
            Vec::new()
        })
    }

    fn finish(&mut self, exit: &AgentExit<'_>) -> AgentResult {
        let rollout = Rollout::read(exit);
        let trouble = match self.end.take() {
            Some(CodexEnd::Success) => None,
            Some(CodexEnd::Failure(words)) => Some(outcome::parse_error(&words, rollout.resets_in(exit))),
            None => Some(outcome::missing_end_error(exit)),
        };
        if trouble.as_ref().is_some_and(outcome::is_about_reports) {
            self.found_reports = Some(false);
        }
        let summary = AgentSummary {
            session: self.session.take(),
            spent: if rollout.spent.is_empty() && !exit.resumed { self.own_count() } else { rollout.spent },
            // The stream omits some calls that Codex's own sandbox denies.
            denied: if rollout.denied.is_empty() { std::mem::take(&mut self.denied) } else { rollout.denied },
            reached_report_server: self.found_reports,
            unread_line: None,
            error: trouble,
        };
        self.complete_message("");
        AgentResult::new(std::mem::take(&mut self.message), summary)
    }
}

impl CodexStream {
    /// Parses a line. Returns `None` if it may be a message and cannot be parsed.
    fn parse(&mut self, line: &[u8]) -> Option<Vec<OutputLine>> {
        let line: CodexLine<'_> = serde_json::from_slice(line).ok()?;
        match line.r#type {
            "thread.started" => self.session = line.thread_id,
            "turn.started" => self.end = None,
            "turn.completed" => {
                self.total = line.usage;
                self.end = Some(CodexEnd::Success);
            }
            // The turn failed even if the reason cannot be parsed.
            "turn.failed" => {
                let words = line.error.map(|error| error.message);
                self.end = Some(CodexEnd::Failure(words.unwrap_or_default()));
            }
            step @ ("item.started" | "item.updated" | "item.completed") => {
                return self.apply_item(step, line.item?.get());
            }
            // The last error is repeated when the turn fails.
            "error" => return Some(line.message.map(parse_error_line).into_iter().collect()),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn apply_item(&mut self, step: &str, raw: &str) -> Option<Vec<OutputLine>> {
        #[derive(Deserialize)]
        struct CodexItemKind<'a> {
            r#type: &'a str,
        }
        let CodexItemKind { r#type } = serde_json::from_str(raw).ok()?;
        if is_tool_call(r#type, step) {
            self.message.clear();
            self.partial.clear();
        }
        let item: Option<CodexItem<'_>> = serde_json::from_str(raw).ok();
        match (r#type, step) {
            (MESSAGE_TYPE, "item.completed") => self.apply_message(item?.text?),
            (MESSAGE_TYPE, _) => self.apply_partial(item?.text?),
            (_, "item.started") => Some(item.and_then(|item| self.item_started(item)).unwrap_or_default()),
            (_, "item.completed") => Some(item.and_then(|item| self.item_completed(item)).unwrap_or_default()),
            _ => Some(Vec::new()),
        }
    }

    fn apply_message(&mut self, text: String) -> Option<Vec<OutputLine>> {
        self.complete_message(&text);
        Some(vec![OutputLine::Text(text)])
    }

    /// Stores a message that may be extended.
    fn apply_partial(&mut self, text: String) -> Option<Vec<OutputLine>> {
        if !text.starts_with(&self.partial) {
            self.complete_message("");
        }
        self.partial = text;
        Some(Vec::new())
    }

    /// Adds a message. Keeps a partial message that it does not extend.
    fn complete_message(&mut self, text: &str) {
        let partial = std::mem::take(&mut self.partial);
        if !text.starts_with(&partial) {
            self.message.add(&partial);
        }
        self.message.add(text);
    }

    fn item_started(&mut self, item: CodexItem<'_>) -> Option<Vec<OutputLine>> {
        let (name, about) = match item.r#type {
            "command_execution" => ("shell".to_owned(), strip_shell(&item.command?)),
            "file_change" => ("patch".to_owned(), paths(&item.changes)),
            "mcp_tool_call" => (item.tool?, item.server?),
            "web_search" => ("web_search".to_owned(), item.query.unwrap_or_default()),
            _ => return None,
        };
        Some(vec![OutputLine::Tool { name, about: first_line(&about) }])
    }

    fn item_completed(&mut self, item: CodexItem<'_>) -> Option<Vec<OutputLine>> {
        let failed = item.status.as_deref() == Some("failed");
        let denied = match item.r#type {
            "reasoning" | "todo_list" => return None,
            "error" => return Some(vec![OutputLine::Error(item.message?)]),
            "mcp_tool_call" => {
                if item.server.as_deref() == Some(REPORT_SERVER) && !failed {
                    self.found_reports = Some(true);
                }
                item.error.filter(|error| error.message.contains("requires approval"))?;
                bounded::tool_call(&item.tool?, first_line(&item.server?))
            }
            "command_execution" if failed && outcome::is_write_denied(item.aggregated_output?.get()) => {
                DeniedTool { tool: "shell".to_owned(), about: first_line(&strip_shell(&item.command?)) }
            }
            "file_change" if failed => {
                DeniedTool { tool: "patch".to_owned(), about: first_line(&paths(&item.changes)) }
            }
            "command_execution" | "file_change" | "collab_tool_call" | "web_search" => return None,
            // The text of an unknown item counts, because it is addressed to us.
            _ => return self.apply_message(item.text?),
        };
        bounded::push_denied(&mut self.denied, &denied);
        Some(vec![OutputLine::Denied(denied)])
    }

    fn own_count(&self) -> Vec<ModelSpend> {
        let spent = |usage: CodexUsage| ModelSpend { tokens: usage.tokens(), ..ModelSpend::default() };
        self.total.map(spent).into_iter().collect()
    }
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
fn parse_error_line(words: String) -> OutputLine {
    let Some(again) = words.strip_prefix("Reconnecting...") else { return OutputLine::Error(words) };
    let why = again.split_once('(').map_or(again, |(_, why)| why.trim_end_matches(')'));
    OutputLine::Waits { why: why.trim().to_owned(), delay: None }
}

/// A command without the shell that runs it.
fn strip_shell(words: &str) -> String {
    let inner = words.split_once(" -lc ").map_or(words, |(_, inner)| inner);
    let quoted = |quote| inner.strip_prefix(quote).and_then(|inner| inner.strip_suffix(quote));
    quoted('\'').or_else(|| quoted('"')).unwrap_or(inner).to_owned()
}

fn paths(changes: &[CodexFileChange]) -> String {
    changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>().join(", ")
}
