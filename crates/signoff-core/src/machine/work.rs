//! Agent phases: the agent, its helpers and repeated attempts.

use super::outcome::{Outcome, Reason, RetryAction};
use super::state::{AttemptSlot, Head, Loop, PauseReason, QuestionTopic, ResearcherState, Stage};
use super::{Choice, Policy, WorkReport, fix, phases};
use crate::ids::AttemptId;
use crate::policy::{FailureAction, FailureStep};
use crate::workflow::{Phase, PhaseKind, Role};

/// The worktree was created: enters the first phase.
pub fn start(this: &mut Loop, head: Head, policy: &Policy) {
    if this.stage == Stage::Queued {
        this.head = head;
        phases::enter(this, policy);
    }
}

/// Starts an agent phase, with its helpers first if it has any.
pub fn begin(this: &mut Loop, policy: &Policy) {
    let researchers = match policy.phase(this.position.phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Agent { researchers, .. }) => *researchers,
        Some(PhaseKind::Gate(_) | PhaseKind::Check(_)) | None => 0,
    };
    if researchers == 0 {
        return attempt(this, AttemptSequence::First, policy);
    }
    let team = (0..researchers).map(|_| ResearcherState::Assigned { slot: this.new_slot(), failures: 0 }).collect();
    this.stage = Stage::Researching { team };
}

/// Whether an attempt is the first of a job or follows one that did not complete it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AttemptSequence {
    /// The first of a job.
    First,
    /// Follows this many failures of the job.
    Next { failures: u32 },
}

/// Starts the next attempt of the phase's agent, within the loop's limit.
fn attempt(this: &mut Loop, sequence: AttemptSequence, policy: &Policy) {
    let failures = match sequence {
        AttemptSequence::First => 0,
        AttemptSequence::Next { failures } => failures,
    };
    let begins = sequence == AttemptSequence::First;
    if begins && !counts_attempts(this, policy) {
        this.notes = std::mem::take(&mut this.next_notes);
        this.stage = Stage::Working { slot: this.new_slot(), failures };
        return;
    }
    // The first attempts at all items of a plan count as one.
    let next_item = begins && this.position.item > 0;
    if !next_item && !may_attempt(this, policy) {
        this.stage = Stage::Working { slot: AttemptSlot::Vacant, failures };
        return attempts_exhausted(this, policy);
    }
    this.counters.uncounted += u32::from(next_item);
    let slot = attempt_slot(this, !begins, policy);
    this.stage = Stage::Working { slot, failures };
}

/// Whether the phase's attempts count towards the limit: those that implement, fix or retry. Other agents run once
/// per pass.
fn counts_attempts(this: &Loop, policy: &Policy) -> bool {
    let phase = policy.phase(this.position.phase);
    !phase.is_some_and(is_agent) || phase.is_some_and(implements)
}

/// Whether the loop's limit allows one more attempt.
pub fn may_attempt(this: &Loop, policy: &Policy) -> bool {
    this.counters.iteration.saturating_sub(this.counters.uncounted) < max_attempts(this, policy)
}

/// Maximum number of attempts, including those granted by a person.
pub fn max_attempts(this: &Loop, policy: &Policy) -> u32 {
    policy.workflow.limits.max_attempts.saturating_add(this.counters.granted.attempts)
}

pub fn attempts_exhausted(this: &mut Loop, policy: &Policy) {
    let outcome = phases::outcome_for(policy.workflow.attempts_exhausted_as);
    phases::end_resumable(this, outcome, Reason::AttemptsExhausted);
}

/// A slot for an attempt: running, or paused if a checkpoint review is due first. This is checked only after an
/// attempt that did not complete.
pub fn attempt_slot(this: &mut Loop, after_incomplete: bool, policy: &Policy) -> AttemptSlot {
    let interval = policy.workflow.checkpoint_interval;
    let due = interval.is_some_and(|interval| this.attempts_since_checkpoint() >= interval);
    if after_incomplete && due {
        return AttemptSlot::Paused(PauseReason::Checkpoint);
    }
    this.counters.iteration += 1;
    this.notes = std::mem::take(&mut this.next_notes);
    this.new_slot()
}

/// An agent that writes to the worktree ended by itself.
pub fn ended(this: &mut Loop, attempt: AttemptId, report: WorkReport, policy: &Policy) {
    if !this.runs(attempt) {
        return;
    }
    if let Stage::Working { .. } = this.stage {
        this.reset_losses();
        apply_report(this, report, policy);
    } else if let Stage::Researching { .. } = this.stage {
        this.reset_losses();
        settle_researcher(this, attempt, ResearcherState::Done, policy);
    } else if let Stage::Fixing { .. } = this.stage {
        this.reset_losses();
        fix::ended(this, attempt, report, policy);
    }
}

