//! One round of reviews, taken into the ledger.

use std::collections::{BTreeMap, BTreeSet};

use super::matching::{Matcher, Statement};
use super::{DecidedBy, Decision, Entry, Ledger, Round, RoundChange, State};
use crate::ids::{FindingId, ReviewerName};
use crate::merge;
use crate::review::{Finding, Note, Review, ReviewerKind, Severity, Verdict};
use crate::similarity::{family, fingerprint, numbered};

/// What one reviewer said in this round.
#[derive(Default)]
struct Seat {
    kind: Option<ReviewerKind>,
    findings: Vec<Finding>,
    /// Minor notes, and whether the reviewer says that they are minor.
    notes: Vec<(Note, bool)>,
    withheld: bool,
}

/// Who reported an entry in this round, in the order of names.
type Reports = BTreeMap<usize, Vec<(ReviewerName, Finding)>>;

pub(super) fn record(
    ledger: &mut Ledger,
    round: &Round,
    (reviews, untold): (&[Review], &BTreeSet<FindingId>),
) -> RoundChange {
    let seats = seats(reviews);
    let before: Vec<State> = ledger.entries.iter().map(|entry| entry.state).collect();
    let reports = place(ledger, &seats);
    let entries = &mut ledger.entries;
    for (index, reports) in &reports {
        if let Some(entry) = entries.get_mut(*index) {
            entry.report(round, reports);
        }
    }
    for (_, entry) in entries.iter_mut().enumerate().filter(|(index, _)| !reports.contains_key(index)) {
        if !untold.contains(&entry.finding.id) {
            match entry.repeated_in_notes(&seats) {
                Some(repeated) => entry.report(round, &[repeated]),
                None => entry.stay_silent(round, &seats),
            }
        }
    }
    change(entries, &before, &reports)
}

/// The reviews by reviewer, each one's findings in an order that does not depend on how they came.
fn seats(reviews: &[Review]) -> BTreeMap<ReviewerName, Seat> {
    let mut seats: BTreeMap<ReviewerName, Seat> = BTreeMap::new();
    for review in reviews {
        let seat = seats.entry(review.reviewer.clone()).or_default();
        seat.withheld |= !review.verdict.approves();
        seat.kind = seat.kind.min(Some(review.kind)).or(Some(review.kind));
        if !matches!(review.verdict, Verdict::Inconclusive(_)) {
            seat.findings.extend(review.findings.iter().cloned().map(identified));
            let is_minor = review.verdict == Verdict::ApprovedWithMinor;
            seat.notes.extend(review.minor.iter().map(|note| (note.clone(), is_minor)));
        }
    }
    for seat in seats.values_mut() {
        seat.findings.sort_by(|a, b| order(a).cmp(&order(b)));
        seat.findings.dedup();
    }
    seats
}

fn identified(mut finding: Finding) -> Finding {
    if finding.id.as_str().is_empty() {
        finding.id = fingerprint(finding.file.as_deref(), &finding.kind, &finding.description);
    }
    finding
}

/// Every field, so that only equal findings tie.
fn order(finding: &Finding) -> impl Ord + '_ {
    let place = (&finding.file, finding.line, &finding.id);
    let said = (&finding.kind, finding.severity, &finding.description);
    (place, said, &finding.requirement, &finding.suggestion, &finding.sources)
}

/// Finds or opens the entry of every finding.
fn place(ledger: &mut Ledger, seats: &BTreeMap<ReviewerName, Seat>) -> Reports {
    let mut matcher = Matcher::new(ledger);
    let mut ids: BTreeSet<FindingId> = ledger.entries.iter().map(|entry| entry.finding.id.clone()).collect();
    let mut reports = Reports::new();
    for (reviewer, statements) in statements(seats) {
        let matches = matcher.matches(reviewer, &statements);
        for (statement, known) in statements.iter().zip(matches) {
            let finding = statement.finding;
            let index = known.unwrap_or_else(|| {
                ledger.entries.push(opened(finding, &mut ids));
                ledger.entries.len() - 1
            });
            matcher.reported(index, reviewer, statement);
            reports.entry(index).or_default().push((reviewer.clone(), finding.clone()));
            if let Some(entry) = ledger.entries.get(index) {
                ledger.said.entry(entry.finding.id.clone()).or_default().add(reviewer, &finding.id);
            }
        }
    }
    reports
}

/// The findings of each reviewer, with the merged finding of this round that each one belongs to.
fn statements(seats: &BTreeMap<ReviewerName, Seat>) -> Vec<(&ReviewerName, Vec<Statement<'_>>)> {
    let kind = |seat: &Seat| seat.kind.unwrap_or(ReviewerKind::General);
    let said: Vec<(&ReviewerName, ReviewerKind, &Finding)> = seats
        .iter()
        .flat_map(|(name, seat)| seat.findings.iter().map(move |finding| (name, kind(seat), finding)))
        .collect();
    let mut groups = merge::group(&said).into_iter();
    let mut statements = Vec::new();
    for (name, seat) in seats {
        let own = seat.findings.iter().zip(groups.by_ref().take(seat.findings.len()));
        statements.push((name, own.map(|(finding, group)| Statement { finding, group }).collect()));
    }
    statements
}

