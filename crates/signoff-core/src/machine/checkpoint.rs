//! Checkpoint reviews of a loop at work. What they find is in the ledger, and the gate that judges the work judges it.

use std::collections::{BTreeMap, BTreeSet};

use super::outcome::{Again, Ending, Outcome};
use super::state::{GateEnd, GateRecord, Hold, Loop, Panel, Slot, Stage};
use super::{Policy, judge, land};
use crate::ids::{FindingId, ReviewerName};
use crate::ledger::{Round, State};
use crate::review::{Finding, Review, ReviewerKind, Verdict};

/// A checkpoint review of a loop at work starts.
pub fn began(this: &mut Loop, number: u32) {
    match &this.stage {
        Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Reviewing(_)
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::Waiting { .. } => this.checkpoint = Some(number),
        Stage::Queued | Stage::AwaitingLanding { .. } | Stage::Landing { .. } | Stage::Done(_) => {}
    }
}

/// A checkpoint review is in: its findings go into the ledger and to the next attempt. An attempt that waited for it
/// starts, and a loop that was signed off meanwhile goes on, or back.
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
    let waiting = this.slots().into_iter().filter(|slot| **slot == Slot::Held(Hold::Checkpoint)).count();
    if waiting > 0 {
        this.tally.iteration += u32::try_from(waiting).unwrap_or(u32::MAX);
        this.notes = std::mem::take(&mut this.next_notes);
        this.release(&Hold::Checkpoint);
    }
    go_on(this, policy);
}

/// Sends a signed-off loop back to its gate if a checkpoint finding blocks it, else lets it land. A person's approval is
/// not sent back.
fn go_on(this: &mut Loop, policy: &Policy) {
    let (Stage::AwaitingLanding { outcome, .. } | Stage::Landing { outcome, .. }) = &this.stage else {
        return;
    };
    if !matches!(outcome, Outcome::Accepted { .. }) && is_sent_back(this, policy) {
        return;
    }
    if let Stage::AwaitingLanding { outcome, reason } = &this.stage {
        let (outcome, reason) = (outcome.clone(), *reason);
        land::conclude(this, outcome, reason, policy);
    }
}

/// Takes findings into the ledger, as the gate's reviewers reported them. Returns those that are open.
fn record(this: &mut Loop, number: u32, findings: Vec<Finding>, policy: &Policy) -> Vec<Finding> {
    let Some(phase) = policy.workflow.first_gate_index() else { return findings };
    let round = Round {
        pass: this.at.pass,
        phase,
        item: None,
        cycle: this.cycles.get(&phase).copied().unwrap_or(0),
        commit: Some(this.head.commit.clone()),
        checkpoint: Some(number),
        task: None,
    };
    let mut said: BTreeMap<ReviewerName, Vec<Finding>> = BTreeMap::new();
    for finding in findings {
        let reviewer = finding.sources.first().or_else(|| first_reviewer(phase, policy));
        if let Some(reviewer) = reviewer.cloned() {
            said.entry(reviewer).or_default().push(finding);
        }
    }
    let review = |(reviewer, findings)| Review {
        findings,
        ..Review::of(reviewer, ReviewerKind::General, Verdict::ChangesRequested)
    };
    let reviews: Vec<Review> = said.into_iter().map(review).collect();
    this.ledger.record(&round, &reviews);
    let open = |entry: &&crate::ledger::Entry| entry.state == State::Open && entry.seen.contains(&round);
    let open: Vec<Finding> =
        this.ledger.entries().iter().filter(open).map(|entry| entry.finding.clone()).collect();
    if let Some(panel) = panel_mut(&mut this.stage) {
        panel.untold.extend(open.iter().map(|finding| finding.id.clone()).collect::<BTreeSet<FindingId>>());
    }
    open
}

pub(super) fn first_reviewer(phase: usize, policy: &Policy) -> Option<&ReviewerName> {
    policy.phase(phase).and_then(|phase| phase.judge()).and_then(|judge| judge.gate.reviewers.first())
}

/// The panel whose reviewers are at work, or whose answers are kept for later.
fn panel_mut(stage: &mut Stage) -> Option<&mut Panel> {
    match stage {
        Stage::Reviewing(panel) => Some(panel),
        Stage::Waiting { asked, .. } => panel_mut(asked),
        Stage::Done(Ending { again: Again::Resume(stage), .. }) => panel_mut(stage),
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
pub fn is_reopened(this: &mut Loop, policy: &Policy) -> bool {
    let Some(gate) = policy.workflow.first_gate_index() else { return false };
    let noted = |record: &GateRecord| {
        record.phase == gate && matches!(record.end, GateEnd::Noted { .. } | GateEnd::Unheard)
    };
    !this.gates.iter().any(noted) && is_sent_back(this, policy)
}

/// Sends a loop back to the gate that judges checkpoint findings if an open one blocks that gate. Returns whether it did.
fn is_sent_back(this: &mut Loop, policy: &Policy) -> bool {
    let Some((gate, phase)) = policy.workflow.first_gate_index().and_then(|at| Some((at, policy.phase(at)?)))
    else {
        return false;
    };
    let Some(bar) = phase.judge().map(|judge| judge.gate.fail_on) else { return false };
    let of_checkpoint = |round: &Round| round.checkpoint.is_some() && round.phase == gate;
    if !this.ledger.open(bar).any(|entry| entry.seen.iter().any(of_checkpoint)) {
        return false;
    }
    this.at.phase = gate;
    this.at.item = if phase.per_item { this.items.saturating_sub(1) } else { 0 };
    let (at, item) = (this.at.phase, this.at.item);
    this.gates.retain(|record| record.phase < at || (record.phase == at && record.item != item));
    let judges = |phase: &crate::workflow::Phase| phase.judge().is_some() && !phase.is_off();
    // If the loop just passed this gate, keep its count of fixes, so that the gate's bound still applies.
    if policy.workflow.phases.iter().rposition(judges) != Some(gate) {
        judge::begin_counting(this);
    }
    judge::not_passed(this, Vec::new(), policy);
    true
}
