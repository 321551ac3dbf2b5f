//! The provider APIs, and the trait that each of them implements.

use serde::Serialize;
use serde_json::Value;

use super::anthropic::AnthropicApi;
use super::chat::ChatApi;
use super::fault::ModelError;
use super::gemini::GeminiApi;
use super::reply::ModelReply;
use super::request::ModelRequest;
use super::responses::ResponsesApi;

/// A provider API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, which many other providers support.
    Chat,
    /// Google's Gemini.
    Gemini,
}

/// Translates between an API and the common request and reply types.
pub(super) trait ProviderApi {
    /// Parses a request. Any JSON is accepted; missing values are empty.
    fn request(&self, path: &str, body: &Value) -> ModelRequest;

    /// A reply without streaming.
    fn full_reply(&self, reply: &ModelReply) -> Value;

    /// A streamed reply.
    fn frames(&self, reply: &ModelReply) -> Vec<SseFrame>;

    /// The body of an error response.
    fn error_body(&self, error: &ModelError) -> Value;

    /// An error event within a stream.
    fn error_frame(&self, error: &ModelError) -> SseFrame;

    /// The response to a token count request.
    fn token_count(&self, tokens: u64) -> Value;
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SseFrame {
    name: Option<&'static str>,
    /// JSON, or a text that is sent verbatim.
    data: Value,
}

impl Dialect {
    pub(super) fn api(self) -> &'static dyn ProviderApi {
        match self {
            Self::Anthropic => &AnthropicApi,
            Self::Responses => &ResponsesApi,
            Self::Chat => &ChatApi,
            Self::Gemini => &GeminiApi,
        }
    }
}

impl SseFrame {
    pub fn data(data: impl Into<Value>) -> Self {
        Self { name: None, data: data.into() }
    }

    /// An event whose data also contains its name.
    pub fn named(name: &'static str, data: Value) -> Self {
        Self { name: Some(name), data }.with("type", name)
    }

    /// Adds a member to the data.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data[name] = value.into();
        self
    }

    /// The wire format.
    pub fn text(&self) -> String {
        let name = self.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        let data = self.data.as_str().map_or_else(|| self.data.to_string(), str::to_owned);
        format!("{name}data: {data}\n\n")
    }
}
