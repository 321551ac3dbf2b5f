//! Every finding of a loop, over all cycles, append-only. Silence never closes a finding.
//!
//! A finding keeps the id it was first reported under, whatever becomes of its line and its words. Reviewers
//! open findings, and close their own by approving without naming them again. What a person or a check refuted,
//! deferred or put out of scope, no reviewer opens again; its text stays the one that was decided about.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, Commit, FindingId, ReviewerName, TaskId};
use crate::review::{Bar, Finding, Review};

mod carried;
mod claim;
mod matching;
mod round;

pub use claim::{Claim, ClaimKind, RecordedClaim, read_claims};

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

impl State {
    /// Whether a decision closed it for good: no review opens it again.
    pub fn is_settled(self) -> bool {
        match self {
            Self::Refuted | Self::Deferred | Self::OutOfScope => true,
            Self::Open | Self::Fixed => false,
        }
    }
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
    /// The item of the plan, where the gate judges one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// The review at this gate; of a checkpoint the last one before it, 0 before the first.
    pub cycle: u32,
    pub commit: Option<Commit>,
    /// The number of the checkpoint review, where this is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u32>,
    /// The earlier task on the same branch whose review this was, where it was not one of this loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

impl Round {
    /// Whether its reviewers were to judge what a finding is about: those of one item saw nothing else. A checkpoint and
    /// the reviews of an earlier task looked at all of the work, whatever item is at hand.
    pub fn concerns(&self, entry: &Entry) -> bool {
        let place = |round: &Self| (round.pass, round.phase, round.item);
        let is_of_all = |seen: &Self| seen.checkpoint.is_some() || seen.task.is_some();
        let about_it = |seen: &Self| is_of_all(seen) || place(seen) == place(self);
        self.item.is_none() || entry.seen.iter().any(about_it)
    }
}

/// A finding's life.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// As last reported; of a settled one the text is that of the decision.
    pub finding: Finding,
    pub state: State,
    /// The rounds in which it was reported.
    pub seen: Vec<Round>,
    pub decisions: Vec<Decision>,
    /// What fixers said about it, oldest first. Only reviewers and people decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<RecordedClaim>,
}

/// What a round changed: the measure of convergence. An id is in one list at most.
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
    /// Under which ids each entry was reported, and by whom: words change from round to round.
    #[serde(default)]
    said: BTreeMap<FindingId, matching::Said>,
}

impl Ledger {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn get(&self, id: &FindingId) -> Option<&Entry> {
        self.entries.iter().find(|entry| &entry.finding.id == id)
    }

    /// The entry of a finding under the id with which it is or was reported.
    pub fn reported_as(&self, id: &FindingId) -> Option<&Entry> {
        let under = || self.said.iter().filter(|(_, said)| said.contains(id));
        let mut said = under().filter_map(|(entry, _)| self.get(entry));
        match self.get(id) {
            // A new finding may have the fingerprint that a settled one had before its text changed.
            Some(entry) if entry.state.is_settled() => {
                Some(said.find(|other| other.state == State::Open).unwrap_or(entry))
            }
            Some(entry) => Some(entry),
            None => said.next(),
        }
    }

    /// Takes one round's reviews in, in whatever order they came. Returns what changed.
    ///
    /// An open finding that nobody reports becomes fixed when every reviewer among its sources who sat in this
    /// round approves, and at least one did sit. An inconclusive review reports nothing and approves nothing, and
    /// one of another item of the plan approves something else.
    pub fn record(&mut self, round: &Round, reviews: &[Review]) -> RoundChange {
        self.record_beside(round, reviews, &BTreeSet::new())
    }

    /// Like [`Ledger::record`], but keeps the `untold` findings open: the reviewers' prompts did not list them, so an
    /// approval says nothing about them.
    pub fn record_beside(
        &mut self,
        round: &Round,
        reviews: &[Review],
        untold: &BTreeSet<FindingId>,
    ) -> RoundChange {
        round::record(self, round, (reviews, untold))
    }

    /// A person, a check or a reviewer decides one finding. False if there is no such finding.
    pub fn decide(&mut self, id: &FindingId, decision: Decision) -> bool {
        let Some(entry) = self.entries.iter_mut().find(|entry| &entry.finding.id == id) else {
            return false;
        };
        entry.decide(decision);
        true
    }

    /// Keeps what a fixer says about findings; their states stay as they are. Claims about unknown findings are dropped.
    pub fn claim(&mut self, (attempt, commit): (AttemptId, &Commit), claims: Vec<Claim>) {
        for Claim { finding, kind, evidence } in claims {
            if let Some(entry) = self.entries.iter_mut().find(|entry| entry.finding.id == finding) {
                entry.claims.push(RecordedClaim { kind, evidence, attempt, commit: commit.clone() });
            }
        }
    }

    /// Open findings at or above the bar, in ledger order.
    pub fn open(&self, bar: Bar) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(move |entry| entry.state == State::Open && bar.is_reached_by(entry.finding.severity))
    }

    /// Open findings at or above the bar in the order a fixer should read them: worst first, then by place.
    pub fn findings_for_fix(&self, bar: Bar) -> Vec<&Entry> {
        let mut findings: Vec<&Entry> = self.open(bar).collect();
        findings.sort_by(|a, b| {
            let (a, b) = (&a.finding, &b.finding);
            b.severity.cmp(&a.severity).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
        });
        findings
    }
}

impl Entry {
    fn decide(&mut self, decision: Decision) {
        self.state = decision.state;
        self.decisions.push(decision);
    }
}
