//! Checkpoint reviews of a loop at work. Their findings go into the ledger, where the gate judges them.

use std::collections::{BTreeMap, BTreeSet};

use super::outcome::{Ending, Outcome, RetryAction};
use super::state::{AttemptSlot, GateEnd, GateRecord, Loop, Panel, PauseReason, Stage};
use super::{Policy, gate, land};
use crate::ids::{FindingId, ReviewerName};
use crate::ledger::{FindingState, Round};
use crate::review::{Finding, Review, ReviewerKind, Verdict};

/// Starts a checkpoint review of a loop at work.
pub fn began(this: &mut Loop, number: u32) {
    let is_outside_work =
        matches!(this.stage, Stage::Queued | Stage::AwaitingLanding { .. } | Stage::Landing { .. } | Stage::Done(_));
    if !is_outside_work {
        this.checkpoint = Some(number);
    }
}

/// Ends a checkpoint review: its findings go into the ledger and to the next attempt. Paused attempts start, and a
/// loop that was signed off meanwhile lands or goes back to its gate.
pub fn ended(this: &mut Loop, findings: Vec<Finding>, number: Option<u32>, policy: &Policy) {
    this.checkpoint = None;
    let findings = match number {
        Some(number) => record(this, number, findings, policy),
        None => findings,
    };
    if this.is_done() {
        return;
    }
    this.tally.last_checkpoint = this.tally.iteration;
    this.next_notes.extend(findings);
    let waiting = this.slots().into_iter().filter(|slot| **slot == AttemptSlot::Held(PauseReason::Checkpoint)).count();
    if waiting > 0 {
        this.tally.iteration += u32::try_from(waiting).unwrap_or(u32::MAX);
        this.notes = std::mem::take(&mut this.next_notes);
        this.resume_paused(&PauseReason::Checkpoint);
    }
    land_or_send_back(this, policy);
}

/// Sends a signed-off loop back to its gate if a checkpoint finding blocks it, else lets it land. A person's approval
/// is not sent back.
fn land_or_send_back(this: &mut Loop, policy: &Policy) {
    let (Stage::AwaitingLanding { outcome, .. } | Stage::Landing { outcome, .. }) = &this.stage else {
        return;
    };
    if !matches!(outcome, Outcome::Accepted { .. }) && send_back(this, policy) {
        return;
    }
    if let Stage::AwaitingLanding { outcome, reason } = &this.stage {
        let (outcome, reason) = (outcome.clone(), *reason);
        land::conclude(this, outcome, reason, policy);
    }
}

/// Records findings as reported by the gate's reviewers. Returns the open ones.
fn record(this: &mut Loop, number: u32, findings: Vec<Finding>, policy: &Policy) -> Vec<Finding> {
    let Some(phase) = policy.workflow.first_gate_index() else { return findings };
    let cycle = this.cycles.get(&phase).copied().unwrap_or(0);
    let round = Round { checkpoint: Some(number), ..this.round_at(phase, cycle) };
    let mut by_reviewer: BTreeMap<ReviewerName, Vec<Finding>> = BTreeMap::new();
    for finding in findings {
        let reviewer = finding.sources.first().or_else(|| gate::first_reviewer(phase, policy));
        if let Some(reviewer) = reviewer.cloned() {
            by_reviewer.entry(reviewer).or_default().push(finding);
        }
    }
    let review = |(reviewer, findings)| Review {
        findings,
        ..Review::new(reviewer, ReviewerKind::General, Verdict::ChangesRequested)
    };
    let reviews: Vec<Review> = by_reviewer.into_iter().map(review).collect();
    this.ledger.record(&round, &reviews);
    let open = |entry: &&crate::ledger::LedgerEntry| entry.state == FindingState::Open && entry.seen.contains(&round);
    let open: Vec<Finding> = this.ledger.entries().iter().filter(open).map(|entry| entry.finding.clone()).collect();
    if let Some(panel) = panel_mut(&mut this.stage) {
        panel.unlisted.extend(open.iter().map(|finding| finding.id.clone()).collect::<BTreeSet<FindingId>>());
    }
    open
}

/// The panel at work, or the one whose answers are kept for later.
fn panel_mut(stage: &mut Stage) -> Option<&mut Panel> {
    match stage {
        Stage::Reviewing(panel) => Some(panel),
        Stage::Waiting { asked, .. } => panel_mut(asked),
        Stage::Done(Ending { retry: RetryAction::Resume(stage), .. }) => panel_mut(stage),
        Stage::Queued
        | Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::AwaitingLanding { .. }
        | Stage::Landing { .. }
        | Stage::Done(_) => None,
    }
}

/// Sends a loop that has finished all phases back to its gate if a checkpoint finding came after that gate. If the gate
/// itself went on with open findings, the loop is not sent back. Returns whether it was.
pub fn reopen(this: &mut Loop, policy: &Policy) -> bool {
    let Some(gate) = policy.workflow.first_gate_index() else { return false };
    let noted = |record: &GateRecord| {
        record.phase == gate && matches!(record.end, GateEnd::Noted { .. } | GateEnd::ReviewersMissing)
    };
    !this.gates.iter().any(noted) && send_back(this, policy)
}

/// Sends a loop back to the gate that judges checkpoint findings if an open one blocks that gate. Returns whether
/// it did.
fn send_back(this: &mut Loop, policy: &Policy) -> bool {
    let Some((gate, phase)) = policy.workflow.first_gate_index().and_then(|at| Some((at, policy.phase(at)?))) else {
        return false;
    };
    let Some(bar) = phase.policy().map(|judge| judge.gate.fail_on) else { return false };
    let of_checkpoint = |round: &Round| round.checkpoint.is_some() && round.phase == gate;
    if !this.ledger.open(bar).any(|entry| entry.seen.iter().any(of_checkpoint)) {
        return false;
    }
    this.at.phase = gate;
    this.at.item = if phase.per_item { this.items.saturating_sub(1) } else { 0 };
    let (at, item) = (this.at.phase, this.at.item);
    this.gates.retain(|record| record.phase < at || (record.phase == at && record.item != item));
    let judges = |phase: &crate::workflow::Phase| phase.policy().is_some() && !phase.is_off();
    // If the loop just passed this gate, keep its count of fixes, so that the gate's limit still applies.
    if policy.workflow.phases.iter().rposition(judges) != Some(gate) {
        gate::reset_counters(this);
    }
    gate::not_passed(this, Vec::new(), policy);
    true
}
