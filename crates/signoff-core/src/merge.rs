//! What several reviewers say together: one verdict, one order, one list of things to do.
//!
//! The word of the verdict and the action are two things. The word says what the reviewers found; the
//! action says what the severity bar makes of it.

mod conflict;
mod raised;
mod related;
pub mod render;
mod same;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use crate::ids::{FindingId, ReviewerName};
use crate::review::{Bar, Confidence, Finding, Note, Review, ReviewerKind, Severity, Verdict};
use crate::similarity;
pub(crate) use conflict::are_opposed;
pub(crate) use same::group;

/// The panel's word. The first that applies, in this order, is the one.
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

impl Overall {
    pub fn word(self) -> &'static str {
        match self {
            Self::Inconclusive => "INCONCLUSIVE",
            Self::NeedsDiscussion => "NEEDS_DISCUSSION",
            Self::SpecCritical => "SPEC_CRITICAL",
            Self::CodeCritical => "CODE_CRITICAL",
            Self::Issues => "ISSUES",
            Self::ApprovedWithMinor => "APPROVED_WITH_MINOR",
            Self::Approved => "APPROVED",
        }
    }

    fn of(reviews: &[Review]) -> Self {
        let any = |test: fn(&Review) -> bool| reviews.iter().any(test);
        if reviews.is_empty() || any(|review| matches!(review.verdict, Verdict::Inconclusive(_))) {
            Self::Inconclusive
        } else if any(|review| review.verdict == Verdict::NeedsDiscussion) {
            Self::NeedsDiscussion
        } else if any(|review| is_spec(review.kind) && has(review, Severity::Critical)) {
            Self::SpecCritical
        } else if any(|review| has(review, Severity::Critical)) {
            Self::CodeCritical
        } else if any(|review| has(review, Severity::Important) || asks_without_finding(review)) {
            Self::Issues
        } else if any(|review| !is_spec(review.kind) && review.verdict == Verdict::ApprovedWithMinor) {
            Self::ApprovedWithMinor
        } else {
            Self::Approved
        }
    }
}

/// What to do next, apart from the words of the verdict.
///
/// A panel that is inconclusive or wants to discuss is never told to proceed, whatever the bar: as long
/// as the policy has not dealt with it, the careful action stands, which is to go through it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Action {
    FixAndRereview,
    ProceedWithNotes,
    Proceed,
}

impl Action {
    pub fn word(self) -> &'static str {
        match self {
            Self::FixAndRereview => "FIX_AND_REREVIEW",
            Self::ProceedWithNotes => "PROCEED_WITH_NOTES",
            Self::Proceed => "PROCEED",
        }
    }

    /// As people are told it.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::FixAndRereview => "Fix issues and re-run reviews",
            Self::ProceedWithNotes => "Proceed with notes",
            Self::Proceed => "Proceed",
        }
    }

    fn of(overall: Overall, reviews: &[Review], bar: Bar) -> Self {
        let heard = !matches!(overall, Overall::Inconclusive | Overall::NeedsDiscussion);
        if !heard || reviews.iter().any(|review| blocks(review, bar)) {
            Self::FixAndRereview
        } else if reviews.iter().any(leaves_something) {
            Self::ProceedWithNotes
        } else {
            Self::Proceed
        }
    }
}

/// One reviewer's line in the merged review.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SeatResult {
    pub reviewer: ReviewerName,
    pub kind: ReviewerKind,
    pub verdict: Verdict,
    pub confidence: Confidence,
    pub summary: String,
    /// What the reviewer took to be asked for.
    pub interpreted_intent: Option<String>,
}

/// A finding in its place of the merged order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Issue {
    /// Its first source is the reviewer who made it most urgent; its id is that reviewer's.
    pub finding: Finding,
    /// The ids the other sources gave the same finding, and its own where another issue had it first.
    pub aliases: Vec<FindingId>,
    /// 1 spec critical, 2 code critical, 3 spec important, 4 code important, 5 minor.
    pub priority: u8,
    /// Index into `groups`, for issues related to others.
    pub group: Option<usize>,
}

impl Issue {
    pub fn is_below(&self, bar: Bar) -> bool {
        !bar.is_reached_by(self.finding.severity)
    }
}

/// Issues of one file within five lines of each other, transitively; indexes into `issues`, which are
/// always consecutive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Group {
    pub issues: Vec<usize>,
}

/// Two related findings of different reviewers that ask for opposite things; indexes into `issues`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Conflict {
    pub a: usize,
    pub b: usize,
    pub about: String,
}

/// A minor note with who made it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourcedNote {
    pub source: ReviewerName,
    pub note: Note,
}

