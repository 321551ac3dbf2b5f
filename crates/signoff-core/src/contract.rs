//! The formats reviewers answer in. Each one reads answers into the normal form and writes the
//! instructions that ask for them; what follows from a broken answer is the policy's business.
//!
//! A contract finds every *candidate* answer in the final message; [`binding`] decides which of them
//! count and whether they agree. So the laws about nonces, commits, quoting and contradiction are
//! written once, and no contract can forget one.

use serde::{Deserialize, Serialize};

use crate::ids::{Commit, LoopId, Nonce, ReviewerName};
use crate::review::{Bar, Review, ReviewerKind, Violation};

mod auto;
mod binding;
mod instructions;
mod item;
mod json;
mod json_text;
mod json_value;
mod markdown;
mod message;
mod outline;
mod place;
mod prefix;
mod reader;
mod reason;
mod report;
mod retraction;
mod sections;
mod severity;
mod stated;
mod tool;
mod verdict_line;
mod xml;
mod xml_tree;

pub use message::MAX_BYTES;
pub use reason::{LONGEST_TEXT, MOST_FINDINGS, within_reason};
pub use report::{ParseReport, ReportError};

/// The contracts by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contract {
    Markdown,
    Json,
    Xml,
    Prefix,
    Severity,
    Tool,
    Auto,
}

impl Contract {
    pub const ALL: [Self; 7] =
        [Self::Markdown, Self::Json, Self::Xml, Self::Prefix, Self::Severity, Self::Tool, Self::Auto];

    pub fn word(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Json => "json",
            Self::Xml => "xml",
            Self::Prefix => "prefix",
            Self::Severity => "severity",
            Self::Tool => "tool",
            Self::Auto => "auto",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|contract| contract.word() == word)
    }

    /// The bar where nobody set one: any finding fails a severity review, medium ones the others.
    pub fn default_bar(self) -> Bar {
        match self {
            Self::Severity => Bar::Low,
            Self::Markdown | Self::Json | Self::Xml | Self::Prefix | Self::Tool | Self::Auto => Bar::Medium,
        }
    }
}

/// What a reviewer was asked, as far as reading its answer depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub reviewer: ReviewerName,
    pub kind: ReviewerKind,
    pub nonce: Option<Nonce>,
    /// Whether an answer without the nonce is refused.
    pub require_nonce: bool,
    pub fail_on: Bar,
    /// The commit under review: an answer bound to another one is refused.
    pub commit: Option<Commit>,
    /// For the tool contract's instructions; `task` is none for checkpoint reviews.
    pub loop_id: Option<LoopId>,
    pub task: Option<String>,
}

/// What a reviewer left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The final message and nothing else.
    pub text: &'a [u8],
    /// The argument object of the reporting tool, if it was called.
    pub tool: Option<&'a [u8]>,
}

/// Reads an answer. Total: any bytes give a review or a named violation, in time linear in their number.
pub fn parse(contract: Contract, answer: Answer<'_>, ask: &Ask) -> Result<Review, Violation> {
    match contract {
        Contract::Tool => tool::parse(answer.tool, ask),
        Contract::Auto => auto::parse(answer, ask),
        Contract::Markdown => message::read(answer.text, |message| {
            binding::select(markdown::candidates(message, ask)?, ask, markdown::NOTHING)
        }),
        Contract::Json => message::read(answer.text, |message| {
            binding::select(json::candidates(message, ask)?, ask, json::NOTHING)
        }),
        Contract::Xml => message::read(answer.text, |message| {
            binding::select(xml::candidates_or_prefix(message, ask)?, ask, xml::NOTHING)
        }),
        Contract::Prefix => message::read(answer.text, |message| {
            binding::select(prefix::candidates(message, ask)?, ask, prefix::NOTHING)
        }),
        Contract::Severity => message::read(answer.text, |message| {
            binding::select(severity::candidates(message, ask)?, ask, severity::NOTHING)
        }),
    }
}

/// The first key that stands twice in one object of a JSON text. Whoever reads such an object keeps one of the two
/// values, and another reader the other one.
pub fn duplicate_key(text: &str) -> Option<String> {
    json_value::read(text).seen.duplicate().map(|key| binding::clip(&key).to_owned())
}

/// The exact text that tells a reviewer how to answer.
pub fn instructions(contract: Contract, ask: &Ask) -> String {
    instructions::write(contract, ask)
}
