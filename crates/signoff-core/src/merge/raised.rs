//! Findings as each reviewer raised them, in the one order everything else is built on.

use std::borrow::Cow;

use crate::ids::{FindingId, ReviewerName};
use crate::review::{Finding, Review, ReviewerKind, Severity};

/// One finding of one reviewer.
pub(super) struct Raised<'a> {
    pub finding: &'a Finding,
    pub reviewer: &'a ReviewerName,
    pub kind: ReviewerKind,
    pub priority: u8,
    /// The file's name in one spelling, to tell whether two places are the same.
    pub path: Option<Cow<'a, str>>,
}

/// Everything a `Raised` is, most urgent first. Complete, so that the order the reviews came in is lost.
pub(super) type Key<'a> = (
    (u8, Option<&'a str>, Option<u32>, &'a str),
    (u8, &'a ReviewerName, ReviewerKind, &'a str),
    (Severity, Option<&'a str>, Option<&'a str>, Option<&'a str>, &'a FindingId),
);

impl<'a> Raised<'a> {
    pub(super) fn new(reviewer: &'a ReviewerName, kind: ReviewerKind, finding: &'a Finding) -> Self {
        Self {
            finding,
            reviewer,
            kind,
            priority: priority(kind, finding.severity),
            path: finding.file.as_deref().map(one_spelling),
        }
    }

    pub(super) fn key(&self) -> Key<'_> {
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

/// All findings of all reviews: by priority, file, line, then by whatever else tells them apart.
pub(super) fn in_order(reviews: &[Review]) -> Vec<Raised<'_>> {
    let mut raised: Vec<Raised<'_>> = reviews
        .iter()
        .flat_map(|review| {
            review.findings.iter().map(|finding| Raised::new(&review.reviewer, review.kind, finding))
        })
        .collect();
    raised.sort_by(|a, b| a.key().cmp(&b.key()));
    raised
}

/// Spec before code at each severity; everyone who is not spec ranks with code.
fn priority(kind: ReviewerKind, severity: Severity) -> u8 {
    match (severity, super::is_spec(kind)) {
        (Severity::Critical, true) => 1,
        (Severity::Critical, false) => 2,
        (Severity::Important, true) => 3,
        (Severity::Important, false) => 4,
        (Severity::Minor, true | false) => 5,
    }
}

/// `./src/a.rs` and `src\a.rs` are `src/a.rs`.
fn one_spelling(file: &str) -> Cow<'_, str> {
    let mut path: Cow<'_, str> =
        if file.contains('\\') { file.replace('\\', "/").into() } else { file.into() };
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.to_owned().into();
    }
    path
}
