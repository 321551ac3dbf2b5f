//! Decisions of a person: answers, retries and verdicts.

use super::event::FinalVerdict;
use super::gate::PanelCoverage;
use super::outcome::{Ending, Outcome, Reason, RetryAction};
use super::state::{GateEnd, Head, Loop, Panel, QuestionTopic, ReviewerState, Stage};
use super::{Choice, Policy, fix, gate, land, phases, work};
use crate::ids::QuestionId;
use crate::review::{Finding, Review, ReviewerKind, Verdict};

/// Answers an open question with one of its choices.
pub fn answered(machine: &mut Loop, id: QuestionId, choice: Choice, policy: &Policy) {
    let Stage::Waiting { question, interrupted_stage } = &machine.stage else { return };
    if question.id != id || !question.choices.contains(&choice) {
        return;
    }
    let (topic, stage) = (question.topic.clone(), (**interrupted_stage).clone());
    match choice {
        Choice::Retry => resume_stage(machine, stage, policy),
        Choice::Restart => phases::restart(machine, policy),
        Choice::Skip => skip_review(machine, policy),
        Choice::Proceed => proceed(machine, &topic, stage, policy),
        Choice::Continue => grant_fix(machine, policy),
        Choice::Fix => {
            let by = if let QuestionTopic::Discussion { by } = topic { by } else { Vec::new() };
            fix::begin(machine, by, policy);
        }
        Choice::Stop => stop(machine, &topic, stage, policy),
    }
}

fn proceed(machine: &mut Loop, topic: &QuestionTopic, stage: Stage, policy: &Policy) {
    match topic {
        QuestionTopic::PartialReview { .. } => {
            machine.stage = stage;
            gate::evaluate_answers(machine, PanelCoverage::Partial, policy);
        }
        QuestionTopic::UnclearReview { .. } | QuestionTopic::NoReview { .. } => skip_review(machine, policy),
        QuestionTopic::Exhausted(reason) => phases::proceed_with_findings(machine, *reason, policy),
        QuestionTopic::Discussion { .. } => phases::proceed_with_findings(machine, Reason::Discussion, policy),
        QuestionTopic::FixerFailed | QuestionTopic::ImplementerFailed => {}
    }
}

/// Goes on without the review. This never counts as an approval.
fn skip_review(machine: &mut Loop, policy: &Policy) {
    phases::record_gate_end(machine, GateEnd::ReviewersMissing);
    phases::advance(machine, policy);
}

fn grant_fix(machine: &mut Loop, policy: &Policy) {
    if let Some(gate) = last_gate(machine, policy).filter(|_| phases::current_gate_policy(machine, policy).is_none()) {
        machine.position.phase = gate;
    }
    let bound = phases::current_gate_policy(machine, policy)
        .and_then(|gate_policy| gate_policy.gate.bound.fixes())
        .unwrap_or(0);
    machine.counters.granted.fixes = machine.counters.fixes.saturating_add(1).saturating_sub(bound);
    machine.counters.noop_fixes = 0;
    let unparsed_reviewers = machine.unparsed_reviewers.clone();
    fix::begin(machine, unparsed_reviewers, policy);
}

/// The last gate that the loop has reached.
fn last_gate(machine: &Loop, policy: &Policy) -> Option<usize> {
    let phases = policy.workflow.phases.iter().take(machine.position.phase + 1);
    phases.enumerate().rev().find(|(_, phase)| phase.is_gate() && !phase.is_off()).map(|(index, _)| index)
}

