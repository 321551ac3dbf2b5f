//! The finished review rounds of a gate, including reviews that could not be parsed.
//!
//! The state machine drops a panel after its verdict; the transition of its last answer still has all of them.

use std::collections::BTreeMap;

use serde::Serialize;
use signoff_core::ids::{AttemptId, Commit, ReviewerName};
use signoff_core::ledger::{FindingState, LedgerEntry};
use signoff_core::machine::{CheckReport, Event, GateEnd, Loop, Policy, Position, ReviewScope, Stage};
use signoff_core::merge::{self, MergedIssue, MergedReview};
use signoff_core::review::{FailThreshold, Inconclusive, Review, ReviewerKind, Verdict};
use signoff_core::view::{LoopTransition, Transition};
use signoff_core::workflow::PhaseKind;

use crate::labels;

/// One round of reviews on one commit, or one run of the project's checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRound {
    pub at: Position,
    /// The phase's name.
    pub phase: String,
    pub cycle: u32,
    pub scope: ReviewScope,
    pub commit: Commit,
    pub threshold: FailThreshold,
    /// The last review of each reviewer.
    pub reviews: BTreeMap<ReviewerName, Review>,
    /// The attempts that produced these reviews.
    pub attempts: BTreeMap<ReviewerName, AttemptId>,
}

/// The overall verdict of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(const_into_str, serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum RoundVerdict {
    Approved,
    ChangesRequested,
    NeedsDiscussion,
    Inconclusive,
}

/// A run of the project's checks, as a round with one review.
fn checks_round(step: &LoopTransition) -> Option<GateRound> {
    let Stage::Checking { slot, .. } = &step.before.stage else { return None };
    let attempt = step.event.ends_attempt()?;
    if slot.attempt() != Some(attempt) {
        return None;
    }
    let given_up = !matches!(step.after.stage, Stage::Checking { .. });
    let (verdict, findings) = if let Event::CheckEnded { report, .. } = step.event {
        match report {
            CheckReport::Passed => (Verdict::Approved, Vec::new()),
            CheckReport::Failed { findings } => (Verdict::ChangesRequested, findings.clone()),
            CheckReport::NothingToCheck => return None,
        }
    } else if let (Event::AttemptFailed { failure, .. }, true) = (step.event, given_up) {
        (Verdict::Inconclusive(Inconclusive::Missing(labels::failure(failure))), Vec::new())
    } else {
        return None;
    };
    let mut round = GateRound::new(step.before, step.policy, ReviewScope::Full);
    let name = ReviewerName::from("checks");
    let review = Review { findings, ..Review::new(name.clone(), ReviewerKind::Tests, verdict) };
    round.attempts.insert(name.clone(), attempt);
    round.reviews.insert(name, review);
    Some(round)
}

impl GateRound {
    fn new(machine: &Loop, policy: &Policy, scope: ReviewScope) -> Self {
        let phase = policy.workflow.phases.get(machine.position.phase);
        Self {
            at: machine.position,
            phase: phase.map(|phase| phase.name.clone()).unwrap_or_default(),
            cycle: machine.counters.cycle,
            scope,
            commit: machine.head.commit.clone(),
            threshold: fail_threshold(policy, machine.position.phase),
            reviews: BTreeMap::new(),
            attempts: BTreeMap::new(),
        }
    }

    /// The round that an event ends, because every reviewer has answered.
    pub fn ended_by(transition: &Transition) -> Option<Self> {
        let step = transition.loop_transition()?;
        let Stage::Reviewing(panel) = &step.before.stage else { return checks_round(&step) };
        let answers = transition.round_with_answer()?;
        let same = step.before.counters.reviews == step.after.counters.reviews;
        if same && matches!(step.after.stage, Stage::Reviewing(_)) {
            return None;
        }
        let mut round = Self::new(step.before, step.policy, panel.scope);
        for (name, answer) in answers {
            let review = answer.review.clone().counted(&panel.commit, round.threshold);
            round.attempts.insert(name.clone(), answer.attempt);
            round.reviews.insert(name, review);
        }
        Some(round)
    }

