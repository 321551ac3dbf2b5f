//! Sorts the findings of all reviewers, joins those that several reviewers raised, groups those at nearby locations
//! and turns them into issues.
//!
//! Two findings are duplicates when
//! - different reviewers raised them (two findings of one reviewer are never duplicates),
//! - they have the same location: the same file with lines at most five apart, or neither has a line in the same
//!   file, or neither has a file. A finding with a line and one without have different locations; otherwise the one
//!   without would join findings from all over the file,
//! - their descriptions are alike by [`crate::similarity`], and
//! - they do not request opposite changes: "add the check" and "remove the check" have similar words.
//!
//! Similarity is not transitive, so each finding is compared with the lead of a known finding: the most urgent
//! statement, first in the merged order. At most [`MAX_COMPARED`] leads are compared, the nearest first, so that a
//! reviewer with thousands of findings on one line does not slow down the merge.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::conflict::{ChangeRequest, change_requests, opposition};
use super::{IssueGroup, MergedIssue};
use crate::ids::ReviewerName;
use crate::review::{Finding, Review, ReviewerKind, Severity};
use crate::similarity::Signature;

/// One finding of one reviewer.
pub(crate) struct RaisedFinding<'a> {
    pub finding: &'a Finding,
    pub reviewer: &'a ReviewerName,
    pub kind: ReviewerKind,
    pub priority: u8,
    /// The normalised file name, to compare locations.
    pub path: Option<Cow<'a, str>>,
}

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

    /// The sort key, most urgent first. It covers all fields, so that the order of the reviews has no influence.
    fn key(&self) -> impl Ord {
        let finding = self.finding;
        let Finding { requirement, suggestion, .. } = finding;
        (
            (self.priority, self.path.as_deref(), finding.line, &finding.description),
            (super::kind_rank(self.kind), self.reviewer, self.kind, &finding.kind),
            (finding.severity, finding.file.as_deref(), requirement.as_deref(), suggestion.as_deref(), &finding.id),
        )
    }
}

/// All findings of all reviews, sorted by priority, file and line, then by all other fields.
pub(super) fn in_order(reviews: &[Review]) -> Vec<RaisedFinding<'_>> {
    let findings = reviews.iter().flat_map(|review| review.findings.iter().map(move |finding| (review, finding)));
    let mut raised: Vec<RaisedFinding<'_>> =
        findings.map(|(review, finding)| RaisedFinding::new(&review.reviewer, review.kind, finding)).collect();
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

/// Maximum number of known findings that one finding is compared with.
const MAX_COMPARED: usize = 64;

/// Indexes of the statements of one finding. The first one is the lead.
type Statements = Vec<usize>;

/// Joins the statements of each finding, in the order of their leads.
pub(super) fn join_duplicates(raised: &[RaisedFinding<'_>]) -> Vec<Statements> {
    let mut known = KnownFindings {
        raised,
        requests: raised.iter().map(|_| OnceCell::new()).collect(),
        signatures: raised.iter().map(|_| OnceCell::new()).collect(),
        findings: Vec::new(),
        by_location: BTreeMap::new(),
        by_description: BTreeMap::new(),
    };
    for index in 0..raised.len() {
        match known.find_duplicate(index) {
            Some(finding) => known.findings[finding].push(index),
            None => known.add(index),
        }
    }
    known.findings
}

/// The number of the merged finding that each statement belongs to, in the given order.
pub(crate) fn group(findings: Vec<RaisedFinding<'_>>) -> Vec<usize> {
    let mut groups = vec![0; findings.len()];
    let mut raised: Vec<(usize, RaisedFinding<'_>)> = findings.into_iter().enumerate().collect();
    raised.sort_by(|(_, a), (_, b)| a.key().cmp(&b.key()));
    let (positions, raised): (Vec<usize>, Vec<RaisedFinding<'_>>) = raised.into_iter().unzip();
    for (number, statements) in join_duplicates(&raised).into_iter().enumerate() {
        for statement in statements {
            groups[positions[statement]] = number;
        }
    }
    groups
}

/// The location of a lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FileLine<'a> {
    path: Option<&'a str>,
    line: Option<u32>,
}

/// The findings so far, indexed by the location of their lead.
struct KnownFindings<'a> {
    raised: &'a [RaisedFinding<'a>],
    /// The requests and words of each finding, computed on first use.
    requests: Vec<OnceCell<Vec<ChangeRequest>>>,
    signatures: Vec<OnceCell<Signature>>,
    findings: Vec<Statements>,
    by_location: BTreeMap<FileLine<'a>, Vec<usize>>,
    /// Finds verbatim repetitions even at a location with more findings than the limit.
    by_description: BTreeMap<(FileLine<'a>, &'a str), Vec<usize>>,
}

impl<'a> KnownFindings<'a> {
    fn add(&mut self, index: usize) {
        let raised: &'a RaisedFinding<'a> = &self.raised[index];
        let location = FileLine { path: raised.path.as_deref(), line: raised.finding.line };
        let finding = self.findings.len();
        self.findings.push(vec![index]);
        self.by_location.entry(location).or_default().push(finding);
        self.by_description.entry((location, &raised.finding.description)).or_default().push(finding);
    }

