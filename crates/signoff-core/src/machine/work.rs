//! Agent phases: the agent, its researchers and repeated attempts.

use super::outcome::{Outcome, Reason, RetryAction};
use super::state::{AttemptSlot, Head, Loop, PauseReason, QuestionTopic, ResearcherState, Stage};
use super::{Choice, Policy, WorkReport, fix, phases};
use crate::ids::AttemptId;
use crate::policy::{FailureAction, FailureStep};
use crate::workflow::{Phase, PhaseKind, Role};

/// The worktree was created: enters the first phase.
pub fn start(machine: &mut Loop, head: Head, policy: &Policy) {
    if machine.stage == Stage::Queued {
        machine.head = head;
        phases::enter(machine, policy);
    }
}

/// Starts an agent phase, with its researchers first if it has any.
pub fn begin(machine: &mut Loop, policy: &Policy) {
    let researchers = match policy.phase(machine.position.phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Agent { researchers, .. }) => *researchers,
        Some(PhaseKind::Gate(_) | PhaseKind::Check(_)) | None => 0,
    };
    if researchers == 0 {
        return attempt(machine, AttemptSequence::First, policy);
    }
    let team = (0..researchers).map(|_| ResearcherState::Assigned { slot: machine.new_slot(), failures: 0 }).collect();
    machine.stage = Stage::Researching { team };
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
fn attempt(machine: &mut Loop, sequence: AttemptSequence, policy: &Policy) {
    let failures = match sequence {
        AttemptSequence::First => 0,
        AttemptSequence::Next { failures } => failures,
    };
    let begins = sequence == AttemptSequence::First;
    if begins && !counts_attempts(machine, policy) {
        machine.notes = std::mem::take(&mut machine.next_notes);
        machine.stage = Stage::Working { slot: machine.new_slot(), failures };
        return;
    }
    // The first attempts at all items of a plan count as one.
    let next_item = begins && machine.position.item > 0;
    if !next_item && !may_attempt(machine, policy) {
        machine.stage = Stage::Working { slot: AttemptSlot::Vacant, failures };
        return attempts_exhausted(machine, policy);
    }
    machine.counters.uncounted += u32::from(next_item);
    let slot = attempt_slot(machine, !begins, policy);
    machine.stage = Stage::Working { slot, failures };
}

/// Whether the phase's attempts count towards the limit: those that implement, fix or retry. Other agents run once
/// per pass.
fn counts_attempts(machine: &Loop, policy: &Policy) -> bool {
    let phase = policy.phase(machine.position.phase);
    !phase.is_some_and(is_agent) || phase.is_some_and(implements)
}

/// Whether the loop's limit allows one more attempt.
pub fn may_attempt(machine: &Loop, policy: &Policy) -> bool {
    machine.counters.attempts.saturating_sub(machine.counters.uncounted) < max_attempts(machine, policy)
}

/// Maximum number of attempts, including those granted by a person.
pub fn max_attempts(machine: &Loop, policy: &Policy) -> u32 {
    policy.workflow.limits.max_attempts.saturating_add(machine.counters.granted.attempts)
}

pub fn attempts_exhausted(machine: &mut Loop, policy: &Policy) {
    let outcome = phases::outcome_for(policy.workflow.attempts_exhausted_as);
    phases::end_resumable(machine, outcome, Reason::AttemptsExhausted);
}

/// A slot for an attempt: running, or paused if a checkpoint review is due first. This is checked only after an
/// attempt that did not complete.
pub fn attempt_slot(machine: &mut Loop, after_incomplete: bool, policy: &Policy) -> AttemptSlot {
    let interval = policy.workflow.checkpoint_interval;
    let due = interval.is_some_and(|interval| machine.attempts_since_checkpoint() >= interval);
    if after_incomplete && due {
        return AttemptSlot::Paused(PauseReason::Checkpoint);
    }
    machine.counters.attempts += 1;
    machine.notes = std::mem::take(&mut machine.next_notes);
    machine.new_slot()
}

/// An agent that writes to the worktree ended by itself.
pub fn ended(machine: &mut Loop, attempt: AttemptId, report: WorkReport, policy: &Policy) {
    if !machine.runs(attempt) {
        return;
    }
    if let Stage::Working { .. } = machine.stage {
        machine.reset_losses();
        apply_report(machine, report, policy);
    } else if let Stage::Researching { .. } = machine.stage {
        machine.reset_losses();
        settle_researcher(machine, attempt, ResearcherState::Done, policy);
    } else if let Stage::Fixing { .. } = machine.stage {
        machine.reset_losses();
        fix::ended(machine, attempt, report, policy);
    }
}