    /// All reviews of the round, merged.
    pub fn merged(&self) -> MergedReview {
        merge::merge(&self.reviews.values().cloned().collect::<Vec<_>>(), self.threshold)
    }

    /// Number of findings that block the gate.
    pub fn blocking(&self) -> usize {
        self.merged().blocking(self.threshold).count()
    }

    /// The verdict of the round. The state machine decides whether the gate passed, since earlier findings count too.
    pub fn verdict(&self, step: &LoopTransition) -> RoundVerdict {
        let any = |test: fn(&Verdict) -> bool| self.reviews.values().any(|review| test(&review.verdict));
        if any(|verdict| matches!(verdict, Verdict::Inconclusive(_))) {
            RoundVerdict::Inconclusive
        } else if any(|verdict| *verdict == Verdict::NeedsDiscussion) {
            RoundVerdict::NeedsDiscussion
        } else if self.passed(step) {
            RoundVerdict::Approved
        } else {
            RoundVerdict::ChangesRequested
        }
    }

    fn passed(&self, step: &LoopTransition) -> bool {
        if let Event::CheckEnded { report, .. } = step.event {
            return *report == CheckReport::Passed;
        }
        let gate_key = (self.at.phase, self.at.item);
        let gate_passed =
            step.after.gates.iter().filter(|gate| (gate.phase, gate.item) == gate_key).any(|gate| match gate.end {
                GateEnd::Approved { .. } | GateEnd::ReviewersMissing => true,
                GateEnd::LeftFindings { .. } | GateEnd::Unchecked => false,
            });
        let full = matches!(&step.after.stage, Stage::Reviewing(panel) if panel.scope == ReviewScope::Full);
        let confirms = self.scope == ReviewScope::Scoped && full && step.after.counters.cycle == self.cycle;
        gate_passed || confirms
    }

    /// The headline: why a review is inconclusive, the first finding, one that is still open, or a summary.
    pub fn headline(&self, merged: &MergedReview, step: &LoopTransition) -> Option<String> {
        let inconclusive = self.reviews.values().find_map(|review| {
            labels::inconclusive_reason(&review.verdict).map(|why| format!("{}: {why}", review.reviewer))
        });
        // Skip findings that are already closed.
        let closed = |issue: &&MergedIssue| {
            let entry = step.after.ledger.reported_as(&issue.finding.id);
            entry.is_some_and(|entry| entry.state != FindingState::Open)
        };
        let first = || merged.issues.iter().find(|issue| !closed(issue));
        let blocking = merged.blocking(self.threshold).find(|issue| !closed(issue)).or_else(first);
        let found = || blocking.map(|issue| issue.finding.description.clone());
        let still_open = || self.still_open(step).map(|entry| entry.finding.description.clone());
        let summary = || {
            let unapproved = self.reviews.values().filter(|review| !review.verdict.approves());
            unapproved.map(|review| review.summary.clone()).find(|summary| !summary.trim().is_empty())
        };
        inconclusive.or_else(found).or_else(still_open).or_else(summary)
    }

    /// Number of findings of this gate that are open after the round. Findings of a landing are closed by the next one.
    pub fn left_open(&self, step: &LoopTransition) -> usize {
        let of_this_phase = |entry: &&LedgerEntry| entry.seen.iter().any(|round| round.phase == self.at.phase);
        step.after.ledger.open(FailThreshold::Low).filter(of_this_phase).count()
    }

    fn still_open<'a>(&self, step: &LoopTransition<'a>) -> Option<&'a LedgerEntry> {
        let of_this_phase = |entry: &&LedgerEntry| entry.seen.iter().any(|round| round.phase == self.at.phase);
        step.after.ledger.findings_for_fix(self.threshold).into_iter().find(of_this_phase)
    }
}

/// The severity that blocks the gate of a phase. Findings of landings and checks always block.
pub fn fail_threshold(policy: &Policy, phase: usize) -> FailThreshold {
    match policy.workflow.phases.get(phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Gate(gate_policy)) => gate_policy.gate.fail_on,
        Some(PhaseKind::Check(_) | PhaseKind::Agent { .. }) | None => FailThreshold::Low,
    }
}
