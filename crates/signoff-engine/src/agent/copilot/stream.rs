//! What `copilot --output-format json` prints, and the file it leaves about what it used.
//!
//! The closing line says 0 also of an answer that was broken off; a line before it says so.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::contract::Blocks;
use signoff_core::heard::{Denied, Heard, Said, Spent, Tokens, Trouble, TroubleKind};

use super::{SESSIONS, USAGE, USED_BEFORE};
use crate::agent::about::about;
use crate::agent::bounded::{self, Calls};
use crate::agent::line::{loose, note_unread, whole};
use crate::agent::{Account, Closing, Listener, SERVER, glance, refusal};
use crate::attempt::start_of;

/// The type of its messages.
const MESSAGE: &str = "assistant.message";

/// What was said so far.
#[derive(Debug, Default)]
pub struct Stream {
    /// What it said since it last used a tool.
    message: Blocks,
    /// What tools are used for that did not end yet.
    tools: Calls,
    session: Option<String>,
    denied: Vec<Denied>,
    found_reports: Option<bool>,
    trouble: Option<Trouble>,
    /// The exit code that its closing line names.
    closed: Option<i64>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default, borrow)]
    data: Data<'a>,
    #[serde(rename = "sessionId")]
    session: Option<String>,
    #[serde(rename = "exitCode")]
    code: Option<i64>,
}

#[derive(Deserialize)]
enum Kind {
    #[serde(rename = "assistant.message")]
    Message,
    #[serde(rename = "assistant.turn_retry")]
    Retry,
    #[serde(rename = "tool.execution_start")]
    ToolStart,
    #[serde(rename = "tool.execution_complete")]
    ToolEnd,
    #[serde(rename = "session.mcp_server_status_changed")]
    Server,
    #[serde(rename = "session.error")]
    Error,
    #[serde(rename = "abort")]
    Abort,
    #[serde(rename = "result")]
    Result,
    #[serde(other)]
    Unknown,
}

/// What a line is about; which of it is there depends on its kind.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Data<'a> {
    #[serde(deserialize_with = "loose")]
    content: Option<String>,
    #[serde(deserialize_with = "loose")]
    tool_requests: Vec<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "loose")]
    tool_call_id: String,
    #[serde(deserialize_with = "loose")]
    tool_name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    error: Failure,
    #[serde(deserialize_with = "loose")]
    server_name: String,
    #[serde(deserialize_with = "loose")]
    status: String,
    #[serde(deserialize_with = "loose")]
    reason: String,
    #[serde(deserialize_with = "loose")]
    error_type: String,
    #[serde(deserialize_with = "loose")]
    message: String,
    #[serde(deserialize_with = "loose")]
    status_code: Option<u16>,
}

/// Of a server it is a text, of a tool an object.
#[derive(Deserialize)]
#[serde(untagged)]
enum Failure {
    Object {
        #[serde(default)]
        code: String,
    },
    Other(serde::de::IgnoredAny),
}

impl Default for Failure {
    fn default() -> Self {
        Self::Object { code: String::new() }
    }
}

impl Failure {
    fn is_denied(&self) -> bool {
        matches!(self, Self::Object { code } if code == "denied")
    }
}

impl Listener for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<Said> {
        let raw = whole(line);
        match serde_json::from_slice(&raw) {
            Ok(Line { kind: Kind::Message, data: Data { content: None, .. }, .. }) | Err(_) => {
                note_unread(&raw, MESSAGE, &mut self.message);
                Vec::new()
            }
            Ok(line) => self.take(line).into_iter().collect(),
        }
    }

    fn ended(&mut self, end: &Closing<'_>) -> Account {
        let trouble = self.trouble.take().or_else(|| self.unfinished(end));
        let heard = Heard {
            session: self.session.clone().or_else(|| begun(end.home)),
            spent: spent(end.home),
            trouble,
            denied: self.denied.clone(),
            found_reports: self.found_reports,
            unreadable: None,
        };
        Account::new(std::mem::take(&mut self.message), heard)
    }
}

impl Stream {
    fn take(&mut self, line: Line<'_>) -> Option<Said> {
        let Line { kind, data, session, code } = line;
        match kind {
            Kind::Message => self.message(data),
            Kind::Retry => Some(Said::Waits { why: data.reason, delay: None }),
            Kind::ToolStart => Some(self.tool(data)),
            Kind::ToolEnd => {
                self.message.clear();
                let tool = self.tools.end(&data.tool_call_id)?;
                data.error.is_denied().then(|| {
                    bounded::deny(&mut self.denied, &tool);
                    Said::Denied(tool)
                })
            }
            Kind::Server => {
                self.server(&data);
                None
            }
            Kind::Error => Some(Said::Error(self.failed(&data))),
            Kind::Abort => {
                self.trouble
                    .get_or_insert_with(|| Trouble::new(TroubleKind::Other, "its answer was broken off"));
                None
            }
            Kind::Result => {
                self.session = session;
                self.closed = code;
                None
            }
            Kind::Unknown => None,
        }
    }

