//! The JSON output of `signoff parse`: one review, or the violation instead of it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ReviewRequest;
use crate::ids::ReviewerName;
use crate::review::{
    Confidence, Finding, Inconclusive, IntentSatisfied, Note, Review, ReviewerKind, Verdict, Violation,
};

/// The version that this program writes and reads.
const VERSION: u32 = 1;

/// The result of parsing one answer. `parse` prints it and `merge-reviews` reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ReviewJson", into = "Value")]
pub struct ParseReport {
    /// Inconclusive if the answer broke its contract.
    pub review: Review,
    pub violation: Option<Violation>,
}

/// Why a JSON object is not a report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    #[error("version {0} is not known; this program reads version {VERSION}")]
    Version(u32),
    #[error("the verdict `{0}` is not known")]
    Verdict(String),
    #[error("`verdict` and `violation` contradict each other: only `inconclusive` has a violation")]
    Violation,
    #[error("`findings` is missing")]
    Findings,
}

impl ParseReport {
    pub fn new(result: &Result<Review, Violation>, request: &ReviewRequest) -> Self {
        match result {
            Ok(review) => Self { review: review.clone(), violation: None },
            Err(violation) => {
                let review = Review::inconclusive(request.reviewer.clone(), request.kind, violation.clone());
                Self { review, violation: Some(violation.clone()) }
            }
        }
    }
}

/// A review as JSON, to be read. Only the fields that a merge needs are required.
#[derive(Deserialize)]
#[serde(expecting = "a review as a JSON object")]
struct ReviewJson {
    version: u32,
    reviewer: Option<ReviewerName>,
    role: Option<ReviewerKind>,
    verdict: String,
    violation: Option<Violation>,
    #[serde(default)]
    confidence: Confidence,
    findings: Option<Vec<Finding>>,
    #[serde(default)]
    minor: Vec<Note>,
    #[serde(default)]
    checked: Vec<String>,
    #[serde(default)]
    summary: String,
    follow_up_prompt: Option<String>,
    interpreted_intent: Option<String>,
    /// True, false, or null if the reviewer did not state it.
    intent_satisfied: Option<bool>,
}

impl From<ParseReport> for Value {
    fn from(ParseReport { review, violation }: ParseReport) -> Self {
        let verdict = review.verdict.into_str();
        if let Some(violation) = violation {
            return json!({
                "version": VERSION,
                "reviewer": review.reviewer,
                "role": review.kind,
                "verdict": verdict,
                "violation": violation,
            });
        }
        json!({
            "version": VERSION,
            "reviewer": review.reviewer,
            "role": review.kind,
            "verdict": verdict,
            "confidence": review.confidence,
            "findings": review.findings,
            "minor": review.minor,
            "checked": review.checked,
            "summary": review.summary,
            "follow_up_prompt": review.follow_up_prompt,
            "interpreted_intent": review.interpreted_intent,
            "intent_satisfied": review.intent_satisfied.to_option(),
        })
    }
}

impl TryFrom<ReviewJson> for ParseReport {
    type Error = ReportError;

    fn try_from(report: ReviewJson) -> Result<Self, ReportError> {
        if report.version != VERSION {
            return Err(ReportError::Version(report.version));
        }
        let kind = report.role.unwrap_or(ReviewerKind::General);
        let reviewer = report.reviewer.clone().unwrap_or_else(|| ReviewerName::new(kind.into_str()));
        if let Some(violation) = report.violation {
            let inconclusive = report.verdict == "inconclusive";
            let review = Review::inconclusive(reviewer, kind, Inconclusive::from(violation.clone()));
            let report = Self { review, violation: Some(violation) };
            return inconclusive.then_some(report).ok_or(ReportError::Violation);
        }
        let review = Review {
            confidence: report.confidence,
            findings: report.findings.ok_or(ReportError::Findings)?,
            minor: report.minor,
            checked: report.checked,
            summary: report.summary,
            follow_up_prompt: report.follow_up_prompt,
            interpreted_intent: report.interpreted_intent,
            intent_satisfied: IntentSatisfied::from_option(report.intent_satisfied),
            ..Review::new(reviewer, kind, verdict(&report.verdict)?)
        };
        Ok(Self { review, violation: None })
    }
}

fn verdict(word: &str) -> Result<Verdict, ReportError> {
    if word == "inconclusive" {
        return Err(ReportError::Violation);
    }
    let known = [Verdict::Approved, Verdict::ApprovedWithMinor, Verdict::ChangesRequested, Verdict::NeedsDiscussion];
    let found = known.into_iter().find(|verdict| verdict.into_str() == word);
    found.ok_or_else(|| ReportError::Verdict(word.to_owned()))
}
