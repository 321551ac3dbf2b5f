//! What Claude Code keeps of its sessions: files with a JSON object a line, in which each answer stands with its tokens, also
//! those of the agents that it started, and where it was killed.
//!
//! A session that was resumed is continued in its file, so only what is younger than the attempt counts.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;

use super::SESSIONS;
use super::spent::{Ledger, Usage};
use crate::agent::{Closing, session_file};

#[derive(Deserialize)]
struct Line<'a> {
    timestamp: Timestamp,
    r#type: &'a str,
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    model: Cow<'a, str>,
    usage: Usage,
}

/// Reads what this attempt spent out of its files: `PROJECT/SESSION.jsonl`, and `PROJECT/SESSION/subagents/AGENT.jsonl` of
/// each agent that it started.
pub fn read(closing: &Closing<'_>, ledger: &mut Ledger) {
    for path in session_file::below(&closing.home.join(SESSIONS), 4) {
        session_file::lines(&path, |line| {
            if let Some(Message { id, model, usage }) = answer(line, closing.started_at) {
                ledger.kept(&id, &model, usage);
            }
        });
    }
}

fn answer(line: &[u8], since: Timestamp) -> Option<Message<'_>> {
    let Line { timestamp, r#type, message } = serde_json::from_slice(line).ok()?;
    (timestamp >= since && r#type == "assistant").then_some(message)
}
