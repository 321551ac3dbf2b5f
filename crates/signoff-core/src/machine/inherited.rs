//! Findings inherited from earlier tasks on the same branch.

use super::gate::CHECKS;
use super::land::LANDING;
use super::state::{Loop, Stage};
use super::{Policy, Position};
use crate::ids::ReviewerName;
use crate::ledger::{Ledger, LedgerEntry, Round};
use crate::policy::Gate;
use crate::workflow::PhaseKind;

/// Starts the loop with the findings that earlier tasks on its branch left open or disputed. The gates judge them
/// like their own.
pub fn inherit(this: &mut Loop, left: Ledger, policy: &Policy) {
    if this.stage == Stage::Queued {
        let at = this.at;
        this.ledger.inherit(left, |entry| place_finding(entry, at, policy));
    }
}

/// Assigns a finding to the gate of a reviewer that reported it, else to the first gate. A reviewer of that gate must
/// be able to close it.
fn place_finding(entry: &mut LedgerEntry, at: Position, policy: &Policy) {
    let sources = &entry.finding.sources;
    let phase = match sources.iter().all(|source| source.as_str() == LANDING) {
        true => policy.workflow.phases.len(),
        false => gate_of(sources, policy).unwrap_or(0),
    };
    if let Some(gate) = gate_at(phase, policy)
        && !sources.iter().any(|source| gate.reviewers.contains(source))
        && let Some(reviewer) = gate.reviewers.first()
    {
        entry.finding.sources.push(reviewer.clone());
    }
    for round in &mut entry.seen {
        let Round { commit, task, .. } = round.clone();
        *round = Round { pass: at.pass, phase, item: None, cycle: 0, commit, checkpoint: None, task };
    }
}

fn gate_of(sources: &[ReviewerName], policy: &Policy) -> Option<usize> {
    let phases = &policy.workflow.phases;
    let checks = sources.iter().any(|source| source.as_str() == CHECKS);
    let check = phases.iter().position(|phase| matches!(phase.kind, PhaseKind::Check(_)) && !phase.is_off());
    let sits = |index: &usize| {
        let gate = gate_at(*index, policy);
        gate.is_some_and(|gate| sources.iter().any(|source| gate.reviewers.contains(source)))
    };
    check
        .filter(|_| checks)
        .or_else(|| (0..phases.len()).find(sits))
        .or_else(|| policy.workflow.first_gate_index())
        .or_else(|| phases.iter().position(|phase| phase.is_gate()))
}

fn gate_at(phase: usize, policy: &Policy) -> Option<&Gate> {
    match &policy.phase(phase)?.kind {
        PhaseKind::Gate(judge) => Some(&judge.gate),
        PhaseKind::Agent { .. } | PhaseKind::Check(_) => None,
    }
}
