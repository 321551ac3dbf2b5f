//! What several reviewers say together.

use serde::Serialize;

use crate::ids::ReviewerName;
use crate::review::{Bar, Confidence, Finding, Note, Review, ReviewerKind, Verdict};

/// The panel's word, in the order of precedence of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Overall {
    Inconclusive,
    NeedsDiscussion,
    SpecCritical,
    CodeCritical,
    Issues,
    ApprovedWithMinor,
    Approved,
}

/// What to do next, apart from the words of the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Action {
    FixAndRereview,
    ProceedWithNotes,
    Proceed,
}

/// One reviewer's line in the merged review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeatResult {
    pub reviewer: ReviewerName,
    pub kind: ReviewerKind,
    pub verdict: Verdict,
    pub confidence: Confidence,
}

/// A finding in its place of the merged order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issue {
    pub finding: Finding,
    /// 1 spec critical, 2 code critical, 3 spec important, 4 code important, 5 minor.
    pub priority: u8,
    /// Index into `groups`, for issues related to others.
    pub group: Option<usize>,
}

/// Issues of one file within five lines of each other, transitively; indexes into `issues`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    pub issues: Vec<usize>,
}

/// Two related findings of different reviewers that ask for opposite things; indexes into `issues`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    pub a: usize,
    pub b: usize,
    pub about: String,
}

/// A minor note with who made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourcedNote {
    pub source: ReviewerName,
    pub note: Note,
}

/// The merged review. Independent of the order the reviews came in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Merged {
    pub overall: Overall,
    pub action: Action,
    pub seats: Vec<SeatResult>,
    pub issues: Vec<Issue>,
    pub groups: Vec<Group>,
    pub minor: Vec<SourcedNote>,
    pub conflicts: Vec<Conflict>,
}

/// Merges the panel's reviews under a severity bar.
pub fn merge(reviews: &[Review], bar: Bar) -> Merged {
    let _ = (reviews, bar);
    Merged {
        overall: Overall::Inconclusive,
        action: Action::FixAndRereview,
        seats: Vec::new(),
        issues: Vec::new(),
        groups: Vec::new(),
        minor: Vec::new(),
        conflicts: Vec::new(),
    }
}
