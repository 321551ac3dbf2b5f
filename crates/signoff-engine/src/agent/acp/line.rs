//! What `signoff __acp` prints of a conversation: a JSON line for each thing.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    Session {
        id: String,
    },
    /// A part of a message, which goes on with the next one unless that begins another.
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
    /// All that was spent since it began, in dollars.
    Cost {
        usd: f64,
    },
    /// Whether it knows the server that it is to report to.
    Reports {
        found: bool,
    },
    Error {
        code: Option<i32>,
        message: String,
    },
    /// It did not answer the greeting as the protocol wants it: what it said first, if anything.
    Unspoken {
        said: Option<String>,
    },
    /// The beginning of a line that may be a part of a message, and could not be read.
    Unread {
        line: String,
    },
    /// Why it stopped, in the protocol's word.
    End {
        reason: String,
    },
    #[serde(other)]
    Unknown,
}
