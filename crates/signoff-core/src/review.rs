//! The normal form of a review. Every contract is parsed into it, and later stages know no other form.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{Artifact, Commit, FindingId, ReviewerName};

mod file;
mod prose;
mod severity;

pub use file::{is_repository_path, normalize_files, normalize_path};
pub use severity::{FailThreshold, Severity};

/// The kind of a reviewer. It selects the prompt and the order in the merge.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ReviewerKind {
    Spec,
    Code,
    Security,
    Tests,
    General,
}

impl ReviewerKind {
    pub const ALL: [Self; 5] = [Self::Spec, Self::Code, Self::Security, Self::Tests, Self::General];

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn parse(word: &str) -> Option<Self> {
        word.parse().ok()
    }
}

/// The verdict of one review.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Approved,
    ApprovedWithMinor,
    ChangesRequested,
    NeedsDiscussion,
    /// The reviewer's opinion is unknown. This never passes a gate and never invents a finding.
    Inconclusive(Inconclusive),
}

impl Verdict {
    /// The name in the JSON interfaces.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::ApprovedWithMinor => "approved_with_minor",
            Self::ChangesRequested => "changes_requested",
            Self::NeedsDiscussion => "needs_discussion",
            Self::Inconclusive(_) => "inconclusive",
        }
    }

    pub fn approves(&self) -> bool {
        matches!(self, Self::Approved | Self::ApprovedWithMinor)
    }
}

/// Why a review has no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inconclusive {
    /// No answer: the reviewer failed, timed out or printed nothing.
    Missing(String),
    Unparsable(Violation),
    Contradictory(Violation),
    Truncated(Violation),
    /// An answer to another question: wrong or missing nonce, or another commit.
    Unbound(Violation),
}

impl From<Violation> for Inconclusive {
    fn from(violation: Violation) -> Self {
        match violation.code {
            ViolationCode::Empty => Self::Missing(violation.message),
            ViolationCode::Disagreement | ViolationCode::DuplicateKey | ViolationCode::IssuesWithoutIssue => {
                Self::Contradictory(violation)
            }
            ViolationCode::Truncated => Self::Truncated(violation),
            ViolationCode::NonceMissing
            | ViolationCode::NonceMismatch
            | ViolationCode::CommitMismatch
            | ViolationCode::WrongLoop => Self::Unbound(violation),
            ViolationCode::TooLarge
            | ViolationCode::TooDeep
            | ViolationCode::NotUtf8
            | ViolationCode::NoVerdict
            | ViolationCode::UnknownVerdict
            | ViolationCode::MissingKey
            | ViolationCode::WrongType
            | ViolationCode::Malformed => Self::Unparsable(violation),
        }
    }
}

/// A violation of an answer contract, with its byte offset.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[error("{message} (at byte {offset})")]
pub struct Violation {
    pub code: ViolationCode,
    pub message: String,
    pub offset: usize,
}

impl Violation {
    pub fn new(code: ViolationCode, offset: usize, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), offset }
    }
}

/// The ways in which an answer can violate its contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViolationCode {
    Empty,
    TooLarge,
    TooDeep,
    NotUtf8,
    /// The text contains no answer.
    NoVerdict,
    UnknownVerdict,
    MissingKey,
    WrongType,
    /// An answer with a syntax error.
    Malformed,
    /// An incomplete answer.
    Truncated,
    /// Two answers that contradict each other.
    Disagreement,
    DuplicateKey,
    /// Changes are requested but no issue is named, in a contract that requires issues.
    IssuesWithoutIssue,
    /// The nonce is required, and no answer contains it.
    NonceMissing,
    /// An answer contains the nonce of another review.
    NonceMismatch,
    CommitMismatch,
    /// A report about another loop.
    WrongLoop,
}

impl ViolationCode {
    /// The name in the JSON interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLarge => "too_large",
            Self::TooDeep => "too_deep",
            Self::NotUtf8 => "not_utf8",
            Self::NoVerdict => "no_verdict",
            Self::UnknownVerdict => "unknown_verdict",
            Self::MissingKey => "missing_key",
            Self::WrongType => "wrong_type",
            Self::Malformed => "malformed",
            Self::Truncated => "truncated",
            Self::Disagreement => "disagreement",
            Self::DuplicateKey => "duplicate_key",
            Self::IssuesWithoutIssue => "issues_without_issue",
            Self::NonceMissing => "nonce_missing",
            Self::NonceMismatch => "nonce_mismatch",
            Self::CommitMismatch => "commit_mismatch",
            Self::WrongLoop => "wrong_loop",
        }
    }
}

