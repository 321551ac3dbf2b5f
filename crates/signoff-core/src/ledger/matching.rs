//! Matches reported findings to ledger entries.
//!
//! First by fingerprint, however far the line moved. Then by the merge: findings that the merge of this round joins
//! belong to one entry, and findings that it keeps apart never do. Then by similarity, to entries that this round has
//! not reported yet: the same file, a similar description without an opposite request, and a location nearby. Better
//! scores go first. One entry matches at most one finding of a reviewer.
//!
//! A settled entry (refuted, deferred, out of scope) matches only what the decision was about: the fingerprint of its
//! text, or nearly the same text at no higher severity. Anything else is a new finding; otherwise a decision about
//! one finding would approve another.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{FindingState, Ledger};
use crate::ids::{FindingId, ReviewerName};
use crate::merge::are_opposed;
use crate::review::Finding;
use crate::similarity::{ALIKE_PERMILLE, NEARLY_SAME_PERMILLE, Signature, family, fingerprint};

/// Maximum number of lines that a fix may move a finding whose description changes too: about one screen of code.
const MAX_MOVED_LINES: u32 = 25;
/// Maximum distance in lines of the same location.
const SAME_LOCATION_LINES: u32 = 5;

/// The ids an entry was reported under: the last one for each reviewer and fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct ReportedIds(BTreeSet<(ReviewerName, FindingId)>);

impl ReportedIds {
    pub(super) fn add(&mut self, reviewer: &ReviewerName, id: &FindingId) {
        let (fingerprint, _) = family(id);
        self.0.retain(|(name, other)| name != reviewer || family(other).0 != fingerprint);
        self.0.insert((reviewer.clone(), id.clone()));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(ReviewerName, FindingId)> {
        self.0.iter()
    }

    /// Whether any reviewer reported it under this id.
    pub(super) fn contains(&self, id: &FindingId) -> bool {
        self.0.iter().any(|(_, other)| other == id)
    }

    fn families(&self) -> impl Iterator<Item = FindingId> {
        self.0.iter().map(|(_, id)| family(id).0)
    }

    /// The reviewer's number of this entry among those with the same fingerprint, in order of lines.
    fn number(&self, reviewer: &ReviewerName, fingerprint: &FindingId) -> Option<u32> {
        let mut own = self.0.iter().filter(|(name, _)| name == reviewer).map(|(_, id)| family(id));
        own.find(|(family, _)| family == fingerprint).map(|(_, number)| number)
    }
}

/// A reported finding, with the index of its merged finding in this round.
pub(super) struct ReportedFinding<'a> {
    pub finding: &'a Finding,
    pub group: usize,
}

/// A ledger entry during matching.
struct KnownEntry {
    finding: Finding,
    state: FindingState,
    reviewers: BTreeSet<ReviewerName>,
    reported_ids: ReportedIds,
    /// The line before this round.
    line_before: Option<u32>,
    /// The merged finding of this round that it was reported as.
    group: Option<usize>,
    signature: Option<Signature>,
}

/// The entries of a ledger during one round, indexed by fingerprint, by file and by merged finding.
#[derive(Default)]
pub(super) struct Matcher {
    known: Vec<KnownEntry>,
    by_family: BTreeMap<FindingId, Vec<usize>>,
    by_file: BTreeMap<Option<String>, Vec<usize>>,
    by_group: BTreeMap<usize, Vec<usize>>,
}

/// A possible match of a reported finding and an entry.
struct MatchCandidate {
    rank: (Reverse<u32>, u32, bool),
    entry: usize,
    finding: usize,
}

/// One reviewer's findings and their matches so far.
struct MatchSearch<'a> {
    reviewer: &'a ReviewerName,
    reported: &'a [ReportedFinding<'a>],
    matches: Vec<Option<usize>>,
    taken: BTreeSet<usize>,
}

impl Matcher {
    pub(super) fn new(ledger: &Ledger) -> Self {
        let mut matcher = Self::default();
        for entry in &ledger.entries {
            let reported_ids = ledger.reported_ids.get(&entry.finding.id).cloned().unwrap_or_default();
            matcher.add(entry.finding.clone(), entry.state, reported_ids);
        }
        matcher
    }

    fn add(&mut self, finding: Finding, state: FindingState, reported_ids: ReportedIds) {
        let index = self.known.len();
        let own = family(&finding.id).0;
        let families: BTreeSet<FindingId> = if state.is_settled() {
            [fingerprint(finding.file.as_deref(), &finding.kind, &finding.description)].into()
        } else {
            reported_ids.families().chain([own]).collect()
        };
        for family in families {
            self.by_family.entry(family).or_default().push(index);
        }
        self.by_file.entry(finding.file.clone()).or_default().push(index);
        let reviewers = finding.sources.iter().cloned().collect();
        let line_before = finding.line;
        self.known.push(KnownEntry {
            finding,
            state,
            reviewers,
            reported_ids,
            line_before,
            group: None,
            signature: None,
        });
    }

