//! What Claude Code writes: a JSON object a line, of which only some say something to us.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::contract::Blocks;
use signoff_core::heard::{Denied, Heard, Said};

use super::end::{self, Outcome, Refusal};
use super::session;
use super::spent::{Ledger, Usage};
use crate::agent::bounded::{self, Calls, REFUSALS};
use crate::agent::line::{note_unread, whole};
use crate::agent::{Account, Closing, Listener, SERVER, glance};

/// The type of its messages.
const MESSAGE: &str = "assistant";

#[derive(Debug, Default)]
pub struct Stream {
    session: Option<String>,
    found_reports: Option<bool>,
    /// What its tools were called for, by the name of the call.
    calls: Calls,
    denied: Vec<(String, Denied)>,
    spent: Ledger,
    refusal: Refusal,
    /// What it said since it last used a tool.
    message: Blocks,
    /// The text of its `result` line, which repeats only the last block.
    last_block: String,
    /// How it ended. It may begin again after that.
    result: Option<Outcome>,
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    subtype: Option<&'a str>,
}

#[derive(Deserialize)]
struct Init {
    session_id: String,
    model: Option<String>,
    #[serde(default)]
    mcp_servers: Vec<Server>,
}

#[derive(Deserialize)]
struct Server {
    name: String,
    status: String,
}

