//! The log of requests to the model, in order of arrival.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::dialect::Dialect;
use super::fault::{Fault, ReplyEnd};
use super::usage::TokenUsage;

/// One request and its result.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedModelRequest {
    /// From 1.
    pub number: usize,
    pub method: String,
    pub path: String,
    /// The user agent.
    pub agent: String,
    pub authorization: Option<Authorization>,
    #[serde(flatten)]
    pub kind: ModelRequestKind,
}

/// The credentials of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Authorization {
    pub header: String,
    /// For tests only; never serialized.
    #[serde(skip)]
    pub value: String,
}

/// The kind of a request.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ModelRequestKind {
    /// A request for a model reply.
    Reply(Box<ModelReplyRecord>),
    /// A request to count tokens.
    Count,
    /// A request for the list of models.
    Models,
    /// An unsupported request.
    Unknown,
}

/// A request for a model reply, with the reply.
#[derive(Debug, Clone, Serialize)]
pub struct ModelReplyRecord {
    pub dialect: Dialect,
    pub model: String,
    pub stream: bool,
    /// The rule that answered; `None` for the script's default and for side requests.
    pub rule: Option<String>,
    /// The index of the rule's turn.
    pub turn: usize,
    /// Whether this is a side request without tools, as for titles and summaries.
    pub side: bool,
    #[serde(serialize_with = "serialize_tail")]
    pub system: String,
    /// The newest user message.
    #[serde(serialize_with = "serialize_tail")]
    pub prompt: String,
    /// The newest tool results.
    #[serde(serialize_with = "serialize_tail")]
    pub result: String,
    /// The names of the declared tools; nested ones as `namespace/name`.
    pub tools: Vec<String>,
    /// The tool calls of the reply, with their arguments.
    pub calls: Vec<(String, Value)>,
    /// Actions of the script that no declared tool supports.
    pub undeclared: Vec<String>,
    pub fault: Option<Fault>,
    pub end: ReplyEnd,
    /// The usage that the reply reports if it is complete.
    pub usage: TokenUsage,
}

impl RecordedModelRequest {
    pub fn reply(&self) -> Option<&ModelReplyRecord> {
        match &self.kind {
            ModelRequestKind::Reply(reply) => Some(reply),
            ModelRequestKind::Count | ModelRequestKind::Models | ModelRequestKind::Unknown => None,
        }
    }

    /// Whether this rule answered.
    pub fn is_answered_by(&self, rule: &str) -> bool {
        self.reply().is_some_and(|reply| reply.rule.as_deref() == Some(rule))
    }
}

/// Timeout for waits.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// All requests so far.
#[derive(Debug, Default)]
pub(super) struct ModelRequestLog {
    seen: Mutex<Vec<RecordedModelRequest>>,
    added: Condvar,
}

impl ModelRequestLog {
    /// Adds a request and returns its number.
    pub fn add(&self, make: impl FnOnce(usize) -> RecordedModelRequest) -> usize {
        let mut seen = self.lock();
        let number = seen.len() + 1;
        let record = make(number);
        seen.push(record);
        self.added.notify_all();
        number
    }

    pub fn all(&self) -> Vec<RecordedModelRequest> {
        self.lock().clone()
    }

    /// Waits without a timeout for the request with this number.
    pub fn wait(&self, number: usize) -> RecordedModelRequest {
        let mut seen = self.lock();
        loop {
            if let Some(found) = seen.get(number - 1) {
                return found.clone();
            }
            seen = self.added.wait(seen).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until `count` requests match. Returns `None` on a timeout.
    pub fn wait_for(
        &self,
        count: usize,
        fits: impl Fn(&RecordedModelRequest) -> bool,
    ) -> Option<Vec<RecordedModelRequest>> {
        let few = |seen: &mut Vec<RecordedModelRequest>| seen.iter().filter(|seen| fits(seen)).count() < count;
        let waited = self.added.wait_timeout_while(self.lock(), WAIT_TIMEOUT, few);
        let (seen, end) = waited.unwrap_or_else(PoisonError::into_inner);
        (!end.timed_out()).then(|| seen.iter().filter(|seen| fits(seen)).cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RecordedModelRequest>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serializes the end of a text, which has the newest part.
fn serialize_tail<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let count = text.chars().count();
    serializer.collect_str(&text.chars().skip(count.saturating_sub(300)).collect::<String>())
}
