//! Agent phases: an agent at work, its helpers, and the attempts that follow one another.

use super::outcome::{Again, Outcome, Reason};
use super::state::{Asked, Head, Hold, Loop, Position, Researcher, Slot, Stage};
use super::{Choice, Left, Policy, WorkReport, finish, fix, judge};
use crate::ids::AttemptId;
use crate::policy::Rung;
use crate::workflow::{Phase, PhaseKind, Role};

/// The worktree is there.
pub fn start(this: &mut Loop, head: Head, policy: &Policy) {
    if this.stage == Stage::Queued {
        this.head = head;
        finish::enter(this, policy);
    }
}

/// Takes over a loop in the middle of its workflow: counters and open findings as they were.
pub fn import(this: &mut Loop, head: Head, at: Position, left: Left, policy: &Policy) {
    if this.stage != Stage::Queued {
        return;
    }
    (this.head, this.at, this.gates) = (head, at, left.gates);
    for earlier in left.earlier {
        judge::recall(this, earlier, policy);
    }
    finish::enter(this, policy);
    // What was left at a gate that is switched off here says nothing about the next one.
    if this.at == at {
        judge::imported(this, (left.fixes, left.findings), policy);
    }
}

/// Begins an agent phase, with its helpers first where it has some.
pub fn begin(this: &mut Loop, policy: &Policy) {
    let researchers = match policy.phase(this.at.phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Agent { researchers, .. }) => *researchers,
        Some(PhaseKind::Gate(_) | PhaseKind::Check(_)) | None => 0,
    };
    if researchers == 0 {
        return attempt(this, Ask::First, policy);
    }
    let team = (0..researchers).map(|_| Researcher::Out { slot: this.new_slot(), failures: 0 }).collect();
    this.stage = Stage::Researching { team };
}

/// Whether an attempt begins a job or follows one that did not complete it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    First,
    /// `failures` of the job so far.
    Next {
        failures: u32,
    },
}

/// Starts the next attempt of the phase's agent, within the loop's bound.
fn attempt(this: &mut Loop, ask: Ask, policy: &Policy) {
    let failures = match ask {
        Ask::First => 0,
        Ask::Next { failures } => failures,
    };
    let begins = ask == Ask::First;
    if begins && !counts(this, policy) {
        this.notes = std::mem::take(&mut this.next_notes);
        this.stage = Stage::Working { slot: this.new_slot(), failures };
        return;
    }
    // The items of a plan, each worked once, are one attempt at it.
    let next_item = begins && this.at.item > 0;
    if !next_item && !may_attempt(this, policy) {
        this.stage = Stage::Working { slot: Slot::Vacant, failures };
        return attempts_exhausted(this, policy);
    }
    this.tally.uncounted += u32::from(next_item);
    let slot = slot(this, !begins, policy);
    this.stage = Stage::Working { slot, failures };
}

/// A loop's attempts are those that implement, fix, or try something again. Thinking, planning and
/// simplifying once are bounded by the passes.
fn counts(this: &Loop, policy: &Policy) -> bool {
    match policy.phase(this.at.phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Agent { role, .. }) => matches!(role, Role::Implement | Role::Fix),
        Some(PhaseKind::Gate(_) | PhaseKind::Check(_)) | None => true,
    }
}

/// Whether one more attempt is within the loop's bound, which is one on repeating.
pub fn may_attempt(this: &Loop, policy: &Policy) -> bool {
    this.tally.iteration.saturating_sub(this.tally.uncounted) < allowed(this, policy)
}

/// So many attempts, with what a person granted.
pub fn allowed(this: &Loop, policy: &Policy) -> u32 {
    policy.workflow.limits.max_attempts.saturating_add(this.tally.granted.attempts)
}

pub fn attempts_exhausted(this: &mut Loop, policy: &Policy) {
    let again = finish::resume(this);
    let outcome = finish::exhausted_as(policy.workflow.attempts_exhausted_as);
    finish::end(this, outcome, Reason::AttemptsExhausted, again);
}

/// A place for an attempt: running, or held for the checkpoint review that is due before it. The check is
/// made only where an attempt ended without completing.
pub fn slot(this: &mut Loop, after_incomplete: bool, policy: &Policy) -> Slot {
    let interval = policy.workflow.checkpoint_interval;
    let due = interval.is_some_and(|interval| this.since_checkpoint() >= interval);
    if after_incomplete && due {
        return Slot::Held(Hold::Checkpoint);
    }
    this.tally.iteration += 1;
    this.notes = std::mem::take(&mut this.next_notes);
    this.new_slot()
}

/// An agent that changes the worktree ended by itself.
pub fn ended(this: &mut Loop, attempt: AttemptId, report: WorkReport, policy: &Policy) {
    if !this.runs(attempt) {
        return;
    }
    if let Stage::Working { .. } = this.stage {
        this.accounted_for();
        worked(this, report, policy);
    } else if let Stage::Researching { .. } = this.stage {
        this.accounted_for();
        settle_researcher(this, attempt, Researcher::Done, policy);
    } else if let Stage::Fixing { .. } = this.stage {
        this.accounted_for();
        fix::ended(this, attempt, report, policy);
    }
}

