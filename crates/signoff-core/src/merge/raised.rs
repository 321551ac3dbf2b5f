//! Sorts the findings of all reviewers.

use std::borrow::Cow;

use crate::ids::{FindingId, ReviewerName};
use crate::review::{Finding, Review, ReviewerKind, Severity};

/// One finding of one reviewer.
pub(super) struct RaisedFinding<'a> {
    pub finding: &'a Finding,
    pub reviewer: &'a ReviewerName,
    pub kind: ReviewerKind,
    pub priority: u8,
    /// The normalised file name, to compare locations.
    pub path: Option<Cow<'a, str>>,
}

/// The sort key of a finding, most urgent first. It covers all fields, so that the order of the reviews has no
/// influence.
pub(super) type FindingSortKey<'a> = (
    (u8, Option<&'a str>, Option<u32>, &'a str),
    (u8, &'a ReviewerName, ReviewerKind, &'a str),
    (Severity, Option<&'a str>, Option<&'a str>, Option<&'a str>, &'a FindingId),
);

impl<'a> RaisedFinding<'a> {
    pub(super) fn new(reviewer: &'a ReviewerName, kind: ReviewerKind, finding: &'a Finding) -> Self {
        Self {
            finding,
            reviewer,
            kind,
            priority: priority(kind, finding.severity),
            path: finding.file.as_deref().map(normalize_path),
        }
    }

    pub(super) fn key(&self) -> FindingSortKey<'_> {
        let finding = self.finding;
        (
            (self.priority, self.path.as_deref(), finding.line, &finding.description),
            (super::seat_rank(self.kind), self.reviewer, self.kind, &finding.kind),
            (
                finding.severity,
                finding.file.as_deref(),
                finding.requirement.as_deref(),
                finding.suggestion.as_deref(),
                &finding.id,
            ),
        )
    }
}

/// All findings of all reviews, sorted by priority, file and line, then by all other fields.
pub(super) fn in_order(reviews: &[Review]) -> Vec<RaisedFinding<'_>> {
    let mut raised: Vec<RaisedFinding<'_>> = reviews
        .iter()
        .flat_map(|review| {
            review.findings.iter().map(|finding| RaisedFinding::new(&review.reviewer, review.kind, finding))
        })
        .collect();
    raised.sort_by(|a, b| a.key().cmp(&b.key()));
    raised
}

/// The priority. Spec ranks before code at each severity but the least; all other kinds rank with code.
fn priority(kind: ReviewerKind, severity: Severity) -> u8 {
    let rank = Severity::ALL.iter().position(|one| *one == severity).unwrap_or_default();
    let is_least = rank + 1 == Severity::ALL.len();
    let priority = 2 * rank + 1 + usize::from(!super::is_spec(kind) && !is_least);
    u8::try_from(priority).unwrap_or(u8::MAX)
}

/// Normalises a path: `./src/a.rs` and `src\a.rs` are `src/a.rs`.
fn normalize_path(file: &str) -> Cow<'_, str> {
    let mut path: Cow<'_, str> = if file.contains('\\') { file.replace('\\', "/").into() } else { file.into() };
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.to_owned().into();
    }
    path
}
