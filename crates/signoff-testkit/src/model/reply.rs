//! A model reply, independent of the provider's API.

use serde_json::{Value, json};

use super::request::{ModelRequest, ToolDefinition, ToolForm};
use super::sample::sample;
use super::script::ModelTurn;
use super::tools::{self, UndeclaredTool};
use super::usage::TokenUsage;

/// One reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    /// Unique on this server.
    pub number: usize,
    /// The number of conversation entries.
    pub length: usize,
    pub model: String,
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub usage: TokenUsage,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub tool: ToolDefinition,
    pub input: ToolInput,
}

/// The input of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolInput {
    Json(Value),
    Text(String),
}

impl ModelReply {
    /// Converts a turn for this client. Also returns the actions that no declared tool supports.
    pub fn from_turn(turn: &ModelTurn, request: &ModelRequest, cwd: Option<&str>) -> (Self, Vec<String>) {
        let (mut texts, mut calls, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        if !turn.say.is_empty() {
            texts.push(turn.say.clone());
        }
        for action in &turn.calls {
            match tools::call(action, request, cwd) {
                // The rest of the turn follows when the tools are available.
                Ok(call) if call.tool.form == ToolForm::Search => {
                    (texts, calls) = (Vec::new(), vec![call]);
                    break;
                }
                Ok(call) => calls.push(call),
                Err(UndeclaredTool(what)) => {
                    texts.push(format!("[no tool was declared for {what}]"));
                    missing.push(what);
                }
            }
        }
        (Self::new(texts.join("\n\n"), calls, turn.usage, request), missing)
    }

    /// A structured reply that satisfies a JSON Schema.
    pub fn from_schema(schema: &Value, request: &ModelRequest) -> Self {
        Self::new(sample(schema).to_string(), Vec::new(), None, request)
    }

    fn new(text: String, calls: Vec<ToolCall>, usage: Option<TokenUsage>, request: &ModelRequest) -> Self {
        let called: usize = calls.iter().map(|call| call.text().len()).sum();
        let guessed = TokenUsage::new(request.estimated_tokens(), (text.len() + called) as u64 / 4 + 1);
        let usage = TokenUsage { requests: 1, ..usage.unwrap_or(guessed) };
        let length = request.entries.len();
        Self { number: 0, length, model: request.model.clone(), text, calls, usage }
    }

    /// An id that is unique on this server, and in a conversation that started on another one.
    pub(super) fn id(&self, prefix: &str) -> String {
        format!("{prefix}_{:04}_{}", self.number, self.length)
    }

    /// The id of one of its calls.
    pub(super) fn call_id(&self, prefix: &str, index: usize) -> String {
        format!("{}_{index}", self.id(prefix))
    }

    /// The text in two deltas, so that clients have to join them.
    pub(super) fn deltas(&self) -> Vec<&str> {
        halves(&self.text)
    }
}

impl ToolCall {
    /// The input as text.
    pub fn text(&self) -> String {
        match &self.input {
            ToolInput::Json(value) => value.to_string(),
            ToolInput::Text(text) => text.clone(),
        }
    }

    /// The input as JSON; text is wrapped.
    pub fn json(&self) -> Value {
        match &self.input {
            ToolInput::Json(value) => value.clone(),
            ToolInput::Text(text) => json!({ "input": text }),
        }
    }
}

/// The two halves of a text, without empty ones.
pub(super) fn halves(text: &str) -> Vec<&str> {
    let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let (first, second) = text.split_at(middle);
    [first, second].into_iter().filter(|half| !half.is_empty()).collect()
}
