//! Records one round of reviews in the ledger.

use std::collections::{BTreeMap, BTreeSet};

use super::matching::{Matcher, ReportedFinding};
use super::{DecidedBy, FindingDecision, FindingState, Ledger, LedgerEntry, Round, RoundChange};
use crate::ids::{FindingId, ReviewerName};
use crate::merge::{self, RaisedFinding};
use crate::review::{Finding, Note, Review, ReviewerKind, Severity, Verdict};
use crate::similarity::{family, fingerprint, numbered};

/// One reviewer's reports of this round.
#[derive(Default)]
struct ReviewerReport {
    kind: Option<ReviewerKind>,
    findings: Vec<Finding>,
    /// Minor notes, and whether the reviewer calls them minor.
    notes: Vec<(Note, bool)>,
    has_refused: bool,
}

/// The reports of each entry in this round, by reviewer name.
type ReportsByEntry = BTreeMap<usize, Vec<(ReviewerName, Finding)>>;

impl Ledger {
    /// Like [`Ledger::record`], but keeps the `unlisted` findings open: the reviewers' prompts did not list them, so
    /// an approval says nothing about them.
    pub fn record_with_unlisted(
        &mut self,
        round: &Round,
        reviews: &[Review],
        unlisted: &BTreeSet<FindingId>,
    ) -> RoundChange {
        let reviewers = reviewers(reviews);
        let before: Vec<FindingState> = self.entries.iter().map(|entry| entry.state).collect();
        let reports = place_findings(self, &reviewers);
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if let Some(reports) = reports.get(&index) {
                entry.report(round, reports);
            } else if !unlisted.contains(&entry.finding.id) {
                match entry.repeated_in_notes(&reviewers) {
                    Some(repeated) => entry.report(round, &[repeated]),
                    None => entry.apply_silence(round, &reviewers),
                }
            }
        }
        change(&self.entries, &before, &reports)
    }
}

/// Groups the reviews by reviewer. The order of findings does not depend on the input order.
fn reviewers(reviews: &[Review]) -> BTreeMap<ReviewerName, ReviewerReport> {
    let mut reviewers: BTreeMap<ReviewerName, ReviewerReport> = BTreeMap::new();
    for review in reviews {
        let report = reviewers.entry(review.reviewer.clone()).or_default();
        report.has_refused |= !review.verdict.approves();
        report.kind = report.kind.min(Some(review.kind)).or(Some(review.kind));
        if !matches!(review.verdict, Verdict::Inconclusive(_)) {
            report.findings.extend(review.findings.iter().cloned().map(with_id));
            let is_minor = review.verdict == Verdict::ApprovedWithMinor;
            report.notes.extend(review.minor.iter().map(|note| (note.clone(), is_minor)));
        }
    }
    for report in reviewers.values_mut() {
        report.findings.sort_by(|a, b| order(a).cmp(&order(b)));
        report.findings.dedup();
    }
    reviewers
}

fn with_id(mut finding: Finding) -> Finding {
    if finding.id.as_str().is_empty() {
        finding.id = fingerprint(finding.file.as_deref(), &finding.kind, &finding.description);
    }
    finding
}

/// Compares every field, so that only equal findings tie.
fn order(finding: &Finding) -> impl Ord + '_ {
    let location = (&finding.file, finding.line, &finding.id);
    let content = (&finding.kind, finding.severity, &finding.description);
    (location, content, &finding.requirement, &finding.suggestion, &finding.sources)
}

/// Finds or creates the entry of every finding.
fn place_findings(ledger: &mut Ledger, reviewers: &BTreeMap<ReviewerName, ReviewerReport>) -> ReportsByEntry {
    let mut matcher = Matcher::new(ledger);
    let mut ids: BTreeSet<FindingId> = ledger.entries.iter().map(|entry| entry.finding.id.clone()).collect();
    let mut reports = ReportsByEntry::new();
    for (reviewer, statements) in statements(reviewers) {
        let matches = matcher.matches(reviewer, &statements);
        for (statement, known) in statements.iter().zip(matches) {
            let finding = statement.finding;
            let index = known.unwrap_or_else(|| {
                ledger.entries.push(new_entry(finding, &mut ids));
                ledger.entries.len() - 1
            });
            matcher.reported(index, reviewer, statement);
            reports.entry(index).or_default().push((reviewer.clone(), finding.clone()));
            if let Some(entry) = ledger.entries.get(index) {
                ledger.reported_ids.entry(entry.finding.id.clone()).or_default().add(reviewer, &finding.id);
            }
        }
    }
    reports
}

/// The findings of each reviewer, with the index of their merged finding in this round.
fn statements(reviewers: &BTreeMap<ReviewerName, ReviewerReport>) -> Vec<(&ReviewerName, Vec<ReportedFinding<'_>>)> {
    let mut raised = Vec::new();
    for (name, report) in reviewers {
        let kind = report.kind.unwrap_or(ReviewerKind::General);
        raised.extend(report.findings.iter().map(|finding| RaisedFinding::new(name, kind, finding)));
    }
    let mut groups = merge::group(raised).into_iter();
    let mut statements = Vec::new();
    for (name, report) in reviewers {
        let own = report.findings.iter().zip(groups.by_ref().take(report.findings.len()));
        statements.push((name, own.map(|(finding, group)| ReportedFinding { finding, group }).collect()));
    }
    statements
}

