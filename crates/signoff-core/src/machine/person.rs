//! Decisions of a person: answers, retries and verdicts.

use super::event::FinalVerdict;
use super::gate::PanelCoverage;
use super::outcome::{Ending, Outcome, Reason, RetryAction};
use super::state::{GateEnd, Head, Loop, Panel, QuestionTopic, ReviewerState, Stage};
use super::{Choice, Policy, fix, gate, land, phases, work};
use crate::ids::QuestionId;
use crate::review::{Finding, Review, ReviewerKind, Verdict};

/// Answers an open question with one of its choices.
pub fn answered(this: &mut Loop, id: QuestionId, choice: Choice, policy: &Policy) {
    let Stage::Waiting { question, interrupted_stage } = &this.stage else { return };
    if question.id != id || !question.choices.contains(&choice) {
        return;
    }
    let (topic, stage) = (question.topic.clone(), (**interrupted_stage).clone());
    match choice {
        Choice::Retry => resume_stage(this, stage, policy),
        Choice::Restart => phases::restart(this, policy),
        Choice::Skip => skip_review(this, policy),
        Choice::Proceed => proceed(this, &topic, stage, policy),
        Choice::Continue => grant_fix(this, policy),
        Choice::Fix => {
            let by = if let QuestionTopic::Discussion { by } = topic { by } else { Vec::new() };
            fix::begin(this, by, policy);
        }
        Choice::Stop => stop(this, &topic, stage, policy),
    }
}

fn proceed(this: &mut Loop, topic: &QuestionTopic, stage: Stage, policy: &Policy) {
    match topic {
        QuestionTopic::PartialReview { .. } => {
            this.stage = stage;
            gate::evaluate_answers(this, PanelCoverage::Partial, policy);
        }
        QuestionTopic::UnclearReview { .. } | QuestionTopic::NoReview { .. } => skip_review(this, policy),
        QuestionTopic::Exhausted(reason) => phases::proceed_with_findings(this, *reason, policy),
        QuestionTopic::Discussion { .. } => phases::proceed_with_findings(this, Reason::Discussion, policy),
        QuestionTopic::FixerFailed | QuestionTopic::ImplementerFailed => {}
    }
}

/// Goes on without the review. This never counts as an approval.
fn skip_review(this: &mut Loop, policy: &Policy) {
    phases::record_gate_end(this, GateEnd::ReviewersMissing);
    phases::advance(this, policy);
}

fn grant_fix(this: &mut Loop, policy: &Policy) {
    if let Some(gate) = last_gate(this, policy).filter(|_| phases::current_gate_policy(this, policy).is_none()) {
        this.position.phase = gate;
    }
    let bound =
        phases::current_gate_policy(this, policy).and_then(|gate_policy| gate_policy.gate.bound.fixes()).unwrap_or(0);
    this.counters.granted.fixes = this.counters.fixes.saturating_add(1).saturating_sub(bound);
    this.counters.noop_fixes = 0;
    let unparsed_reviewers = this.unparsed_reviewers.clone();
    fix::begin(this, unparsed_reviewers, policy);
}

/// The last gate that the loop has reached.
fn last_gate(this: &Loop, policy: &Policy) -> Option<usize> {
    let phases = policy.workflow.phases.iter().take(this.position.phase + 1);
    phases.enumerate().rev().find(|(_, phase)| phase.is_gate() && !phase.is_off()).map(|(index, _)| index)
}

fn stop(this: &mut Loop, topic: &QuestionTopic, stage: Stage, policy: &Policy) {
    let (outcome, reason, again) = match topic {
        QuestionTopic::Exhausted(reason) => {
            let gate_policy = phases::current_gate_policy(this, policy);
            let outcome =
                gate_policy.map_or(Outcome::Failed, |gate_policy| phases::outcome_for(gate_policy.gate.exhausted_as));
            (outcome, *reason, RetryAction::Fix)
        }
        QuestionTopic::Discussion { .. } => {
            (Outcome::Discussion, Reason::Discussion, RetryAction::Resume(Box::new(stage)))
        }
        QuestionTopic::PartialReview { .. }
        | QuestionTopic::UnclearReview { .. }
        | QuestionTopic::NoReview { .. }
        | QuestionTopic::FixerFailed
        | QuestionTopic::ImplementerFailed => {
            (Outcome::Failed, Reason::StoppedByPerson, RetryAction::Resume(Box::new(stage)))
        }
    };
    phases::end(this, outcome, reason, again);
}