#[derive(Deserialize)]
struct Turn<'a> {
    #[serde(borrow)]
    message: Message<'a>,
    /// The call that it answers, where another agent was asked to do it.
    parent_tool_use_id: Option<String>,
    /// A word for what its provider answered instead.
    error: Option<String>,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<String>,
    model: Option<String>,
    #[serde(borrow)]
    content: Vec<Block<'a>>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Block<'a> {
    r#type: &'a str,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    tool_use_id: Option<String>,
    #[serde(default)]
    is_error: bool,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Retry {
    retry_delay_ms: Option<f64>,
    error_status: Option<u16>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Limit {
    rate_limit_info: LimitInfo,
}

#[derive(Deserialize)]
struct LimitInfo {
    status: String,
    #[serde(rename = "resetsAt")]
    resets_at: Option<i64>,
    #[serde(rename = "rateLimitType")]
    window: Option<String>,
}

#[derive(Deserialize)]
struct Refused {
    tool_name: String,
    tool_use_id: String,
}

impl Listener for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<Said> {
        let line = whole(line);
        self.understood(&line).unwrap_or_else(|| {
            note_unread(&line, MESSAGE, &mut self.message);
            Vec::new()
        })
    }

    fn ended(&mut self, closing: &Closing<'_>) -> Account {
        let trouble = match &self.result {
            Some(result) => result.trouble(&self.refusal, closing),
            None => Some(end::without_result(closing)),
        };
        let mut message = std::mem::take(&mut self.message);
        if !message.ends_with(&self.last_block) {
            message.add(&self.last_block);
        }
        if self.result.is_none() {
            session::read(closing, &mut self.spent);
        }
        let heard = Heard {
            session: self.session.take(),
            spent: std::mem::take(&mut self.spent).all(closing.resumed),
            trouble,
            denied: std::mem::take(&mut self.denied).into_iter().map(|(_, denied)| denied).collect(),
            found_reports: self.found_reports,
            unreadable: None,
        };
        Account::new(message, heard)
    }
}

impl Stream {
    /// What a line says; none if it may be a message and is not understood.
    fn understood(&mut self, line: &[u8]) -> Option<Vec<Said>> {
        let Line { r#type, subtype } = serde_json::from_slice(line).ok()?;
        match (r#type, subtype) {
            (MESSAGE, _) => self.speaks(serde_json::from_slice(line).ok()?),
            ("system" | "user" | "rate_limit_event", _) => {
                Some(self.noted(line, (r#type, subtype)).unwrap_or_default())
            }
            ("result", _) => Some(self.ends(line)),
            _ => None,
        }
    }

    /// What a line says that is no message; none if it is not understood.
    fn noted(&mut self, line: &[u8], kind: (&str, Option<&str>)) -> Option<Vec<Said>> {
        match kind {
            ("system", Some("init")) => self.begins(serde_json::from_slice(line).ok()?),
            ("system", Some("api_retry")) => return Some(self.retries(&serde_json::from_slice(line).ok()?)),
            ("system", Some("permission_denied")) => {
                let Refused { tool_name, tool_use_id } = serde_json::from_slice(line).ok()?;
                return Some(self.denies(tool_use_id, tool_name, None));
            }
            ("user", _) => return Some(self.answered(serde_json::from_slice(line).ok()?)),
            ("rate_limit_event", _) => return Some(self.limited(serde_json::from_slice(line).ok()?)),
            _ => {}
        }
        None
    }

    fn begins(&mut self, init: Init) {
        let found = init.mcp_servers.iter().any(|one| one.name == SERVER && one.status == "connected");
        self.found_reports = Some(found || self.found_reports == Some(true));
        self.session = Some(init.session_id);
        self.spent.model = init.model;
        self.result = None;
    }

    fn retries(&mut self, retry: &Retry) -> Vec<Said> {
        let seconds = retry.retry_delay_ms.map(|ms| (ms / 1000.0).ceil());
        let delay = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        if retry.error_status == Some(429) {
            self.refusal.asked_to_wait = delay;
        }
        let word = retry.error.as_deref().unwrap_or("an error").replace('_', " ");
        let why = retry.error_status.map_or(word.clone(), |status| format!("{word}, status {status}"));
        vec![Said::Waits { why, delay }]
    }

    fn limited(&mut self, limit: Limit) -> Vec<Said> {
        let LimitInfo { status, resets_at, window } = limit.rate_limit_info;
        if status != "rejected" {
            return Vec::new();
        }
        self.refusal.resets_at = resets_at;
        let window = window.map_or_else(|| "a".to_owned(), |window| window.replace('_', " "));
        vec![Said::Waits { why: format!("{window} limit of the subscription"), delay: None }]
    }

    /// What a message says; none if a text in it is missing.
    fn speaks(&mut self, turn: Turn<'_>) -> Option<Vec<Said>> {
        let Turn { message, parent_tool_use_id, error } = turn;
        if let (Some(id), Some(usage)) = (message.id, message.usage) {
            self.spent.begun(&id, message.model.as_deref(), usage);
        }
        let failed = error.is_some();
        self.refusal.word = error;
        let mut said = Vec::new();
        for block in message.content {
            match (block.r#type, block.text, block.name) {
                (_, Some(text), _) if failed => said.push(Said::Error(text)),
                // Also in a block of another type: it is said to us.
                (_, Some(text), _) if parent_tool_use_id.is_none() => {
                    self.message.add(&text);
                    said.push(Said::Text(text));
                }
                ("text", None, _) => return None,
                ("tool_use", _, Some(name)) => {
                    if parent_tool_use_id.is_none() {
                        self.message.clear();
                    }
                    let about = block.input.map(about).unwrap_or_default();
                    if let Some(id) = block.id {
                        self.calls.begin(&id, &bounded::tool(&name, about.clone()));
                    }
                    said.push(Said::Tool { name, about });
                }
                _ => {}
            }
        }
        Some(said)
    }

    /// Tools that it was not given at all are refused only in the answer to the call.
    fn answered(&mut self, turn: Turn<'_>) -> Vec<Said> {
        let mut said = Vec::new();
        for block in turn.message.content {
            let missing = block.is_error
                && block.content.is_some_and(|answer| answer.get().contains("No such tool available"));
            let Some(call) = block.tool_use_id else { continue };
            if let Some(Denied { tool, .. }) = self.calls.get(&call).filter(|_| missing) {
                let tool = tool.clone();
                said.extend(self.denies(call, tool, None));
            }
        }
        said
    }

    /// Notes a refused call, once.
    fn denies(&mut self, call: String, tool: String, input: Option<&RawValue>) -> Vec<Said> {
        let call = glance(&call);
        if self.denied.iter().any(|(known, _)| *known == call) || self.denied.len() == REFUSALS {
            return Vec::new();
        }
        let about = || input.map(about).unwrap_or_default();
        let known = self.calls.get(&call).map(|call| call.about.clone());
        let denied = bounded::tool(&tool, known.unwrap_or_else(about));
        self.denied.push((call, denied.clone()));
        vec![Said::Denied(denied)]
    }

    fn ends(&mut self, line: &[u8]) -> Vec<Said> {
        // Another result is the last word, also if it cannot be read or is empty.
        (self.result, self.last_block) = (None, String::new());
        let Some(mut result) = Outcome::read(line) else { return Vec::new() };
        self.spent.closed(&result.bill);
        self.session = result.session.take().or(self.session.take());
        result.message().unwrap_or_default().clone_into(&mut self.last_block);
        let refused = std::mem::take(&mut result.denials);
        self.result = Some(result);
        let say = |one: end::Denial| self.denies(one.tool_use_id, one.tool_name, one.tool_input.as_deref());
        refused.into_iter().flat_map(say).collect()
    }
}

/// What a tool is called with, as far as it tells people what it is about.
fn about(input: &RawValue) -> String {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Input {
        command: Option<String>,
        file_path: Option<String>,
        notebook_path: Option<String>,
        pattern: Option<String>,
        path: Option<String>,
        url: Option<String>,
        query: Option<String>,
        description: Option<String>,
    }
    let input: Input = serde_json::from_str(input.get()).unwrap_or_default();
    let known = [
        input.command,
        input.file_path,
        input.notebook_path,
        input.pattern,
        input.path,
        input.url,
        input.query,
        input.description,
    ];
    known.into_iter().flatten().next().map(|text| glance(&text)).unwrap_or_default()
}
