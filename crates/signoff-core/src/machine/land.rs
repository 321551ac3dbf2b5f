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
pub fn conclude(this: &mut Loop, outcome: Outcome, reason: Option<Reason>, policy: &Policy) {
    let lands = outcome.is_completed() && !this.is_unchanged();
    if this.checkpoint.is_some() && lands && !matches!(outcome, Outcome::Accepted { .. }) {
        this.stage = Stage::AwaitingLanding { outcome, reason };
        return;
    }
    this.stage = match policy.workflow.landing {
        Landing::Each if lands => Stage::Landing { slot: this.new_slot(), outcome, reason },
        Landing::Group if lands => Stage::AwaitingLanding { outcome, reason },
        Landing::None | Landing::Each | Landing::Group => {
            Stage::Done(Ending { outcome, reason, retry: RetryAction::Nothing })
        }
    };
}

/// The group allows the landing, or a person does after the end.
pub fn granted(this: &mut Loop, policy: &Policy) {
    let (Stage::AwaitingLanding { outcome, reason } | Stage::Done(Ending { outcome, reason, .. })) = &this.stage else {
        return;
    };
    let (outcome, reason) = (outcome.clone(), *reason);
    let has_unlanded_work = || outcome.is_completed() && !this.landed && !this.is_unchanged();
    let may_land = if this.is_done() { has_unlanded_work() } else { this.checkpoint.is_none() };
    if !may_land {
        return;
    }
    if is_stale_approval(this, &outcome) {
        back_to_last_gate(this, policy);
        return phases::enter(this, policy);
    }
    this.stage = Stage::Landing { slot: this.new_slot(), outcome, reason };
}

/// Whether the approval is for another commit than the head.
fn is_stale_approval(this: &Loop, outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Approved { commit } if *commit != this.head.commit)
}

/// Tries again after a failed landing. Findings of the merge queue are fixed first, and work that changed after its
/// approval is reviewed again.
pub fn retry(this: &mut Loop, outcome: Outcome, reason: Option<Reason>, policy: &Policy) {
    let sent_back = !landing_findings(this, policy).is_empty();
    if sent_back || is_stale_approval(this, &outcome) {
        back_to_last_gate(this, policy);
    }
    if sent_back {
        fix_landing_findings(this, policy);
    } else if is_stale_approval(this, &outcome) {
        phases::enter(this, policy);
    } else {
        conclude(this, outcome, reason, policy);
    }
}

pub fn ended(this: &mut Loop, attempt: AttemptId, report: LandingReport, policy: &Policy) {
    let Stage::Landing { outcome, reason, .. } = &this.stage else { return };
    if !this.runs(attempt) {
        return;
    }
    let (outcome, reason) = (outcome.clone(), *reason);
    this.reset_losses();
    match report {
        LandingReport::Landed { .. } => {
            let review = Review::new(LANDING.into(), ReviewerKind::Tests, Verdict::Approved);
            let round = round(this, policy);
            this.ledger.record(&round, &[review]);
            this.landed = true;
            this.stage = Stage::Done(Ending { outcome, reason, retry: RetryAction::Nothing });
        }
        LandingReport::SentBack { head, findings } => sent_back(this, head, findings, policy),
    }
}

fn round(this: &Loop, policy: &Policy) -> Round {
    this.round_at(policy.workflow.phases.len(), this.counters.conflicts)
}

/// The merge queue itself failed.
pub fn failed(this: &mut Loop, policy: &Policy) {
    let Stage::Landing { outcome, reason, .. } = &this.stage else { return };
    let (outcome, reason) = (outcome.clone(), *reason);
    if may_retry(this, policy) {
        this.counters.conflicts += 1;
        this.stage = Stage::Landing { slot: this.new_slot(), outcome, reason };
    } else {
        phases::end(this, Outcome::Failed, Reason::LandingFailed, RetryAction::Land { outcome, reason });
    }
}

fn may_retry(this: &Loop, policy: &Policy) -> bool {
    let allowed = policy.workflow.limits.max_conflicts.saturating_add(this.counters.granted.conflicts);
    this.counters.conflicts < allowed
}

/// A conflict, or checks that fail after the merge: their findings are fixed and reviewed like others.
fn sent_back(this: &mut Loop, head: Head, findings: Vec<Finding>, policy: &Policy) {
    let Stage::Landing { outcome, reason, .. } = &this.stage else { return };
    let (outcome, reason) = (outcome.clone(), *reason);
    this.head = head;
    let unresolved = if findings.iter().any(|finding| finding.kind.as_str() == CONFLICT) {
        Reason::ConflictUnresolved
    } else {
        Reason::LandingChecksFailed
    };
    let review = Review { findings, ..Review::new(LANDING.into(), ReviewerKind::Tests, Verdict::ChangesRequested) };
    let round = round(this, policy);
    this.ledger.record(&round, &[review]);
    if !may_retry(this, policy) {
        return phases::end(this, Outcome::Stuck, unresolved, RetryAction::Land { outcome, reason });
    }
    this.counters.conflicts += 1;
    back_to_last_gate(this, policy);
    fix_landing_findings(this, policy);
}

/// Returns to the last gate and resets its counters. The conflict counter limits this.
fn back_to_last_gate(this: &mut Loop, policy: &Policy) {
    let last =
        policy.workflow.phases.iter().rposition(|phase| matches!(phase.kind, PhaseKind::Gate(_)) && !phase.is_off());
    this.position.phase = last.unwrap_or(policy.workflow.phases.len());
    this.gates.retain(|record| record.phase < this.position.phase);
    gate::reset_counters(this);
}

fn fix_landing_findings(this: &mut Loop, policy: &Policy) {
    let group = landing_findings(this, policy);
    fix::launch(this, vec![group], Vec::new(), policy);
}

/// Open findings of the merge queue.
fn landing_findings(this: &Loop, policy: &Policy) -> Vec<FindingId> {
    let landing = policy.workflow.phases.len();
    let from_landing = |entry: &&crate::ledger::LedgerEntry| entry.seen.iter().any(|round| round.phase == landing);
    this.ledger.open(FailThreshold::Low).filter(from_landing).map(|entry| entry.finding.id.clone()).collect()
}

/// A foreign commit was added: an approval of the commit before is void.
pub fn head_moved(this: &mut Loop, head: Head, policy: &Policy) {
    if head.commit == this.head.commit || this.is_done() {
        return;
    }
    this.head = head;
    if let Stage::Reviewing(panel) = &this.stage {
        let scope = panel.scope;
        review_again(this, policy, |this| gate::open_round(this, scope, policy));
    } else if let Stage::AwaitingLanding { .. } | Stage::Landing { .. } = this.stage {
        review_again(this, policy, |this| {
            back_to_last_gate(this, policy);
            phases::enter(this, policy);
        });
    }
}

fn review_again(this: &mut Loop, policy: &Policy, look: impl FnOnce(&mut Loop)) {
    if !may_retry(this, policy) {
        return phases::end_resumable(this, Outcome::Failed, Reason::ChangedAfterReview);
    }
    this.counters.conflicts += 1;
    look(this);
}
