//! What Gemini CLI keeps of its sessions: files with a JSON object a line, in which each answer stands with its tokens, also
//! where it was killed.
//!
//! A session that was resumed is continued in its file, so only what is younger than the attempt counts.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use signoff_core::heard::{Spent, Tokens};

use super::SESSIONS;
use crate::agent::bounded::Answers;
use crate::agent::{Closing, session_file};

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    timestamp: Timestamp,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    tokens: Counted,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counted {
    input: u64,
    output: u64,
    cached: u64,
    /// With what it thought.
    total: u64,
}

/// What this attempt spent by its files: `PROJECT/chats/SESSION.jsonl`, and those of the agents that it started beside or
/// below it. An answer stands there again when its tools were used.
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
    let Line { id, timestamp, model, tokens } = serde_json::from_slice(line).ok()?;
    let Counted { input, output, cached, total } = tokens;
    if timestamp >= since {
        let output = total.saturating_sub(input).max(output);
        answers.note(&id, model.as_deref(), Tokens { input, cached, written: 0, output });
    }
    Some(())
}
