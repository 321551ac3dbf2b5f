//! What a client asks, whatever the dialect it asks in.

use serde_json::Value;

/// One request for a reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    pub model: String,
    /// Whether the reply is wanted bit by bit.
    pub stream: bool,
    pub system: String,
    /// The conversation, oldest first. Neighbours of the same role but the user's are one entry.
    pub entries: Vec<Entry>,
    pub tools: Vec<Tool>,
    /// The shape a reply must have, where the client wants data and not prose.
    pub schema: Option<Value>,
    /// Whether the client has looked for deferred tools already.
    pub searched: bool,
}

/// What one side said at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub role: Role,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
    /// Results of tools.
    Tool,
}

/// A tool that the client offers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tool {
    pub name: String,
    /// The group it is nested in, where the dialect has such.
    pub namespace: Option<String>,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    pub form: Form,
}

/// How a tool is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    #[default]
    Json,
    /// With text as it is.
    Freeform,
    /// With words to find further tools by. Calls of it alone are no turn: the turn follows when the tools are there.
    Search,
}

impl Request {
    pub fn push(&mut self, role: Role, text: &str) {
        match self.entries.last_mut() {
            Some(last) if last.role == role && role != Role::User => {
                last.text.push('\n');
                last.text.push_str(text);
            }
            _ => self.entries.push(Entry { role, text: text.to_owned() }),
        }
    }

    pub fn add_to_system(&mut self, text: &str) {
        if !self.system.is_empty() {
            self.system.push('\n');
        }
        self.system.push_str(text);
    }

    /// How often the model has answered since the entry at `start`.
    pub fn answers_since(&self, start: usize) -> usize {
        self.entries.iter().skip(start).filter(|entry| entry.role == Role::Assistant).count()
    }

    /// The newest entry of a role.
    pub fn last(&self, role: Role) -> &str {
        self.entries.iter().rev().find(|entry| entry.role == role).map_or("", |entry| &entry.text)
    }

    /// All that was said to the model and by it.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.system.as_str()).chain(self.entries.iter().map(|entry| entry.text.as_str()))
    }

    /// Roughly the number of tokens, for scripts that do not say.
    pub fn size(&self) -> u64 {
        self.texts().map(str::len).sum::<usize>() as u64 / 4 + 1
    }
}

impl Tool {
    /// The schema of an argument, if it has that argument.
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.schema["properties"].get(name)
    }

    /// The names of arguments that must be given.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }
}

/// The text in a message's content, however it is nested.
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

/// The members of a list that may be missing.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A string that may be missing.
pub(super) fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}