    /// Text in a message that also calls tools counts as text before the tool use.
    fn message(&mut self, Data { content, tool_requests, .. }: Data<'_>) -> Option<Said> {
        let content = content?;
        if tool_requests.is_empty() {
            self.message.add(&content);
        } else {
            self.message.clear();
        }
        (!content.is_empty()).then_some(Said::Text(content))
    }

    fn tool(&mut self, Data { tool_call_id, tool_name, arguments, .. }: Data<'_>) -> Said {
        self.message.clear();
        let about = about(arguments);
        self.tools.begin(&tool_call_id, &bounded::tool(&tool_name, about.clone()));
        Said::Tool { name: tool_name, about }
    }

    fn server(&mut self, Data { server_name, status, .. }: &Data<'_>) {
        if server_name == SERVER {
            match status.as_str() {
                "connected" => self.found_reports = Some(true),
                "failed" | "needs-auth" => self.found_reports = Some(false),
                _ => {}
            }
        }
    }

    fn failed(&mut self, Data { error_type, message, status_code, .. }: &Data<'_>) -> String {
        let kind = match (error_type.as_str(), refusal::kind(*status_code, message, None)) {
            ("authentication", _) => TroubleKind::NotLoggedIn,
            (_, TroubleKind::Other) if status_code.is_none() && is_broken(message) => TroubleKind::Broken,
            (_, kind) => kind,
        };
        let message = glance_all(message);
        self.trouble.get_or_insert_with(|| Trouble::new(kind, &message));
        message
    }

    fn unfinished(&self, end: &Closing<'_>) -> Option<Trouble> {
        match self.closed {
            Some(0) if end.code == Some(0) => None,
            Some(0) | None => Some(without_a_word(end)),
            Some(code) => Some(Trouble::new(TroubleKind::Other, format!("exit code {code}"))),
        }
    }
}

/// Why it said nothing at all: only its stderr tells that nobody is logged in, or that it does not know a flag.
fn without_a_word(end: &Closing<'_>) -> Trouble {
    let stderr = String::from_utf8_lossy(end.stderr);
    let first = glance(&stderr);
    if first.starts_with("Error: No session") {
        return Trouble::new(TroubleKind::Session, first);
    }
    if first.contains("unknown option") {
        return Trouble::new(TroubleKind::Version, first);
    }
    if refusal::kind(None, &first, None) == TroubleKind::NotLoggedIn {
        return Trouble::new(TroubleKind::NotLoggedIn, first);
    }
    end.without_a_word()
}

fn is_broken(message: &str) -> bool {
    ["error decoding response body", "Failed to parse", "HTTP request"]
        .iter()
        .any(|words| message.contains(words))
}

/// All lines as one.
fn glance_all(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The session that it did not get to name. Each has a directory of its own, and its home is new.
fn begun(home: &Path) -> Option<String> {
    let mut sessions = fs::read_dir(home.join(SESSIONS)).ok()?.flatten();
    let session = sessions.next()?.file_name().into_string().ok()?;
    sessions.next().is_none().then_some(session)
}

/// A longer file of what it used is none that it wrote.
const LONGEST: u64 = 1024 * 1024;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Used {
    model_metrics: BTreeMap<String, Model>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Model {
    usage: Usage,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Usage {
    /// With what came out of a cache.
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
}

impl Usage {
    fn tokens(&self) -> Tokens {
        Tokens {
            input: self.input_tokens,
            cached: self.cache_read_tokens,
            written: self.cache_write_tokens,
            output: self.output_tokens,
        }
    }
}

/// What it used, by its own file, which counts on from one attempt of a session to the next. It tells no cost in money.
fn spent(home: &Path) -> Vec<Spent> {
    let before = used(&home.join(USED_BEFORE));
    let spent = |(model, Model { usage }): (String, Model)| {
        let before = before.get(&model).map(|model| model.usage.tokens()).unwrap_or_default();
        Spent { model: Some(model), tokens: usage.tokens().less(before), cost_micro_usd: None }
    };
    used(&home.join(USAGE)).into_iter().map(spent).collect()
}

fn used(file: &Path) -> BTreeMap<String, Model> {
    let used: Used = serde_json::from_slice(&start_of(file, LONGEST)).unwrap_or_default();
    used.model_metrics
}
