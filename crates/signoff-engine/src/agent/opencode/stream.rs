//! What `opencode run --format json` prints.
//!
//! There is no closing line: it ended well if its last step says `stop` and no line is an error.

use std::collections::BTreeMap;

use serde::Deserialize;
use signoff_core::contract::Blocks;
use signoff_core::heard::{Denied, Heard, Said, Spent, Tokens, Trouble, TroubleKind};

use crate::agent::bounded;
use crate::agent::line::{loose, note_unread, whole};
use crate::agent::{Account, Closing, Listener, SERVER, glance, refusal};

/// The type of its messages, and the key of what they say.
const MESSAGE: &str = "text";

/// What was said so far.
#[derive(Debug, Default)]
pub struct Stream {
    session: Option<String>,
    /// What it said since it last used a tool.
    texts: Blocks,
    /// How the last step ended; none while one runs.
    reason: Option<String>,
    steps: u32,
    tokens: Tokens,
    dollars: f64,
    denied: Vec<Denied>,
    found_reports: Option<bool>,
    trouble: Option<Trouble>,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(rename = "sessionID", default)]
    session: String,
    #[serde(default)]
    part: Part,
    #[serde(default, deserialize_with = "loose")]
    error: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    StepStart,
    Text,
    Reasoning,
    ToolUse,
    StepFinish,
    Error,
    #[serde(other)]
    Unknown,
}

/// What a line is about; which of it is there depends on its kind.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Part {
    #[serde(deserialize_with = "loose")]
    text: Option<String>,
    #[serde(deserialize_with = "loose")]
    tool: String,
    #[serde(deserialize_with = "loose")]
    state: State,
    #[serde(deserialize_with = "loose")]
    reason: String,
    #[serde(deserialize_with = "loose")]
    tokens: StepTokens,
    #[serde(deserialize_with = "loose")]
    cost: f64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct State {
    #[serde(deserialize_with = "loose")]
    title: String,
    #[serde(deserialize_with = "loose")]
    error: String,
    #[serde(deserialize_with = "loose")]
    input: Input,
}

/// The arguments of a tool, as far as people want to know them; for a tool that is not there, which it was.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Input {
    tool: Word,
    error: Word,
    command: Word,
    #[serde(rename = "filePath")]
    file: Word,
}