fn apply_report(machine: &mut Loop, report: WorkReport, policy: &Policy) {
    match report {
        WorkReport::Complete { head } => {
            machine.head = head;
            phases::advance(machine, policy);
        }
        WorkReport::Incomplete { head } => {
            machine.head = head;
            attempt(machine, AttemptSequence::Next { failures: 0 }, policy);
        }
        WorkReport::Stuck { head, .. } => {
            machine.head = head;
            gave_up(machine);
        }
        WorkReport::NoWorkLeft { head } => {
            machine.head = head;
            phases::end(machine, Outcome::Cancelled, Reason::NoWorkLeft, RetryAction::Nothing);
        }
    }
}

/// The agent says it cannot continue. Retrying would not help.
pub fn gave_up(machine: &mut Loop) {
    phases::end_resumable(machine, Outcome::Stuck, Reason::TaskStuck);
}

/// The phase's agent failed.
pub fn failed(machine: &mut Loop, policy: &Policy) {
    let Stage::Working { failures, .. } = machine.stage else { return };
    let after = failures + 1;
    let action = action_after_failure(machine, failures, policy);
    match action.step() {
        FailureStep::Retry => retry(machine, after, policy),
        FailureStep::NotPassed if action == FailureAction::NextAttempt => {
            attempt(machine, AttemptSequence::Next { failures: after }, policy);
        }
        FailureStep::Ask => {
            machine.stage = Stage::Working { slot: AttemptSlot::Vacant, failures: after };
            phases::ask(machine, QuestionTopic::ImplementerFailed, &[Choice::Retry, Choice::Stop], policy);
        }
        FailureStep::NotPassed | FailureStep::End => {
            phases::end_resumable(machine, Outcome::Failed, Reason::ImplementerFailed);
        }
    }
}

/// Starts the same job again.
pub fn retry(machine: &mut Loop, failures: u32, policy: &Policy) {
    if !may_attempt(machine, policy) {
        return attempts_exhausted(machine, policy);
    }
    let slot = attempt_slot(machine, true, policy);
    machine.stage = Stage::Working { slot, failures };
}

fn action_after_failure(machine: &Loop, failures: u32, policy: &Policy) -> FailureAction {
    phases::nearest_gate_policy(machine, policy)
        .map_or(FailureAction::Fail, |gate_policy| gate_policy.gate.on_implementer_failure.action(failures))
}

/// A researcher failed. After the last retry the phase continues without it.
pub fn researcher_failed(machine: &mut Loop, attempt: AttemptId, policy: &Policy) {
    let Stage::Researching { team } = &machine.stage else { return };
    let failures = team.iter().find_map(|researcher| match researcher {
        ResearcherState::Assigned { slot, failures } if slot.attempt() == Some(attempt) => Some(*failures),
        ResearcherState::Assigned { .. } | ResearcherState::Done | ResearcherState::Failed => None,
    });
    let Some(failures) = failures else { return };
    let after = match action_after_failure(machine, failures, policy).step() {
        FailureStep::Retry => ResearcherState::Assigned { slot: machine.new_slot(), failures: failures + 1 },
        FailureStep::Ask | FailureStep::NotPassed | FailureStep::End => ResearcherState::Failed,
    };
    settle_researcher(machine, attempt, after, policy);
}

/// Ends a researcher; after the last researcher the phase's own agent starts.
fn settle_researcher(machine: &mut Loop, attempt: AttemptId, now: ResearcherState, policy: &Policy) {
    let Stage::Researching { team } = &mut machine.stage else { return };
    let is_it = |researcher: &&mut ResearcherState| matches!(researcher, ResearcherState::Assigned { slot, .. } if slot.attempt() == Some(attempt));
    if let Some(researcher) = team.iter_mut().find(is_it) {
        *researcher = now;
    }
    if !team.iter().any(|researcher| matches!(researcher, ResearcherState::Assigned { .. })) {
        self::attempt(machine, AttemptSequence::First, policy);
    }
}

/// Returns to the phase whose work the gate was to judge, for another attempt.
pub fn redo_work(machine: &mut Loop, policy: &Policy) {
    let before = policy.workflow.phases.iter().take(machine.position.phase);
    if let Some(phase) = before.clone().rposition(implements).or_else(|| before.clone().rposition(is_agent)) {
        machine.position.phase = phase;
        machine.gates.retain(|record| record.phase < phase);
    }
    phases::enter(machine, policy);
}

/// Whether the phase's agent implements or fixes the work.
pub fn implements(phase: &Phase) -> bool {
    matches!(phase.kind, PhaseKind::Agent { role: Role::Implement | Role::Fix, .. })
}

fn is_agent(phase: &Phase) -> bool {
    matches!(phase.kind, PhaseKind::Agent { .. })
}

/// Restarts an agent phase after a person's decision.
pub fn retry_phase(machine: &mut Loop, policy: &Policy) {
    attempt(machine, AttemptSequence::First, policy);
}
