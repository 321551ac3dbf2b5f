//! Reads token usage from Claude Code's session files, which contain every answer, including those of
//! sub-agents and of a killed process.
//!
//! A resumed session continues in its file, so only entries newer than the start of the attempt count.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;

use super::SESSIONS;
use super::usage::{ClaudeUsage, ClaudeUsageLedger};
use crate::agent::{AgentExit, session_file};

#[derive(Deserialize)]
struct ClaudeSessionLine<'a> {
    timestamp: Timestamp,
    r#type: &'a str,
    #[serde(borrow)]
    message: ClaudeSessionMessage<'a>,
}

#[derive(Deserialize)]
struct ClaudeSessionMessage<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    model: Cow<'a, str>,
    usage: ClaudeUsage,
}

/// Reads the usage of this attempt from `PROJECT/SESSION.jsonl` and, for each sub-agent,
/// `PROJECT/SESSION/subagents/AGENT.jsonl`.
pub fn read_usage(exit: &AgentExit<'_>, ledger: &mut ClaudeUsageLedger) {
    for path in session_file::jsonl_files(&exit.home.join(SESSIONS), 4) {
        session_file::for_each_line(&path, |line| {
            if let Some(ClaudeSessionMessage { id, model, usage }) = parse_answer(line, exit.started_at) {
                ledger.record_from_file(&id, &model, usage);
            }
        });
    }
}

fn parse_answer(line: &[u8], since: Timestamp) -> Option<ClaudeSessionMessage<'_>> {
    let ClaudeSessionLine { timestamp, r#type, message } = serde_json::from_slice(line).ok()?;
    (timestamp >= since && r#type == "assistant").then_some(message)
}
