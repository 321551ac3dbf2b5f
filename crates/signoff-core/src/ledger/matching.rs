//! Which entry a reported finding belongs to.
//!
//! First by fingerprint, however far the line moved. Then by the merge: what the merge of this round joins belongs to
//! one entry, and what it keeps apart never does. Then by words, to entries that this round has not reported yet: the
//! same file, a description that is alike and asks for nothing opposite, and a place nearby; the best score is taken
//! first. One entry takes one finding of a reviewer at most.
//!
//! A settled entry (refuted, deferred, out of scope) takes only what the decision was about: the fingerprint of its text,
//! or nearly the same text at no higher severity. Anything else is a new finding, else a decision about one finding
//! would approve another.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Ledger, State};
use crate::ids::{FindingId, ReviewerName};
use crate::merge::are_opposed;
use crate::review::Finding;
use crate::similarity::{ALIKE_PERMILLE, NEARLY_SAME_PERMILLE, Signature, family, fingerprint};

/// How far a fix may move a finding whose words change too: about one screen of code.
const MOVED: u32 = 25;
/// Up to here the place is the same one.
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

/// A reported finding, with the number of the merged finding of its round that it belongs to.
pub(super) struct Statement<'a> {
    pub finding: &'a Finding,
    pub group: usize,
}

/// What matching knows of an entry.
struct Known {
    finding: Finding,
    state: State,
    reviewers: BTreeSet<ReviewerName>,
    said: Said,
    /// Its line when the round began.
    line_before: Option<u32>,
    /// The merged finding of this round that it was reported as.
    group: Option<usize>,
    signature: Option<Signature>,
}

/// The entries of a ledger during one round, indexed by fingerprint, by file and by merged finding.
#[derive(Default)]
pub(super) struct Matcher {
    known: Vec<Known>,
    by_family: BTreeMap<FindingId, Vec<usize>>,
    by_file: BTreeMap<Option<String>, Vec<usize>>,
    by_group: BTreeMap<usize, Vec<usize>>,
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
    said: &'a [Statement<'a>],
    matches: Vec<Option<usize>>,
    taken: BTreeSet<usize>,
}

impl Matcher {
    pub(super) fn new(ledger: &Ledger) -> Self {
        let mut matcher = Self::default();
        for entry in &ledger.entries {
            let said = ledger.said.get(&entry.finding.id).cloned().unwrap_or_default();
            matcher.add(entry.finding.clone(), entry.state, said);
        }
        matcher
    }

    fn add(&mut self, finding: Finding, state: State, said: Said) {
        let index = self.known.len();
        let own = family(&finding.id).0;
        let families: BTreeSet<FindingId> = if state.is_settled() {
            [fingerprint(finding.file.as_deref(), &finding.kind, &finding.description)].into()
        } else {
            said.families().chain([own]).collect()
        };
        for family in families {
            self.by_family.entry(family).or_default().push(index);
        }
        self.by_file.entry(finding.file.clone()).or_default().push(index);
        let reviewers = finding.sources.iter().cloned().collect();
        let line_before = finding.line;
        self.known.push(Known { finding, state, reviewers, said, line_before, group: None, signature: None });
    }

    /// Notes that an entry was reported in this round; one that is not known yet is added.
    pub(super) fn reported(&mut self, index: usize, reviewer: &ReviewerName, statement: &Statement<'_>) {
        let finding = statement.finding;
        if index == self.known.len() {
            self.add(finding.clone(), State::Open, Said::default());
        }
        let Some(known) = self.known.get_mut(index) else { return };
        if !known.state.is_settled() {
            note(self.by_family.entry(family(&finding.id).0), index);
        }
        note(self.by_group.entry(statement.group), index);
        known.finding.line = finding.line;
        known.group.get_or_insert(statement.group);
        known.reviewers.insert(reviewer.clone());
        known.said.add(reviewer, &finding.id);
    }