fn opened(finding: &Finding, ids: &mut BTreeSet<FindingId>) -> Entry {
    let mut finding = finding.clone();
    let (family, _) = family(&finding.id);
    let mut count = 2;
    while !ids.insert(finding.id.clone()) {
        finding.id = numbered(&family, count);
        count += 1;
    }
    Entry { finding, state: State::Open, seen: Vec::new(), decisions: Vec::new(), claims: Vec::new() }
}

fn change(entries: &[Entry], before: &[State], reports: &Reports) -> RoundChange {
    let mut change = RoundChange::default();
    for (index, entry) in entries.iter().enumerate() {
        let reported = reports.contains_key(&index);
        let list = match (before.get(index), entry.state) {
            (None, _) => &mut change.new,
            (Some(State::Open), State::Open) => &mut change.carried,
            (Some(_), State::Open) => &mut change.regressed,
            (Some(State::Open), State::Fixed) => &mut change.fixed,
            (Some(_), State::Refuted) if reported => &mut change.refuted,
            (Some(_), State::Deferred | State::OutOfScope) if reported => &mut change.out_of_scope,
            (Some(_), State::Fixed | State::Refuted | State::Deferred | State::OutOfScope) => continue,
        };
        list.push(entry.finding.id.clone());
    }
    change
}

impl Entry {
    /// Takes in what was said of it in this round, and opens it again if it was fixed.
    fn report(&mut self, round: &Round, reports: &[(ReviewerName, Finding)]) {
        let Some((reviewer, latest)) = reports.iter().max_by_key(|(_, finding)| finding.severity) else {
            return;
        };
        // Only all who reported it can together make it less severe.
        let all = self.finding.sources.iter().all(|source| reports.iter().any(|(name, _)| name == source));
        let least = if all { latest.severity } else { self.finding.severity };
        let mut sources: BTreeSet<ReviewerName> =
            std::mem::take(&mut self.finding.sources).into_iter().collect();
        for (name, finding) in reports {
            sources.insert(name.clone());
            sources.extend(finding.sources.iter().cloned());
        }
        let (sources, severity) = (sources.into_iter().collect(), latest.severity.max(least));
        self.finding = if self.state.is_settled() {
            // The decision is about this text, whatever the reviewer now says of it.
            let severity = severity.max(self.finding.severity);
            Finding { sources, severity, line: latest.line, ..self.finding.clone() }
        } else {
            Finding { id: self.finding.id.clone(), sources, severity, ..latest.clone() }
        };
        if !self.seen.contains(round) {
            self.seen.push(round.clone());
        }
        if self.state == State::Fixed {
            self.decide_by(reviewer, State::Open, round, "reported again");
        }
    }

    /// A note that repeats an open finding word for word, perhaps with its id and its place: the reviewer has not said
    /// that it is resolved. The note lowers the severity only if the reviewer calls it minor.
    fn repeated_in_notes(&self, seats: &BTreeMap<ReviewerName, Seat>) -> Option<(ReviewerName, Finding)> {
        let own = family(&self.finding.id).0;
        let repeats = |note: &Note| {
            let file = note.file.as_deref().or(self.finding.file.as_deref());
            let says = |text: &str| fingerprint(file, &self.finding.kind, text) == own;
            says(&note.description) || says(&self.unnamed(note))
        };
        let notes = seats.iter().flat_map(|(name, seat)| seat.notes.iter().map(move |note| (name, note)));
        let mut repeated = notes.filter(|(_, (note, _))| self.state == State::Open && repeats(note));
        repeated.next().map(|(name, (_, is_minor))| {
            let severity = if *is_minor { Severity::Minor } else { self.finding.severity };
            (name.clone(), Finding { severity, ..self.finding.clone() })
        })
    }

    /// What a note says apart from the id of this finding and the place.
    fn unnamed(&self, note: &Note) -> String {
        let text = note.description.replacen(self.finding.id.as_str(), "", 1);
        let file = note.file.as_deref().unwrap_or_default();
        let place = note.line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"));
        if place.is_empty() { text } else { text.replacen(&place, "", 1) }
    }

    /// Applies a round without a report of it: it is fixed if the reviewers who reported it approve, else it stays as it is.
    fn stay_silent(&mut self, round: &Round, seats: &BTreeMap<ReviewerName, Seat>) {
        let sat = || self.finding.sources.iter().filter_map(|source| seats.get_key_value(source));
        let approves = sat().all(|(_, seat)| !seat.withheld);
        let approver = sat().next().map(|(name, _)| name.clone());
        if let Some(reviewer) = approver
            && approves
            && self.state == State::Open
            && round.concerns(self)
        {
            self.decide_by(&reviewer, State::Fixed, round, "approved without reporting it again");
        }
    }

    fn decide_by(&mut self, reviewer: &ReviewerName, state: State, round: &Round, how: &str) {
        self.decide(Decision {
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