fn new_entry(finding: &Finding, ids: &mut BTreeSet<FindingId>) -> LedgerEntry {
    let mut finding = finding.clone();
    let (family, _) = family(&finding.id);
    let mut count = 2;
    while !ids.insert(finding.id.clone()) {
        finding.id = numbered(&family, count);
        count += 1;
    }
    LedgerEntry { finding, state: FindingState::Open, seen: Vec::new(), decisions: Vec::new(), claims: Vec::new() }
}

fn change(entries: &[LedgerEntry], before: &[FindingState], reports: &ReportsByEntry) -> RoundChange {
    let mut change = RoundChange::default();
    for (index, entry) in entries.iter().enumerate() {
        let reported = reports.contains_key(&index);
        let list = match (before.get(index), entry.state) {
            (None, _) => &mut change.new,
            (Some(FindingState::Open), FindingState::Open) => &mut change.carried,
            (Some(_), FindingState::Open) => &mut change.regressed,
            (Some(FindingState::Open), FindingState::Fixed) => &mut change.fixed,
            (Some(_), FindingState::Refuted) if reported => &mut change.refuted,
            (Some(_), FindingState::Deferred | FindingState::OutOfScope) if reported => &mut change.out_of_scope,
            (
                Some(_),
                FindingState::Fixed | FindingState::Refuted | FindingState::Deferred | FindingState::OutOfScope,
            ) => continue,
        };
        list.push(entry.finding.id.clone());
    }
    change
}

impl LedgerEntry {
    /// Applies the reports of this round, and reopens the entry if it was fixed.
    fn report(&mut self, round: &Round, reports: &[(ReviewerName, Finding)]) {
        let Some((reviewer, latest)) = reports.iter().max_by_key(|(_, finding)| finding.severity) else {
            return;
        };
        // The severity decreases only if all reviewers that reported it agree.
        let all = self.finding.sources.iter().all(|source| reports.iter().any(|(name, _)| name == source));
        let least = if all { latest.severity } else { self.finding.severity };
        let mut sources: BTreeSet<ReviewerName> = std::mem::take(&mut self.finding.sources).into_iter().collect();
        for (name, finding) in reports {
            sources.insert(name.clone());
            sources.extend(finding.sources.iter().cloned());
        }
        let (sources, severity) = (sources.into_iter().collect(), latest.severity.max(least));
        self.finding = if self.state.is_settled() {
            // The decision is about this text, even if the reviewer changes it.
            let severity = severity.max(self.finding.severity);
            Finding { sources, severity, line: latest.line, ..self.finding.clone() }
        } else {
            Finding { id: self.finding.id.clone(), sources, severity, ..latest.clone() }
        };
        if !self.seen.contains(round) {
            self.seen.push(round.clone());
        }
        if self.state == FindingState::Fixed {
            self.decide_by(reviewer, FindingState::Open, round, "reported again");
        }
    }

    /// Finds a note that repeats an open finding word for word, perhaps with its id and location: the reviewer has not
    /// stated that it is resolved. The note lowers the severity only if the reviewer calls it minor.
    fn repeated_in_notes(&self, reviewers: &BTreeMap<ReviewerName, ReviewerReport>) -> Option<(ReviewerName, Finding)> {
        let own = family(&self.finding.id).0;
        let repeats = |note: &Note| {
            let file = note.file.as_deref().or(self.finding.file.as_deref());
            let says = |text: &str| fingerprint(file, &self.finding.kind, text) == own;
            says(&note.description) || says(&self.without_id_and_location(note))
        };
        let notes = reviewers.iter().flat_map(|(name, report)| report.notes.iter().map(move |note| (name, note)));
        let mut repeated = notes.filter(|(_, (note, _))| self.state == FindingState::Open && repeats(note));
        repeated.next().map(|(name, (_, is_minor))| {
            let severity = if *is_minor { Severity::Minor } else { self.finding.severity };
            (name.clone(), Finding { severity, ..self.finding.clone() })
        })
    }

    /// The text of a note without this finding's id and location.
    fn without_id_and_location(&self, note: &Note) -> String {
        let text = note.description.replacen(self.finding.id.as_str(), "", 1);
        let file = note.file.as_deref().unwrap_or_default();
        let location = note.line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"));
        if location.is_empty() { text } else { text.replacen(&location, "", 1) }
    }

    /// Applies a round that did not report this entry. It is fixed if the reviewers that reported it approve, else it
    /// stays unchanged.
    fn apply_silence(&mut self, round: &Round, reviewers: &BTreeMap<ReviewerName, ReviewerReport>) {
        let participants = || self.finding.sources.iter().filter_map(|source| reviewers.get_key_value(source));
        let approves = participants().all(|(_, report)| !report.has_refused);
        let approver = participants().next().map(|(name, _)| name.clone());
        if let Some(reviewer) = approver
            && approves
            && self.state == FindingState::Open
            && round.covers(self)
        {
            self.decide_by(&reviewer, FindingState::Fixed, round, "approved without reporting it again");
        }
    }

    fn decide_by(&mut self, reviewer: &ReviewerName, state: FindingState, round: &Round, how: &str) {
        self.decide(FindingDecision {
            state,
            by: DecidedBy::Reviewer(reviewer.clone()),
            commit: round.commit.clone(),
            evidence: match round.checkpoint {
                Some(number) => format!("{how} at checkpoint {number} of pass {}", round.pass),
                None => format!("{how} in cycle {} of pass {}", round.cycle, round.pass),
            },
        });
    }
}
