//! The fake agent's log: who was called, when, and with which prompt.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Below the state directory, one JSON object a line.
pub const LOG: &str = "calls.jsonl";

/// A line of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Entry {
    Start(Start),
    End { number: u32, at_ms: u64, how: String },
}

/// A call as it began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Start {
    /// Among all calls, from 1.
    pub number: u32,
    /// Among the calls with the same role, reviewer and task, from 1.
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
pub struct Call {
    /// Where in the log it begins.
    line: usize,
    pub start: Start,
    /// None while it runs, and if it was killed.
    pub end: Option<End>,
    pub prompt: String,
}

/// How a call came to its own end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    line: usize,
    pub at_ms: u64,
    /// `exit 0`, `signal 9`.
    pub how: String,
}

/// All calls, in the order they began.
#[derive(Debug, Clone)]
pub struct Calls(Vec<Call>);

impl Calls {
    /// Reads what is there so far.
    ///
    /// # Panics
    /// If the log is not as the fake agent writes it.
    pub fn read(state: &Path) -> Self {
        let mut calls: Vec<Call> = Vec::new();
        for (line, text) in fs::read_to_string(state.join(LOG)).unwrap_or_default().lines().enumerate() {
            match serde_json::from_str(text).expect("a line of the log") {
                Entry::Start(start) => {
                    let prompt = fs::read(prompt_file(state, start.number)).expect("a kept prompt");
                    let prompt = String::from_utf8_lossy(&prompt).into_owned();
                    calls.push(Call { line, start, end: None, prompt });
                }
                Entry::End { number, at_ms, how } => {
                    let call = calls.iter_mut().find(|call| call.start.number == number);
                    call.expect("an end comes after its start").end = Some(End { line, at_ms, how });
                }
            }
        }
        Self(calls)
    }

    pub fn all(&self) -> &[Call] {
        &self.0
    }

    pub fn of_role<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a Call> {
        self.0.iter().filter(move |call| call.start.role == role)
    }

    /// One line per call: who, in which cycle of which task, and its end.
    pub fn story(&self) -> String {
        let mut story = String::new();
        for Call { start, end, .. } in &self.0 {
            let words =
                [("", &start.role), ("", &start.reviewer), ("task ", &start.task), ("cycle ", &start.cycle)];
            let words: Vec<String> = words
                .iter()
                .filter(|(_, word)| !word.is_empty())
                .map(|(name, word)| format!("{name}{word}"))
                .collect();
            let end = end.as_ref().map_or("did not end", |end| &end.how);
            writeln!(story, "{}: {end}", words.join(" ")).expect("a string takes everything");
        }
        story
    }

    /// How many ran at the same time, at most. Those that did not come to their own end do not count.
    ///
    /// Told from the order of the log: clocks are too coarse.
    pub fn most_at_once(&self) -> usize {
        let runs = |call: &Call, line: usize| {
            call.line <= line && call.end.as_ref().is_some_and(|end| line < end.line)
        };
        let at_once = |line: usize| self.0.iter().filter(|call| runs(call, line)).count();
        self.0.iter().map(|call| at_once(call.line)).max().unwrap_or(0)
    }
}

/// Where the prompt of a call is kept.
pub fn prompt_file(state: &Path, number: u32) -> PathBuf {
    state.join(format!("prompt-{number}.md"))
}
