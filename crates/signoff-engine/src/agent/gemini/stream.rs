//! What Gemini CLI says with `-o stream-json`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::contract::Blocks;
use signoff_core::heard::{Heard, Said, Spent, Tokens, Trouble, TroubleKind};

use super::chat;
use crate::agent::about::about;
use crate::agent::bounded::{self, Calls};
use crate::agent::line::{loose, note_unread, whole};
use crate::agent::{Account, Closing, Listener, SERVER, api_error, clip};

/// Whose messages are the agent's.
const ROLE: &str = "assistant";

/// A line that goes on for longer is shown in parts.
const LONGEST: usize = 4096;

/// A line; which of the keys there are depends on its type.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    severity: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "loose")]
    error: Option<Failure<'a>>,
    #[serde(borrow, default)]
    stats: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Failure<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Stats {
    total_tokens: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached: u64,
    models: BTreeMap<String, Counted>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct Counted {
    total_tokens: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached: u64,
}

/// Hears a run of Gemini CLI.
#[derive(Default)]
pub struct Stream {
    heard: Heard,
    /// What it said since it last used a tool.
    message: Blocks,
    /// What of that is not yet shown: a line that goes on.
    unshown: String,
    /// The tools in use, by their ids.
    tools: Calls,
    /// What it called an error since it last said or used anything: if that is the last, it stopped there.
    error: Option<Failed>,
    end: Option<End>,
}

/// What it calls an error before its last line.
struct Failed {
    severe: bool,
    message: String,
}

/// Its last line.
enum End {
    Well,
    Badly { kind: String, message: String },
}

/// Tools that are taken away from those who may only read.
const WRITING: [&str; 8] = [
    "write_file",
    "replace",
    "run_shell_command",
    "exit_plan_mode",
    "invoke_agent",
    "activate_skill",
    "save_memory",
    "web_fetch",
];

impl Listener for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<Said> {
        let raw = whole(line);
        let Ok(line) = serde_json::from_slice::<Line<'_>>(&raw) else {
            note_unread(&raw, ROLE, &mut self.message);
            return Vec::new();
        };
        // Where it goes on, it has not ended.
        if matches!(line.kind.as_ref(), "init" | "message" | "tool_use" | "tool_result") {
            self.end = None;
        }
        match line.kind.as_ref() {
            "init" => self.heard.session = line.session_id.map(Cow::into_owned),
            "message" if line.role.as_deref() == Some("user") => {}
            "message" => match line.content.as_deref().filter(|_| line.role.as_deref() == Some(ROLE)) {
                Some(content) => return self.says(content),
                None => self.message.add_unreadable(clip(&String::from_utf8_lossy(&raw), 160)),
            },
            "tool_use" => return self.uses(line),
            "tool_result" => return self.used(&line),
            "error" => return vec![self.fails(&line)],
            "result" => return self.closes(line),
            _ => note_unread(&raw, ROLE, &mut self.message),
        }
        Vec::new()
    }

    fn ended(&mut self, end: &Closing<'_>) -> Account {
        let answer = std::mem::take(&mut self.message);
        let mut heard = std::mem::take(&mut self.heard);
        let stderr = String::from_utf8_lossy(end.stderr);
        if stderr.contains("MCP issues detected") {
            heard.found_reports = Some(false);
        }
        let error = self.error.take();
        heard.trouble = match self.end.take() {
            Some(End::Well) if error.as_ref().is_some_and(Failed::is_stop) => error.map(Failed::trouble),
            // A prompt that is too long for the model it does not even send.
            Some(End::Well) if answer.is_empty() && heard.spent.is_empty() => Some(unasked(&stderr)),
            Some(End::Well) => None,
            Some(End::Badly { message, .. }) if message.is_empty() => {
                let unknown = || Trouble::new(TroubleKind::Other, String::new());
                Some(error.map_or_else(unknown, Failed::trouble))
            }
            Some(End::Badly { kind, message }) => Some(trouble(&kind, message, end.code)),
            None => {
                let kept = chat::spent(end);
                heard.spent = if kept.is_empty() { heard.spent } else { kept };
                Some(unclosed(end, &stderr))
            }
        };
        Account::new(answer, heard)
    }
}

