//! Every finding of a loop, over all cycles, append-only. Silence never closes a finding.

use serde::{Deserialize, Serialize};

use crate::ids::{Commit, FindingId, ReviewerName};
use crate::review::{Bar, Finding, Review};

/// Where a finding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Open,
    Fixed,
    Refuted,
    Deferred,
    OutOfScope,
}

/// Who moved a finding from one state to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    Reviewer(ReviewerName),
    Person(String),
    /// The project's checks, or the merge queue.
    Check(String),
}

/// A change of state, with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decision {
    pub state: State,
    pub by: DecidedBy,
    pub commit: Option<Commit>,
    pub evidence: String,
}

/// The place of one review round in the loop's life.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Round {
    pub pass: u32,
    /// The gate's phase index.
    pub phase: usize,
    pub cycle: u32,
    pub commit: Option<Commit>,
}

/// A finding's life.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// As last reported.
    pub finding: Finding,
    pub state: State,
    /// The rounds in which it was reported.
    pub seen: Vec<Round>,
    pub decisions: Vec<Decision>,
}

/// What a round changed: the measure of convergence.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct RoundChange {
    pub new: Vec<FindingId>,
    /// Open before and still open, reported again or not.
    pub carried: Vec<FindingId>,
    pub fixed: Vec<FindingId>,
    /// Fixed before, open again.
    pub regressed: Vec<FindingId>,
    /// Reported again although refuted: it stays refuted.
    pub refuted: Vec<FindingId>,
    /// Reported again although out of scope or deferred: it stays so.
    pub out_of_scope: Vec<FindingId>,
}

/// All findings of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Ledger {
    entries: Vec<Entry>,
}

impl Ledger {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn get(&self, id: &FindingId) -> Option<&Entry> {
        self.entries.iter().find(|entry| &entry.finding.id == id)
    }

    /// Takes one round's reviews in. Returns what changed.
    pub fn record(&mut self, round: &Round, reviews: &[Review]) -> RoundChange {
        let _ = (round, reviews);
        RoundChange::default()
    }

    /// A person, a check or a reviewer decides one finding. False if there is no such finding.
    pub fn decide(&mut self, id: &FindingId, decision: Decision) -> bool {
        let _ = (id, decision);
        false
    }

    /// Open findings at or above the bar, in ledger order.
    pub fn open(&self, bar: Bar) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(move |entry| entry.state == State::Open && bar.is_reached_by(entry.finding.severity))
    }

    /// In how many rounds the most repeated open finding was reported.
    pub fn most_repeated(&self) -> u32 {
        0
    }
}
