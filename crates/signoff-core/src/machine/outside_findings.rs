//! Findings that come from outside the loop's own gates: from checkpoint reviews, from earlier tasks on its branch, and
//! from another program that the loop continues. They go into the ledger, where the gates judge them.

use std::collections::{BTreeMap, BTreeSet};

use super::land::LANDING;
use super::outcome::{Ending, Outcome, RetryAction};
use super::state::{AttemptSlot, GateEnd, GateRecord, Head, Loop, Panel, PauseReason, Position, Stage};
use super::{EarlierFindings, ImportedProgress, Policy, gate, land, phases};
use crate::ids::{FindingId, ReviewerName};
use crate::ledger::{FindingState, Ledger, LedgerEntry, Round};
use crate::policy::Gate;
use crate::review::{Finding, Review, ReviewerKind, Verdict};
use crate::settings::CHECKS;
use crate::workflow::{Phase, PhaseKind};

/// Starts a checkpoint review of a loop at work.
pub fn checkpoint_began(machine: &mut Loop, number: u32) {
    if !matches!(machine.stage, Stage::Queued | Stage::AwaitingLanding { .. } | Stage::Landing { .. } | Stage::Done(_))
    {
        machine.checkpoint = Some(number);
    }
}

/// Ends a checkpoint review: its findings go into the ledger and to the next attempt. Paused attempts start, and a
/// loop that was signed off meanwhile lands or goes back to its gate.
pub fn checkpoint_ended(machine: &mut Loop, findings: Vec<Finding>, number: Option<u32>, policy: &Policy) {
    machine.checkpoint = None;
    let findings = match number {
        Some(number) => record(machine, number, findings, policy),
        None => findings,
    };
    if machine.is_done() {
        return;
    }
    machine.counters.last_checkpoint = machine.counters.attempts;
    machine.next_notes.extend(findings);
    let waiting =
        machine.slots().into_iter().filter(|slot| **slot == AttemptSlot::Paused(PauseReason::Checkpoint)).count();
    if waiting > 0 {
        machine.counters.attempts += u32::try_from(waiting).unwrap_or(u32::MAX);
        machine.notes = std::mem::take(&mut machine.next_notes);
        machine.resume_paused(&PauseReason::Checkpoint);
    }
    land_or_send_back(machine, policy);
}

/// Sends a signed-off loop back to its gate if a checkpoint finding blocks it, else lets it land. A person's approval
/// is not sent back.
fn land_or_send_back(machine: &mut Loop, policy: &Policy) {
    let (Stage::AwaitingLanding { outcome, .. } | Stage::Landing { outcome, .. }) = &machine.stage else {
        return;
    };
    if !matches!(outcome, Outcome::Accepted { .. }) && send_back(machine, policy) {
        return;
    }
    if let Stage::AwaitingLanding { outcome, reason } = &machine.stage {
        let (outcome, reason) = (outcome.clone(), *reason);
        land::finish_work(machine, outcome, reason, policy);
    }
}

/// Records findings as reported by the gate's reviewers. Returns the open ones.
fn record(machine: &mut Loop, number: u32, findings: Vec<Finding>, policy: &Policy) -> Vec<Finding> {
    let Some(phase) = policy.workflow.first_gate_index() else { return findings };
    let cycle = machine.cycles.get(&phase).copied().unwrap_or(0);
    let round = Round { checkpoint: Some(number), ..machine.round_at(phase, cycle) };
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
    machine.ledger_mut().record(&round, &reviews);
    let open = |entry: &&LedgerEntry| entry.state == FindingState::Open && entry.seen.contains(&round);
    let open: Vec<Finding> = machine.ledger.entries().iter().filter(open).map(|entry| entry.finding.clone()).collect();
    if let Some(panel) = panel_mut(&mut machine.stage) {
        panel.unlisted.extend(open.iter().map(|finding| finding.id.clone()).collect::<BTreeSet<FindingId>>());
    }
    open
}

/// The panel at work, or the one whose answers are kept for later.
fn panel_mut(stage: &mut Stage) -> Option<&mut Panel> {
    if let Stage::Waiting { interrupted_stage, .. }
    | Stage::Done(Ending { retry: RetryAction::Resume(interrupted_stage), .. }) = stage
    {
        return panel_mut(interrupted_stage);
    }
    if let Stage::Reviewing(panel) = stage { Some(panel) } else { None }
}

/// Sends a loop that has finished all phases back to its gate if a checkpoint finding came after that gate. If the gate
/// itself went on with open findings, the loop is not sent back. Returns whether it was.
pub fn reopen(machine: &mut Loop, policy: &Policy) -> bool {
    let Some(gate) = policy.workflow.first_gate_index() else { return false };
    let noted = |record: &GateRecord| {
        record.phase == gate && matches!(record.end, GateEnd::LeftFindings { .. } | GateEnd::ReviewersMissing)
    };
    !machine.gates.iter().any(noted) && send_back(machine, policy)
}

