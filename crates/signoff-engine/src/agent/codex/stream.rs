//! What Codex writes: a JSON object a line.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::contract::Blocks;
use signoff_core::heard::{Denied, Heard, Said, Spent, Tokens};

use super::end;
use super::rollout::Rollout;
use crate::agent::bounded;
use crate::agent::line::{loose, note_unread, whole};
use crate::agent::{Account, Closing, Listener, SERVER, glance};

/// The type of its messages.
const MESSAGE: &str = "agent_message";

#[derive(Debug, Default)]
pub struct Stream {
    session: Option<String>,
    found_reports: Option<bool>,
    denied: Vec<Denied>,
    /// What it said since it last used a tool.
    message: Blocks,
    /// A message that is not completed yet.
    partial: String,
    /// What it counts itself: all of its session, where that was resumed.
    total: Option<Usage>,
    end: Option<End>,
}

/// How its turn ended.
#[derive(Debug)]
enum End {
    Well,
    Badly(String),
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    #[serde(default, deserialize_with = "loose")]
    thread_id: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    message: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    error: Option<Words>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "loose")]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Words {
    message: String,
}

/// Counts of one answer, or of several.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// All of them.
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
}

#[derive(Deserialize)]
struct Item<'a> {
    r#type: &'a str,
    #[serde(borrow, default, deserialize_with = "loose")]
    status: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "loose")]
    text: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    message: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    command: Option<String>,
    #[serde(borrow)]
    aggregated_output: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "loose")]
    changes: Vec<Change>,
    #[serde(default, deserialize_with = "loose")]
    server: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    tool: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    query: Option<String>,
    #[serde(default, deserialize_with = "loose")]
    error: Option<Words>,
}

#[derive(Deserialize)]
struct Change {
    path: String,
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
        let rollout = Rollout::read(closing);
        let trouble = match self.end.take() {
            Some(End::Well) => None,
            Some(End::Badly(words)) => Some(end::trouble(&words, rollout.resets_in(closing))),
            None => Some(end::without_end(closing)),
        };
        if trouble.as_ref().is_some_and(end::is_about_reports) {
            self.found_reports = Some(false);
        }
        let heard = Heard {
            session: self.session.take(),
            spent: if rollout.spent.is_empty() && !closing.resumed { self.counted() } else { rollout.spent },
            // The stream leaves out what its own sandbox refuses quickly.
            denied: if rollout.denied.is_empty() { std::mem::take(&mut self.denied) } else { rollout.denied },
            found_reports: self.found_reports,
            unreadable: None,
            trouble,
        };
        self.completes("");
        Account::new(std::mem::take(&mut self.message), heard)
    }
}

impl Stream {
    /// What a line says; none if it may be a message and is not understood.
    fn understood(&mut self, line: &[u8]) -> Option<Vec<Said>> {
        let line: Line<'_> = serde_json::from_slice(line).ok()?;
        match line.r#type {
            "thread.started" => self.session = line.thread_id,
            "turn.started" => self.end = None,
            "turn.completed" => {
                self.total = line.usage;
                self.end = Some(End::Well);
            }
            // However odd its reason, it failed.
            "turn.failed" => {
                let words = line.error.map(|error| error.message);
                self.end = Some(End::Badly(words.unwrap_or_default()));
            }
            step @ ("item.started" | "item.updated" | "item.completed") => {
                return self.item(step, line.item?.get());
            }
            // The last of them is said again when the turn fails.
            "error" => return Some(line.message.map(went_wrong).into_iter().collect()),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn item(&mut self, step: &str, raw: &str) -> Option<Vec<Said>> {
        #[derive(Deserialize)]
        struct Kind<'a> {
            r#type: &'a str,
        }
        let Kind { r#type } = serde_json::from_str(raw).ok()?;
        if is_work(r#type, step) {
            self.message.clear();
            self.partial.clear();
        }
        let item: Option<Item<'_>> = serde_json::from_str(raw).ok();
        match (r#type, step) {
            (MESSAGE, "item.completed") => self.says(item?.text?),
            (MESSAGE, _) => self.goes_on(item?.text?),
            (_, "item.started") => Some(item.and_then(|item| self.begins(item)).unwrap_or_default()),
            (_, "item.completed") => Some(item.and_then(|item| self.done(item)).unwrap_or_default()),
            _ => Some(Vec::new()),
        }
    }

    fn says(&mut self, text: String) -> Option<Vec<Said>> {
        self.completes(&text);
        Some(vec![Said::Text(text)])
    }

    /// A message that may be completed with more.
    fn goes_on(&mut self, text: String) -> Option<Vec<Said>> {
        if !text.starts_with(&self.partial) {
            self.completes("");
        }
        self.partial = text;
        Some(Vec::new())
    }

    /// Adds a message. What was said in part and is no part of it stands beside it.
    fn completes(&mut self, text: &str) {
        let partial = std::mem::take(&mut self.partial);
        if !text.starts_with(&partial) {
            self.message.add(&partial);
        }
        self.message.add(text);
    }

    fn begins(&mut self, item: Item<'_>) -> Option<Vec<Said>> {
        let (name, about) = match item.r#type {
            "command_execution" => ("shell".to_owned(), command(&item.command?)),
            "file_change" => ("patch".to_owned(), paths(&item.changes)),
            "mcp_tool_call" => (item.tool?, item.server?),
            "web_search" => ("web_search".to_owned(), item.query.unwrap_or_default()),
            _ => return None,
        };
        Some(vec![Said::Tool { name, about: glance(&about) }])
    }

