//! Starts a loop with what earlier tasks on its branch left, or in the middle, where another program stopped.

use super::gate::CHECKS;
use super::land::LANDING;
use super::state::{Head, Loop, Stage};
use super::{EarlierFindings, ImportedProgress, Policy, Position, gate, phases};
use crate::ids::ReviewerName;
use crate::ledger::{Ledger, LedgerEntry, Round};
use crate::policy::Gate;
use crate::review::{Finding, Review, ReviewerKind, Verdict};
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
    if let PhaseKind::Gate(judge) = &policy.phase(phase)?.kind { Some(&judge.gate) } else { None }
}

/// Imports a loop in the middle of its workflow, with its counters and open findings.
pub fn import(this: &mut Loop, head: Head, at: Position, left: ImportedProgress, policy: &Policy) {
    if this.stage != Stage::Queued {
        return;
    }
    (this.head, this.at, this.gates) = (head, at, left.gates);
    for earlier in left.earlier {
        import_earlier(this, earlier, policy);
    }
    phases::enter(this, policy);
    // Findings of a gate that is disabled here do not apply to the next one.
    if this.at == at {
        import_gate(this, left.fixes, left.findings, policy);
    }
}

/// Continues a gate or check that another program started, with its counters and findings.
fn import_gate(this: &mut Loop, fixes: u32, findings: Vec<Finding>, policy: &Policy) {
    if let Stage::Reviewing(_) | Stage::Checking { .. } = this.stage {
        this.tally.fixes = fixes;
        // Each fix followed a review.
        this.tally.cycle = this.tally.cycle.saturating_add(fixes);
        this.cycles.insert(this.at.phase, this.tally.cycle);
    }
    if let Some(reviewer) = phases::panel(this).and_then(|panel| panel.seats.keys().next().cloned()) {
        let here = EarlierFindings { pass: this.at.pass, phase: this.at.phase, findings };
        record_imported(this, here, reviewer, policy);
    }
}

/// Imports open findings of another gate, or of this one in an earlier pass. The reviewers of that gate close them.
fn import_earlier(this: &mut Loop, earlier: EarlierFindings, policy: &Policy) {
    let reviewer = match policy.phase(earlier.phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Gate(judge)) => judge.gate.reviewers.first().cloned(),
        Some(PhaseKind::Check(_)) => Some(CHECKS.into()),
        Some(PhaseKind::Agent { .. }) | None => None,
    };
    if let Some(reviewer) = reviewer {
        record_imported(this, earlier, reviewer, policy);
    }
}

fn record_imported(this: &mut Loop, earlier: EarlierFindings, reviewer: ReviewerName, policy: &Policy) {
    let EarlierFindings { pass, phase, findings } = earlier;
    let verdict = Verdict::ChangesRequested;
    this.tally.has_readable |= !findings.is_empty();
    let review = Review { findings, ..Review::new(reviewer, ReviewerKind::General, verdict) };
    // These findings predate the first review here.
    let here = gate::round(this, policy);
    let item = here.item.filter(|_| (pass, phase) == (here.pass, here.phase));
    let round = Round { pass, phase, item, cycle: 0, ..here };
    this.ledger.record(&round, &[review]);
}
