//! Prints an agent's messages as lines.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, ContentChunk, MessageId, Meta, PromptResponse, SessionUpdate, ToolCallContent, ToolCallId,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind, UsageUpdate,
};
use serde::Deserialize;

use crate::agent::acp::AcpLine;
use crate::agent::{REPORT_SERVER, first_line};

/// Prints lines and keeps the state between messages.
#[derive(Debug)]
pub struct LinePrinter<W> {
    out: W,
    /// Whether the prompt was sent. Earlier messages are a replay of the resumed session.
    prompted: bool,
    /// Message text that is not printed yet.
    text: String,
    message: Option<MessageId>,
    /// Whether the next text begins a new message.
    begins: bool,
    /// Tool calls that were printed.
    printed_calls: HashSet<ToolCallId>,
    /// Cost of the session before the prompt. `None` if a resumed session did not report it.
    cost_before: Option<f64>,
    cost: Option<f64>,
}

impl<W: Write> LinePrinter<W> {
    pub fn new(out: W, is_resumed: bool) -> Self {
        Self {
            out,
            prompted: false,
            text: String::new(),
            message: None,
            begins: true,
            printed_calls: HashSet::new(),
            cost_before: (!is_resumed).then_some(0.0),
            cost: None,
        }
    }

    pub fn print(&mut self, line: &AcpLine) {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        // If stdout is closed, the line is lost.
        let _ = self.out.write_all(&text).and_then(|()| self.out.flush());
    }

    /// Prints a line of the answer that could not be parsed.
    pub fn print_unparsed(&mut self, line: String) {
        if self.prompted {
            self.print(&AcpLine::Unread { line });
        }
    }

    /// Marks all following messages as the answer.
    pub fn start_answer(&mut self) {
        self.prompted = true;
    }

    pub fn apply(&mut self, update: SessionUpdate) {
        if let SessionUpdate::UsageUpdate(usage) = update {
            self.usage(usage);
        } else if !self.prompted {
            // Replay of earlier messages.
        } else if let SessionUpdate::AgentMessageChunk(chunk) = update {
            self.apply_chunk(chunk);
        } else if let SessionUpdate::AgentThoughtChunk(_) = update {
            // Text after a thought begins a new block.
            self.flush();
            self.begins = true;
        } else if let SessionUpdate::ToolCall(call) = update {
            // Only an update shows the result.
            let ToolCallUpdate { tool_call_id, fields, .. } = call.into();
            self.apply_tool_call(tool_call_id, &fields.content(None::<Vec<ToolCallContent>>));
        } else if let SessionUpdate::ToolCallUpdate(call) = update {
            self.apply_tool_call(call.tool_call_id, &call.fields);
        }
    }

    fn apply_chunk(&mut self, ContentChunk { content, message_id, .. }: ContentChunk) {
        let ContentBlock::Text(text) = content else {
            let is_text = !matches!(content, ContentBlock::Image(_) | ContentBlock::Audio(_));
            if is_text {
                self.print_unparsed(first_line(&serde_json::to_string(&content).unwrap_or_default()));
            }
            return;
        };
        if message_id.is_some() && message_id != self.message {
            self.flush();
            self.begins = true;
        }
        self.message = message_id;
        self.text.push_str(&text.text);
        // Complete lines are printed at once, the rest with the next chunk.
        if let Some(end) = self.text.rfind('\n') {
            let rest = self.text.split_off(end + 1);
            self.flush();
            self.text = rest;
        }
    }

    /// Prints the pending text.
    pub fn flush(&mut self) {
        if !self.text.is_empty() {
            let (text, begins) = (std::mem::take(&mut self.text), std::mem::take(&mut self.begins));
            self.print(&AcpLine::Text { text, begins });
        }
    }

    /// Ends the pending text at a tool call. A message without an id ends there too.
    fn end_text(&mut self) {
        self.flush();
        self.begins |= self.message.is_none();
    }

    /// Prints a tool call once, when its status is known.
    fn apply_tool_call(&mut self, id: ToolCallId, fields: &ToolCallUpdateFields) {
        self.end_text();
        let has_started = fields.status.is_some_and(|status| status != ToolCallStatus::Pending);
        if let Some(reason) = denial_reason(fields) {
            self.printed_calls.insert(id);
            return self.print(&AcpLine::Denied { tool: tool_name(fields), about: reason });
        }
        if !has_started || !self.printed_calls.insert(id) {
            return;
        }
        match unavailable_tool(fields) {
            Some(tool) => self.print(&AcpLine::Denied { tool, about: String::new() }),
            None => self.print(&AcpLine::Tool { name: tool_name(fields), about: tool_summary(fields) }),
        }
        self.note_report_call(fields);
    }

    /// Notes a call of a report tool.
    fn note_report_call(&mut self, fields: &ToolCallUpdateFields) {
        if names_report_tool(fields) {
            self.print(&AcpLine::Reports { found: true });
        }
    }

    /// Prints a tool call for which the agent asked for permission.
    pub fn print_permission(&mut self, id: ToolCallId, fields: &ToolCallUpdateFields, allowed: bool) {
        self.end_text();
        if self.printed_calls.insert(id) {
            let (tool, about) = (tool_name(fields), tool_summary(fields));
            self.print(&if allowed { AcpLine::Tool { name: tool, about } } else { AcpLine::Denied { tool, about } });
            self.note_report_call(fields);
        }
    }

