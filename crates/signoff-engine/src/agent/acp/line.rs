//! The JSON lines that `signoff __acp` prints.

use serde::{Deserialize, Serialize};

/// One line of output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AcpLine {
    Session {
        id: String,
    },
    /// A part of a message. The next part continues it unless it begins a new one.
    Text {
        text: String,
        begins: bool,
    },
    Tool {
        name: String,
        about: String,
    },
    Denied {
        tool: String,
        about: String,
    },
    Usage {
        model: Option<String>,
        input: u64,
        cached: u64,
        written: u64,
        output: u64,
    },
    /// Total cost so far, in dollars.
    Cost {
        usd: f64,
    },
    /// Whether the agent can use the report server.
    Reports {
        found: bool,
    },
    Error {
        code: Option<i32>,
        message: String,
    },
    /// The agent did not complete the handshake. Contains its first output, if any.
    #[serde(rename = "unspoken")]
    HandshakeFailed {
        said: Option<String>,
    },
    /// The beginning of a line that may be part of a message and could not be parsed.
    Unread {
        line: String,
    },
    /// The protocol's stop reason.
    End {
        reason: String,
    },
    #[serde(other)]
    Unknown,
}
