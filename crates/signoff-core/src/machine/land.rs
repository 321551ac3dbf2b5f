//! From signed off to landed, and back when it does not fit.

use super::outcome::{Again, Ending, Outcome, Reason};
use super::state::{Head, Loop, Stage};
use super::{LandReport, Policy, finish, fix, judge};
use crate::ids::{AttemptId, FindingId};
use crate::ledger::Round;
use crate::review::{Bar, Finding, Review, ReviewerKind, Verdict};
use crate::workflow::{Landing, PhaseKind};

/// The name under which the merge queue stands in the ledger.
pub const LANDING: &str = "landing";

/// The kind of a finding about a file that both sides changed.
pub const CONFLICT: &str = "conflict";

/// The work is finished: it lands, waits for its group to land, or stays where it is. An empty diff never lands. While a
/// checkpoint review is under way, only work that a person accepted lands.
pub fn conclude(this: &mut Loop, outcome: Outcome, reason: Option<Reason>, policy: &Policy) {
    let lands = outcome.carries_on() && !this.is_unchanged();
    if this.checkpoint.is_some() && lands && !matches!(outcome, Outcome::Accepted { .. }) {
        this.stage = Stage::AwaitingLanding { outcome, reason };
        return;
    }
    this.stage = match policy.workflow.landing {
        Landing::Each if lands => Stage::Landing { slot: this.new_slot(), outcome, reason },
        Landing::Group if lands => Stage::AwaitingLanding { outcome, reason },
        Landing::None | Landing::Each | Landing::Group => {
            Stage::Done(Ending { outcome, reason, again: Again::Nothing })
        }
    };
}

/// The group lets it land, or a person does after the end.
pub fn granted(this: &mut Loop, policy: &Policy) {
    let (outcome, reason) = match &this.stage {
        Stage::AwaitingLanding { .. } if this.checkpoint.is_some() => return,
        Stage::AwaitingLanding { outcome, reason } => (outcome.clone(), *reason),
        Stage::Done(Ending { outcome, reason, .. })
            if outcome.carries_on() && !this.landed && !this.is_unchanged() =>
        {
            (outcome.clone(), *reason)
        }
        Stage::Queued
        | Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Reviewing(_)
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::Landing { .. }
        | Stage::Waiting { .. }
        | Stage::Done(_) => return,
    };
    if is_void(this, &outcome) {
        back_to_last_gate(this, policy);
        return finish::enter(this, policy);
    }
    this.stage = Stage::Landing { slot: this.new_slot(), outcome, reason };
}

/// An approval of another commit than the head is none.
fn is_void(this: &Loop, outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Approved { commit } if *commit != this.head.commit)
}

/// Another try after the landing failed. What the merge queue found is fixed first, and nothing lands that
/// was changed after its approval.
pub fn again(this: &mut Loop, outcome: Outcome, reason: Option<Reason>, policy: &Policy) {
    let sent_back = !landing_findings(this, policy).is_empty();
    if sent_back || is_void(this, &outcome) {
        back_to_last_gate(this, policy);
    }
    if sent_back {
        fix_landing_findings(this, policy);
    } else if is_void(this, &outcome) {
        finish::enter(this, policy);
    } else {
        conclude(this, outcome, reason, policy);
    }
}

pub fn ended(this: &mut Loop, attempt: AttemptId, report: LandReport, policy: &Policy) {
    let Stage::Landing { outcome, reason, .. } = &this.stage else { return };
    if !this.runs(attempt) {
        return;
    }
    let (outcome, reason) = (outcome.clone(), *reason);
    this.accounted_for();
    match report {
        LandReport::Landed { .. } => {
            let review = Review::of(LANDING.into(), ReviewerKind::Tests, Verdict::Approved);
            let round = round(this, policy);
            this.ledger.record(&round, &[review]);
            this.landed = true;
            this.stage = Stage::Done(Ending { outcome, reason, again: Again::Nothing });
        }
        LandReport::SentBack { head, findings } => sent_back(this, head, findings, policy),
    }
}