    fn done(&mut self, item: Item<'_>) -> Option<Vec<Said>> {
        let failed = item.status.as_deref() == Some("failed");
        let denied = match item.r#type {
            "reasoning" | "todo_list" => return None,
            "error" => return Some(vec![Said::Error(item.message?)]),
            "mcp_tool_call" => {
                if item.server.as_deref() == Some(SERVER) && !failed {
                    self.found_reports = Some(true);
                }
                item.error.filter(|error| error.message.contains("requires approval"))?;
                bounded::tool(&item.tool?, glance(&item.server?))
            }
            "command_execution" if failed && end::is_refusal(item.aggregated_output?.get()) => {
                Denied { tool: "shell".to_owned(), about: glance(&command(&item.command?)) }
            }
            "file_change" if failed => {
                Denied { tool: "patch".to_owned(), about: glance(&paths(&item.changes)) }
            }
            "command_execution" | "file_change" | "collab_tool_call" | "web_search" => return None,
            // What an unknown item says counts: it is said to us.
            _ => return self.says(item.text?),
        };
        bounded::deny(&mut self.denied, &denied);
        Some(vec![Said::Denied(denied)])
    }

    fn counted(&self) -> Vec<Spent> {
        let spent = |usage: Usage| Spent { tokens: usage.tokens(), ..Spent::default() };
        self.total.map(spent).into_iter().collect()
    }
}

impl Usage {
    pub fn tokens(self) -> Tokens {
        Tokens {
            input: self.input_tokens,
            cached: self.cached_input_tokens,
            written: self.cache_write_input_tokens,
            output: self.output_tokens,
        }
    }
}

/// Whether this is a tool, so that what it said before was not its last word.
fn is_work(kind: &str, step: &str) -> bool {
    match kind {
        "command_execution" | "file_change" | "mcp_tool_call" | "collab_tool_call" | "web_search" => true,
        // The list of what is to do is closed when all is done.
        "todo_list" => step != "item.completed",
        // What it said stays where it is not known what it does.
        _ => false,
    }
}

/// `Reconnecting... 1/5 (why)` is no end yet.
fn went_wrong(words: String) -> Said {
    let Some(again) = words.strip_prefix("Reconnecting...") else { return Said::Error(words) };
    let why = again.split_once('(').map_or(again, |(_, why)| why.trim_end_matches(')'));
    Said::Waits { why: why.trim().to_owned(), delay: None }
}

/// A command without the shell that it is given to.
fn command(words: &str) -> String {
    let inner = words.split_once(" -lc ").map_or(words, |(_, inner)| inner);
    let quoted = |quote| inner.strip_prefix(quote).and_then(|inner| inner.strip_suffix(quote));
    quoted('\'').or_else(|| quoted('"')).unwrap_or(inner).to_owned()
}

fn paths(changes: &[Change]) -> String {
    changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>().join(", ")
}
