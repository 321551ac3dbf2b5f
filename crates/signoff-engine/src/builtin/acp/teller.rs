//! Turns what an agent says into lines.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, ContentChunk, MessageId, Meta, PromptResponse, SessionUpdate, ToolCallContent,
    ToolCallId, ToolCallStatus, ToolCallUpdateFields, ToolKind, UsageUpdate,
};
use serde::Deserialize;

use crate::agent::acp::line::Line;
use crate::agent::{SERVER, glance};

/// Prints lines, and knows what was said before.
#[derive(Debug)]
pub struct Teller<W> {
    out: W,
    /// Whether what comes is an answer to our prompt, and not an old one that is told again.
    asked: bool,
    /// Of a message, what is not printed yet.
    text: String,
    message: Option<MessageId>,
    /// Whether the next text begins another message.
    begins: bool,
    /// Tools that were told.
    told: HashSet<ToolCallId>,
    /// What the session had cost before; unknown for one that goes on and does not say so.
    before: Option<f64>,
    cost: Option<f64>,
}

impl<W: Write> Teller<W> {
    pub fn new(out: W, resumes: bool) -> Self {
        Self {
            out,
            asked: false,
            text: String::new(),
            message: None,
            begins: true,
            told: HashSet::new(),
            before: (!resumes).then_some(0.0),
            cost: None,
        }
    }

    pub fn tell(&mut self, line: &Line) {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        // Nobody listens any more when stdout is gone.
        let _ = self.out.write_all(&text).and_then(|()| self.out.flush());
    }

    /// A line of the answer that cannot be read.
    pub fn unread(&mut self, line: String) {
        if self.asked {
            self.tell(&Line::Unread { line });
        }
    }

    /// What comes from now on is the answer.
    pub fn ask(&mut self) {
        self.asked = true;
    }

    pub fn take(&mut self, update: SessionUpdate) {
        if let SessionUpdate::UsageUpdate(usage) = update {
            self.usage(usage);
        } else if !self.asked {
            // Old messages, told again.
        } else if let SessionUpdate::AgentMessageChunk(chunk) = update {
            self.chunk(chunk);
        } else if let SessionUpdate::AgentThoughtChunk(_) = update {
            // Text after a thought begins a new block.
            self.flush();
            self.begins = true;
        } else if let SessionUpdate::ToolCall(call) = update {
            let id = call.tool_call_id.clone();
            let fields = ToolCallUpdateFields::new()
                .kind(call.kind)
                .status(call.status)
                .title(call.title)
                .name(call.name)
                .locations(call.locations)
                .raw_input(call.raw_input);
            self.tool(id, &fields);
        } else if let SessionUpdate::ToolCallUpdate(call) = update {
            self.tool(call.tool_call_id, &call.fields);
        }
    }

    fn chunk(&mut self, ContentChunk { content, message_id, .. }: ContentChunk) {
        let ContentBlock::Text(text) = content else {
            let is_text = !matches!(content, ContentBlock::Image(_) | ContentBlock::Audio(_));
            if is_text {
                self.unread(glance(&serde_json::to_string(&content).unwrap_or_default()));
            }
            return;
        };
        if message_id.is_some() && message_id != self.message {
            self.flush();
            self.begins = true;
        }
        self.message = message_id;
        self.text.push_str(&text.text);
        // Whole lines are shown as they come; the rest when there is more.
        if let Some(end) = self.text.rfind('\n') {
            let rest = self.text.split_off(end + 1);
            self.flush();
            self.text = rest;
        }
    }

    /// Prints what is there of a message.
    pub fn flush(&mut self) {
        if !self.text.is_empty() {
            let (text, begins) = (std::mem::take(&mut self.text), std::mem::take(&mut self.begins));
            self.tell(&Line::Text { text, begins });
        }
    }

    /// A message without a name ends where a tool is used.
    fn interrupt(&mut self) {
        self.flush();
        self.begins |= self.message.is_none();
    }

    /// Tells a tool once, when enough is known about it.
    fn tool(&mut self, id: ToolCallId, fields: &ToolCallUpdateFields) {
        self.interrupt();
        let begun = fields.status.is_some_and(|status| status != ToolCallStatus::Pending);
        if let Some(why) = forbidden(fields) {
            self.told.insert(id);
            return self.tell(&Line::Denied { tool: name(fields), about: why });
        }
        if !begun || !self.told.insert(id) {
            return;
        }
        match unavailable(fields) {
            Some(tool) => self.tell(&Line::Denied { tool, about: String::new() }),
            None => self.tell(&Line::Tool { name: name(fields), about: about(fields) }),
        }
        self.reports(fields);
    }

    /// Tells of a tool of our own server.
    fn reports(&mut self, fields: &ToolCallUpdateFields) {
        let title = fields.title.as_deref().unwrap_or_default();
        if title.starts_with(&format!("{SERVER}_")) || title.ends_with(&format!("({SERVER} MCP Server)")) {
            self.tell(&Line::Reports { found: true });
        }
    }

