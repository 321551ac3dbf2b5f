//! All findings of a loop, over all cycles, append-only.
//!
//! A finding keeps the id of its first report, even if its line and text change. Reviewers open findings, and close
//! their own by approving without reporting them again; silence alone closes nothing. A finding that a person or a
//! check refuted, deferred or put out of scope is not reopened by a reviewer, and its text stays the one that was
//! decided about.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, Commit, FindingId, ReviewerName, TaskId};
use crate::review::{FailThreshold, Finding, Review};

mod claim;
mod matching;
mod round;

pub use claim::{ClaimKind, FixClaim, RecordedClaim, read_claims};

/// The state of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline, description = "")]
#[derive(strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum FindingState {
    Open,
    Fixed,
    Refuted,
    Deferred,
    OutOfScope,
}

impl FindingState {
    /// The name in sentences: `out of scope`.
    pub fn label(self) -> String {
        self.into_str().replace('_', " ")
    }

    /// Whether a decision closed the finding for good: no review reopens it.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Refuted | Self::Deferred | Self::OutOfScope)
    }
}

/// The author of a state change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    Reviewer(ReviewerName),
    Person(String),
    /// The project's checks, or the merge queue.
    Check(String),
}

/// A change of state, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FindingDecision {
    pub state: FindingState,
    pub by: DecidedBy,
    pub commit: Option<Commit>,
    pub evidence: String,
}

/// Identifies one review round of a loop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Round {
    pub pass: u32,
    /// The gate's phase index.
    pub phase: usize,
    /// The item of the plan, if the gate judges single items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// The number of the review at this gate; for a checkpoint that of the last review before it, 0 before the first.
    pub cycle: u32,
    pub commit: Option<Commit>,
    /// The number of the checkpoint review, if this is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u32>,
    /// The earlier task on the same branch that this review belongs to, if it is not one of this loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

impl Round {
    /// Whether the reviewers of this round judged what a finding is about. Reviewers of one item saw nothing else. A
    /// checkpoint and the reviews of an earlier task cover all of the work.
    pub fn covers(&self, entry: &LedgerEntry) -> bool {
        let position = |round: &Self| (round.pass, round.phase, round.item);
        let is_of_all = |seen: &Self| seen.checkpoint.is_some() || seen.task.is_some();
        let about_it = |seen: &Self| is_of_all(seen) || position(seen) == position(self);
        self.item.is_none() || entry.seen.iter().any(about_it)
    }
}

/// A finding and its history.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// As last reported. For a settled finding, the text is the one that was decided about.
    pub finding: Finding,
    pub state: FindingState,
    /// The rounds in which it was reported.
    pub seen: Vec<Round>,
    pub decisions: Vec<FindingDecision>,
    /// Claims of fixers, oldest first. Only reviewers and people decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<RecordedClaim>,
}

/// The changes of one round, as a measure of convergence. An id is in at most one list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct RoundChange {
    pub new: Vec<FindingId>,
    /// Open before and still open, whether reported again or not.
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
    entries: Vec<LedgerEntry>,
    /// The ids under which each entry was reported, and by which reviewers: descriptions change between rounds.
    #[serde(rename = "said", default)]
    reported_ids: BTreeMap<FindingId, matching::ReportedIds>,
}

impl Ledger {
    pub fn entries(&self) -> &[LedgerEntry] {
        &self.entries
    }

    pub fn get(&self, id: &FindingId) -> Option<&LedgerEntry> {
        self.entries.iter().find(|entry| &entry.finding.id == id)
    }

    /// The reviewers that reported an entry, each with the id under which it did.
    pub fn reports(&self, id: &FindingId) -> impl Iterator<Item = &(ReviewerName, FindingId)> {
        self.reported_ids.get(id).into_iter().flat_map(matching::ReportedIds::iter)
    }

    /// The entry of a finding, by its id or by an id under which it was reported.
    pub fn reported_as(&self, id: &FindingId) -> Option<&LedgerEntry> {
        let under = || self.reported_ids.iter().filter(|(_, ids)| ids.contains(id));
        let mut entries = under().filter_map(|(entry, _)| self.get(entry));
        match self.get(id) {
            // A new finding may have the fingerprint that a settled one had before its text changed.
            Some(entry) if entry.state.is_settled() => {
                Some(entries.find(|other| other.state == FindingState::Open).unwrap_or(entry))
            }
            Some(entry) => Some(entry),
            None => entries.next(),
        }
    }

