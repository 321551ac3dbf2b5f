//! The normal form of a review. Every contract is parsed into it; later stages use only this form.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::ids::{Artifact, Commit, FindingId, ReviewerName};

mod file;

pub use file::{is_repository_path, normalize_files, normalize_path};

/// The severity of a finding. `Ord` goes from minor to critical.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::Display, strum::EnumCount, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum Severity {
    Minor,
    Important,
    Critical,
}

impl Severity {
    /// All severities, most severe first.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [Self::Critical, Self::Important, Self::Minor];

    /// Parses a severity in either vocabulary, in any case. A missing or unknown severity counts as critical, so that
    /// it cannot pass a gate unnoticed.
    pub fn parse_or_critical(word: Option<&str>) -> Self {
        word.and_then(Self::parse).unwrap_or(Self::Critical)
    }

    /// `critical`/`HIGH`, `important`/`MEDIUM`, `minor`/`LOW`, and nothing else.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.trim();
        let is_it = |one: &Self| word.eq_ignore_ascii_case(one.into_str()) || word.eq_ignore_ascii_case(one.level());
        Self::ALL.into_iter().find(is_it)
    }

    /// The severity of a priority, `P0` to `P3`.
    pub fn from_priority(word: &str) -> Option<Self> {
        match word {
            "P0" | "P1" => Some(Self::Critical),
            "P2" => Some(Self::Important),
            "P3" => Some(Self::Minor),
            _ => None,
        }
    }

    /// The name in the severity contract.
    pub fn level(self) -> &'static str {
        match self {
            Self::Critical => "HIGH",
            Self::Important => "MEDIUM",
            Self::Minor => "LOW",
        }
    }

    /// The name in headings.
    pub fn title(self) -> &'static str {
        match self {
            Self::Critical => "Critical",
            Self::Important => "Important",
            Self::Minor => "Minor",
        }
    }

    /// The level of the severity in SARIF.
    pub fn sarif_level(self) -> &'static str {
        match self {
            Self::Critical => "error",
            Self::Important => "warning",
            Self::Minor => "note",
        }
    }
}

impl JsonSchema for Severity {
    fn schema_name() -> Cow<'static, str> {
        "Severity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(<&str>::from) })
    }
}

/// The severity at or above which a finding fails a gate (`fail_on`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[derive(strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "UPPERCASE", ascii_case_insensitive)]
pub enum FailThreshold {
    Low,
    Medium,
    High,
    /// Findings never fail the gate. Missing reviews and discussions still do.
    None,
}

impl FailThreshold {
    /// The answers of `signoff configure`, in order.
    pub const ANSWERS: [(&'static str, Self); 4] = [
        ("LOW (any issue fails) [default]", Self::Low),
        ("MEDIUM (MEDIUM and HIGH fail)", Self::Medium),
        ("HIGH (only HIGH fails)", Self::High),
        ("NONE (never fail)", Self::None),
    ];

    pub fn is_reached_by(self, severity: Severity) -> bool {
        match self {
            Self::Low => true,
            Self::Medium => severity >= Severity::Important,
            Self::High => severity >= Severity::Critical,
            Self::None => false,
        }
    }
}

/// The kind of a reviewer. It selects the prompt and the order in the merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray, strum::VariantNames)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum ReviewerKind {
    Spec,
    Code,
    Security,
    Tests,
    General,
}

/// The verdict of one review.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumDiscriminants)]
#[serde(rename_all = "snake_case")]
#[strum(const_into_str, serialize_all = "snake_case")]
#[strum_discriminants(name(VerdictKind), doc = "A verdict without its details.")]
#[strum_discriminants(derive(Serialize, strum::IntoStaticStr))]
#[strum_discriminants(serde(rename_all = "snake_case"), strum(const_into_str, serialize_all = "snake_case"))]
pub enum Verdict {
    Approved,
    ApprovedWithMinor,
    ChangesRequested,
    NeedsDiscussion,
    /// The reviewer's opinion is unknown. This never passes a gate and never invents a finding.
    Inconclusive(Inconclusive),
}

impl Verdict {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(const_into_str, serialize_all = "snake_case")]
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

/// The reviewer's confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum Confidence {
    High,
    Medium,
    Low,
    #[default]
    Unstated,
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

