//! Lands a signed-off loop, or returns it to its last gate.

use super::outcome::{Ending, Outcome, Reason, RetryAction};
use super::state::{Head, Loop, Stage};
use super::{LandingReport, Policy, fix, gate, phases};
use crate::ids::{AttemptId, FindingId};
use crate::ledger::Round;
use crate::review::{FailThreshold, Finding, Review, ReviewerKind, Verdict};
use crate::workflow::{Landing, PhaseKind};

/// The name of the merge queue in the ledger.
pub const LANDING: &str = "landing";

/// The kind of a finding about a merge conflict.
pub const CONFLICT: &str = "conflict";

/// The work is finished: it lands, waits for its group, or stays on its branch. An empty diff never lands. While a
/// checkpoint review is under way, only work that a person accepted lands.
pub fn finish_work(machine: &mut Loop, outcome: Outcome, reason: Option<Reason>, policy: &Policy) {
    let lands = outcome.is_completed() && !machine.is_unchanged();
    if machine.checkpoint.is_some() && lands && !matches!(outcome, Outcome::Accepted { .. }) {
        machine.stage = Stage::AwaitingLanding { outcome, reason };
        return;
    }
    machine.stage = match policy.workflow.landing {
        Landing::Each if lands => Stage::Landing { slot: machine.new_slot(), outcome, reason },
        Landing::Group if lands => Stage::AwaitingLanding { outcome, reason },
        Landing::None | Landing::Each | Landing::Group => {
            Stage::Done(Ending { outcome, reason, retry: RetryAction::Nothing })
        }
    };
}

/// The group allows the landing, or a person does after the end.
pub fn landing_granted(machine: &mut Loop, policy: &Policy) {
    let (Stage::AwaitingLanding { outcome, reason } | Stage::Done(Ending { outcome, reason, .. })) = &machine.stage
    else {
        return;
    };
    let (outcome, reason) = (outcome.clone(), *reason);
    let has_unlanded_work = || outcome.is_completed() && !machine.landed && !machine.is_unchanged();
    let may_land = if machine.is_done() { has_unlanded_work() } else { machine.checkpoint.is_none() };
    if !may_land {
        return;
    }
    if is_stale_approval(machine, &outcome) {
        back_to_last_gate(machine, policy);
        return phases::enter(machine, policy);
    }
    machine.stage = Stage::Landing { slot: machine.new_slot(), outcome, reason };
}

/// Whether the approval is for another commit than the head.
fn is_stale_approval(machine: &Loop, outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Approved { commit } if *commit != machine.head.commit)
}

/// Tries again after a failed landing. Findings of the merge queue are fixed first, and work that changed after its
/// approval is reviewed again.
pub fn retry(machine: &mut Loop, outcome: Outcome, reason: Option<Reason>, policy: &Policy) {
    let sent_back = !landing_findings(machine, policy).is_empty();
    if sent_back || is_stale_approval(machine, &outcome) {
        back_to_last_gate(machine, policy);
    }
    if sent_back {
        fix_landing_findings(machine, policy);
    } else if is_stale_approval(machine, &outcome) {
        phases::enter(machine, policy);
    } else {
        finish_work(machine, outcome, reason, policy);
    }
}

pub fn ended(machine: &mut Loop, attempt: AttemptId, report: LandingReport, policy: &Policy) {
    let Stage::Landing { outcome, reason, .. } = &machine.stage else { return };
    if !machine.runs(attempt) {
        return;
    }
    let (outcome, reason) = (outcome.clone(), *reason);
    machine.reset_losses();
    match report {
        LandingReport::Landed { .. } => {
            let review = Review::new(LANDING.into(), ReviewerKind::Tests, Verdict::Approved);
            let round = round(machine, policy);
            machine.ledger_mut().record(&round, &[review]);
            machine.landed = true;
            machine.stage = Stage::Done(Ending { outcome, reason, retry: RetryAction::Nothing });
        }
        LandingReport::SentBack { head, findings } => reject_landing(machine, head, findings, policy),
    }
}

