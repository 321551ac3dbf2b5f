//! What the model says, whatever the dialect it is said in.

use serde_json::{Value, json};

use super::request::{Form, Request, Tool};
use super::sample::sample;
use super::script::Turn;
use super::tools::{self, Undeclared};
use super::usage::Usage;

/// One reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// A number of its own on this server.
    pub number: usize,
    /// How long the conversation is.
    pub length: usize,
    pub model: String,
    pub text: String,
    pub calls: Vec<Call>,
    pub usage: Usage,
}

/// A tool to be called.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub tool: Tool,
    pub input: Input,
}

/// What a tool is called with.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    Json(Value),
    Text(String),
}

impl Reply {
    /// What a turn becomes for this client, and what of it the client has no tool for.
    pub fn of_turn(turn: &Turn, request: &Request, cwd: Option<&str>) -> (Self, Vec<String>) {
        let (mut texts, mut calls, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        if !turn.say.is_empty() {
            texts.push(turn.say.clone());
        }
        for action in &turn.calls {
            match tools::call(action, request, cwd) {
                // The rest of the turn waits until the tools are there.
                Ok(call) if call.tool.form == Form::Search => {
                    (texts, calls) = (Vec::new(), vec![call]);
                    break;
                }
                Ok(call) => calls.push(call),
                Err(Undeclared(what)) => {
                    texts.push(format!("[no tool was declared for {what}]"));
                    missing.push(what);
                }
            }
        }
        (Self::new(texts.join("\n\n"), calls, turn.usage, request), missing)
    }

    /// What satisfies a client that wants data of some shape.
    pub fn of_schema(schema: &Value, request: &Request) -> Self {
        Self::new(sample(schema).to_string(), Vec::new(), None, request)
    }

    fn new(text: String, calls: Vec<Call>, usage: Option<Usage>, request: &Request) -> Self {
        let called: usize = calls.iter().map(|call| call.text().len()).sum();
        let guessed = Usage::new(request.size(), (text.len() + called) as u64 / 4 + 1);
        let usage = Usage { requests: 1, ..usage.unwrap_or(guessed) };
        let length = request.entries.len();
        Self { number: 0, length, model: request.model.clone(), text, calls, usage }
    }

    /// An id that no other reply of this server has, nor any in a conversation that was begun with another.
    pub(super) fn id(&self, prefix: &str) -> String {
        format!("{prefix}_{:04}_{}", self.number, self.length)
    }

    /// An id for one of its calls.
    pub(super) fn call_id(&self, prefix: &str, index: usize) -> String {
        format!("{}_{index}", self.id(prefix))
    }

    /// The text as it is streamed: in two deltas, so that a client has to put something together.
    pub(super) fn deltas(&self) -> Vec<&str> {
        halves(&self.text)
    }
}

impl Call {
    /// The input as text.
    pub fn text(&self) -> String {
        match &self.input {
            Input::Json(value) => value.to_string(),
            Input::Text(text) => text.clone(),
        }
    }

    /// The input as JSON; text is wrapped.
    pub fn json(&self) -> Value {
        match &self.input {
            Input::Json(value) => value.clone(),
            Input::Text(text) => json!({ "input": text }),
        }
    }
}

/// The two halves of a text, without empty ones.
pub(super) fn halves(text: &str) -> Vec<&str> {
    let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let (first, second) = text.split_at(middle);
    [first, second].into_iter().filter(|half| !half.is_empty()).collect()
}
