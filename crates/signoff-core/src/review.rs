//! The normal form of a review: what every contract is parsed into, and all that anything downstream knows.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{Artifact, Commit, FindingId, ReviewerName};

mod beside;
mod file;

pub use file::{is_inside, name_files, normal};

/// How bad a finding is. `Ord` goes from harmless to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Minor,
    Important,
    Critical,
}

impl Severity {
    /// Reads either vocabulary, in any case. What is missing or unknown counts as critical: a reviewer
    /// that cannot say how bad it is must not be waved through.
    pub fn from_word(word: Option<&str>) -> Self {
        word.and_then(Self::known).unwrap_or(Self::Critical)
    }

    /// `critical`/`HIGH`, `important`/`MEDIUM`, `minor`/`LOW`, and nothing else.
    pub fn known(word: &str) -> Option<Self> {
        match word.trim().to_ascii_lowercase().as_str() {
            "critical" | "high" => Some(Self::Critical),
            "important" | "medium" => Some(Self::Important),
            "minor" | "low" => Some(Self::Minor),
            _ => None,
        }
    }

    /// The word of the XML and prefix contracts: `critical`, `important`, `minor`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Important => "important",
            Self::Minor => "minor",
        }
    }

    /// The word of the severity contract: `HIGH`, `MEDIUM`, `LOW`.
    pub fn level(self) -> &'static str {
        match self {
            Self::Critical => "HIGH",
            Self::Important => "MEDIUM",
            Self::Minor => "LOW",
        }
    }
}

/// The severity at or above which a finding fails a gate (`fail_on`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Bar {
    Low,
    Medium,
    High,
    /// Findings never fail the gate. Missing reviews and discussions still do.
    None,
}

impl Bar {
    pub const WORDS: [&'static str; 4] = ["LOW", "MEDIUM", "HIGH", "NONE"];

    pub fn from_word(word: &str) -> Option<Self> {
        match word.to_ascii_uppercase().as_str() {
            "LOW" => Some(Self::Low),
            "MEDIUM" => Some(Self::Medium),
            "HIGH" => Some(Self::High),
            "NONE" => Some(Self::None),
            _ => None,
        }
    }

    pub fn is_reached_by(self, severity: Severity) -> bool {
        match self {
            Self::Low => true,
            Self::Medium => severity >= Severity::Important,
            Self::High => severity >= Severity::Critical,
            Self::None => false,
        }
    }
}

/// What a reviewer looks for. It decides the prompt and the rank in the merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReviewerKind {
    Spec,
    Code,
    Security,
    Tests,
    General,
}

impl ReviewerKind {
    pub const ALL: [Self; 5] = [Self::Spec, Self::Code, Self::Security, Self::Tests, Self::General];

    pub fn word(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Code => "code",
            Self::Security => "security",
            Self::Tests => "tests",
            Self::General => "general",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// What one review says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Approved,
    ApprovedWithMinor,
    ChangesRequested,
    NeedsDiscussion,
    /// Nobody knows what the reviewer thinks. Never a pass, never an invented finding.
    Inconclusive(Inconclusive),
}

impl Verdict {
    /// The lower-case word of the JSON interfaces.
    pub fn word(&self) -> &'static str {
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

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inconclusive {
    /// No answer at all: the reviewer failed, timed out or said nothing.
    Missing(String),
    Unparsable(Violation),
    Contradictory(Violation),
    Truncated(Violation),
    /// An answer to another question: wrong or missing nonce, another commit.
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

/// A broken contract, with its place in the answer.
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

/// The ways an answer can break its contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViolationCode {
    Empty,
    TooLarge,
    TooDeep,
    NotUtf8,
    /// Nothing in the text is an answer.
    NoVerdict,
    UnknownVerdict,
    MissingKey,
    WrongType,
    /// Text that starts as an answer and breaks its grammar.
    Malformed,
    /// Text that starts as an answer and ends before it does.
    Truncated,
    /// Two answers that say different things.
    Disagreement,
    DuplicateKey,
    /// A request for changes that names none, in a contract that demands them.
    IssuesWithoutIssue,
    /// The nonce was required and no answer carries it.
    NonceMissing,
    /// An answer carries the nonce of another review.
    NonceMismatch,
    CommitMismatch,
    /// A report about another loop than the one under review.
    WrongLoop,
}

impl ViolationCode {
    /// The word of the JSON interfaces.
    pub fn word(self) -> &'static str {
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
        f.write_str(self.word())
    }
}

/// How sure the reviewer is.
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
    pub fn word(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
            Self::Unstated => "unstated",
        }
    }
}

/// Whether the work serves what the task was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IntentSatisfied {
    Yes,
    No,
    #[default]
    Unstated,
}

/// One issue, normalised. Its state over time lives in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Finding {
    pub id: FindingId,
    pub sources: Vec<ReviewerName>,
    /// A word reviewers are given (`bug`, `missing_requirement`, `dead-code`, …) or whatever the reviewer said.
    pub kind: String,
    pub severity: Severity,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub description: String,
    pub requirement: Option<String>,
    pub suggestion: Option<String>,
}

impl Finding {
    /// A finding of one reviewer about no place in particular. Its id is given once all are known.
    pub fn of(
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

/// A remark that never blocks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Note {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub description: String,
}

/// What an attempt used. Money is in millionths of a dollar, so that it adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Usage {
    pub cost_micro_usd: u64,
    /// The cost is worked out from a price list, at least in part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
    /// All that was read.
    pub input_tokens: u64,
    /// Of these, what came out of a cache.
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
    /// The most of both, each kind by itself: what was used is not given back.
    pub fn at_least(self, known: Self) -> Self {
        Self {
            cost_micro_usd: self.cost_micro_usd.max(known.cost_micro_usd),
            cost_is_estimated: self.cost_is_estimated || known.cost_is_estimated,
            cached_tokens: self.cached_tokens.max(known.cached_tokens),
            input_tokens: self.input_tokens.max(known.input_tokens),
            output_tokens: self.output_tokens.max(known.output_tokens),
            duration_ms: self.duration_ms.max(known.duration_ms),
        }
    }
}

/// What a review judged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Judged {
    pub commit: Option<Commit>,
    pub diff_digest: Option<String>,
}

/// One reviewer's answer, whatever contract it was given in.
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
    pub judged: Judged,
    /// The raw text, kept whole beside the log.
    pub raw: Option<Artifact>,
}

impl Review {
    /// A review that says `verdict` and nothing else.
    pub fn of(reviewer: ReviewerName, kind: ReviewerKind, verdict: Verdict) -> Self {
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
            judged: Judged::default(),
            raw: None,
        }
    }

    /// The seat of a reviewer nobody heard.
    pub fn inconclusive(reviewer: ReviewerName, kind: ReviewerKind, why: impl Into<Inconclusive>) -> Self {
        Self::of(reviewer, kind, Verdict::Inconclusive(why.into()))
    }

    /// Findings outrank words: an approval beside a finding at or above the bar requests changes.
    #[must_use]
    pub fn with_findings_outranking_words(mut self, bar: Bar) -> Self {
        let blocked = self.findings.iter().any(|finding| bar.is_reached_by(finding.severity));
        if self.verdict.approves() && blocked {
            self.verdict = Verdict::ChangesRequested;
        }
        self
    }
}