fn round(machine: &Loop, policy: &Policy) -> Round {
    machine.round_at(policy.workflow.phases.len(), machine.counters.conflicts)
}

/// The merge queue itself failed.
pub fn failed(machine: &mut Loop, policy: &Policy) {
    let Stage::Landing { outcome, reason, .. } = &machine.stage else { return };
    let (outcome, reason) = (outcome.clone(), *reason);
    if may_retry(machine, policy) {
        machine.counters.conflicts += 1;
        machine.stage = Stage::Landing { slot: machine.new_slot(), outcome, reason };
    } else {
        phases::end(machine, Outcome::Failed, Reason::LandingFailed, RetryAction::Land { outcome, reason });
    }
}

fn may_retry(machine: &Loop, policy: &Policy) -> bool {
    let allowed = policy.workflow.limits.max_conflicts.saturating_add(machine.counters.granted.conflicts);
    machine.counters.conflicts < allowed
}

/// A conflict, or checks that fail after the merge: their findings are fixed and reviewed like others.
fn reject_landing(machine: &mut Loop, head: Head, findings: Vec<Finding>, policy: &Policy) {
    let Stage::Landing { outcome, reason, .. } = &machine.stage else { return };
    let (outcome, reason) = (outcome.clone(), *reason);
    machine.head = head;
    let unresolved = if findings.iter().any(|finding| finding.kind.as_str() == CONFLICT) {
        Reason::ConflictUnresolved
    } else {
        Reason::LandingChecksFailed
    };
    let review = Review { findings, ..Review::new(LANDING.into(), ReviewerKind::Tests, Verdict::ChangesRequested) };
    let round = round(machine, policy);
    machine.ledger_mut().record(&round, &[review]);
    if !may_retry(machine, policy) {
        return phases::end(machine, Outcome::Stuck, unresolved, RetryAction::Land { outcome, reason });
    }
    machine.counters.conflicts += 1;
    back_to_last_gate(machine, policy);
    fix_landing_findings(machine, policy);
}

/// Returns to the last gate and resets its counters. The conflict counter limits this.
fn back_to_last_gate(machine: &mut Loop, policy: &Policy) {
    let last =
        policy.workflow.phases.iter().rposition(|phase| matches!(phase.kind, PhaseKind::Gate(_)) && !phase.is_off());
    machine.position.phase = last.unwrap_or(policy.workflow.phases.len());
    machine.gates.retain(|record| record.phase < machine.position.phase);
    gate::reset_counters(machine);
}

fn fix_landing_findings(machine: &mut Loop, policy: &Policy) {
    let group = landing_findings(machine, policy);
    fix::launch(machine, vec![group], Vec::new(), policy);
}

/// Open findings of the merge queue.
fn landing_findings(machine: &Loop, policy: &Policy) -> Vec<FindingId> {
    let landing = policy.workflow.phases.len();
    let from_landing = |entry: &&crate::ledger::LedgerEntry| entry.seen.iter().any(|round| round.phase == landing);
    machine.ledger.open(FailThreshold::Low).filter(from_landing).map(|entry| entry.finding.id.clone()).collect()
}

/// A foreign commit was added: an approval of the commit before is void.
pub fn head_moved(machine: &mut Loop, head: Head, policy: &Policy) {
    if head.commit == machine.head.commit || machine.is_done() {
        return;
    }
    machine.head = head;
    if let Stage::Reviewing(panel) = &machine.stage {
        let scope = panel.scope;
        review_again(machine, policy, |machine| gate::open_round(machine, scope, policy));
    } else if let Stage::AwaitingLanding { .. } | Stage::Landing { .. } = machine.stage {
        review_again(machine, policy, |machine| {
            back_to_last_gate(machine, policy);
            phases::enter(machine, policy);
        });
    }
}

fn review_again(machine: &mut Loop, policy: &Policy, start_review: impl FnOnce(&mut Loop)) {
    if !may_retry(machine, policy) {
        return phases::end_resumable(machine, Outcome::Failed, Reason::ChangedAfterReview);
    }
    machine.counters.conflicts += 1;
    start_review(machine);
}