/// Sends a loop back to the gate that judges checkpoint findings if an open one blocks that gate. Returns whether
/// it did.
fn send_back(machine: &mut Loop, policy: &Policy) -> bool {
    let Some((gate, phase)) = policy.workflow.first_gate_index().and_then(|at| Some((at, policy.phase(at)?))) else {
        return false;
    };
    let Some(threshold) = phase.policy().map(|gate_policy| gate_policy.gate.fail_on) else { return false };
    let of_checkpoint = |round: &Round| round.checkpoint.is_some() && round.phase == gate;
    if !machine.ledger.open(threshold).any(|entry| entry.seen.iter().any(of_checkpoint)) {
        return false;
    }
    machine.position.phase = gate;
    machine.position.item = if phase.per_item { machine.items.saturating_sub(1) } else { 0 };
    let (phase, item) = (machine.position.phase, machine.position.item);
    machine.gates.retain(|record| record.phase < phase || (record.phase == phase && record.item != item));
    let is_active_gate = |phase: &Phase| phase.policy().is_some() && !phase.is_off();
    // If the loop just passed this gate, keep its count of fixes, so that the gate's limit still applies.
    if policy.workflow.phases.iter().rposition(is_active_gate) != Some(gate) {
        gate::reset_counters(machine);
    }
    gate::not_passed(machine, Vec::new(), policy);
    true
}

/// Starts the loop with the findings that earlier tasks on its branch left open or disputed. The gates judge them
/// like their own.
pub fn inherit(machine: &mut Loop, inherited: Ledger, policy: &Policy) {
    if machine.stage == Stage::Queued {
        let position = machine.position;
        machine.ledger_mut().inherit(inherited, |entry| assign_to_gate(entry, position, policy));
    }
}

/// Assigns a finding to the gate of a reviewer that reported it, else to the first gate. A reviewer of that gate must
/// be able to close it.
fn assign_to_gate(entry: &mut LedgerEntry, position: Position, policy: &Policy) {
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
        *round = Round { pass: position.pass, phase, item: None, cycle: 0, commit, checkpoint: None, task };
    }
}

fn gate_of(sources: &[ReviewerName], policy: &Policy) -> Option<usize> {
    let phases = &policy.workflow.phases;
    let checks = sources.iter().any(|source| source.as_str() == CHECKS);
    let check = phases.iter().position(|phase| matches!(phase.kind, PhaseKind::Check(_)) && !phase.is_off());
    let reviews_at = |index: &usize| {
        let gate = gate_at(*index, policy);
        gate.is_some_and(|gate| sources.iter().any(|source| gate.reviewers.contains(source)))
    };
    check
        .filter(|_| checks)
        .or_else(|| (0..phases.len()).find(reviews_at))
        .or_else(|| policy.workflow.first_gate_index())
        .or_else(|| phases.iter().position(|phase| phase.is_gate()))
}

fn gate_at(phase: usize, policy: &Policy) -> Option<&Gate> {
    if let PhaseKind::Gate(gate_policy) = &policy.phase(phase)?.kind { Some(&gate_policy.gate) } else { None }
}

/// Imports a loop in the middle of its workflow, with its counters and open findings.
pub fn import(machine: &mut Loop, head: Head, position: Position, progress: ImportedProgress, policy: &Policy) {
    if machine.stage != Stage::Queued {
        return;
    }
    (machine.head, machine.position, machine.gates) = (head, position, progress.gates);
    for earlier in progress.earlier {
        import_earlier(machine, earlier, policy);
    }
    phases::enter(machine, policy);
    // Findings of a gate that is disabled here do not apply to the next one.
    if machine.position == position {
        import_gate(machine, progress.fixes, progress.findings, policy);
    }
}

/// Continues a gate or check that another program started, with its counters and findings.
fn import_gate(machine: &mut Loop, fixes: u32, findings: Vec<Finding>, policy: &Policy) {
    if let Stage::Reviewing(_) | Stage::Checking { .. } = machine.stage {
        machine.counters.fixes = fixes;
        // Each fix followed a review.
        machine.counters.cycle = machine.counters.cycle.saturating_add(fixes);
        machine.cycles.insert(machine.position.phase, machine.counters.cycle);
    }
    if let Some(reviewer) = phases::panel(machine).and_then(|panel| panel.reviewers.keys().next().cloned()) {
        let here = EarlierFindings { pass: machine.position.pass, phase: machine.position.phase, findings };
        record_imported(machine, here, reviewer, policy);
    }
}

/// Imports open findings of another gate, or of this one in an earlier pass. The reviewers of that gate close them.
fn import_earlier(machine: &mut Loop, earlier: EarlierFindings, policy: &Policy) {
    let reviewer = match policy.phase(earlier.phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Gate(gate_policy)) => gate_policy.gate.reviewers.first().cloned(),
        Some(PhaseKind::Check(_)) => Some(CHECKS.into()),
        Some(PhaseKind::Agent { .. }) | None => None,
    };
    if let Some(reviewer) = reviewer {
        record_imported(machine, earlier, reviewer, policy);
    }
}

fn record_imported(machine: &mut Loop, earlier: EarlierFindings, reviewer: ReviewerName, policy: &Policy) {
    let EarlierFindings { pass, phase, findings } = earlier;
    let verdict = Verdict::ChangesRequested;
    machine.counters.has_readable |= !findings.is_empty();
    let review = Review { findings, ..Review::new(reviewer, ReviewerKind::General, verdict) };
    // These findings predate the first review here.
    let here = gate::round(machine, policy);
    let item = here.item.filter(|_| (pass, phase) == (here.pass, here.phase));
    let round = Round { pass, phase, item, cycle: 0, ..here };
    machine.ledger_mut().record(&round, &[review]);
}