impl fmt::Display for ViolationCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The reviewer's confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    High,
    Medium,
    Low,
    #[default]
    Unstated,
}

impl Confidence {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
            Self::Unstated => "unstated",
        }
    }
}

/// Whether the work satisfies the intent of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IntentSatisfied {
    Yes,
    No,
    #[default]
    Unstated,
}

/// One normalized issue. The ledger tracks its state over time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Finding {
    pub id: FindingId,
    pub sources: Vec<ReviewerName>,
    /// One of the suggested kinds (`bug`, `missing_requirement`, `dead-code`, …) or the reviewer's own.
    pub kind: String,
    pub severity: Severity,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub description: String,
    pub requirement: Option<String>,
    pub suggestion: Option<String>,
}

impl Finding {
    /// Creates a finding of one reviewer without a place. The id is assigned later, when all findings are known.
    pub fn new(
        source: &ReviewerName,
        kind: impl Into<String>,
        severity: Severity,
        description: impl Into<String>,
    ) -> Self {
        Self {
            id: FindingId::new(""),
            sources: vec![source.clone()],
            kind: kind.into(),
            severity,
            file: None,
            line: None,
            description: description.into(),
            requirement: None,
            suggestion: None,
        }
    }
}

/// A remark that never fails a gate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Note {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub description: String,
}

/// The usage of an attempt. Costs are in millionths of a dollar, so that sums are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Usage {
    pub cost_micro_usd: u64,
    /// The cost is at least partly estimated from a price list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
    /// All input tokens.
    pub input_tokens: u64,
    /// Input tokens read from a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    pub output_tokens: u64,
    pub duration_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    /// The larger value of each field. Usage never decreases.
    pub fn fieldwise_max(self, other: Self) -> Self {
        Self {
            cost_micro_usd: self.cost_micro_usd.max(other.cost_micro_usd),
            cost_is_estimated: self.cost_is_estimated || other.cost_is_estimated,
            cached_tokens: self.cached_tokens.max(other.cached_tokens),
            input_tokens: self.input_tokens.max(other.input_tokens),
            output_tokens: self.output_tokens.max(other.output_tokens),
            duration_ms: self.duration_ms.max(other.duration_ms),
        }
    }
}

/// The revision that a review judged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ReviewedRevision {
    pub commit: Option<Commit>,
    pub diff_digest: Option<String>,
}

/// One reviewer's answer, independent of its contract.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Review {
    pub reviewer: ReviewerName,
    pub kind: ReviewerKind,
    pub verdict: Verdict,
    pub confidence: Confidence,
    pub findings: Vec<Finding>,
    pub minor: Vec<Note>,
    pub checked: Vec<String>,
    pub summary: String,
    pub follow_up_prompt: Option<String>,
    pub interpreted_intent: Option<String>,
    pub intent_satisfied: IntentSatisfied,
    pub usage: Usage,
    pub judged: ReviewedRevision,
    /// The raw text, stored next to the event log.
    pub raw: Option<Artifact>,
}

impl Review {
    /// Creates a review with a verdict and nothing else.
    pub fn new(reviewer: ReviewerName, kind: ReviewerKind, verdict: Verdict) -> Self {
        Self {
            reviewer,
            kind,
            verdict,
            confidence: Confidence::Unstated,
            findings: Vec::new(),
            minor: Vec::new(),
            checked: Vec::new(),
            summary: String::new(),
            follow_up_prompt: None,
            interpreted_intent: None,
            intent_satisfied: IntentSatisfied::Unstated,
            usage: Usage::default(),
            judged: ReviewedRevision::default(),
            raw: None,
        }
    }

    /// Creates a review without a verdict, for a reviewer that gave no usable answer.
    pub fn inconclusive(reviewer: ReviewerName, kind: ReviewerKind, why: impl Into<Inconclusive>) -> Self {
        Self::new(reviewer, kind, Verdict::Inconclusive(why.into()))
    }

    /// Replaces an approval by `ChangesRequested` if a finding reaches the threshold.
    #[must_use]
    pub fn with_verdict_from_findings(mut self, bar: FailThreshold) -> Self {
        let blocked = self.findings.iter().any(|finding| bar.is_reached_by(finding.severity));
        if self.verdict.approves() && blocked {
            self.verdict = Verdict::ChangesRequested;
        }
        self
    }
}
