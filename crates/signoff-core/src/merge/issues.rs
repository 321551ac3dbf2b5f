//! Sorts the findings of all reviewers, groups those at nearby locations and turns them into issues.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::duplicates::Statements;
use super::{IssueGroup, MergedIssue};
use crate::ids::{FindingId, ReviewerName};
use crate::review::{Finding, Review, ReviewerKind, Severity};

/// One finding of one reviewer.
pub(crate) struct RaisedFinding<'a> {
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
    pub fn new(reviewer: &'a ReviewerName, kind: ReviewerKind, finding: &'a Finding) -> Self {
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
        let Finding { requirement, suggestion, .. } = finding;
        (
            (self.priority, self.path.as_deref(), finding.line, &finding.description),
            (super::seat_rank(self.kind), self.reviewer, self.kind, &finding.kind),
            (finding.severity, finding.file.as_deref(), requirement.as_deref(), suggestion.as_deref(), &finding.id),
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

/// Maximum distance in lines between two related findings.
pub(super) const MAX_LINE_DISTANCE: u32 = 5;

/// Converts the statements to issues, sorted by priority, file and line. A group is placed at its most urgent
/// member.
pub(super) fn arrange(raised: &[RaisedFinding<'_>], said: Vec<Statements>) -> (Vec<MergedIssue>, Vec<IssueGroup>) {
    let places = places(raised);
    let mut at_place: BTreeMap<usize, Vec<Statements>> = BTreeMap::new();
    let mut order: Vec<Vec<Statements>> = Vec::new();
    for statements in said {
        match places[statements[0]] {
            Some(place) => at_place.entry(place).or_default().push(statements),
            None => order.push(vec![statements]),
        }
    }
    order.extend(at_place.into_values());
    order.sort_by_key(|together| together[0][0]);
    number(raised, order)
}

fn number(raised: &[RaisedFinding<'_>], order: Vec<Vec<Statements>>) -> (Vec<MergedIssue>, Vec<IssueGroup>) {
    let (mut issues, mut groups) = (Vec::new(), Vec::new());
    for together in order {
        let group = (together.len() > 1).then_some(groups.len());
        if group.is_some() {
            groups.push(IssueGroup { issues: (issues.len()..issues.len() + together.len()).collect() });
        }
        issues.extend(together.iter().map(|statements| issue(raised, statements, group)));
    }
    (issues, groups)
}

/// The location number of each finding, equal for related ones. Computed from all statements, so that it does not
/// depend on duplicates.
fn places(raised: &[RaisedFinding<'_>]) -> Vec<Option<usize>> {
    let located = |index: usize| Some((raised[index].path.as_deref()?, raised[index].finding.line?, index));
    let mut by_line: Vec<(&str, u32, usize)> = (0..raised.len()).filter_map(located).collect();
    by_line.sort_unstable();
    let mut places = vec![None; raised.len()];
    let mut place = 0;
    let mut before: Option<(&str, u32)> = None;
    for (path, line, index) in by_line {
        let near = before.is_some_and(|(file, last)| file == path && line - last <= MAX_LINE_DISTANCE);
        place += usize::from(!near);
        places[index] = Some(place);
        before = Some((path, line));
    }
    places
}

/// Combines the statements of one finding: location, kind and id from the lead, the worst severity, the longest
/// description, and any field that only one of them has.
fn issue(raised: &[RaisedFinding<'_>], statements: &Statements, group: Option<usize>) -> MergedIssue {
    let said = || statements.iter().map(|&index| &raised[index]);
    let lead = &raised[statements[0]];
    let longest = said().map(|one| &one.finding.description).max_by(|a, b| longer(a, b));
    let finding = Finding {
        sources: sources(lead, said()),
        severity: said().map(|one| one.finding.severity).max().unwrap_or(lead.finding.severity),
        description: longest.unwrap_or(&lead.finding.description).clone(),
        requirement: said().find_map(|one| one.finding.requirement.clone()),
        suggestion: said().find_map(|one| one.finding.suggestion.clone()),
        ..lead.finding.clone()
    };
    let mut aliases: Vec<_> = said().map(|one| one.finding.id.clone()).filter(|id| *id != finding.id).collect();
    aliases.sort();
    aliases.dedup();
    MergedIssue { finding, aliases, priority: lead.priority, group }
}

fn longer(a: &str, b: &str) -> std::cmp::Ordering {
    (a.chars().count(), b).cmp(&(b.chars().count(), a))
}

/// The lead first, then the others in the order of the reviewers.
fn sources<'a>(lead: &RaisedFinding<'_>, said: impl Iterator<Item = &'a RaisedFinding<'a>>) -> Vec<ReviewerName> {
    let mut others: Vec<_> = said
        .filter(|one| one.reviewer != lead.reviewer)
        .map(|one| (super::seat_rank(one.kind), one.reviewer.clone()))
        .collect();
    others.sort();
    std::iter::once(lead.reviewer.clone()).chain(others.into_iter().map(|(_, name)| name)).collect()
}
