//! The languages of providers: what each file beside this one can read and write.

use serde::Serialize;
use serde_json::Value;

use super::anthropic::Anthropic;
use super::chat::Chat;
use super::fault::Refusal;
use super::gemini::Gemini;
use super::reply::Reply;
use super::request::Request;
use super::responses::Responses;

/// One of the languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, which many others speak too.
    Chat,
    /// Google's Gemini.
    Gemini,
}

/// Translation between a language and what all have in common.
pub(super) trait Speaks {
    /// Any JSON is understood somehow; what is missing is empty.
    fn request(&self, path: &str, body: &Value) -> Request;

    /// A reply at once.
    fn whole(&self, reply: &Reply) -> Value;

    /// A reply bit by bit.
    fn frames(&self, reply: &Reply) -> Vec<Frame>;

    /// An error in place of a reply.
    fn refusal(&self, refusal: &Refusal) -> Value;

    /// An error within a stream.
    fn told(&self, refusal: &Refusal) -> Frame;

    /// How many tokens a request has.
    fn count(&self, tokens: u64) -> Value;
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    name: Option<&'static str>,
    /// JSON, or a text that is sent as it is.
    data: Value,
}

impl Dialect {
    pub(super) fn speaker(self) -> &'static dyn Speaks {
        match self {
            Self::Anthropic => &Anthropic,
            Self::Responses => &Responses,
            Self::Chat => &Chat,
            Self::Gemini => &Gemini,
        }
    }
}

impl Frame {
    pub fn data(data: impl Into<Value>) -> Self {
        Self { name: None, data: data.into() }
    }

    /// An event whose data says its name too.
    pub fn named(name: &'static str, data: Value) -> Self {
        Self { name: Some(name), data }.with("type", name)
    }

    /// The same with one more member.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data[name] = value.into();
        self
    }

    /// As it goes over the wire.
    pub fn text(&self) -> String {
        let name = self.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        let data = self.data.as_str().map_or_else(|| self.data.to_string(), str::to_owned);
        format!("{name}data: {data}\n\n")
    }
}