impl Stream {
    fn says(&mut self, text: &str) -> Vec<Said> {
        if text.is_empty() {
            return Vec::new();
        }
        self.error = None;
        self.message.push(text);
        self.unshown.push_str(text);
        match self.unshown.rfind('\n') {
            Some(end) => {
                let rest = self.unshown.split_off(end + 1);
                self.show(rest)
            }
            None if self.unshown.len() > LONGEST => self.show(String::new()),
            None => Vec::new(),
        }
    }

    /// Shows the lines that are whole.
    fn show(&mut self, rest: String) -> Vec<Said> {
        let shown = std::mem::replace(&mut self.unshown, rest);
        let text = shown.trim_end();
        if text.is_empty() { Vec::new() } else { vec![Said::Text(text.to_owned())] }
    }

    fn uses(&mut self, line: Line<'_>) -> Vec<Said> {
        let mut said = self.show(String::new());
        self.message.clear();
        self.error = None;
        let name = line.tool_name.unwrap_or_default().into_owned();
        let about = about(line.parameters);
        self.tools.begin(&line.tool_id.unwrap_or_default(), &bounded::tool(&name, about.clone()));
        said.push(Said::Tool { name, about });
        said
    }

    fn used(&mut self, line: &Line<'_>) -> Vec<Said> {
        self.message.clear();
        let Some(tool) = self.tools.end(line.tool_id.as_deref().unwrap_or_default()) else {
            return Vec::new();
        };
        let failure = line.error.as_ref().filter(|_| line.status.as_deref() == Some("error"));
        if failure.is_none() && tool.tool.starts_with(&format!("mcp_{SERVER}_")) {
            self.heard.found_reports = Some(true);
        }
        if !failure.is_some_and(|failure| is_denied(&tool.tool, failure)) {
            return Vec::new();
        }
        bounded::deny(&mut self.heard.denied, &tool);
        vec![Said::Denied(tool)]
    }

    fn fails(&mut self, line: &Line<'_>) -> Said {
        let message = line.message.as_deref().unwrap_or_default();
        let severe = line.severity.as_deref() == Some("error");
        self.error = Some(Failed { severe, message: clip(message, LONGEST) });
        Said::Error(message.to_owned())
    }

    fn closes(&mut self, line: Line<'_>) -> Vec<Said> {
        // How it ended holds, however odd the rest of the line is.
        let stats: Stats =
            line.stats.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        self.heard.spent = spent(&stats);
        let mut said = self.show(String::new());
        self.end = Some(if line.status.as_deref() == Some("success") {
            End::Well
        } else {
            let Failure { kind, message } = line.error.unwrap_or_default();
            said.push(Said::Error(message.clone().into_owned()));
            End::Badly { kind: kind.into_owned(), message: message.into_owned() }
        });
        said
    }
}

/// What it says of ends that it closes as a success all the same, in small letters.
const STOPS: [(&str, TroubleKind); 4] = [
    ("loop detected", TroubleKind::Bound),
    ("maximum session turns", TroubleKind::Bound),
    ("agent execution blocked", TroubleKind::Other),
    ("agent execution stopped", TroubleKind::Other),
];

/// What it says of answers that it could not use.
const ANSWERS: [(&str, TroubleKind); 4] = [
    ("exceeded the token limit", TroubleKind::Bound),
    ("empty response", TroubleKind::Broken),
    ("no final response text", TroubleKind::Broken),
    ("malformed tool call", TroubleKind::Broken),
];