fn round(this: &Loop, policy: &Policy) -> Round {
    Round {
        pass: this.at.pass,
        phase: policy.workflow.phases.len(),
        item: None,
        cycle: this.tally.conflicts,
        commit: Some(this.head.commit.clone()),
        checkpoint: None,
        task: None,
    }
}

/// The merge queue could not do its work at all.
pub fn failed(this: &mut Loop, policy: &Policy) {
    let Stage::Landing { outcome, reason, .. } = &this.stage else { return };
    let (outcome, reason) = (outcome.clone(), *reason);
    if may_come_back(this, policy) {
        this.tally.conflicts += 1;
        this.stage = Stage::Landing { slot: this.new_slot(), outcome, reason };
    } else {
        finish::end(this, Outcome::Failed, Reason::LandingFailed, Again::Land { outcome, reason });
    }
}

fn may_come_back(this: &Loop, policy: &Policy) -> bool {
    let allowed = policy.workflow.limits.max_conflicts.saturating_add(this.tally.granted.conflicts);
    this.tally.conflicts < allowed
}

/// A conflict, or checks that fail only together: findings for this loop, fixed and reviewed like others.
fn sent_back(this: &mut Loop, head: Head, findings: Vec<Finding>, policy: &Policy) {
    let Stage::Landing { outcome, reason, .. } = &this.stage else { return };
    let (outcome, reason) = (outcome.clone(), *reason);
    this.head = head;
    let unresolved = if findings.iter().any(|finding| finding.kind.as_str() == CONFLICT) {
        Reason::ConflictUnresolved
    } else {
        Reason::LandingChecksFailed
    };
    let review =
        Review { findings, ..Review::of(LANDING.into(), ReviewerKind::Tests, Verdict::ChangesRequested) };
    let round = round(this, policy);
    this.ledger.record(&round, &[review]);
    if !may_come_back(this, policy) {
        return finish::end(this, Outcome::Stuck, unresolved, Again::Land { outcome, reason });
    }
    this.tally.conflicts += 1;
    back_to_last_gate(this, policy);
    fix_landing_findings(this, policy);
}

/// A new way through the last gate, whose counters begin anew: the conflict counter bounds this.
fn back_to_last_gate(this: &mut Loop, policy: &Policy) {
    let last = policy
        .workflow
        .phases
        .iter()
        .rposition(|phase| matches!(phase.kind, PhaseKind::Gate(_)) && !phase.is_off());
    this.at.phase = last.unwrap_or(policy.workflow.phases.len());
    this.gates.retain(|record| record.phase < this.at.phase);
    judge::begin_counting(this);
}

fn fix_landing_findings(this: &mut Loop, policy: &Policy) {
    let group = landing_findings(this, policy);
    fix::launch(this, vec![group], Vec::new(), policy);
}

/// What the merge queue found and nobody has settled.
fn landing_findings(this: &Loop, policy: &Policy) -> Vec<FindingId> {
    let landing = policy.workflow.phases.len();
    let from_landing = |entry: &&crate::ledger::Entry| entry.seen.iter().any(|round| round.phase == landing);
    this.ledger.open(Bar::Low).filter(from_landing).map(|entry| entry.finding.id.clone()).collect()
}

/// Somebody committed to the branch: an approval of the commit before is void.
pub fn head_moved(this: &mut Loop, head: Head, policy: &Policy) {
    if head.commit == this.head.commit {
        return;
    }
    match &this.stage {
        Stage::Reviewing(panel) => {
            let scope = panel.scope;
            this.head = head;
            look_again(this, policy, |this| judge::open(this, scope, policy));
        }
        Stage::AwaitingLanding { .. } | Stage::Landing { .. } => {
            this.head = head;
            look_again(this, policy, |this| {
                back_to_last_gate(this, policy);
                finish::enter(this, policy);
            });
        }
        Stage::Queued
        | Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::Waiting { .. } => this.head = head,
        Stage::Done(_) => {}
    }
}

fn look_again(this: &mut Loop, policy: &Policy, look: impl FnOnce(&mut Loop)) {
    if !may_come_back(this, policy) {
        let again = finish::resume(this);
        return finish::end(this, Outcome::Failed, Reason::ChangedAfterReview, again);
    }
    this.tally.conflicts += 1;
    look(this);
}
