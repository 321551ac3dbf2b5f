//! What Codex keeps of its sessions: files with a JSON object a line, in which each answer's tokens are counted, also where
//! a turn failed or was killed, and for the agents that it started itself.
//!
//! A session that was resumed is continued in its file, so only what is younger than the attempt counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::heard::{Denied, Spent};

use super::SETTINGS;
use super::end::is_refusal;
use super::stream::Usage;
use crate::agent::bounded::{self, Calls};
use crate::agent::{Closing, glance, session_file};

/// What the files of an attempt say.
#[derive(Debug, Default)]
pub struct Rollout {
    pub spent: Vec<Spent>,
    pub denied: Vec<Denied>,
    /// When a window of the subscription that is used up opens again, in seconds since 1970.
    resets_at: Option<i64>,
}

/// So many files; each agent that it started has one.
const FILES: usize = 256;

impl Rollout {
    pub fn read(closing: &Closing<'_>) -> Self {
        let mut rollout = Self::default();
        for path in files(&closing.home.join(SETTINGS).join("sessions")) {
            let mut reading = Reading { since: closing.started_at, ..Reading::default() };
            session_file::lines(&path, |line| {
                reading.line(line);
            });
            rollout.take(reading);
        }
        rollout
    }

    pub fn resets_in(&self, closing: &Closing<'_>) -> Option<Duration> {
        let seconds = self.resets_at?.saturating_sub(closing.ended_at.as_second());
        u64::try_from(seconds).ok().map(Duration::from_secs)
    }

    fn take(&mut self, reading: Reading) {
        for Spent { model, tokens, .. } in reading.spent {
            bounded::add(&mut self.spent, model.as_deref(), tokens);
        }
        for denied in &reading.denied {
            bounded::deny(&mut self.denied, denied);
        }
        self.resets_at = self.resets_at.max(reading.resets_at);
    }
}

/// The files below `sessions/YEAR/MONTH/DAY`, by name.
fn files(sessions: &Path) -> Vec<PathBuf> {
    let mut level = vec![sessions.to_owned()];
    for _ in 0..4 {
        let below = level.iter().filter_map(|path| fs::read_dir(path).ok()).flatten().flatten();
        level = below.map(|entry| entry.path()).take(FILES).collect();
    }
    level.retain(|path| session_file::is_one(path));
    level.sort();
    level
}

/// One file, as far as it was read.
#[derive(Default)]
struct Reading {
    since: Timestamp,
    model: Option<String>,
    spent: Vec<Spent>,
    /// Calls that are not answered yet.
    calls: Calls,
    denied: Vec<Denied>,
    resets_at: Option<i64>,
}

#[derive(Deserialize)]
struct Line<'a> {
    timestamp: Timestamp,
    r#type: &'a str,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize)]
struct Context {
    model: String,
}

#[derive(Deserialize)]
struct Record {
    usage: Usage,
}

#[derive(Deserialize)]
struct Item<'a> {
    r#type: &'a str,
    call_id: Option<String>,
    name: Option<String>,
    /// JSON as a text.
    arguments: Option<String>,
    input: Option<String>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Event {
    rate_limits: Option<RateLimits>,
}

#[derive(Deserialize)]
struct RateLimits {
    primary: Option<Window>,
    secondary: Option<Window>,
}

#[derive(Deserialize)]
struct Window {
    used_percent: f64,
    resets_at: Option<i64>,
}

impl Reading {
    /// Takes in a line; none if it says nothing, whatever the reason.
    fn line(&mut self, line: &[u8]) -> Option<()> {
        let Line { timestamp, r#type, payload } = serde_json::from_slice(line).ok()?;
        let payload = payload.get();
        if timestamp < self.since {
            return None;
        }
        match r#type {
            "turn_context" => self.model = Some(serde_json::from_str::<Context>(payload).ok()?.model),
            "token_usage_record" => {
                let Record { usage } = serde_json::from_str(payload).ok()?;
                bounded::add(&mut self.spent, self.model.as_deref(), usage.tokens());
            }
            "response_item" => self.item(serde_json::from_str(payload).ok()?)?,
            "event_msg" => self.event(serde_json::from_str::<Event>(payload).ok()?.rate_limits?),
            _ => {}
        }
        Some(())
    }

    fn item(&mut self, item: Item<'_>) -> Option<()> {
        let call = item.call_id?;
        match item.r#type {
            "function_call" => {
                let about = glance(&command(&item.arguments?));
                self.calls.begin(&call, &bounded::tool(&tool(item.name?), about));
            }
            "custom_tool_call" => {
                let about = glance(&patched(&item.input?));
                self.calls.begin(&call, &bounded::tool(&tool(item.name?), about));
            }
            "function_call_output" | "custom_tool_call_output" => {
                let denied = self.calls.end(&call)?;
                if kept_from(&denied.tool, item.output?.get()) {
                    bounded::deny(&mut self.denied, &denied);
                }
            }
            _ => {}
        }
        Some(())
    }

    fn event(&mut self, limits: RateLimits) {
        let windows = [limits.primary, limits.secondary].into_iter().flatten();
        let full = windows.filter(|window| window.used_percent >= 100.0);
        self.resets_at = full.filter_map(|window| window.resets_at).max();
    }
}

fn kept_from(tool: &str, output: &str) -> bool {
    let failed = output.contains("Process exited with code") && !output.contains("exited with code 0");
    match tool {
        "shell" => failed && is_refusal(output),
        "patch" => output.contains("Failed to write file") || is_refusal(output),
        // Some models write scripts that use the other tools.
        "exec" => is_refusal(output),
        _ => false,
    }
}

/// Its names for them differ from model to model.
fn tool(name: String) -> String {
    match name.as_str() {
        "exec_command" | "shell_command" | "local_shell" => "shell".to_owned(),
        "apply_patch" => "patch".to_owned(),
        _ => name,
    }
}

fn command(arguments: &str) -> String {
    #[derive(Deserialize)]
    struct Arguments {
        #[serde(alias = "command")]
        cmd: String,
    }
    serde_json::from_str(arguments).map_or_else(|_| String::new(), |Arguments { cmd }| cmd)
}

/// The files that a patch names.
fn patched(patch: &str) -> String {
    let names = ["*** Add File: ", "*** Update File: ", "*** Delete File: "];
    let named = patch.lines().filter_map(|line| names.iter().find_map(|name| line.strip_prefix(name)));
    named.collect::<Vec<_>>().join(", ")
}
