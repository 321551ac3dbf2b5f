//! Scripted faults, and the bytes they send.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::reply::halves;

/// A fault in place of, or during, a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// An error response instead of the reply.
    Status(ModelError),
    /// An error event in the middle of a stream. Without streaming, the same as `Status`.
    #[serde(rename = "told")]
    InStream(ModelError),
    /// Closes the connection in the middle of the reply.
    Cut,
    /// Ends the reply in the middle of a frame.
    Malformed,
    /// Stops in the middle of the reply and keeps the connection open.
    Hang,
    /// Delays the reply by this many milliseconds.
    Delay(u64),
}

/// How much of a reply the client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyEnd {
    Whole,
    /// Its beginning, in which some providers already report the input tokens.
    Broken,
    /// Nothing.
    Refused,
}

/// A provider's error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelError {
    pub status: u16,
    #[serde(default)]
    pub message: Option<String>,
    /// Seconds.
    #[serde(default)]
    pub retry_after: Option<u64>,
}

/// One operation on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WirePiece {
    Send(String),
    Wait(Duration),
    Break,
    Hang,
}

impl Fault {
    /// How a reply with this fault ends.
    pub fn end(&self) -> ReplyEnd {
        match self {
            Self::Delay(_) => ReplyEnd::Whole,
            Self::Status(_) => ReplyEnd::Refused,
            Self::InStream(_) | Self::Cut | Self::Malformed | Self::Hang => ReplyEnd::Broken,
        }
    }

    /// Applies the fault to the parts of a reply.
    pub(super) fn apply(&self, mut parts: Vec<String>) -> Vec<WirePiece> {
        let rest = if self.end() == ReplyEnd::Whole { Vec::new() } else { parts.split_off(parts.len() / 2) };
        let mut pieces: Vec<_> = parts.into_iter().map(WirePiece::Send).collect();
        match self {
            Self::Delay(ms) => pieces.insert(0, WirePiece::Wait(Duration::from_millis(*ms))),
            Self::Cut => pieces.push(WirePiece::Break),
            Self::Malformed => pieces.extend(rest.first().map(|next| WirePiece::Send(garbled(next)))),
            Self::Hang => pieces.push(WirePiece::Hang),
            // The caller appends the error event in the format of the API.
            Self::Status(_) | Self::InStream(_) => {}
        }
        pieces
    }
}

/// The first half of a part, terminated like a complete one.
fn garbled(part: &str) -> String {
    let half = halves(part).first().copied().unwrap_or("").trim_end();
    format!("{half}\n\n")
}

impl ModelError {
    pub fn new(status: u16) -> Self {
        Self { status, message: None, retry_after: None }
    }

    pub fn message(&self) -> String {
        self.message.clone().unwrap_or_else(|| format!("scripted {}", self.status))
    }
}