fn stop(machine: &mut Loop, topic: &QuestionTopic, stage: Stage, policy: &Policy) {
    let (outcome, reason, again) = match topic {
        QuestionTopic::Exhausted(reason) => {
            let gate_policy = phases::current_gate_policy(machine, policy);
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
    phases::end(machine, outcome, reason, again);
}

/// Resumes a stage and keeps its finished parts.
fn resume_stage(machine: &mut Loop, stage: Stage, policy: &Policy) {
    match stage {
        // Answers about another commit than the head are void.
        Stage::Reviewing(panel) if panel.commit != machine.head.commit || panel.missing().is_empty() => {
            gate::open_round(machine, panel.scope, policy);
        }
        Stage::Reviewing(panel) => gate::retry_missing(machine, stop_running(panel)),
        Stage::Working { .. } | Stage::Researching { .. } => work::retry_phase(machine, policy),
        Stage::Checking { .. } => gate::open_round(machine, super::ReviewScope::Full, policy),
        Stage::Fixing { .. } => fix::resume(machine, stage, policy),
        Stage::Combining { fixes, from, .. } => {
            machine.stage = Stage::Combining { slot: machine.new_slot(), fixes, from };
        }
        Stage::Landing { outcome, reason, .. } | Stage::AwaitingLanding { outcome, reason } => {
            land::retry(machine, outcome, reason, policy);
        }
        Stage::Queued | Stage::Waiting { .. } | Stage::Done(_) => phases::enter(machine, policy),
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
pub fn retried(machine: &mut Loop, policy: &Policy) {
    let Stage::Done(ending) = &machine.stage else { return };
    let (again, reason) = (ending.retry.clone(), ending.reason);
    if again == RetryAction::Nothing {
        return;
    }
    machine.reset_losses();
    if reason == Some(Reason::AttemptsExhausted) {
        machine.counters.granted.attempts += 1;
    }
    match again {
        RetryAction::Nothing => {}
        RetryAction::Resume(stage) => resume_stage(machine, *stage, policy),
        RetryAction::Fix => grant_fix(machine, policy),
        RetryAction::Work => work::redo_work(machine, policy),
        RetryAction::Restart => {
            machine.counters.granted.passes += 1;
            phases::restart(machine, policy);
        }
        RetryAction::Land { outcome, reason } => {
            machine.counters.granted.conflicts += 1;
            land::retry(machine, outcome, reason, policy);
        }
    }
}

/// Handles `edit --verdict`: a person overrides the verdict without a review. Only an approval lets the work
/// continue.
pub fn edited(machine: &mut Loop, verdict: FinalVerdict, by: String, head: Option<Head>, policy: &Policy) {
    machine.head = head.unwrap_or_else(|| machine.head.clone());
    let reason = Some(Reason::EditedByPerson);
    let begun = machine.stage != Stage::Queued;
    let outcome = match verdict {
        FinalVerdict::Approved if begun && !machine.landed => {
            return land::finish_work(machine, Outcome::Accepted { by }, reason, policy);
        }
        FinalVerdict::Approved => Outcome::Accepted { by },
        FinalVerdict::ChangesRequested => Outcome::Failed,
        FinalVerdict::MaxCyclesReached => Outcome::Exhausted,
        FinalVerdict::NeedsDiscussion => Outcome::Discussion,
    };
    let again = retry_after_refusal(machine, policy);
    machine.stage = Stage::Done(Ending { outcome, reason, retry: again });
}

/// What `retry` does after a person refused the work. Signed-off work is fixed and reviewed again, as its approval is
/// void.
fn retry_after_refusal(machine: &Loop, policy: &Policy) -> RetryAction {
    let when_void = if last_gate(machine, policy).is_some() { RetryAction::Fix } else { RetryAction::Nothing };
    if let Stage::Done(ending) = &machine.stage {
        let is_void = ending.outcome.is_approval() && !machine.landed && when_void == RetryAction::Fix;
        return if is_void { when_void } else { ending.retry.clone() };
    }
    let is_signed_off = matches!(machine.stage, Stage::AwaitingLanding { .. } | Stage::Landing { .. });
    if is_signed_off { when_void } else { phases::resume_action(machine) }
}

/// Records why a person refuses the work, as findings for the reviewers of the last gate.
pub fn refused(machine: &mut Loop, findings: Vec<Finding>, policy: &Policy) {
    let Some(phase) = last_gate(machine, policy).filter(|_| !findings.is_empty()) else { return };
    let Some(reviewer) = gate::first_reviewer(phase, policy) else { return };
    let round = machine.round_at(phase, machine.cycles.get(&phase).copied().unwrap_or(0));
    let refusal = Review::new(reviewer.clone(), ReviewerKind::General, Verdict::ChangesRequested);
    machine.ledger_mut().record(&round, &[Review { findings, ..refusal }]);
}
