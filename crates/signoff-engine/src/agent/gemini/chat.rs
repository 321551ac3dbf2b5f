//! Reads token usage from Gemini CLI's session files, which contain every answer, even of a killed process.
//!
//! A resumed session continues in its file, so only entries newer than the start of the attempt count.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use signoff_core::agent_output::{ModelSpend, TokenCounts};

use super::SESSIONS;
use crate::agent::bounded::AnswerTokens;
use crate::agent::{AgentExit, session_file};

#[derive(Deserialize)]
struct GeminiChatLine<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    timestamp: Timestamp,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    tokens: GeminiChatTokens,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GeminiChatTokens {
    input: u64,
    output: u64,
    cached: u64,
    /// Including reasoning.
    total: u64,
}

/// The usage of this attempt from `PROJECT/chats/SESSION.jsonl` and the files of sub-agents beside or below it.
/// An answer is repeated after its tool calls.
pub fn read_usage(exit: &AgentExit<'_>) -> Vec<ModelSpend> {
    let mut answers = AnswerTokens::default();
    for path in session_file::jsonl_files(&exit.home.join(SESSIONS), 4) {
        session_file::for_each_line(&path, |line| {
            record(&mut answers, line, exit.started_at);
        });
    }
    answers.into_totals()
}

/// Records a line. Returns `None` if it contains nothing of interest.
fn record(answers: &mut AnswerTokens, line: &[u8], since: Timestamp) -> Option<()> {
    let GeminiChatLine { id, timestamp, model, tokens } = serde_json::from_slice(line).ok()?;
    let GeminiChatTokens { input, output, cached, total } = tokens;
    if timestamp >= since {
        let output = total.saturating_sub(input).max(output);
        answers.record(&id, model.as_deref(), TokenCounts { input, cached, written: 0, output });
    }
    Some(())
}