    fn find_duplicate(&self, index: usize) -> Option<usize> {
        let raised = &self.raised[index];
        let location = FileLine { path: raised.path.as_deref(), line: raised.finding.line };
        let verbatim = self.by_description.get(&(location, &raised.finding.description)).into_iter().flatten();
        let nearby = lines_around(location.line)
            .filter_map(|line| self.by_location.get(&FileLine { line, ..location }))
            .flatten();
        verbatim
            .take(MAX_COMPARED)
            .chain(nearby.take(MAX_COMPARED))
            .copied()
            .find(|&finding| self.is_duplicate_of(index, &self.findings[finding]))
    }

    fn is_duplicate_of(&self, index: usize, statements: &Statements) -> bool {
        let (raised, lead) = (&self.raised[index], statements[0]);
        statements.iter().all(|&statement| self.raised[statement].reviewer != raised.reviewer)
            && self.signature(lead).alike(self.signature(index))
            && opposition(self.requests(lead), self.requests(index)).is_none()
    }

    fn signature(&self, index: usize) -> &Signature {
        self.signatures[index].get_or_init(|| Signature::new(&self.raised[index].finding.description))
    }

    fn requests(&self, index: usize) -> &[ChangeRequest] {
        self.requests[index].get_or_init(|| change_requests(self.raised[index].finding))
    }
}

/// The line itself, then those around it, nearest first. A missing line gives only itself.
fn lines_around(line: Option<u32>) -> impl Iterator<Item = Option<u32>> {
    let around = line.into_iter().flat_map(|line| {
        (1..=MAX_LINE_DISTANCE).flat_map(move |by| [line.checked_sub(by), line.checked_add(by)]).flatten().map(Some)
    });
    std::iter::once(line).chain(around)
}

/// Maximum distance in lines between two related findings.
const MAX_LINE_DISTANCE: u32 = 5;

/// Converts the statements to issues, sorted by priority, file and line. A group is placed at its most urgent
/// member.
pub(super) fn arrange(raised: &[RaisedFinding<'_>], findings: Vec<Statements>) -> (Vec<MergedIssue>, Vec<IssueGroup>) {
    let location_numbers = location_numbers(raised);
    let mut by_location_number: BTreeMap<usize, Vec<Statements>> = BTreeMap::new();
    let mut order: Vec<Vec<Statements>> = Vec::new();
    for statements in findings {
        match location_numbers[statements[0]] {
            Some(number) => by_location_number.entry(number).or_default().push(statements),
            None => order.push(vec![statements]),
        }
    }
    order.extend(by_location_number.into_values());
    order.sort_by_key(|group_members| group_members[0][0]);
    let (mut issues, mut groups) = (Vec::new(), Vec::new());
    for group_members in order {
        let group = (group_members.len() > 1).then_some(groups.len());
        if group.is_some() {
            groups.push(IssueGroup { issues: (issues.len()..issues.len() + group_members.len()).collect() });
        }
        issues.extend(group_members.iter().map(|statements| issue(raised, statements, group)));
    }
    (issues, groups)
}

/// The location number of each finding, equal for related ones. Computed from all statements, so that it does not
/// depend on duplicates.
fn location_numbers(raised: &[RaisedFinding<'_>]) -> Vec<Option<usize>> {
    let located = |index: usize| Some((raised[index].path.as_deref()?, raised[index].finding.line?, index));
    let mut by_line: Vec<(&str, u32, usize)> = (0..raised.len()).filter_map(located).collect();
    by_line.sort_unstable();
    let mut location_numbers = vec![None; raised.len()];
    let mut number = 0;
    let mut before: Option<(&str, u32)> = None;
    for (path, line, index) in by_line {
        let near = before.is_some_and(|(file, last)| file == path && line - last <= MAX_LINE_DISTANCE);
        number += usize::from(!near);
        location_numbers[index] = Some(number);
        before = Some((path, line));
    }
    location_numbers
}

/// Combines the statements of one finding: location, kind and id from the lead, the worst severity, the longest
/// description, and any field that only one of them has.
fn issue(raised: &[RaisedFinding<'_>], statements: &Statements, group: Option<usize>) -> MergedIssue {
    let members = || statements.iter().map(|&index| &raised[index]);
    let lead = &raised[statements[0]];
    let longest = members().map(|one| &one.finding.description).max_by(|a, b| longer(a, b));
    let finding = Finding {
        sources: sources(lead, members()),
        severity: members().map(|one| one.finding.severity).max().unwrap_or(lead.finding.severity),
        description: longest.unwrap_or(&lead.finding.description).clone(),
        requirement: members().find_map(|one| one.finding.requirement.clone()),
        suggestion: members().find_map(|one| one.finding.suggestion.clone()),
        ..lead.finding.clone()
    };
    let mut aliases: Vec<_> = members().map(|one| one.finding.id.clone()).filter(|id| *id != finding.id).collect();
    aliases.sort();
    aliases.dedup();
    MergedIssue { finding, aliases, priority: lead.priority, group }
}

fn longer(a: &str, b: &str) -> std::cmp::Ordering {
    (a.chars().count(), b).cmp(&(b.chars().count(), a))
}

/// The lead first, then the others in the order of the reviewers.
fn sources<'a>(lead: &RaisedFinding<'_>, members: impl Iterator<Item = &'a RaisedFinding<'a>>) -> Vec<ReviewerName> {
    let mut others: Vec<_> = members
        .filter(|one| one.reviewer != lead.reviewer)
        .map(|one| (super::kind_rank(one.kind), one.reviewer.clone()))
        .collect();
    others.sort();
    std::iter::once(lead.reviewer.clone()).chain(others.into_iter().map(|(_, name)| name)).collect()
}
