//! The formats reviewers answer in. Each one reads answers into the normal form and writes the
//! instructions that ask for them; what follows from a broken answer is the policy's business.

use serde::{Deserialize, Serialize};

use crate::ids::{Commit, LoopId, Nonce, ReviewerName};
use crate::review::{Bar, Review, ReviewerKind, Violation};

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
    let _ = (contract, answer, ask);
    Err(Violation::new(crate::review::ViolationCode::NoVerdict, 0, "not yet"))
}

/// The exact text that tells a reviewer how to answer.
pub fn instructions(contract: Contract, ask: &Ask) -> String {
    let _ = (contract, ask);
    String::new()
}