impl IntentSatisfied {
    pub fn from_option(stated: Option<bool>) -> Self {
        stated.map_or(Self::Unstated, |is_satisfied| if is_satisfied { Self::Yes } else { Self::No })
    }

    pub fn to_option(self) -> Option<bool> {
        (self != Self::Unstated).then_some(self == Self::Yes)
    }
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
    /// Creates a finding of one reviewer without a location. The id is assigned later, when all findings are known.
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NoteReport", description = "A remark that never blocks.")]
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
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.combined(other, u64::saturating_add)
    }

    /// The larger value of each field. Usage never decreases.
    pub fn fieldwise_max(self, other: Self) -> Self {
        self.combined(other, u64::max)
    }

    fn combined(self, other: Self, by: fn(u64, u64) -> u64) -> Self {
        Self {
            cost_micro_usd: by(self.cost_micro_usd, other.cost_micro_usd),
            cost_is_estimated: self.cost_is_estimated || other.cost_is_estimated,
            input_tokens: by(self.input_tokens, other.input_tokens),
            cached_tokens: by(self.cached_tokens, other.cached_tokens),
            output_tokens: by(self.output_tokens, other.output_tokens),
            duration_ms: by(self.duration_ms, other.duration_ms),
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

    /// The review as a gate for this commit counts it: inconclusive if it judged another commit, and no approval if a
    /// finding reaches the threshold.
    #[must_use]
    pub fn counted(self, commit: &Commit, threshold: FailThreshold) -> Self {
        self.reject_other_commit(commit).with_verdict_from_findings(threshold)
    }

    /// Marks the review as inconclusive if it judged another commit than this one.
    #[must_use]
    pub fn reject_other_commit(mut self, commit: &Commit) -> Self {
        if self.judged.commit.as_ref().is_some_and(|judged| judged != commit) {
            let message = format!("the review judged another commit than {commit}");
            self.verdict = Verdict::Inconclusive(Violation::new(ViolationCode::CommitMismatch, 0, message).into());
        }
        self
    }

    /// Replaces an approval by `ChangesRequested` if a finding reaches the threshold.
    #[must_use]
    pub fn with_verdict_from_findings(mut self, threshold: FailThreshold) -> Self {
        let blocked = self.findings.iter().any(|finding| threshold.is_reached_by(finding.severity));
        if self.verdict.approves() && blocked {
            self.verdict = Verdict::ChangesRequested;
        }
        self
    }

    /// The summary without the lines that repeat a finding; none if only headings remain.
    pub fn summary_without_findings(&self) -> Option<String> {
        let is_heading = |line: &str| line.starts_with('#') || line.ends_with(':');
        let about = |line: &str| self.findings.iter().any(|finding| repeats_finding(line, finding));
        let lines: Vec<&str> = self.summary.lines().filter(|line| !about(line.trim())).collect();
        let says = lines.iter().map(|line| line.trim()).any(|line| !line.is_empty() && !is_heading(line));
        says.then(|| lines.join("\n").trim().to_owned())
    }
}

/// Whether a line repeats text of a finding.
fn repeats_finding(line: &str, finding: &Finding) -> bool {
    let statement = line.trim_start_matches(|c: char| "-*+•".contains(c) || c.is_whitespace());
    let texts = [Some(&finding.description), finding.suggestion.as_ref(), finding.requirement.as_ref()];
    let in_words = |text: &String| text.contains(statement) || (!text.is_empty() && statement.contains(text.as_str()));
    !statement.is_empty() && texts.into_iter().flatten().any(in_words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(summary: &str) -> Option<String> {
        let mut review = Review::new("r".into(), ReviewerKind::General, Verdict::ChangesRequested);
        review.summary = summary.to_owned();
        review.findings = vec![Finding::new(&"r".into(), "bug", Severity::Critical, "It lacks a check")];
        review.summary_without_findings()
    }

    #[test]
    fn lines_about_findings_are_dropped() {
        assert_eq!(beside("## Issues\n\n- a.rs:1 It lacks a check\n"), None);
        assert_eq!(beside("Please change:\n- a.rs:1 It lacks a check"), None);
        let both = "- a.rs:1 It lacks a check\n\nThe manual must say so as well.\n";
        assert_eq!(beside(both).as_deref(), Some("The manual must say so as well."));
        assert_eq!(beside(""), None);
    }
}
