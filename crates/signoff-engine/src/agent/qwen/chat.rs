//! What Qwen Code keeps of a session: a file with a JSON object a line, in which each answer's tokens are counted, also
//! those of the agents that it started itself, and where it was killed.
//!
//! A session that was resumed is continued in its file, so only what is younger than the attempt counts.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::heard::{Spent, Tokens};

use crate::agent::{Closing, bounded, session_file};

#[derive(Deserialize)]
struct Line<'a> {
    timestamp: Timestamp,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(rename = "systemPayload", borrow, default)]
    payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(rename = "uiEvent", borrow)]
    event: Event<'a>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "event.name", borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    input_token_count: u64,
    #[serde(default)]
    output_token_count: u64,
    #[serde(default)]
    cached_content_token_count: u64,
}

/// What this attempt spent in a session; nothing where that cannot be told.
pub fn spent(closing: &Closing<'_>, session: &str) -> Vec<Spent> {
    let mut spent = Vec::new();
    for path in files(&closing.home.join(".qwen/projects"), session) {
        session_file::lines(&path, |line| {
            if let Some((model, tokens)) = answer(line, closing.started_at) {
                bounded::add(&mut spent, model.as_deref(), tokens);
            }
        });
    }
    spent
}

/// `PROJECT/chats/SESSION.jsonl`; there is one project, under a name made of its path.
fn files(projects: &Path, session: &str) -> Vec<PathBuf> {
    if !session.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-') {
        return Vec::new();
    }
    let below = fs::read_dir(projects).into_iter().flatten().flatten().take(16);
    let files = below.map(|entry| entry.path().join("chats").join(format!("{session}.jsonl")));
    files.filter(|path| session_file::is_one(path)).collect()
}

/// The model and the tokens of an answer.
fn answer(line: &[u8], since: Timestamp) -> Option<(Option<Cow<'_, str>>, Tokens)> {
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    if line.timestamp < since || line.subtype.as_deref() != Some("ui_telemetry") {
        return None;
    }
    let Payload { event } = serde_json::from_str(line.payload?.get()).ok()?;
    let tokens = Tokens {
        input: event.input_token_count,
        cached: event.cached_content_token_count,
        written: 0,
        output: event.output_token_count,
    };
    (event.name == "qwen-code.api_response").then_some((event.model, tokens))
}