/// Resumes a stage and keeps its finished parts.
fn resume_stage(this: &mut Loop, stage: Stage, policy: &Policy) {
    match stage {
        // Answers about another commit than the head are void.
        Stage::Reviewing(panel) if panel.commit != this.head.commit || panel.missing().is_empty() => {
            gate::open_round(this, panel.scope, policy);
        }
        Stage::Reviewing(panel) => gate::retry_missing(this, stop_running(panel)),
        Stage::Working { .. } | Stage::Researching { .. } => work::retry_phase(this, policy),
        Stage::Checking { .. } => gate::open_round(this, super::ReviewScope::Full, policy),
        Stage::Fixing { .. } => fix::resume(this, stage, policy),
        Stage::Combining { fixes, from, .. } => {
            this.stage = Stage::Combining { slot: this.new_slot(), fixes, from };
        }
        Stage::Landing { outcome, reason, .. } | Stage::AwaitingLanding { outcome, reason } => {
            land::retry(this, outcome, reason, policy);
        }
        Stage::Queued | Stage::Waiting { .. } | Stage::Done(_) => phases::enter(this, policy),
    }
}

/// Marks running reviewers as failed, so that they are started again.
fn stop_running(mut panel: Panel) -> Panel {
    for state in panel.reviewers.values_mut() {
        if let ReviewerState::Assigned { failures, unclear, .. } = state {
            *state = ReviewerState::Failed {
                action: crate::policy::FailureAction::Stop,
                failures: *failures,
                unclear: *unclear,
            };
        }
    }
    panel
}

/// Handles `retry`: continues an ended loop, with one more of what it had run out of.
pub fn retried(this: &mut Loop, policy: &Policy) {
    let Stage::Done(ending) = &this.stage else { return };
    let (again, reason) = (ending.retry.clone(), ending.reason);
    if again == RetryAction::Nothing {
        return;
    }
    this.reset_losses();
    if reason == Some(Reason::AttemptsExhausted) {
        this.counters.granted.attempts += 1;
    }
    match again {
        RetryAction::Nothing => {}
        RetryAction::Resume(stage) => resume_stage(this, *stage, policy),
        RetryAction::Fix => grant_fix(this, policy),
        RetryAction::Work => work::redo_work(this, policy),
        RetryAction::Restart => {
            this.counters.granted.passes += 1;
            phases::restart(this, policy);
        }
        RetryAction::Land { outcome, reason } => {
            this.counters.granted.conflicts += 1;
            land::retry(this, outcome, reason, policy);
        }
    }
}

/// Handles `edit --verdict`: a person overrides the verdict without a review. Only an approval lets the work
/// continue.
pub fn edited(this: &mut Loop, verdict: FinalVerdict, by: String, head: Option<Head>, policy: &Policy) {
    this.head = head.unwrap_or_else(|| this.head.clone());
    let reason = Some(Reason::EditedByPerson);
    let begun = this.stage != Stage::Queued;
    let outcome = match verdict {
        FinalVerdict::Approved if begun && !this.landed => {
            return land::conclude(this, Outcome::Accepted { by }, reason, policy);
        }
        FinalVerdict::Approved => Outcome::Accepted { by },
        FinalVerdict::ChangesRequested => Outcome::Failed,
        FinalVerdict::MaxCyclesReached => Outcome::Exhausted,
        FinalVerdict::NeedsDiscussion => Outcome::Discussion,
    };
    let again = retry_after_refusal(this, policy);
    this.stage = Stage::Done(Ending { outcome, reason, retry: again });
}

/// What `retry` does after a person refused the work. Signed-off work is fixed and reviewed again, as its approval is
/// void.
fn retry_after_refusal(this: &Loop, policy: &Policy) -> RetryAction {
    let when_void = if last_gate(this, policy).is_some() { RetryAction::Fix } else { RetryAction::Nothing };
    if let Stage::Done(ending) = &this.stage {
        let is_void = ending.outcome.is_approval() && !this.landed && when_void == RetryAction::Fix;
        return if is_void { when_void } else { ending.retry.clone() };
    }
    let is_signed_off = matches!(this.stage, Stage::AwaitingLanding { .. } | Stage::Landing { .. });
    if is_signed_off { when_void } else { phases::resume_action(this) }
}

/// Records why a person refuses the work, as findings for the reviewers of the last gate.
pub fn refused(this: &mut Loop, findings: Vec<Finding>, policy: &Policy) {
    let Some(phase) = last_gate(this, policy).filter(|_| !findings.is_empty()) else { return };
    let Some(reviewer) = gate::first_reviewer(phase, policy) else { return };
    let round = this.round_at(phase, this.cycles.get(&phase).copied().unwrap_or(0));
    let refusal = Review::new(reviewer.clone(), ReviewerKind::General, Verdict::ChangesRequested);
    this.ledger.record(&round, &[Review { findings, ..refusal }]);
}