    fn usage(&mut self, usage: UsageUpdate) {
        let Some(cost) = usage.cost.filter(|cost| cost.currency == "USD") else { return };
        if self.prompted {
            self.cost = Some(cost.amount);
        } else {
            self.cost_before = Some(cost.amount);
        }
    }

    /// Prints the end of the answer.
    pub fn print_end(&mut self, response: &PromptResponse) {
        self.print_usage(response);
        let reason = serde_json::to_value(response.stop_reason).unwrap_or_default();
        self.print(&AcpLine::End { reason: reason.as_str().unwrap_or_default().to_owned() });
    }

    /// Prints what is still pending, however the conversation ended.
    pub fn close(&mut self) {
        self.flush();
        if let (Some(cost), Some(before)) = (self.cost.take(), self.cost_before) {
            self.print(&AcpLine::Cost { usd: cost - before });
        }
    }

    fn print_usage(&mut self, response: &PromptResponse) {
        if let Some(usage) = response.usage.as_ref().filter(|usage| usage.total_tokens > 0) {
            let (cached, written) = (usage.cached_read_tokens.unwrap_or(0), usage.cached_write_tokens.unwrap_or(0));
            self.print(&AcpLine::Usage {
                model: None,
                input: usage.input_tokens.saturating_add(cached).saturating_add(written),
                cached,
                written,
                output: usage.output_tokens.saturating_add(usage.thought_tokens.unwrap_or(0)),
            });
            return;
        }
        for (model, GeminiTokenCount { input_tokens: input, output_tokens: output }) in
            parse_quota(response.meta.as_ref())
        {
            self.print(&AcpLine::Usage { model, input, cached: 0, written: 0, output });
        }
    }
}

/// Gemini CLI's form of token usage.
#[derive(Deserialize)]
struct GeminiQuota {
    token_count: GeminiTokenCount,
    #[serde(default)]
    model_usage: Vec<GeminiModelUsage>,
}

#[derive(Deserialize)]
struct GeminiModelUsage {
    model: String,
    token_count: GeminiTokenCount,
}

#[derive(Deserialize)]
struct GeminiTokenCount {
    input_tokens: u64,
    output_tokens: u64,
}

fn parse_quota(meta: Option<&Meta>) -> Vec<(Option<String>, GeminiTokenCount)> {
    let quota = meta.and_then(|meta| meta.get("quota")).and_then(|quota| GeminiQuota::deserialize(quota).ok());
    match quota {
        None => Vec::new(),
        Some(GeminiQuota { token_count, model_usage }) if model_usage.is_empty() => vec![(None, token_count)],
        Some(GeminiQuota { model_usage, .. }) => {
            model_usage.into_iter().map(|one| (Some(one.model), one.token_count)).collect()
        }
    }
}

/// Whether the title of a tool call is that of a report tool.
pub fn names_report_tool(fields: &ToolCallUpdateFields) -> bool {
    let title = fields.title.as_deref().unwrap_or_default();
    title.starts_with(&format!("{REPORT_SERVER}_")) || title.ends_with(&format!("({REPORT_SERVER} MCP Server)"))
}

/// The tool an agent reports as unavailable, which is how opencode denies a tool.
fn unavailable_tool(fields: &ToolCallUpdateFields) -> Option<String> {
    let input = fields.raw_input.as_ref()?;
    let error = input.get("error")?.as_str()?;
    let denied = fields.title.as_deref() == Some("invalid") && error.contains("unavailable tool");
    denied.then(|| input.get("tool").and_then(|tool| tool.as_str()).unwrap_or("a tool").to_owned())
}

/// Why an agent denied a tool call by its own rules or its workspace, which is how Gemini CLI does it.
fn denial_reason(fields: &ToolCallUpdateFields) -> Option<String> {
    const WORDS: [&str; 2] = ["denied by policy", "Path not in workspace"];
    fields.status.filter(|status| *status == ToolCallStatus::Failed)?;
    let texts = fields.content.iter().flatten().filter_map(content_text);
    let first = texts.filter_map(|text| text.lines().next());
    first.into_iter().find(|line| WORDS.iter().any(|word| line.contains(word))).map(first_line)
}

fn content_text(content: &ToolCallContent) -> Option<&str> {
    let ToolCallContent::Content(Content { content: ContentBlock::Text(text), .. }) = content else {
        return None;
    };
    Some(&text.text)
}

/// The name of a tool, or else its kind.
fn tool_name(fields: &ToolCallUpdateFields) -> String {
    let kind = fields.kind.unwrap_or_default();
    let word = serde_json::to_value(kind).ok().and_then(|word| word.as_str().map(str::to_owned));
    let word = word.filter(|_| kind != ToolKind::Other).unwrap_or_else(|| "tool".to_owned());
    fields.name.clone().unwrap_or(word)
}

/// A summary of a tool call: its title, and the file if the title is a single word.
fn tool_summary(fields: &ToolCallUpdateFields) -> String {
    let title = fields.title.as_deref().unwrap_or_default();
    let title = title.lines().next().unwrap_or_default().trim();
    let file = fields.locations.iter().flatten().find_map(|location| file_name(&location.path));
    match file {
        Some(file) if !title.contains([' ', '/', '.']) => format!("{title} {file}").trim().to_owned(),
        Some(_) | None => title.to_owned(),
    }
}

fn file_name(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}