fn apply_report(this: &mut Loop, report: WorkReport, policy: &Policy) {
    match report {
        WorkReport::Complete { head } => {
            this.head = head;
            phases::advance(this, policy);
        }
        WorkReport::Incomplete { head } => {
            this.head = head;
            attempt(this, AttemptSequence::Next { failures: 0 }, policy);
        }
        WorkReport::Stuck { head, .. } => {
            this.head = head;
            gave_up(this);
        }
        WorkReport::NoWorkLeft { head } => {
            this.head = head;
            phases::end(this, Outcome::Cancelled, Reason::NoWorkLeft, RetryAction::Nothing);
        }
    }
}

/// The agent says it cannot continue. Retrying would not help.
pub fn gave_up(this: &mut Loop) {
    phases::end_resumable(this, Outcome::Stuck, Reason::TaskStuck);
}

/// The phase's agent failed.
pub fn failed(this: &mut Loop, policy: &Policy) {
    let Stage::Working { failures, .. } = this.stage else { return };
    let after = failures + 1;
    let action = action_after_failure(this, failures, policy);
    match action.step() {
        FailureStep::Retry => retry(this, after, policy),
        FailureStep::NotPassed if action == FailureAction::NextAttempt => {
            attempt(this, AttemptSequence::Next { failures: after }, policy);
        }
        FailureStep::Ask => {
            this.stage = Stage::Working { slot: AttemptSlot::Vacant, failures: after };
            phases::ask(this, QuestionTopic::ImplementerFailed, &[Choice::Retry, Choice::Stop], policy);
        }
        FailureStep::NotPassed | FailureStep::End => {
            phases::end_resumable(this, Outcome::Failed, Reason::ImplementerFailed);
        }
    }
}

/// Starts the same job again.
pub fn retry(this: &mut Loop, failures: u32, policy: &Policy) {
    if !may_attempt(this, policy) {
        return attempts_exhausted(this, policy);
    }
    let slot = attempt_slot(this, true, policy);
    this.stage = Stage::Working { slot, failures };
}

fn action_after_failure(this: &Loop, failures: u32, policy: &Policy) -> FailureAction {
    phases::nearest_gate_policy(this, policy)
        .map_or(FailureAction::Fail, |gate_policy| gate_policy.gate.on_implementer_failure.action(failures))
}

/// A helper failed. After the last retry the phase continues without it.
pub fn researcher_failed(this: &mut Loop, attempt: AttemptId, policy: &Policy) {
    let Stage::Researching { team } = &this.stage else { return };
    let failures = team.iter().find_map(|one| match one {
        ResearcherState::Assigned { slot, failures } if slot.attempt() == Some(attempt) => Some(*failures),
        ResearcherState::Assigned { .. } | ResearcherState::Done | ResearcherState::Failed => None,
    });
    let Some(failures) = failures else { return };
    let after = match action_after_failure(this, failures, policy).step() {
        FailureStep::Retry => ResearcherState::Assigned { slot: this.new_slot(), failures: failures + 1 },
        FailureStep::Ask | FailureStep::NotPassed | FailureStep::End => ResearcherState::Failed,
    };
    settle_researcher(this, attempt, after, policy);
}

/// Ends a helper; after the last one the phase's own agent starts.
fn settle_researcher(this: &mut Loop, attempt: AttemptId, now: ResearcherState, policy: &Policy) {
    let Stage::Researching { team } = &mut this.stage else { return };
    let is_it = |one: &&mut ResearcherState| matches!(one, ResearcherState::Assigned { slot, .. } if slot.attempt() == Some(attempt));
    if let Some(one) = team.iter_mut().find(is_it) {
        *one = now;
    }
    if !team.iter().any(|one| matches!(one, ResearcherState::Assigned { .. })) {
        self::attempt(this, AttemptSequence::First, policy);
    }
}

/// Returns to the phase whose work the gate was to judge, for another attempt.
pub fn redo_work(this: &mut Loop, policy: &Policy) {
    let before = policy.workflow.phases.iter().take(this.position.phase);
    if let Some(phase) = before.clone().rposition(implements).or_else(|| before.clone().rposition(is_agent)) {
        this.position.phase = phase;
        this.gates.retain(|record| record.phase < phase);
    }
    phases::enter(this, policy);
}

/// Whether the phase's agent implements or fixes the work.
pub fn implements(phase: &Phase) -> bool {
    matches!(phase.kind, PhaseKind::Agent { role: Role::Implement | Role::Fix, .. })
}

fn is_agent(phase: &Phase) -> bool {
    matches!(phase.kind, PhaseKind::Agent { .. })
}

/// Restarts an agent phase after a person's decision.
pub fn retry_phase(this: &mut Loop, policy: &Policy) {
    attempt(this, AttemptSequence::First, policy);
}