    /// Records the reviews of one round, in any order. Returns what changed.
    ///
    /// An open finding that is not reported becomes fixed if every reviewer among its sources who took part in this
    /// round approves, and at least one took part. An inconclusive review reports nothing and approves nothing, and a
    /// review of another item of the plan does not apply.
    pub fn record(&mut self, round: &Round, reviews: &[Review]) -> RoundChange {
        self.record_with_unlisted(round, reviews, &BTreeSet::new())
    }

    /// Applies a decision about one finding. Returns false if there is no such finding.
    pub fn decide(&mut self, id: &FindingId, decision: FindingDecision) -> bool {
        let Some(entry) = self.entries.iter_mut().find(|entry| &entry.finding.id == id) else {
            return false;
        };
        entry.decide(decision);
        true
    }

    /// Records a fixer's claims. They do not change states. Claims about unknown findings are dropped.
    pub fn claim(&mut self, attempt: AttemptId, commit: &Commit, claims: Vec<FixClaim>) {
        for FixClaim { finding, kind, evidence } in claims {
            if let Some(entry) = self.entries.iter_mut().find(|entry| entry.finding.id == finding) {
                entry.claims.push(RecordedClaim { kind, evidence, attempt, commit: commit.clone() });
            }
        }
    }

    /// Open findings at or above the threshold, in ledger order.
    pub fn open(&self, threshold: FailThreshold) -> impl Iterator<Item = &LedgerEntry> {
        self.entries
            .iter()
            .filter(move |entry| entry.state == FindingState::Open && threshold.is_reached_by(entry.finding.severity))
    }

    /// Open findings at or above the threshold in the order for a fixer: worst first, then by location.
    pub fn findings_for_fix(&self, threshold: FailThreshold) -> Vec<&LedgerEntry> {
        let mut findings: Vec<&LedgerEntry> = self.open(threshold).collect();
        findings.sort_by(|a, b| {
            let (a, b) = (&a.finding, &b.finding);
            b.severity.cmp(&a.severity).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
        });
        findings
    }

    /// The findings that earlier tasks leave to the next task on a branch: open ones, and those that were refuted,
    /// deferred or put out of scope. `tasks` are in the order they were worked in; the last task with a finding
    /// determines its state.
    pub fn from_earlier_tasks<'a>(tasks: impl IntoIterator<Item = (TaskId, &'a Ledger)>) -> Self {
        let mut left = Self::default();
        for (task, ledger) in tasks {
            for entry in &ledger.entries {
                left.carry(task, entry);
            }
            left.reported_ids.extend(ledger.reported_ids.clone());
        }
        left.entries.retain(|entry| entry.state != FindingState::Fixed);
        let Self { entries, reported_ids } = &mut left;
        reported_ids.retain(|id, _| entries.iter().any(|entry| entry.finding.id == *id));
        left
    }

    fn carry(&mut self, task: TaskId, entry: &LedgerEntry) {
        let last = entry.seen.last();
        let round = last.map(|round| Round { task: round.task.or(Some(task)), ..round.clone() });
        // Claims name attempts of another loop, so they are dropped.
        let carried = LedgerEntry { seen: round.into_iter().collect(), claims: Vec::new(), ..entry.clone() };
        match self.entries.iter_mut().find(|known| known.finding.id == entry.finding.id) {
            Some(known) => *known = carried,
            None => self.entries.push(carried),
        }
    }

    /// Adds the findings of another ledger. `place` assigns each one to a gate of this loop.
    pub fn inherit(&mut self, left: Self, assign_phase: impl Fn(&mut LedgerEntry)) {
        for mut entry in left.entries {
            assign_phase(&mut entry);
            if self.get(&entry.finding.id).is_none() {
                self.entries.push(entry);
            }
        }
        self.reported_ids.extend(left.reported_ids);
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl LedgerEntry {
    fn decide(&mut self, decision: FindingDecision) {
        self.state = decision.state;
        self.decisions.push(decision);
    }
}
