//! The formats reviewers answer in. Each one reads answers into the normal form and writes the
//! instructions that ask for them; what follows from a broken answer is the policy's business.
//!
//! A contract finds every *candidate* answer in the final message; [`binding`] decides which of them
//! count and whether they agree. So the laws about nonces, commits, quoting and contradiction are
//! written once, and no contract can forget one.

use serde::{Deserialize, Serialize};

use crate::ids::{Commit, LoopId, Nonce, ReviewerName};
use crate::review::{Bar, Review, ReviewerKind, Violation, ViolationCode};

mod auto;
mod binding;
mod instructions;
mod item;
mod json;
mod json_text;
mod json_value;
mod labelled;
mod markdown;
mod message;
mod objection;
mod outline;
mod place;
mod prefix;
mod reader;
mod reason;
mod report;
mod resolved;
mod retraction;
mod sections;
mod severity;
mod split;
mod stated;
mod tool;
mod verdict_line;
mod xml;
mod xml_tree;

pub use message::MAX_BYTES;
pub use reason::{LONGEST_TEXT, MOST_FINDINGS, unless_unreadable, within_reason};
pub use report::{ParseReport, ReportError};
pub use split::{Blocks, SplitAnswer};

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
    /// Everything said after the last tool use, joined by [`Blocks`].
    pub text: &'a [u8],
    /// The argument objects of all calls of the reporting tool, one after another.
    pub tool: Option<&'a [u8]>,
}

/// Reads an answer. Total: any bytes give a review or a named violation, in time linear in their number.
///
/// An approval stands only if nothing else in the answer objects: no refusing verdict in any format, with or without the
/// nonce, and no blocking finding, outside quotes and code.
pub fn parse(contract: Contract, answer: Answer<'_>, ask: &Ask) -> Result<Review, Violation> {
    match (contract, answer.tool) {
        (Contract::Tool, tool) | (Contract::Auto, tool @ Some(_)) => {
            objection::unopposed_report(tool::parse(tool, ask)?, answer.text, ask)
        }
        (Contract::Auto, None) => message::read(answer.text, |message| {
            binding::check_nonces(message, ask)?;
            objection::unopposed(auto::review(message, ask)?, message, ask)
        }),
        (
            Contract::Markdown | Contract::Json | Contract::Xml | Contract::Prefix | Contract::Severity,
            Some(_) | None,
        ) => message::read(answer.text, |message| {
            binding::check_nonces(message, ask)?;
            let (candidates, nothing) = candidates(contract, message, ask)?;
            objection::unopposed(binding::select(candidates, ask, nothing)?, message, ask)
        }),
    }
}

/// Reads an answer that came in blocks: an approval stands only if nothing objects to it, and nothing is broken, in
/// `others` either, see [`SplitAnswer::others`].
pub fn parse_split<'a>(
    contract: Contract,
    answer: Answer<'_>,
    others: impl IntoIterator<Item = &'a [u8]>,
    ask: &Ask,
) -> Result<Review, Violation> {
    let review = parse(contract, answer, ask)?;
    others.into_iter().try_fold(review, |review, text| {
        if review.verdict.approves()
            && let Err(violation) = parse(contract, Answer { text, ..answer }, ask)
            && !matches!(violation.code, ViolationCode::NoVerdict | ViolationCode::NonceMissing)
        {
            return Err(violation);
        }
        objection::unopposed_text(review, text, ask)
    })
}

/// The answers that a text contract finds in a message, and what to say if there is none.
fn candidates(
    contract: Contract,
    message: &message::Message<'_>,
    ask: &Ask,
) -> Result<(Vec<binding::Candidate>, &'static str), Violation> {
    let found = match contract {
        Contract::Markdown => markdown::candidates(message, ask)?,
        Contract::Json => json::candidates(message, ask)?,
        Contract::Xml => xml::candidates_or_prefix(message, ask)?,
        Contract::Prefix => prefix::candidates(message, ask)?,
        Contract::Severity => severity::candidates(message, ask)?,
        Contract::Tool | Contract::Auto => Vec::new(),
    };
    Ok((found, nothing(contract)))
}

/// What is said of a message in which a contract finds nothing at all.
fn nothing(contract: Contract) -> &'static str {
    match contract {
        Contract::Markdown => markdown::NOTHING,
        Contract::Json => json::NOTHING,
        Contract::Xml => xml::NOTHING,
        Contract::Prefix => prefix::NOTHING,
        Contract::Severity => severity::NOTHING,
        Contract::Tool | Contract::Auto => auto::NOTHING,
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