impl Failed {
    /// Whether it stopped because of this, if nothing came after it. Of the rest it only warns.
    fn is_stop(&self) -> bool {
        let message = self.message.to_lowercase();
        self.severe || STOPS.iter().any(|(words, _)| message.contains(words))
    }

    fn trouble(self) -> Trouble {
        let message = self.message.to_lowercase();
        let known = STOPS.iter().chain(&ANSWERS).find(|(words, _)| message.contains(words));
        match known {
            Some((_, kind)) => Trouble::new(*kind, self.message),
            None => api_error::trouble(&self.message, None),
        }
    }
}

/// Whether a tool failed because it may not be used: one that is there for writers is not even known to readers.
fn is_denied(tool: &str, failure: &Failure<'_>) -> bool {
    match failure.kind.as_ref() {
        "policy_violation" => true,
        "tool_not_registered" => WRITING.contains(&tool),
        _ => failure.message.starts_with("Access denied: plan path"),
    }
}

/// By model, where it says so. What it thought is in the whole alone.
fn spent(stats: &Stats) -> Vec<Spent> {
    let by_model = stats.models.iter().map(|(model, counted)| (Some(model.clone()), *counted));
    let Stats { total_tokens, input_tokens, output_tokens, cached, .. } = *stats;
    let whole = (None, Counted { total_tokens, input_tokens, output_tokens, cached });
    let all = by_model.chain(stats.models.is_empty().then_some(whole));
    let used = all.filter(|(_, counted)| counted.total_tokens > 0);
    used.map(|(model, counted)| Spent { model, tokens: tokens(counted), cost_micro_usd: None }).collect()
}

fn tokens(counted: Counted) -> Tokens {
    let Counted { total_tokens, input_tokens, output_tokens, cached } = counted;
    let output = total_tokens.saturating_sub(input_tokens).max(output_tokens);
    Tokens { input: input_tokens, cached, written: 0, output }
}

fn trouble(kind: &str, message: String, code: Option<i32>) -> Trouble {
    match kind {
        "FatalTurnLimitedError" => Trouble::new(TroubleKind::Bound, message),
        "FatalAuthenticationError" => Trouble::new(TroubleKind::NotLoggedIn, message),
        _ => api_error::trouble(&message, code),
    }
}

fn unasked(stderr: &str) -> Trouble {
    let cut = stderr.lines().find(|line| line.contains("stdin input truncated"));
    match cut {
        Some(line) => Trouble::new(TroubleKind::TooLong, line.trim()),
        None => Trouble::new(
            TroubleKind::Other,
            "it says that it succeeded, but it asked no model and said nothing",
        ),
    }
}

/// Its stderr without what it always says.
fn telling(stderr: &str) -> String {
    const USUAL: [&str; 5] = ["Warning: ", "YOLO mode", "Ripgrep", "[STARTUP]", "(Use `node"];
    let lines = stderr.lines().filter(|line| !USUAL.iter().any(|usual| line.starts_with(usual)));
    lines.collect::<Vec<_>>().join("\n")
}

/// What it only says on stderr, with an exit code of its own.
fn unclosed(end: &Closing<'_>, stderr: &str) -> Trouble {
    let line =
        |words: &str| stderr.lines().find(|line| line.contains(words)).map(|line| line.trim().to_owned());
    if let Some(unknown) = line("Unknown argument").or_else(|| line("Invalid values:")) {
        return Trouble::new(TroubleKind::Version, unknown);
    }
    let trouble = Closing { stderr: telling(stderr).as_bytes(), ..*end }.without_a_word();
    match end.code {
        Some(41) => {
            let said = line("you must specify").or_else(|| line("Auth method"));
            Trouble::new(TroubleKind::NotLoggedIn, said.unwrap_or(trouble.message))
        }
        Some(53) => Trouble { kind: TroubleKind::Bound, ..trouble },
        Some(42) => match line("Error resuming session") {
            Some(said) => Trouble::new(TroubleKind::Session, said),
            None => trouble,
        },
        _ => trouble,
    }
}