/// The merged review. Independent of the order the reviews came in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Merged {
    pub overall: Overall,
    pub action: Action,
    /// Spec, code, then the others by name.
    pub seats: Vec<SeatResult>,
    pub issues: Vec<Issue>,
    pub groups: Vec<Group>,
    pub minor: Vec<SourcedNote>,
    pub conflicts: Vec<Conflict>,
    /// Findings of earlier reviews that are open and keep the gate shut.
    pub still_open: Vec<Finding>,
}

impl Merged {
    /// Adds findings of earlier reviews that keep the gate shut, whatever these reviewers say.
    pub fn with_still_open(self, still_open: Vec<Finding>) -> Self {
        let action = if still_open.is_empty() { self.action } else { Action::FixAndRereview };
        Self { action, still_open, ..self }
    }

    /// The action, as far as it follows from the reviews alone. Where somebody was not heard or wants to discuss,
    /// the policy or a person says what comes next.
    pub fn advice(&self) -> Option<Action> {
        let heard = !matches!(self.overall, Overall::Inconclusive | Overall::NeedsDiscussion);
        heard.then_some(self.action)
    }

    /// The issues that fail a gate with this bar, most urgent first.
    pub fn blocking(&self, bar: Bar) -> impl Iterator<Item = &Issue> {
        self.issues.iter().filter(move |issue| !issue.is_below(bar))
    }
}

impl Serialize for Merged {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        render::json::Document::of(self).serialize(serializer)
    }
}

/// Merges the panel's reviews under a severity bar. No reviews at all are inconclusive.
pub fn merge(reviews: &[Review], bar: Bar) -> Merged {
    let overall = Overall::of(reviews);
    let raised = raised::in_order(reviews);
    let (mut issues, groups) = related::arrange(&raised, same::join(&raised));
    tell_apart(&mut issues);
    let conflicts = conflict::among(&issues, &groups);
    Merged {
        overall,
        action: Action::of(overall, reviews, bar),
        seats: seats(reviews),
        issues,
        groups,
        minor: notes(reviews),
        conflicts,
        still_open: Vec::new(),
    }
}

/// Gives issues that came with one id different ones, in the merged order: two reviewers may use the same
/// words of two places, and neither knew of the other. The id a reviewer gave stays as an alias.
fn tell_apart(issues: &mut [Issue]) {
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
    match kind {
        ReviewerKind::Spec => true,
        ReviewerKind::Code | ReviewerKind::Security | ReviewerKind::Tests | ReviewerKind::General => false,
    }
}

fn has(review: &Review, severity: Severity) -> bool {
    review.findings.iter().any(|finding| finding.severity == severity)
}

/// A request for changes that names none. Nobody knows how bad it is, so it counts as critical.
fn asks_without_finding(review: &Review) -> bool {
    review.verdict == Verdict::ChangesRequested && review.findings.is_empty()
}

fn blocks(review: &Review, bar: Bar) -> bool {
    let unnamed = asks_without_finding(review) && bar.is_reached_by(Severity::Critical);
    unnamed || review.findings.iter().any(|finding| bar.is_reached_by(finding.severity))
}

fn leaves_something(review: &Review) -> bool {
    !review.findings.is_empty() || !review.minor.is_empty() || review.verdict != Verdict::Approved
}

fn seats(reviews: &[Review]) -> Vec<SeatResult> {
    let mut seats: Vec<SeatResult> = reviews
        .iter()
        .map(|review| SeatResult {
            reviewer: review.reviewer.clone(),
            kind: review.kind,
            verdict: review.verdict.clone(),
            confidence: review.confidence,
            summary: review.summary.clone(),
            interpreted_intent: review.interpreted_intent.clone(),
        })
        .collect();
    // Two reviews under one name must not make the result depend on which came first.
    seats.sort_by_cached_key(|seat| {
        let said = (seat.summary.clone(), seat.interpreted_intent.clone());
        let rest = (seat.kind, format!("{:?}", seat.verdict), seat.confidence.word(), said);
        (seat_rank(seat.kind), seat.reviewer.clone(), rest)
    });
    seats
}

/// Spec sits first, code second, everyone else after them.
fn seat_rank(kind: ReviewerKind) -> u8 {
    match kind {
        ReviewerKind::Spec => 0,
        ReviewerKind::Code => 1,
        ReviewerKind::Security | ReviewerKind::Tests | ReviewerKind::General => 2,
    }
}

fn notes(reviews: &[Review]) -> Vec<SourcedNote> {
    let sourced =
        |review: &Review, note: &Note| SourcedNote { source: review.reviewer.clone(), note: note.clone() };
    let mut notes: Vec<SourcedNote> = reviews
        .iter()
        .flat_map(|review| review.minor.iter().map(move |note| sourced(review, note)))
        .collect();
    notes.sort_by(|a, b| (a.place(), &a.source).cmp(&(b.place(), &b.source)));
    notes
}

impl SourcedNote {
    fn place(&self) -> (Option<&str>, Option<u32>, &str) {
        (self.note.file.as_deref(), self.note.line, &self.note.description)
    }
}
