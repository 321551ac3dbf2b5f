//! What goes wrong, and what then goes over the wire.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::reply::halves;

/// Something that keeps a client from its reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// An error in place of the reply.
    Status(Refusal),
    /// An error told within a stream that began well. Where nothing is streamed, the same as `Status`.
    Told(Refusal),
    /// The connection is closed in the middle of the reply.
    Cut,
    /// In the middle of the reply comes the half of something, and nothing after it.
    Malformed,
    /// Nothing comes after the middle of the reply, and the connection stays.
    Hang,
    /// The reply comes so many milliseconds late.
    Delay(u64),
}

/// How much of a reply a client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Whole,
    /// Its beginning, in which some providers tell the input's tokens already.
    Broken,
    /// Nothing of it.
    Refused,
}

/// An error as a provider tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    pub status: u16,
    #[serde(default)]
    pub message: Option<String>,
    /// Seconds.
    #[serde(default)]
    pub retry_after: Option<u64>,
}

/// One thing to do with a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Send(String),
    Wait(Duration),
    Break,
    Hang,
}

impl Fault {
    /// How a reply ends that this happens to.
    pub fn end(&self) -> End {
        match self {
            Self::Delay(_) => End::Whole,
            Self::Status(_) => End::Refused,
            Self::Told(_) | Self::Cut | Self::Malformed | Self::Hang => End::Broken,
        }
    }

    /// What is sent instead of these parts of a reply.
    pub(super) fn apply(&self, mut parts: Vec<String>) -> Vec<Piece> {
        let rest = if self.end() == End::Whole { Vec::new() } else { parts.split_off(parts.len() / 2) };
        let mut pieces: Vec<_> = parts.into_iter().map(Piece::Send).collect();
        match self {
            Self::Delay(ms) => pieces.insert(0, Piece::Wait(Duration::from_millis(*ms))),
            Self::Cut => pieces.push(Piece::Break),
            Self::Malformed => pieces.extend(rest.first().map(|next| Piece::Send(garbled(next)))),
            Self::Hang => pieces.push(Piece::Hang),
            // The error itself is a matter of the dialect, which puts it behind.
            Self::Status(_) | Self::Told(_) => {}
        }
        pieces
    }
}

/// The first half of a part, ended as if it were all.
fn garbled(part: &str) -> String {
    let half = halves(part).first().copied().unwrap_or("").trim_end();
    format!("{half}\n\n")
}

impl Refusal {
    pub fn new(status: u16) -> Self {
        Self { status, message: None, retry_after: None }
    }

    pub fn message(&self) -> String {
        self.message.clone().unwrap_or_else(|| format!("scripted {}", self.status))
    }
}