    /// A tool that it asked for, and whether it may use it.
    pub fn asked_for(&mut self, id: ToolCallId, fields: &ToolCallUpdateFields, allowed: bool) {
        self.interrupt();
        if self.told.insert(id) {
            let (tool, about) = (name(fields), about(fields));
            self.tell(&if allowed { Line::Tool { name: tool, about } } else { Line::Denied { tool, about } });
            self.reports(fields);
        }
    }

    fn usage(&mut self, usage: UsageUpdate) {
        let Some(cost) = usage.cost.filter(|cost| cost.currency == "USD") else { return };
        if self.asked {
            self.cost = Some(cost.amount);
        } else {
            self.before = Some(cost.amount);
        }
    }

    /// The end of its answer.
    pub fn end(&mut self, response: &PromptResponse) {
        self.spent(response);
        let reason = serde_json::to_value(response.stop_reason).unwrap_or_default();
        self.tell(&Line::End { reason: reason.as_str().unwrap_or_default().to_owned() });
    }

    /// Tells all that is left to tell, however it ended.
    pub fn close(&mut self) {
        self.flush();
        if let (Some(cost), Some(before)) = (self.cost.take(), self.before) {
            self.tell(&Line::Cost { usd: cost - before });
        }
    }

    fn spent(&mut self, response: &PromptResponse) {
        if let Some(usage) = response.usage.as_ref().filter(|usage| usage.total_tokens > 0) {
            let (cached, written) =
                (usage.cached_read_tokens.unwrap_or(0), usage.cached_write_tokens.unwrap_or(0));
            self.tell(&Line::Usage {
                model: None,
                input: usage.input_tokens.saturating_add(cached).saturating_add(written),
                cached,
                written,
                output: usage.output_tokens.saturating_add(usage.thought_tokens.unwrap_or(0)),
            });
            return;
        }
        for (model, TokenCount { input_tokens: input, output_tokens: output }) in
            quota(response.meta.as_ref())
        {
            self.tell(&Line::Usage { model, input, cached: 0, written: 0, output });
        }
    }
}

/// Gemini's way to say what was used.
#[derive(Deserialize)]
struct Quota {
    token_count: TokenCount,
    #[serde(default)]
    model_usage: Vec<ModelUsage>,
}

#[derive(Deserialize)]
struct ModelUsage {
    model: String,
    token_count: TokenCount,
}

#[derive(Deserialize)]
struct TokenCount {
    input_tokens: u64,
    output_tokens: u64,
}

fn quota(meta: Option<&Meta>) -> Vec<(Option<String>, TokenCount)> {
    let quota = meta.and_then(|meta| meta.get("quota")).and_then(|quota| Quota::deserialize(quota).ok());
    match quota {
        None => Vec::new(),
        Some(Quota { token_count, model_usage }) if model_usage.is_empty() => vec![(None, token_count)],
        Some(Quota { model_usage, .. }) => {
            model_usage.into_iter().map(|one| (Some(one.model), one.token_count)).collect()
        }
    }
}

/// The tool that an agent says it does not have: opencode's way to deny one.
fn unavailable(fields: &ToolCallUpdateFields) -> Option<String> {
    let input = fields.raw_input.as_ref()?;
    let error = input.get("error")?.as_str()?;
    let denied = fields.title.as_deref() == Some("invalid") && error.contains("unavailable tool");
    denied.then(|| input.get("tool").and_then(|tool| tool.as_str()).unwrap_or("a tool").to_owned())
}

/// Why an agent denied itself a tool that it has: Gemini's way to keep its own rules, and its place.
fn forbidden(fields: &ToolCallUpdateFields) -> Option<String> {
    const WORDS: [&str; 2] = ["denied by policy", "Path not in workspace"];
    fields.status.filter(|status| *status == ToolCallStatus::Failed)?;
    let texts = fields.content.iter().flatten().filter_map(text);
    let first = texts.filter_map(|text| text.lines().next());
    first.into_iter().find(|line| WORDS.iter().any(|word| line.contains(word))).map(glance)
}

fn text(content: &ToolCallContent) -> Option<&str> {
    let ToolCallContent::Content(Content { content: ContentBlock::Text(text), .. }) = content else {
        return None;
    };
    Some(&text.text)
}

/// What a tool is called: by its name, or by its kind.
fn name(fields: &ToolCallUpdateFields) -> String {
    let kind = fields.kind.unwrap_or_default();
    let word = serde_json::to_value(kind).ok().and_then(|word| word.as_str().map(str::to_owned));
    let word = word.filter(|_| kind != ToolKind::Other).unwrap_or_else(|| "tool".to_owned());
    fields.name.clone().unwrap_or(word)
}

/// What a tool is used for: its title, and the file if the title is but a word.
fn about(fields: &ToolCallUpdateFields) -> String {
    let title = fields.title.as_deref().unwrap_or_default();
    let title = title.lines().next().unwrap_or_default().trim();
    let file = fields.locations.iter().flatten().find_map(|place| file_name(&place.path));
    match file {
        Some(file) if !title.contains([' ', '/', '.']) => format!("{title} {file}").trim().to_owned(),
        Some(_) | None => title.to_owned(),
    }
}

fn file_name(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}
