//! Which entry a reported finding belongs to.
//!
//! First by fingerprint, however far the line moved. Then by words: the same file, a description that is alike
//! and asks for nothing opposite, and a place nearby; the best score is taken first. One entry takes one finding of a reviewer at most, and
//! once it was reported in a round, another reviewer of that round must mean the same place.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Ledger, State};
use crate::ids::{FindingId, ReviewerName};
use crate::merge::are_opposed;
use crate::review::Finding;
use crate::similarity::{ALIKE_PERMILLE, Signature, family};

/// How far a fix may move a finding whose words change too: about one screen of code.
const MOVED: u32 = 25;
/// How far apart two reviewers may place one finding: they see the same code.
const SAME_PLACE: u32 = 5;

/// The ids an entry was reported under: for each reviewer and fingerprint the last one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Said(BTreeSet<(ReviewerName, FindingId)>);

impl Said {
    pub(super) fn add(&mut self, reviewer: &ReviewerName, id: &FindingId) {
        let (said, _) = family(id);
        self.0.retain(|(name, other)| name != reviewer || family(other).0 != said);
        self.0.insert((reviewer.clone(), id.clone()));
    }

    /// Whether anybody reported it under this id.
    pub(super) fn contains(&self, id: &FindingId) -> bool {
        self.0.iter().any(|(_, other)| other == id)
    }

    fn families(&self) -> impl Iterator<Item = FindingId> {
        self.0.iter().map(|(_, id)| family(id).0)
    }

    /// Which of several with one fingerprint it was in the reviewer's eyes, in order of line.
    fn number(&self, reviewer: &ReviewerName, fingerprint: &FindingId) -> Option<u32> {
        let mut own = self.0.iter().filter(|(name, _)| name == reviewer).map(|(_, id)| family(id));
        own.find(|(family, _)| family == fingerprint).map(|(_, number)| number)
    }
}

/// What matching knows of an entry.
struct Known {
    finding: Finding,
    open: bool,
    reviewers: BTreeSet<ReviewerName>,
    said: Said,
    /// Its line when the round began.
    line_before: Option<u32>,
    reported: bool,
    signature: Option<Signature>,
}

/// The entries of a ledger during one round, indexed by fingerprint and by file.
#[derive(Default)]
pub(super) struct Matcher {
    known: Vec<Known>,
    by_family: BTreeMap<FindingId, Vec<usize>>,
    by_file: BTreeMap<Option<String>, Vec<usize>>,
}

/// A reported finding on its way to an entry.
struct Candidate {
    rank: (Reverse<u32>, u32, bool),
    entry: usize,
    finding: usize,
}

/// One reviewer's findings and what was found for them so far.
struct Search<'a> {
    reviewer: &'a ReviewerName,
    findings: &'a [Finding],
    matches: Vec<Option<usize>>,
    taken: BTreeSet<usize>,
}

impl Matcher {
    pub(super) fn new(ledger: &Ledger) -> Self {
        let mut matcher = Self::default();
        for entry in &ledger.entries {
            let said = ledger.said.get(&entry.finding.id).cloned().unwrap_or_default();
            matcher.add(entry.finding.clone(), entry.state == State::Open, said);
        }
        matcher
    }

    fn add(&mut self, finding: Finding, open: bool, said: Said) {
        let index = self.known.len();
        let own = family(&finding.id).0;
        for family in said.families().chain([own]).collect::<BTreeSet<_>>() {
            self.by_family.entry(family).or_default().push(index);
        }
        self.by_file.entry(finding.file.clone()).or_default().push(index);
        let reviewers = finding.sources.iter().cloned().collect();
        let line_before = finding.line;
        self.known.push(Known {
            finding,
            open,
            reviewers,
            said,
            line_before,
            reported: false,
            signature: None,
        });
    }

    /// Notes that an entry was reported in this round; one that is not known yet is added.
    pub(super) fn reported(&mut self, index: usize, reviewer: &ReviewerName, finding: &Finding) {
        if index == self.known.len() {
            self.add(finding.clone(), true, Said::default());
        }
        let Some(known) = self.known.get_mut(index) else { return };
        let entries = self.by_family.entry(family(&finding.id).0).or_default();
        if !entries.contains(&index) {
            entries.push(index);
        }
        known.finding.line = finding.line;
        known.reported = true;
        known.reviewers.insert(reviewer.clone());
        known.said.add(reviewer, &finding.id);
    }

    /// The entry of each finding, where there is one.
    pub(super) fn matches(&mut self, reviewer: &ReviewerName, findings: &[Finding]) -> Vec<Option<usize>> {
        let mut search =
            Search { reviewer, findings, matches: vec![None; findings.len()], taken: BTreeSet::new() };
        self.by_fingerprint(&mut search);
        self.by_words(&mut search);
        search.matches
    }

    fn by_fingerprint(&self, search: &mut Search<'_>) {
        for (family, reported) in families(search.findings) {
            let (own, others) = self.entries_of(&family, search.reviewer);
            if own.len() == reported.len() {
                // As many as before: whatever moved them, they stand in the same order.
                own.into_iter().zip(reported).for_each(|(entry, finding)| search.take(entry, finding));
            } else {
                self.nearest(search, &own, &reported);
                self.nearest(search, &others, &reported);
            }
        }
    }