    /// Records that an entry was reported in this round. A new entry is added.
    pub(super) fn reported(&mut self, index: usize, reviewer: &ReviewerName, statement: &ReportedFinding<'_>) {
        let finding = statement.finding;
        if index == self.known.len() {
            self.add(finding.clone(), FindingState::Open, ReportedIds::default());
        }
        let Some(known) = self.known.get_mut(index) else { return };
        if !known.state.is_settled() {
            add_index(self.by_family.entry(family(&finding.id).0), index);
        }
        add_index(self.by_group.entry(statement.group), index);
        known.finding.line = finding.line;
        known.group.get_or_insert(statement.group);
        known.reviewers.insert(reviewer.clone());
        known.reported_ids.add(reviewer, &finding.id);
    }

    /// Returns the entry of each finding, if there is one.
    pub(super) fn matches(&mut self, reviewer: &ReviewerName, reported: &[ReportedFinding<'_>]) -> Vec<Option<usize>> {
        let mut search =
            MatchSearch { reviewer, reported, matches: vec![None; reported.len()], taken: BTreeSet::new() };
        self.by_fingerprint(&mut search);
        self.by_merge(&mut search);
        self.by_words(&mut search);
        search.matches
    }

    fn by_fingerprint(&self, search: &mut MatchSearch<'_>) {
        for (family, reported) in families(search.reported) {
            let (own, others) = self.entries_of(&family, search.reviewer);
            if own.len() == reported.len() {
                // The same number as before: they are in the same order, even if they moved.
                let pairs = own.into_iter().zip(reported);
                let joins = |&(entry, finding): &(usize, usize)| self.joins(search, entry, finding).is_some();
                let pairs: Vec<(usize, usize)> = pairs.filter(joins).collect();
                pairs.into_iter().for_each(|(entry, finding)| search.assign(entry, finding));
            } else {
                self.nearest(search, &own, &reported);
                self.nearest(search, &others, &reported);
            }
        }
    }

    /// The entry and the finding, unless this round reported the entry as another finding.
    fn joins<'a>(
        &self,
        search: &MatchSearch<'a>,
        entry: usize,
        finding: usize,
    ) -> Option<(&KnownEntry, &'a ReportedFinding<'a>)> {
        let (known, reported) = (self.known.get(entry)?, search.reported.get(finding)?);
        known.group.is_none_or(|group| group == reported.group).then_some((known, reported))
    }

    /// The entries with one fingerprint: those the reviewer reported under it, in their order, and the others.
    fn entries_of(&self, family: &FindingId, reviewer: &ReviewerName) -> (Vec<usize>, Vec<usize>) {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for &entry in self.by_family.get(family).into_iter().flatten() {
            let Some(known) = self.known.get(entry) else { continue };
            match known.reported_ids.number(reviewer, family) {
                Some(number) => own.push((number, known.line_before, entry)),
                None => others.push(entry),
            }
        }
        own.sort_unstable();
        (own.into_iter().map(|(_, _, entry)| entry).collect(), others)
    }

    fn nearest(&self, search: &mut MatchSearch<'_>, entries: &[usize], reported: &[usize]) {
        let mut candidates = Vec::new();
        for (&entry, &finding) in entries.iter().flat_map(|entry| reported.iter().map(move |r| (entry, r))) {
            if let Some((known, reported)) = self.joins(search, entry, finding) {
                let distance = known.distance(reported.finding).unwrap_or(0);
                candidates.push(MatchCandidate { rank: (Reverse(0), distance, !known.is_open()), entry, finding });
            }
        }
        search.assign_best(candidates);
    }

    /// Matches findings that the merge joins with one of an earlier reviewer of this round.
    fn by_merge(&mut self, search: &mut MatchSearch<'_>) {
        for index in search.unmatched() {
            let Some(reported) = search.reported.get(index) else { continue };
            let entries = self.by_group.get(&reported.group).into_iter().flatten();
            for &entry in entries {
                if self.known.get_mut(entry).is_some_and(|known| known.accepts(reported.finding)) {
                    search.assign(entry, index);
                }
            }
        }
    }

    fn by_words(&mut self, search: &mut MatchSearch<'_>) {
        let mut candidates = Vec::new();
        for index in search.unmatched() {
            if let Some(reported) = search.reported.get(index) {
                self.alike(search, index, reported.finding, &mut candidates);
            }
        }
        search.assign_best(candidates);
    }

