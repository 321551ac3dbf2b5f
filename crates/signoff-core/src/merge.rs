//! Merges the reviews of several reviewers into one verdict and one ordered list of issues.
//!
//! The verdict and the action are separate. The verdict states what the reviewers found. The action follows from
//! the severity threshold.

mod conflict;
mod issues;
pub mod render;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use crate::ids::{FindingId, ReviewerName};
use crate::review::{Confidence, FailThreshold, Finding, Note, Review, ReviewerKind, Severity, Verdict};
use crate::similarity;
pub(crate) use conflict::are_opposed;
pub(crate) use issues::{RaisedFinding, group};

/// The merged verdict. The first variant that applies wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(const_into_str, serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum MergedVerdict {
    Inconclusive,
    NeedsDiscussion,
    SpecCritical,
    CodeCritical,
    Issues,
    ApprovedWithMinor,
    Approved,
}

impl MergedVerdict {
    fn is_conclusive(self) -> bool {
        !matches!(self, Self::Inconclusive | Self::NeedsDiscussion)
    }

    fn from_reviews(reviews: &[Review]) -> Self {
        let any = |test: fn(&Review) -> bool| reviews.iter().any(test);
        if reviews.is_empty() || any(|review| matches!(review.verdict, Verdict::Inconclusive(_))) {
            Self::Inconclusive
        } else if any(|review| review.verdict == Verdict::NeedsDiscussion) {
            Self::NeedsDiscussion
        } else if any(|review| is_spec(review.kind) && has_severity(review, Severity::Critical)) {
            Self::SpecCritical
        } else if any(|review| has_severity(review, Severity::Critical)) {
            Self::CodeCritical
        } else if any(|review| has_severity(review, Severity::Important) || requests_without_finding(review)) {
            Self::Issues
        } else if any(|review| !is_spec(review.kind) && review.verdict == Verdict::ApprovedWithMinor) {
            Self::ApprovedWithMinor
        } else {
            Self::Approved
        }
    }
}

/// The next action, separate from the verdict.
///
/// An inconclusive panel, or one that needs discussion, never gets `Proceed`, whatever the threshold. The action is
/// `FixAndRereview` until the policy decides otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(const_into_str, serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum MergeAction {
    FixAndRereview,
    ProceedWithNotes,
    Proceed,
}

impl MergeAction {
    /// The text shown to people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::FixAndRereview => "Fix issues and re-run reviews",
            Self::ProceedWithNotes => "Proceed with notes",
            Self::Proceed => "Proceed",
        }
    }

    fn new(overall: MergedVerdict, reviews: &[Review], threshold: FailThreshold) -> Self {
        if !overall.is_conclusive() || reviews.iter().any(|review| blocks(review, threshold)) {
            Self::FixAndRereview
        } else if reviews.iter().any(has_remarks) {
            Self::ProceedWithNotes
        } else {
            Self::Proceed
        }
    }
}

/// One reviewer's line in the merged review.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReviewerResult {
    pub reviewer: ReviewerName,
    pub kind: ReviewerKind,
    pub verdict: Verdict,
    pub confidence: Confidence,
    pub summary: String,
    /// The reviewer's interpretation of the task.
    pub interpreted_intent: Option<String>,
}

/// A finding at its position in the merged order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MergedIssue {
    /// Its first source is the reviewer that rated it most urgent. Its id is from that reviewer.
    pub finding: Finding,
    /// The ids that the other sources gave the same finding, and its original id if another issue already had it.
    pub aliases: Vec<FindingId>,
    /// 1 spec critical, 2 code critical, 3 spec important, 4 code important, 5 minor.
    pub priority: u8,
    /// Index into `groups` if the issue is related to others.
    pub group: Option<usize>,
}

impl MergedIssue {
    pub fn is_below(&self, threshold: FailThreshold) -> bool {
        !threshold.is_reached_by(self.finding.severity)
    }
}

/// Issues of one file within five lines of each other, transitively. Indexes into `issues`, always consecutive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IssueGroup {
    pub issues: Vec<usize>,
}

/// Two related findings of different reviewers that request opposite changes. Indexes into `issues`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FindingConflict {
    pub a: usize,
    pub b: usize,
    pub about: String,
}

/// A minor note with its reviewer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct SourcedNote {
    pub source: ReviewerName,
    #[serde(flatten)]
    pub note: Note,
}

/// The merged review. Independent of the order of the reviews.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MergedReview {
    pub overall: MergedVerdict,
    pub action: MergeAction,
    /// Spec, code, then the others by name.
    pub results: Vec<ReviewerResult>,
    pub issues: Vec<MergedIssue>,
    pub groups: Vec<IssueGroup>,
    pub minor: Vec<SourcedNote>,
    pub conflicts: Vec<FindingConflict>,
    /// Open findings of earlier reviews that block the gate.
    pub still_open: Vec<Finding>,
}