    /// The entries with one fingerprint: those the reviewer reported under it, in their order, and the others.
    fn entries_of(&self, family: &FindingId, reviewer: &ReviewerName) -> (Vec<usize>, Vec<usize>) {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for &entry in self.by_family.get(family).into_iter().flatten() {
            let Some(known) = self.known.get(entry) else { continue };
            match known.said.number(reviewer, family) {
                Some(number) => own.push((number, known.line_before, entry)),
                None => others.push(entry),
            }
        }
        own.sort_unstable();
        (own.into_iter().map(|(_, _, entry)| entry).collect(), others)
    }

    fn nearest(&self, search: &mut Search<'_>, entries: &[usize], reported: &[usize]) {
        let mut candidates = Vec::new();
        for (&entry, &finding) in entries.iter().flat_map(|entry| reported.iter().map(move |r| (entry, r))) {
            let (Some(known), Some(said)) = (self.known.get(entry), search.findings.get(finding)) else {
                continue;
            };
            let distance = known.distance(said);
            let same_place = !known.reported || distance.is_none_or(|distance| distance <= SAME_PLACE);
            if same_place {
                let rank = (Reverse(0), distance.unwrap_or(0), !known.open);
                candidates.push(Candidate { rank, entry, finding });
            }
        }
        search.take_best(candidates);
    }

    fn by_words(&mut self, search: &mut Search<'_>) {
        let mut candidates = Vec::new();
        for (index, finding) in search.findings.iter().enumerate() {
            if search.matches.get(index).copied().flatten().is_none() {
                self.alike(search, index, finding, &mut candidates);
            }
        }
        search.take_best(candidates);
    }

    fn alike(&mut self, search: &Search<'_>, index: usize, finding: &Finding, found: &mut Vec<Candidate>) {
        let Some(entries) = self.by_file.get(&finding.file) else { return };
        let mut signature = None;
        for &entry in entries.iter().filter(|entry| !search.taken.contains(entry)) {
            let Some(known) =
                self.known.get_mut(entry).filter(|known| known.nearby(finding, search.reviewer))
            else {
                continue;
            };
            let ours = signature.get_or_insert_with(|| Signature::of(&finding.description));
            let score = known.score(ours);
            if score >= known.needed(finding) && !are_opposed(&known.finding, finding) {
                let rank = (Reverse(score), known.distance(finding).unwrap_or(0), !known.open);
                found.push(Candidate { rank, entry, finding: index });
            }
        }
    }
}

impl Known {
    /// Lines between the two, from where the entry was or is; none if either has no line.
    fn distance(&self, finding: &Finding) -> Option<u32> {
        let line = finding.line?;
        [self.finding.line, self.line_before].into_iter().flatten().map(|other| other.abs_diff(line)).min()
    }

    /// Whether words may decide. Without a line, or further apart, only for findings of one kind or reviewer.
    fn nearby(&self, finding: &Finding, reviewer: &ReviewerName) -> bool {
        let akin = self.finding.kind == finding.kind || self.reviewers.contains(reviewer);
        match self.distance(finding) {
            Some(distance) if akin && !self.reported => distance <= MOVED,
            Some(distance) => distance <= SAME_PLACE,
            None => akin,
        }
    }

    /// What the words must score. Elsewhere they must be twice as sure, for the place no longer speaks for them.
    fn needed(&self, finding: &Finding) -> u32 {
        let moved = self.distance(finding).is_some_and(|distance| distance > SAME_PLACE);
        if moved { 2 * ALIKE_PERMILLE } else { ALIKE_PERMILLE }
    }

    fn score(&mut self, signature: &Signature) -> u32 {
        let description = &self.finding.description;
        self.signature.get_or_insert_with(|| Signature::of(description)).score(signature)
    }
}

impl Search<'_> {
    fn take_best(&mut self, mut candidates: Vec<Candidate>) {
        candidates.sort_by_key(|candidate| (candidate.rank, candidate.entry, candidate.finding));
        for candidate in candidates {
            self.take(candidate.entry, candidate.finding);
        }
    }

    fn take(&mut self, entry: usize, finding: usize) {
        if let Some(place @ None) = self.matches.get_mut(finding)
            && self.taken.insert(entry)
        {
            *place = Some(entry);
        }
    }
}

/// The findings of each fingerprint, in the order of their numbers.
fn families(findings: &[Finding]) -> BTreeMap<FindingId, Vec<usize>> {
    let mut families: BTreeMap<FindingId, Vec<(u32, usize)>> = BTreeMap::new();
    for (index, finding) in findings.iter().enumerate() {
        let (family, number) = family(&finding.id);
        families.entry(family).or_default().push((number, index));
    }
    let in_order = |mut numbered: Vec<(u32, usize)>| {
        numbered.sort_unstable();
        numbered.into_iter().map(|(_, index)| index).collect()
    };
    families.into_iter().map(|(family, numbered)| (family, in_order(numbered))).collect()
}
