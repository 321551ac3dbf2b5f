//! Reads token usage from Qwen Code's session file, which contains every answer, including those of sub-agents
//! and of a killed process.
//!
//! A resumed session continues in its file, so only entries newer than the start of the attempt count.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{ModelSpend, TokenCounts};

use crate::agent::{AgentExit, bounded, session_file};

#[derive(Deserialize)]
struct QwenChatLine<'a> {
    timestamp: Timestamp,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(rename = "systemPayload", borrow, default)]
    payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct QwenPayload<'a> {
    #[serde(rename = "uiEvent", borrow)]
    event: QwenEvent<'a>,
}

#[derive(Deserialize)]
struct QwenEvent<'a> {
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

/// The usage of this attempt in a session. Empty if it is unknown.
pub fn read_usage(exit: &AgentExit<'_>, session: &str) -> Vec<ModelSpend> {
    let mut spent = Vec::new();
    for path in session_files(&exit.home.join(".qwen/projects"), session) {
        session_file::for_each_line(&path, |line| {
            if let Some((model, tokens)) = parse_answer(line, exit.started_at) {
                bounded::add_tokens(&mut spent, model.as_deref(), tokens);
            }
        });
    }
    spent
}

/// The files `PROJECT/chats/SESSION.jsonl`. There is one project, named after its path.
fn session_files(projects: &Path, session: &str) -> Vec<PathBuf> {
    if !session.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-') {
        return Vec::new();
    }
    let below = fs::read_dir(projects).into_iter().flatten().flatten().take(16);
    let files = below.map(|entry| entry.path().join("chats").join(format!("{session}.jsonl")));
    files.filter(|path| session_file::is_plain_file(path)).collect()
}

/// The model and the tokens of an answer.
fn parse_answer(line: &[u8], since: Timestamp) -> Option<(Option<Cow<'_, str>>, TokenCounts)> {
    let line: QwenChatLine<'_> = serde_json::from_slice(line).ok()?;
    if line.timestamp < since || line.subtype.as_deref() != Some("ui_telemetry") {
        return None;
    }
    let QwenPayload { event } = serde_json::from_str(line.payload?.get()).ok()?;
    let tokens = TokenCounts {
        input: event.input_token_count,
        cached: event.cached_content_token_count,
        written: 0,
        output: event.output_token_count,
    };
    (event.name == "qwen-code.api_response").then_some((event.model, tokens))
}