    /// The entry of each finding, where there is one.
    pub(super) fn matches(&mut self, reviewer: &ReviewerName, said: &[Statement<'_>]) -> Vec<Option<usize>> {
        let mut search = Search { reviewer, said, matches: vec![None; said.len()], taken: BTreeSet::new() };
        self.by_fingerprint(&mut search);
        self.by_merge(&mut search);
        self.by_words(&mut search);
        search.matches
    }

    fn by_fingerprint(&self, search: &mut Search<'_>) {
        for (family, reported) in families(search.said) {
            let (own, others) = self.entries_of(&family, search.reviewer);
            if own.len() == reported.len() {
                // As many as before: whatever moved them, they stand in the same order.
                let pairs = own.into_iter().zip(reported);
                let joins = |&(entry, finding): &(usize, usize)| self.joins(search, entry, finding).is_some();
                let pairs: Vec<(usize, usize)> = pairs.filter(joins).collect();
                pairs.into_iter().for_each(|(entry, finding)| search.take(entry, finding));
            } else {
                self.nearest(search, &own, &reported);
                self.nearest(search, &others, &reported);
            }
        }
    }

    /// The entry and the statement, unless this round reported the entry as another finding.
    fn joins<'a>(
        &self,
        search: &Search<'a>,
        entry: usize,
        finding: usize,
    ) -> Option<(&Known, &'a Statement<'a>)> {
        let (known, said) = (self.known.get(entry)?, search.said.get(finding)?);
        known.group.is_none_or(|group| group == said.group).then_some((known, said))
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
            if let Some((known, said)) = self.joins(search, entry, finding) {
                let distance = known.distance(said.finding).unwrap_or(0);
                candidates.push(Candidate { rank: (Reverse(0), distance, !known.is_open()), entry, finding });
            }
        }
        search.take_best(candidates);
    }

    /// What the merge joins with a finding that an earlier reviewer of this round reported.
    fn by_merge(&mut self, search: &mut Search<'_>) {
        for index in search.unmatched() {
            let Some(said) = search.said.get(index) else { continue };
            let entries = self.by_group.get(&said.group).into_iter().flatten();
            for &entry in entries {
                if self.known.get_mut(entry).is_some_and(|known| known.admits(said.finding)) {
                    search.take(entry, index);
                }
            }
        }
    }

    fn by_words(&mut self, search: &mut Search<'_>) {
        let mut candidates = Vec::new();
        for index in search.unmatched() {
            if let Some(said) = search.said.get(index) {
                self.alike(search, index, said.finding, &mut candidates);
            }
        }
        search.take_best(candidates);
    }

    fn alike(&mut self, search: &Search<'_>, index: usize, finding: &Finding, found: &mut Vec<Candidate>) {
        let Some(entries) = self.by_file.get(&finding.file) else { return };
        let mut signature = None;
        for &entry in entries.iter().filter(|entry| !search.taken.contains(entry)) {
            let is_candidate =
                |known: &&mut Known| known.group.is_none() && known.nearby(finding, search.reviewer);
            let Some(known) = self.known.get_mut(entry).filter(is_candidate) else { continue };
            let ours = signature.get_or_insert_with(|| Signature::of(&finding.description));
            if let Some(score) = known.score(finding, ours) {
                let rank = (Reverse(score), known.distance(finding).unwrap_or(0), !known.is_open());
                found.push(Candidate { rank, entry, finding: index });
            }
        }
    }
}

impl Known {
    fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Lines between the two, from where the entry was or is; none if either has no line.
    fn distance(&self, finding: &Finding) -> Option<u32> {
        let line = finding.line?;
        [self.finding.line, self.line_before].into_iter().flatten().map(|other| other.abs_diff(line)).min()
    }

    /// Whether words may decide. Without a line, or further apart, only for findings of one kind or reviewer.
    fn nearby(&self, finding: &Finding, reviewer: &ReviewerName) -> bool {
        let akin = self.finding.kind == finding.kind || self.reviewers.contains(reviewer);
        match self.distance(finding) {
            Some(distance) => distance <= if akin { MOVED } else { SAME_PLACE },
            None => akin,
        }
    }

    /// Whether what the merge joins may join this entry too: a settled one takes only what was decided.
    fn admits(&mut self, finding: &Finding) -> bool {
        !self.state.is_settled() || self.score(finding, &Signature::of(&finding.description)).is_some()
    }

    /// How much the words are alike, if that is enough.
    fn score(&mut self, finding: &Finding, signature: &Signature) -> Option<u32> {
        let description = &self.finding.description;
        let own = self.signature.get_or_insert_with(|| Signature::of(description));
        let (score, alike) = (own.score(signature), own.alike(signature));
        let worse = self.state.is_settled() && finding.severity > self.finding.severity;
        let enough = alike && score >= self.needed(finding) && !worse;
        (enough && !are_opposed(&self.finding, finding)).then_some(score)
    }

    /// What the words must score. Elsewhere they must be twice as sure, for the place no longer speaks for them.
    fn needed(&self, finding: &Finding) -> u32 {
        let moved = self.distance(finding).is_some_and(|distance| distance > SAME_PLACE);
        match (self.state.is_settled(), moved) {
            (true, _) => NEARLY_SAME_PERMILLE,
            (false, true) => 2 * ALIKE_PERMILLE,
            (false, false) => ALIKE_PERMILLE,
        }
    }
}

fn note<K: Ord>(place: Entry<'_, K, Vec<usize>>, index: usize) {
    let entries = place.or_default();
    if !entries.contains(&index) {
        entries.push(index);
    }
}

impl Search<'_> {
    fn unmatched(&self) -> Vec<usize> {
        let open = self.matches.iter().enumerate().filter(|(_, entry)| entry.is_none());
        open.map(|(index, _)| index).collect()
    }

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
fn families(said: &[Statement<'_>]) -> BTreeMap<FindingId, Vec<usize>> {
    let mut families: BTreeMap<FindingId, Vec<(u32, usize)>> = BTreeMap::new();
    for (index, statement) in said.iter().enumerate() {
        let (family, number) = family(&statement.finding.id);
        families.entry(family).or_default().push((number, index));
    }
    let in_order = |mut numbered: Vec<(u32, usize)>| {
        numbered.sort_unstable();
        numbered.into_iter().map(|(_, index)| index).collect()
    };
    families.into_iter().map(|(family, numbered)| (family, in_order(numbered))).collect()
}
