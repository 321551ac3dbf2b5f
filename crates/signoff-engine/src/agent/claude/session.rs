//! What Claude Code keeps of its sessions: files with a JSON object a line, in which each answer stands with its tokens, also
//! those of the agents that it started, and where it was killed.
//!
//! A session that was resumed is continued in its file, so only what is younger than the attempt counts.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use signoff_core::heard::Spent;

use super::SESSIONS;
use super::spent::Usage;
use crate::agent::bounded::Answers;
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

/// What this attempt spent by its files: `PROJECT/SESSION.jsonl`, and `PROJECT/SESSION/subagents/AGENT.jsonl` of each
/// agent that it started.
pub fn spent(closing: &Closing<'_>) -> Vec<Spent> {
    let mut answers = Answers::default();
    for path in session_file::below(&closing.home.join(SESSIONS), 4) {
        session_file::lines(&path, |line| {
            note(&mut answers, line, closing.started_at);
        });
    }
    answers.all()
}

/// Takes in a line; none if it says nothing, whatever the reason.
fn note(answers: &mut Answers, line: &[u8], since: Timestamp) -> Option<()> {
    let Line { timestamp, r#type, message } = serde_json::from_slice(line).ok()?;
    if timestamp >= since && r#type == "assistant" {
        answers.note(&message.id, Some(&message.model), message.usage.tokens());
    }
    Some(())
}