/// A text; what is none is passed over, for models give tools whatever they like.
#[derive(Default)]
struct Word(String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        loose(deserializer).map(Self)
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct StepTokens {
    /// Without what came out of a cache or went into one.
    #[serde(deserialize_with = "loose")]
    input: u64,
    /// Without reasoning.
    #[serde(deserialize_with = "loose")]
    output: u64,
    #[serde(deserialize_with = "loose")]
    reasoning: u64,
    #[serde(deserialize_with = "loose")]
    cache: Cache,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cache {
    #[serde(deserialize_with = "loose")]
    read: u64,
    #[serde(deserialize_with = "loose")]
    write: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Failure {
    name: String,
    data: FailureData,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct FailureData {
    message: String,
    status_code: Option<u16>,
    response_headers: BTreeMap<String, Word>,
    response_body: String,
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    code: Word,
}

impl Listener for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<Said> {
        let raw = whole(line);
        match serde_json::from_slice(&raw) {
            Ok(Line { kind: Kind::Text, part: Part { text: None, .. }, .. }) | Err(_) => {
                note_unread(&raw, MESSAGE, &mut self.texts);
                Vec::new()
            }
            Ok(line) => self.take(line).into_iter().collect(),
        }
    }

    fn ended(&mut self, end: &Closing<'_>) -> Account {
        let trouble = self.trouble.take().or_else(|| self.unfinished(end));
        let heard = Heard {
            session: self.session.clone(),
            spent: self.spent().into_iter().collect(),
            trouble,
            denied: self.denied.clone(),
            found_reports: self.found_reports,
            unreadable: None,
        };
        Account::new(std::mem::take(&mut self.texts), heard)
    }
}

impl Stream {
    fn take(&mut self, line: Line) -> Option<Said> {
        let Line { kind, session, part, error } = line;
        let own = self.is_own(session);
        match kind {
            Kind::StepStart => {
                self.steps += 1;
                if own {
                    self.reason = None;
                }
                None
            }
            // What a line of an unknown kind says counts: it is said to us.
            Kind::Text | Kind::Unknown => {
                let text = part.text?;
                if own {
                    self.texts.add(&text);
                }
                Some(Said::Text(text))
            }
            Kind::Reasoning => None,
            Kind::ToolUse => {
                if own {
                    self.texts.clear();
                }
                Some(self.tool(part.tool, part.state))
            }
            Kind::StepFinish => {
                self.count(&part);
                if own {
                    // opencode prints no line for calls of unknown tools; only this reason shows that one happened.
                    if part.reason == "tool-calls" {
                        self.texts.clear();
                    }
                    self.reason = Some(part.reason);
                }
                None
            }
            Kind::Error => Some(Said::Error(self.failed(error.unwrap_or_default()))),
        }
    }

    /// Whether a line is about the session that was asked, and not about one of its helpers'.
    fn is_own(&mut self, session: String) -> bool {
        match &self.session {
            Some(own) => *own == session,
            None => {
                self.session = (!session.is_empty()).then_some(session);
                true
            }
        }
    }

    fn count(&mut self, step: &Part) {
        let StepTokens { input, output, reasoning, cache } = &step.tokens;
        self.tokens = self.tokens.and(Tokens {
            input: input.saturating_add(cache.read).saturating_add(cache.write),
            cached: cache.read,
            written: cache.write,
            output: output.saturating_add(*reasoning),
        });
        self.dollars += step.cost.max(0.0);
    }

    fn spent(&self) -> Option<Spent> {
        // Without a price of its own it says 0.
        let micro = (self.dollars * 1e6).round() as u64;
        let cost_micro_usd = (micro > 0).then_some(micro);
        (self.tokens != Tokens::default()).then_some(Spent {
            model: None,
            tokens: self.tokens,
            cost_micro_usd,
        })
    }

    fn tool(&mut self, tool: String, State { title, error, input }: State) -> Said {
        let Input { tool: meant, error: wrong, command, file } = input;
        if tool == "invalid" {
            return if wrong.0.contains("unavailable tool") {
                self.deny(bounded::tool(&meant.0, String::new()))
            } else {
                Said::Tool { name: meant.0, about: glance(&wrong.0) }
            };
        }
        let about = [title, command.0, file.0].iter().find(|text| !text.is_empty()).map(|text| glance(text));
        let about = about.unwrap_or_default();
        if error.contains("rejected permission") || error.contains("specified a rule") {
            return self.deny(bounded::tool(&tool, about));
        }
        if error.is_empty() && tool.strip_prefix(SERVER).is_some_and(|rest| rest.starts_with('_')) {
            self.found_reports = Some(true);
        }
        Said::Tool { name: tool, about }
    }

    fn deny(&mut self, denied: Denied) -> Said {
        bounded::deny(&mut self.denied, &denied);
        Said::Denied(denied)
    }

    fn failed(&mut self, Failure { name, data }: Failure) -> String {
        let message = if data.message.is_empty() { name } else { glance(&data.message) };
        let message = if self.steps == 0 && message.starts_with("Unexpected server error") {
            // A model that it does not know is all that it is known to say this about.
            format!("{message} (before its first step: `opencode models` lists the models that it knows)")
        } else {
            message
        };
        let kind = kind_of(&data, &message);
        self.trouble.get_or_insert_with(|| Trouble::new(kind, message.clone()));
        message
    }

    fn unfinished(&self, end: &Closing<'_>) -> Option<Trouble> {
        match self.reason.as_deref() {
            Some("stop") => None,
            Some("length") => {
                Some(Trouble::new(TroubleKind::Bound, "its last answer was cut at its longest"))
            }
            Some("tool-calls" | "") | None => Some(without_a_word(end)),
            Some(reason) => {
                Some(Trouble::new(TroubleKind::Other, format!("its last step ended with {reason}")))
            }
        }
    }
}

/// Why it did not end: only its stderr tells that it does not know a session.
fn without_a_word(end: &Closing<'_>) -> Trouble {
    let trouble = end.without_a_word();
    if trouble.message.contains("Session not found") {
        return Trouble { kind: TroubleKind::Session, ..trouble };
    }
    trouble
}

fn kind_of(data: &FailureData, message: &str) -> TroubleKind {
    let seconds = data.response_headers.get("retry-after").and_then(|word| word.0.trim().parse().ok());
    // A connection that broke has a code of its own.
    let broken = !data.metadata.code.0.is_empty();
    let kind = refusal::kind(data.status_code, &format!("{message}\n{}", data.response_body), seconds);
    let unknown = kind == TroubleKind::Other && data.status_code.is_none();
    if broken && unknown { TroubleKind::Broken } else { kind }
}
