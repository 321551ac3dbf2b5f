//! The fake agent's call log: role, time and prompt of each call.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The log file in the state directory, one JSON object per line.
pub const CALL_LOG: &str = "calls.jsonl";

/// A line of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CallLogEntry {
    Start(CallStart),
    End { number: u32, at_ms: u64, status: String },
}

/// The start of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallStart {
    /// The number among all calls, from 1.
    pub number: u32,
    /// The number among the calls with the same role, reviewer and task, from 1.
    pub call: u32,
    pub role: String,
    pub reviewer: String,
    pub phase: String,
    pub cycle: String,
    pub task: String,
    pub attempt: String,
    pub pid: u32,
    pub at_ms: u64,
    pub prompt_bytes: u64,
}

/// One call.
#[derive(Debug, Clone)]
pub struct AgentCall {
    /// The line of its start in the log.
    line: usize,
    pub start: CallStart,
    /// `None` while it runs, and if it was killed.
    pub end: Option<CallEnd>,
    pub prompt: String,
}

/// The end of a call that was not killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnd {
    line: usize,
    pub at_ms: u64,
    /// `exit 0`, `signal 9`.
    pub status: String,
}

/// All calls, in start order.
#[derive(Debug, Clone)]
pub struct AgentCalls(Vec<AgentCall>);

impl AgentCalls {
    /// Reads the log so far.
    ///
    /// # Panics
    /// If the log is malformed.
    pub fn read(state: &Path) -> Self {
        let mut calls: Vec<AgentCall> = Vec::new();
        for (line, text) in fs::read_to_string(state.join(CALL_LOG)).unwrap_or_default().lines().enumerate() {
            match serde_json::from_str(text).expect("a line of the log") {
                CallLogEntry::Start(start) => {
                    let prompt = fs::read(prompt_file(state, start.number)).expect("a kept prompt");
                    let prompt = String::from_utf8_lossy(&prompt).into_owned();
                    calls.push(AgentCall { line, start, end: None, prompt });
                }
                CallLogEntry::End { number, at_ms, status } => {
                    let call = calls.iter_mut().find(|call| call.start.number == number);
                    call.expect("an end comes after its start").end = Some(CallEnd { line, at_ms, status });
                }
            }
        }
        Self(calls)
    }

    pub fn all(&self) -> &[AgentCall] {
        &self.0
    }

    pub fn with_role<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a AgentCall> {
        self.0.iter().filter(move |call| call.start.role == role)
    }

    /// One line per call: role, reviewer, task, cycle and end.
    pub fn summary(&self) -> String {
        let mut story = String::new();
        for AgentCall { start, end, .. } in &self.0 {
            let words = [("", &start.role), ("", &start.reviewer), ("task ", &start.task), ("cycle ", &start.cycle)];
            let words: Vec<String> =
                words.iter().filter(|(_, word)| !word.is_empty()).map(|(name, word)| format!("{name}{word}")).collect();
            let end = end.as_ref().map_or("did not end", |end| &end.status);
            writeln!(story, "{}: {end}", words.join(" ")).expect("a string takes everything");
        }
        story
    }

    /// The maximum number of calls that ran at the same time. Killed calls do not count.
    ///
    /// Computed from the order of the log, because clocks are too coarse.
    pub fn max_concurrent(&self) -> usize {
        let runs =
            |call: &AgentCall, line: usize| call.line <= line && call.end.as_ref().is_some_and(|end| line < end.line);
        let at_once = |line: usize| self.0.iter().filter(|call| runs(call, line)).count();
        self.0.iter().map(|call| at_once(call.line)).max().unwrap_or(0)
    }
}

/// The file with the prompt of a call.
pub fn prompt_file(state: &Path, number: u32) -> PathBuf {
    state.join(format!("prompt-{number}.md"))
}
