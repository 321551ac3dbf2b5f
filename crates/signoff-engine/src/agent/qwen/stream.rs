//! What Qwen Code says with `-o stream-json`.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::contract::Blocks;
use signoff_core::heard::{Heard, Said, Tokens, Trouble, TroubleKind};

use super::chat;
use crate::agent::about::about;
use crate::agent::bounded::{self, REFUSALS};
use crate::agent::line::{loose, note_unread, whole};
use crate::agent::{Account, Closing, Listener, SERVER, api_error};

/// A line; which of the keys there are depends on its type.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    mcp_servers: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    /// The call that another agent was asked with, whose line it is.
    #[serde(borrow, default)]
    parent_tool_use_id: Option<Cow<'a, str>>,
    #[serde(default)]
    is_error: bool,
    #[serde(borrow, default, deserialize_with = "loose")]
    result: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "loose")]
    error: Option<Failure<'a>>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    permission_denials: Option<&'a RawValue>,
}

/// A part of a line: what is odd in it leaves the rest as it is.
fn read<'a, T: Deserialize<'a>>(part: Option<&'a RawValue>) -> Option<T> {
    part.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

#[derive(Deserialize)]
struct Retry {
    #[serde(rename = "delayMs")]
    delay_ms: Option<u64>,
}

#[derive(Deserialize)]
struct Server<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Vec<Part<'a>>,
    #[serde(default)]
    usage: Usage,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Usage {
    /// With what came out of the cache.
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Failure<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Denial<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
    #[serde(borrow, default)]
    tool_input: Option<&'a RawValue>,
}

/// The type of its messages.
const MESSAGE: &str = "assistant";

impl Message<'_> {
    /// Whether every text is there.
    fn is_whole(&self) -> bool {
        self.content.iter().all(|part| part.kind != "text" || part.text.is_some())
    }
}

/// Hears a run of Qwen Code.
#[derive(Default)]
pub struct Stream {
    heard: Heard,
    /// What it said since it last used a tool.
    message: Blocks,
    /// Whether its provider was asked again, and nothing came of it yet.
    asks_again: bool,
    end: Option<End>,
}

/// Its last line.
enum End {
    /// `last_block` is the text of its `result` line. It repeats the last message, or one before a tool use.
    Well {
        last_block: String,
    },
    /// It had no answer in the end, however often it asked.
    Unanswered,
    Badly {
        message: String,
    },
}

impl Listener for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<Said> {
        let raw = whole(line);
        let Ok(line) = serde_json::from_slice::<Line<'_>>(&raw) else {
            note_unread(&raw, MESSAGE, &mut self.message);
            return Vec::new();
        };
        // Where it goes on, it has not ended.
        if matches!(
            (line.kind.as_ref(), line.subtype.as_deref()),
            ("system", Some("init")) | ("assistant" | "user", _)
        ) {
            self.end = None;
        }
        match (line.kind.as_ref(), line.subtype.as_deref()) {
            ("system", Some("init")) => self.begins(line),
            ("system", Some("retry")) => {
                self.asks_again = true;
                let delay =
                    read(line.data).and_then(|Retry { delay_ms }| delay_ms).map(Duration::from_millis);
                return vec![Said::Waits { why: "its provider is asked again".to_owned(), delay }];
            }
            (MESSAGE, _) => {
                let own = line.parent_tool_use_id.is_none();
                match read(line.message).filter(Message::is_whole) {
                    Some(message) => return self.says(message, own),
                    None => note_unread(&raw, MESSAGE, &mut self.message),
                }
            }
            ("result", _) => return self.closes(line),
            ("system" | "user", _) => {}
            _ => note_unread(&raw, MESSAGE, &mut self.message),
        }
        Vec::new()
    }

    fn ended(&mut self, end: &Closing<'_>) -> Account {
        let mut heard = std::mem::take(&mut self.heard);
        let kept = heard.session.as_deref().map(|session| chat::spent(end, session)).unwrap_or_default();
        if !kept.is_empty() {
            heard.spent = kept;
        }
        let mut message = std::mem::take(&mut self.message);
        heard.trouble = match self.end.take() {
            Some(End::Well { .. }) if message.is_empty() && heard.spent.is_empty() => {
                let words = "it says that it succeeded, but it asked no model and said nothing";
                Some(Trouble::new(TroubleKind::Other, words))
            }
            Some(End::Well { last_block }) => {
                // If the message is empty, the result line repeats text from before a tool use, which is no answer.
                if !message.is_empty() && !message.ends_with(&last_block) {
                    message.add(&last_block);
                }
                None
            }
            Some(End::Unanswered) => {
                let words = "its provider was asked again and again, and answered nothing";
                Some(Trouble::new(TroubleKind::Broken, words))
            }
            Some(End::Badly { message }) => Some(api_error::trouble(&message, None)),
            None => Some(unclosed(end)),
        };
        Account::new(message, heard)
    }
}

