//! A client's request, independent of the provider's API.

use serde_json::Value;

/// One request for a reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelRequest {
    pub model: String,
    /// Whether the client wants a streamed reply.
    pub stream: bool,
    pub system: String,
    /// The conversation, oldest first. Adjacent messages of the same role are merged, except those of the user.
    pub entries: Vec<ConversationEntry>,
    pub tools: Vec<ToolDefinition>,
    /// The JSON Schema for a structured reply.
    pub schema: Option<Value>,
    /// Whether the client already searched for deferred tools.
    pub searched: bool,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationEntry {
    pub role: ConversationRole,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationRole {
    User,
    Assistant,
    /// Results of tools.
    Tool,
}

/// A tool that the client offers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolDefinition {
    pub name: String,
    /// The group that contains it, in APIs that have groups.
    pub namespace: Option<String>,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    pub form: ToolForm,
}

/// The input format of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolForm {
    #[default]
    Json,
    /// Plain text.
    Freeform,
    /// A query for deferred tools. A search alone is no turn: the turn follows when the tools are available.
    Search,
}

impl ModelRequest {
    pub fn push(&mut self, role: ConversationRole, text: &str) {
        match self.entries.last_mut() {
            Some(last) if last.role == role && role != ConversationRole::User => {
                last.text.push('\n');
                last.text.push_str(text);
            }
            _ => self.entries.push(ConversationEntry { role, text: text.to_owned() }),
        }
    }

    pub fn add_to_system(&mut self, text: &str) {
        if !self.system.is_empty() {
            self.system.push('\n');
        }
        self.system.push_str(text);
    }

    /// Number of replies since the entry at `start`.
    pub fn answers_since(&self, start: usize) -> usize {
        self.entries.iter().skip(start).filter(|entry| entry.role == ConversationRole::Assistant).count()
    }

    /// The text of the newest entry of a role.
    pub fn last(&self, role: ConversationRole) -> &str {
        self.entries.iter().rev().find(|entry| entry.role == role).map_or("", |entry| &entry.text)
    }

    /// The system prompt and all messages.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.system.as_str()).chain(self.entries.iter().map(|entry| entry.text.as_str()))
    }

    /// A rough number of tokens, for scripts that set none.
    pub fn estimated_tokens(&self) -> u64 {
        self.texts().map(str::len).sum::<usize>() as u64 / 4 + 1
    }
}

impl ToolDefinition {
    /// The schema of an argument.
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.schema["properties"].get(name)
    }

    /// The names of required arguments.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }
}

/// Extracts the text from a message's content, however nested.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().map(text_of).filter(|text| !text.is_empty());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Object(part) => {
            let inner = ["text", "parts", "content", "output"].iter().find_map(|key| part.get(*key));
            inner.map(text_of).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The elements of an array; empty if it is missing.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A string; empty if it is missing.
pub(super) fn str_or_empty(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}