    fn alike(&mut self, search: &MatchSearch<'_>, index: usize, finding: &Finding, found: &mut Vec<MatchCandidate>) {
        let Some(entries) = self.by_file.get(&finding.file) else { return };
        let mut signature = None;
        for &entry in entries.iter().filter(|entry| !search.taken.contains(entry)) {
            let is_candidate =
                |known: &&mut KnownEntry| known.group.is_none() && known.is_nearby(finding, search.reviewer);
            let Some(known) = self.known.get_mut(entry).filter(is_candidate) else { continue };
            let ours = signature.get_or_insert_with(|| Signature::new(&finding.description));
            if let Some(score) = known.score(finding, ours) {
                let rank = (Reverse(score), known.distance(finding).unwrap_or(0), !known.is_open());
                found.push(MatchCandidate { rank, entry, finding: index });
            }
        }
    }
}

impl KnownEntry {
    fn is_open(&self) -> bool {
        self.state == FindingState::Open
    }

    /// The distance in lines from the entry's old or new location; none if a line is unknown.
    fn distance(&self, finding: &Finding) -> Option<u32> {
        let line = finding.line?;
        [self.finding.line, self.line_before].into_iter().flatten().map(|other| other.abs_diff(line)).min()
    }

    /// Whether the location is near enough to compare descriptions. Without a line, or further apart, only for findings
    /// of the same kind or reviewer.
    fn is_nearby(&self, finding: &Finding, reviewer: &ReviewerName) -> bool {
        let akin = self.finding.kind == finding.kind || self.reviewers.contains(reviewer);
        match self.distance(finding) {
            Some(distance) => distance <= if akin { MAX_MOVED_LINES } else { SAME_LOCATION_LINES },
            None => akin,
        }
    }

    /// Whether a finding that the merge joins may match this entry. A settled entry matches only what was decided.
    fn accepts(&mut self, finding: &Finding) -> bool {
        !self.state.is_settled() || self.score(finding, &Signature::new(&finding.description)).is_some()
    }

    /// The similarity score of the descriptions, if it is high enough.
    fn score(&mut self, finding: &Finding, signature: &Signature) -> Option<u32> {
        let description = &self.finding.description;
        let own = self.signature.get_or_insert_with(|| Signature::new(description));
        let (score, alike) = (own.score(signature), own.alike(signature));
        let worse = self.state.is_settled() && finding.severity > self.finding.severity;
        let enough = alike && score >= self.required_score(finding) && !worse;
        (enough && !are_opposed(&self.finding, finding)).then_some(score)
    }

    /// The minimum score. It is doubled for another location, which is weaker evidence.
    fn required_score(&self, finding: &Finding) -> u32 {
        let moved = self.distance(finding).is_some_and(|distance| distance > SAME_LOCATION_LINES);
        match (self.state.is_settled(), moved) {
            (true, _) => NEARLY_SAME_PERMILLE,
            (false, true) => 2 * ALIKE_PERMILLE,
            (false, false) => ALIKE_PERMILLE,
        }
    }
}

fn add_index<K: Ord>(slot: Entry<'_, K, Vec<usize>>, index: usize) {
    let entries = slot.or_default();
    if !entries.contains(&index) {
        entries.push(index);
    }
}

impl MatchSearch<'_> {
    fn unmatched(&self) -> Vec<usize> {
        let open = self.matches.iter().enumerate().filter(|(_, entry)| entry.is_none());
        open.map(|(index, _)| index).collect()
    }

    fn assign_best(&mut self, mut candidates: Vec<MatchCandidate>) {
        candidates.sort_by_key(|candidate| (candidate.rank, candidate.entry, candidate.finding));
        for candidate in candidates {
            self.assign(candidate.entry, candidate.finding);
        }
    }

    fn assign(&mut self, entry: usize, finding: usize) {
        if let Some(slot @ None) = self.matches.get_mut(finding)
            && self.taken.insert(entry)
        {
            *slot = Some(entry);
        }
    }
}

/// The findings of each fingerprint, in the order of their numbers.
fn families(reported: &[ReportedFinding<'_>]) -> BTreeMap<FindingId, Vec<usize>> {
    let mut families: BTreeMap<FindingId, Vec<(u32, usize)>> = BTreeMap::new();
    for (index, statement) in reported.iter().enumerate() {
        let (family, number) = family(&statement.finding.id);
        families.entry(family).or_default().push((number, index));
    }
    let in_order = |mut numbered: Vec<(u32, usize)>| {
        numbered.sort_unstable();
        numbered.into_iter().map(|(_, index)| index).collect()
    };
    families.into_iter().map(|(family, numbered)| (family, in_order(numbered))).collect()
}