impl Stream {
    fn begins(&mut self, line: Line<'_>) {
        self.heard.session = line.session_id.map(Cow::into_owned);
        let servers: Vec<Server<'_>> = read(line.mcp_servers).unwrap_or_default();
        let server = servers.iter().find(|server| server.name == SERVER);
        self.heard.found_reports = server.map(|server| server.status == "connected");
    }

    fn says(&mut self, message: Message<'_>, own: bool) -> Vec<Said> {
        self.counts(&message);
        let said: Vec<Said> = message.content.into_iter().filter_map(part).collect();
        for one in said.iter().filter(|_| own) {
            self.asks_again = false;
            match one {
                Said::Text(text) => self.message.add(text),
                Said::Tool { .. } => self.message.clear(),
                Said::Denied(_) | Said::Error(_) | Said::Waits { .. } => {}
            }
        }
        said
    }

    /// The end that its `result` line reports as a success.
    fn well(&self, result: &str) -> End {
        if self.asks_again {
            return End::Unanswered;
        }
        End::Well { last_block: result.to_owned() }
    }

    /// Each turn by itself: the last line counts the whole session, also what was before it was resumed.
    fn counts(&mut self, message: &Message<'_>) {
        let Usage { input_tokens, output_tokens, cache_read_input_tokens } = message.usage;
        if input_tokens == 0 && output_tokens == 0 {
            return;
        }
        let tokens = Tokens {
            input: input_tokens,
            cached: cache_read_input_tokens,
            written: 0,
            output: output_tokens,
        };
        bounded::add(&mut self.heard.spent, message.model.as_deref(), tokens);
    }

    fn closes(&mut self, line: Line<'_>) -> Vec<Said> {
        let denied = |denial: Denial<'_>| bounded::tool(&denial.tool_name, about(denial.tool_input));
        let denials: Vec<Denial<'_>> = read(line.permission_denials).unwrap_or_default();
        self.heard.denied = denials.into_iter().take(REFUSALS).map(denied).collect();
        if self.heard.session.is_none() {
            self.heard.session = line.session_id.map(Cow::into_owned);
        }
        let mut said: Vec<Said> = self.heard.denied.iter().cloned().map(Said::Denied).collect();
        self.end = Some(if line.is_error || line.subtype.as_deref() != Some("success") {
            let message = line.error.unwrap_or_default().message.into_owned();
            said.push(Said::Error(message.clone()));
            End::Badly { message }
        } else {
            self.well(&line.result.unwrap_or_default())
        });
        said
    }
}

fn part(part: Part<'_>) -> Option<Said> {
    if part.kind == "tool_use" {
        let name = part.name.unwrap_or_default().into_owned();
        return Some(Said::Tool { name, about: about(part.input) });
    }
    // Also in a part of another type: it is said to us.
    part.text.map(|text| Said::Text(text.into_owned()))
}

/// What it only says on stderr, with an exit code of its own.
fn unclosed(end: &Closing<'_>) -> Trouble {
    let stderr = String::from_utf8_lossy(end.stderr);
    let line =
        |words: &str| stderr.lines().find(|line| line.contains(words)).map(|line| line.trim().to_owned());
    if let Some(unknown) = line("Unknown argument").or_else(|| line("Invalid values:")) {
        return Trouble::new(TroubleKind::Version, unknown);
    }
    if let Some(bound) = line("Reached max session turns").or_else(|| line("Run aborted:")) {
        return Trouble::new(TroubleKind::Bound, bound);
    }
    if let Some(unknown) = line("No saved session found") {
        return Trouble::new(TroubleKind::Session, unknown);
    }
    end.without_a_word()
}