impl MergedReview {
    /// Adds findings of earlier reviews that block the gate, independent of the current reviews.
    pub fn with_still_open(self, still_open: Vec<Finding>) -> Self {
        let action = if still_open.is_empty() { self.action } else { MergeAction::FixAndRereview };
        Self { action, still_open, ..self }
    }

    /// The action, if it follows from the reviews alone. Returns `None` for an inconclusive panel or one that needs
    /// discussion: the policy or a person decides.
    pub fn advice(&self) -> Option<MergeAction> {
        self.overall.is_conclusive().then_some(self.action)
    }

    /// The issues that fail a gate with this threshold, most urgent first.
    pub fn blocking(&self, threshold: FailThreshold) -> impl Iterator<Item = &MergedIssue> {
        self.issues.iter().filter(move |issue| !issue.is_below(threshold))
    }
}

impl Serialize for MergedReview {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        render::merged_json(self).serialize(serializer)
    }
}

/// Merges the reviews under a severity threshold. Without any reviews the result is inconclusive.
pub fn merge(reviews: &[Review], threshold: FailThreshold) -> MergedReview {
    let overall = MergedVerdict::from_reviews(reviews);
    let raised = issues::in_order(reviews);
    let (mut issues, groups) = issues::arrange(&raised, issues::join_duplicates(&raised));
    make_ids_unique(&mut issues);
    let conflicts = conflict::find_conflicts(&issues, &groups);
    MergedReview {
        overall,
        action: MergeAction::new(overall, reviews, threshold),
        results: results(reviews),
        issues,
        groups,
        minor: notes(reviews),
        conflicts,
        still_open: Vec::new(),
    }
}

/// Makes the ids of issues unique, in the merged order. Two reviewers may describe two locations in the same words.
/// The original id stays as an alias.
fn make_ids_unique(issues: &mut [MergedIssue]) {
    let mut taken: BTreeSet<FindingId> = issues.iter().map(|issue| issue.finding.id.clone()).collect();
    let mut met: BTreeSet<FindingId> = BTreeSet::new();
    let mut counts: BTreeMap<FindingId, u32> = BTreeMap::new();
    for issue in issues {
        if met.insert(issue.finding.id.clone()) {
            continue;
        }
        let (family, _) = similarity::family(&issue.finding.id);
        let count = counts.entry(family.clone()).or_insert(2);
        let mut id = similarity::numbered(&family, *count);
        while !taken.insert(id.clone()) {
            *count += 1;
            id = similarity::numbered(&family, *count);
        }
        issue.aliases.push(std::mem::replace(&mut issue.finding.id, id));
        issue.aliases.sort();
    }
}

fn is_spec(kind: ReviewerKind) -> bool {
    kind == ReviewerKind::Spec
}

fn has_severity(review: &Review, severity: Severity) -> bool {
    review.findings.iter().any(|finding| finding.severity == severity)
}

/// Whether a review requests changes without a finding. The severity is unknown, so the threshold treats it as critical.
fn requests_without_finding(review: &Review) -> bool {
    review.verdict == Verdict::ChangesRequested && review.findings.is_empty()
}

fn blocks(review: &Review, threshold: FailThreshold) -> bool {
    let unnamed = requests_without_finding(review) && threshold.is_reached_by(Severity::Critical);
    unnamed || review.findings.iter().any(|finding| threshold.is_reached_by(finding.severity))
}

fn has_remarks(review: &Review) -> bool {
    !review.findings.is_empty() || !review.minor.is_empty() || review.verdict != Verdict::Approved
}

fn results(reviews: &[Review]) -> Vec<ReviewerResult> {
    let mut results: Vec<ReviewerResult> = reviews
        .iter()
        .map(|review| ReviewerResult {
            reviewer: review.reviewer.clone(),
            kind: review.kind,
            verdict: review.verdict.clone(),
            confidence: review.confidence,
            summary: review.summary.clone(),
            interpreted_intent: review.interpreted_intent.clone(),
        })
        .collect();
    // The sort key is complete, so that two reviews under one name give the same result in any order.
    results.sort_by_cached_key(|result| {
        let texts = (result.summary.clone(), result.interpreted_intent.clone());
        let rest = (result.kind, format!("{:?}", result.verdict), result.confidence.into_str(), texts);
        (kind_rank(result.kind), result.reviewer.clone(), rest)
    });
    results
}

/// The order of the reviewers: spec, code, then all others.
fn kind_rank(kind: ReviewerKind) -> u8 {
    match kind {
        ReviewerKind::Spec => 0,
        ReviewerKind::Code => 1,
        ReviewerKind::Security | ReviewerKind::Tests | ReviewerKind::General => 2,
    }
}

fn notes(reviews: &[Review]) -> Vec<SourcedNote> {
    let notes = reviews.iter().flat_map(|review| review.minor.iter().map(move |note| (&review.reviewer, note)));
    let mut notes: Vec<SourcedNote> =
        notes.map(|(source, note)| SourcedNote { source: source.clone(), note: note.clone() }).collect();
    notes.sort_by_cached_key(|SourcedNote { source, note }| {
        (note.file.clone(), note.line, note.description.clone(), source.clone())
    });
    notes
}