fn worked(this: &mut Loop, report: WorkReport, policy: &Policy) {
    match report {
        WorkReport::Complete { head } => {
            this.head = head;
            finish::advance(this, policy);
        }
        WorkReport::Incomplete { head } => {
            this.head = head;
            attempt(this, Ask::Next { failures: 0 }, policy);
        }
        WorkReport::Stuck { head, .. } => {
            this.head = head;
            gave_up(this);
        }
        WorkReport::NoWorkLeft { head } => {
            this.head = head;
            finish::end(this, Outcome::Cancelled, Reason::NoWorkLeft, Again::Nothing);
        }
    }
}

/// The agent says it cannot go on: that is an answer, not a reason to ask again.
pub fn gave_up(this: &mut Loop) {
    let again = finish::resume(this);
    finish::end(this, Outcome::Stuck, Reason::TaskStuck, again);
}

/// The phase's agent ended badly.
pub fn failed(this: &mut Loop, policy: &Policy) {
    let Stage::Working { failures, .. } = this.stage else { return };
    let after = failures + 1;
    match rung(this, failures, policy) {
        Rung::Retry => renewed(this, after, policy),
        Rung::NextAttempt => attempt(this, Ask::Next { failures: after }, policy),
        Rung::Ask => {
            this.stage = Stage::Working { slot: Slot::Vacant, failures: after };
            finish::ask(this, Asked::ImplementerFailed, &[Choice::Retry, Choice::Stop], policy);
        }
        Rung::RequestChanges | Rung::NotPassed | Rung::Stop | Rung::Fail => {
            let again = finish::resume(this);
            finish::end(this, Outcome::Failed, Reason::ImplementerFailed, again);
        }
    }
}

/// The same job once more.
pub fn renewed(this: &mut Loop, failures: u32, policy: &Policy) {
    if !may_attempt(this, policy) {
        return attempts_exhausted(this, policy);
    }
    let slot = slot(this, true, policy);
    this.stage = Stage::Working { slot, failures };
}

fn rung(this: &Loop, failures: u32, policy: &Policy) -> Rung {
    finish::judge_near(this, policy)
        .map_or(Rung::Fail, |judge| judge.gate.on_implementer_failure.rung(failures))
}

/// A helper that keeps failing is done without: the phase's own agent can still look for itself.
pub fn researcher_failed(this: &mut Loop, attempt: AttemptId, policy: &Policy) {
    let Stage::Researching { team } = &this.stage else { return };
    let failures = team.iter().find_map(|one| match one {
        Researcher::Out { slot, failures } if slot.attempt() == Some(attempt) => Some(*failures),
        Researcher::Out { .. } | Researcher::Done | Researcher::Absent => None,
    });
    let Some(failures) = failures else { return };
    let after = match rung(this, failures, policy) {
        Rung::Retry => Researcher::Out { slot: this.new_slot(), failures: failures + 1 },
        Rung::NextAttempt | Rung::RequestChanges | Rung::NotPassed | Rung::Ask | Rung::Stop | Rung::Fail => {
            Researcher::Absent
        }
    };
    settle_researcher(this, attempt, after, policy);
}

/// A helper is done with; after the last one the phase's own agent begins.
fn settle_researcher(this: &mut Loop, attempt: AttemptId, now: Researcher, policy: &Policy) {
    let Stage::Researching { team } = &mut this.stage else { return };
    let is_it = |one: &&mut Researcher| matches!(one, Researcher::Out { slot, .. } if slot.attempt() == Some(attempt));
    if let Some(one) = team.iter_mut().find(is_it) {
        *one = now;
    }
    if !team.iter().any(|one| matches!(one, Researcher::Out { .. })) {
        self::attempt(this, Ask::First, policy);
    }
}

/// Goes back to the phase whose work the gate was to judge, for another attempt.
pub fn redo(this: &mut Loop, policy: &Policy) {
    let before = policy.workflow.phases.iter().take(this.at.phase);
    if let Some(phase) = before.clone().rposition(implements).or_else(|| before.clone().rposition(is_agent)) {
        this.at.phase = phase;
        this.gates.retain(|record| record.phase < phase);
    }
    finish::enter(this, policy);
}

/// Whether the agent of a phase implements or fixes the work.
pub fn implements(phase: &Phase) -> bool {
    match &phase.kind {
        PhaseKind::Agent { role, .. } => matches!(role, Role::Implement | Role::Fix),
        PhaseKind::Gate(_) | PhaseKind::Check(_) => false,
    }
}

fn is_agent(phase: &Phase) -> bool {
    matches!(phase.kind, PhaseKind::Agent { .. })
}

/// Takes up an agent phase again after a person said so.
pub fn again(this: &mut Loop, policy: &Policy) {
    attempt(this, Ask::First, policy);
}
