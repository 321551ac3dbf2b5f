//! The formats in which reviewers answer. Each contract parses answers into a `Review` and writes the instructions
//! that ask for its format. The policy decides what happens after a broken answer.
//!
//! A contract finds every *candidate* answer in the final message. The `candidates` module decides which candidates
//! count and whether they agree, so the rules about nonces, commits, quoting and contradiction are implemented once
//! for all contracts.

use serde::{Deserialize, Serialize};

use crate::ids::{Commit, LoopId, Nonce, ReviewerName};
use crate::review::{FailThreshold, Review, ReviewerKind, Violation, ViolationCode};
use message::FinalMessage;

mod candidates;
mod inline_severity;
mod instructions;
mod item;
mod json;
mod json_value;
mod limits;
mod location;
mod markdown;
mod markdown_structure;
mod message;
mod objection;
mod prefix;
mod reader;
mod report;
mod retraction;
mod severity;
mod tool;
mod wording;
mod xml;
mod xml_tree;

pub use limits::{MAX_FINDINGS, MAX_TEXT_BYTES, check_finding_count, reject_unreadable_approval};
pub use message::{Blocks, MAX_BYTES, SplitAnswer};
pub use report::{ParseReport, ReportError};

/// The answer formats.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
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

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn parse(word: &str) -> Option<Self> {
        word.parse().ok()
    }

    /// The bar used if none is configured: `low` for severity reviews, `medium` for the others.
    pub fn default_bar(self) -> FailThreshold {
        match self {
            Self::Severity => FailThreshold::Low,
            Self::Markdown | Self::Json | Self::Xml | Self::Prefix | Self::Tool | Self::Auto => FailThreshold::Medium,
        }
    }
}

/// The parts of a review request that are needed to parse the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRequest {
    pub reviewer: ReviewerName,
    pub kind: ReviewerKind,
    pub nonce: Option<Nonce>,
    /// Whether an answer without the nonce is rejected.
    pub require_nonce: bool,
    pub fail_on: FailThreshold,
    /// The commit under review. An answer bound to another commit is rejected.
    pub commit: Option<Commit>,
    /// Used by the instructions of the tool contract. `task` is `None` for checkpoint reviews.
    pub loop_id: Option<LoopId>,
    pub task: Option<String>,
}

/// A reviewer's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewAnswer<'a> {
    /// The text after the last tool use, joined by [`Blocks`].
    pub text: &'a [u8],
    /// The argument objects of all calls of the reporting tool, concatenated.
    pub tool: Option<&'a [u8]>,
}

/// Parses an answer. Any bytes give a review or a violation, in linear time.
///
/// An approval is returned only if nothing else in the answer objects. A refusing verdict in any format and a
/// blocking finding object, with or without the nonce, unless they are inside quotes or code.
pub fn parse(contract: Contract, answer: ReviewAnswer<'_>, ask: &ReviewRequest) -> Result<Review, Violation> {
    match (contract, answer.tool) {
        (Contract::Tool, tool) | (Contract::Auto, tool @ Some(_)) => {
            objection::check_objections_to_report(tool::parse(tool, ask)?, answer.text, ask)
        }
        (
            Contract::Auto
            | Contract::Markdown
            | Contract::Json
            | Contract::Xml
            | Contract::Prefix
            | Contract::Severity,
            Some(_) | None,
        ) => message::read(answer.text, |message| {
            candidates::check_nonces(message, ask)?;
            objection::check_objections(review(contract, message, ask)?, message, ask)
        }),
    }
}

/// Parses an answer that came in blocks. An approval is returned only if none of `others` objects or is broken, see
/// `SplitAnswer::alternatives`.
pub fn parse_split<'a>(
    contract: Contract,
    answer: ReviewAnswer<'_>,
    others: impl IntoIterator<Item = &'a [u8]>,
    ask: &ReviewRequest,
) -> Result<Review, Violation> {
    let review = parse(contract, answer, ask)?;
    others.into_iter().try_fold(review, |review, text| {
        if review.verdict.approves()
            && let Err(violation) = parse(contract, ReviewAnswer { text, ..answer }, ask)
            && !matches!(violation.code, ViolationCode::NoVerdict | ViolationCode::NonceMissing)
        {
            return Err(violation);
        }
        objection::check_objections_in_text(review, text, ask)
    })
}

/// Returns the review that a message states in a text contract.
fn review(contract: Contract, message: &FinalMessage<'_>, ask: &ReviewRequest) -> Result<Review, Violation> {
    let (candidates, nothing) = match contract {
        Contract::Markdown => (markdown::candidates(message, ask)?, markdown::NOTHING),
        Contract::Json => (json::candidates(message, ask)?, json::NOTHING),
        Contract::Xml => (xml::candidates_or_prefix(message, ask)?, xml::NOTHING),
        Contract::Prefix => (prefix::candidates(message, ask)?, prefix::NOTHING),
        Contract::Severity => (severity::candidates(message, ask)?, severity::NOTHING),
        Contract::Tool | Contract::Auto => {
            let candidates = vec![
                xml::candidates_or_prefix(message, ask)?,
                markdown::candidates(message, ask)?,
                json::candidates(message, ask)?,
                severity::candidates(message, ask)?,
            ];
            return candidates::select_across(candidates, ask);
        }
    };
    candidates::resolve(candidates::filter_by_nonce(candidates, ask)?, ask, nothing)
}

/// Returns the first duplicate key in an object of a JSON text. JSON parsers differ in which of the two values they
/// keep.
pub fn duplicate_key(text: &str) -> Option<String> {
    json_value::read(text).seen.duplicate().map(|key| candidates::clip(&key).to_owned())
}

/// Returns the instructions that ask a reviewer for this contract.
pub fn instructions(contract: Contract, ask: &ReviewRequest) -> String {
    instructions::write(contract, ask)
}
