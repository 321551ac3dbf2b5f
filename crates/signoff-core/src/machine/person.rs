//! What a person decides.

use super::event::FinalWord;
use super::judge::Heard;
use super::outcome::{Again, Ending, Outcome, Reason};
use super::state::{Asked, GateEnd, Head, Loop, Panel, Seat, Stage};
use super::{Choice, Policy, checkpoint, finish, fix, judge, land, work};
use crate::ids::{QuestionId, ReviewerName};
use crate::ledger::Round;
use crate::review::{Finding, Review, ReviewerKind, Verdict};

/// An open question is answered with one of its choices.
pub fn answered(this: &mut Loop, id: QuestionId, choice: Choice, policy: &Policy) {
    let Stage::Waiting { question, asked } = &this.stage else { return };
    if question.id != id || !question.choices.contains(&choice) {
        return;
    }
    let (about, stage) = (question.about.clone(), (**asked).clone());
    match choice {
        Choice::Retry => take_up(this, stage, policy),
        Choice::Restart => finish::restart(this, policy),
        Choice::Skip => unheard(this, policy),
        Choice::Proceed => proceed(this, &about, stage, policy),
        Choice::Continue => one_more(this, policy),
        Choice::Fix => discuss_by_fixing(this, about, policy),
        Choice::Stop => stop(this, &about, stage, policy),
    }
}

fn proceed(this: &mut Loop, about: &Asked, stage: Stage, policy: &Policy) {
    match about {
        Asked::PartialReview { .. } => {
            this.stage = stage;
            judge::weigh(this, Heard::Some, policy);
        }
        Asked::UnclearReview { .. } | Asked::NoReview { .. } => unheard(this, policy),
        Asked::Exhausted(reason) => finish::note(this, *reason, policy),
        Asked::Discussion { .. } => finish::note(this, Reason::Discussion, policy),
        Asked::FixerFailed | Asked::ImplementerFailed => {}
    }
}

/// Goes on without the review. It never counts as one.
fn unheard(this: &mut Loop, policy: &Policy) {
    finish::record(this, GateEnd::Unheard);
    finish::advance(this, policy);
}

fn one_more(this: &mut Loop, policy: &Policy) {
    if let Some(gate) = gate_behind(this, policy).filter(|_| finish::judge_here(this, policy).is_none()) {
        this.at.phase = gate;
    }
    this.tally.granted.fixes = this.tally.fixes.saturating_add(1).saturating_sub(bound(this, policy));
    this.tally.noop_fixes = 0;
    let unread = this.unread.clone();
    fix::begin(this, unread, policy);
}

/// The last gate that a loop has been at.
fn gate_behind(this: &Loop, policy: &Policy) -> Option<usize> {
    let phases = policy.workflow.phases.iter().take(this.at.phase + 1);
    phases.enumerate().rev().find(|(_, phase)| phase.is_gate() && !phase.is_off()).map(|(index, _)| index)
}

fn bound(this: &Loop, policy: &Policy) -> u32 {
    finish::judge_here(this, policy).and_then(|judge| judge.gate.bound.fixes()).unwrap_or(0)
}

fn discuss_by_fixing(this: &mut Loop, about: Asked, policy: &Policy) {
    let by: Vec<ReviewerName> = match about {
        Asked::Discussion { by } => by,
        Asked::PartialReview { .. }
        | Asked::UnclearReview { .. }
        | Asked::NoReview { .. }
        | Asked::Exhausted(_)
        | Asked::FixerFailed
        | Asked::ImplementerFailed => Vec::new(),
    };
    fix::begin(this, by, policy);
}

fn stop(this: &mut Loop, about: &Asked, stage: Stage, policy: &Policy) {
    let (outcome, reason, again) = match about {
        Asked::Exhausted(reason) => {
            let judge = finish::judge_here(this, policy);
            let outcome =
                judge.map_or(Outcome::Failed, |judge| finish::exhausted_as(judge.gate.exhausted_as));
            (outcome, *reason, Again::Fix)
        }
        Asked::Discussion { .. } => (Outcome::Discussion, Reason::Discussion, Again::Resume(Box::new(stage))),
        Asked::PartialReview { .. }
        | Asked::UnclearReview { .. }
        | Asked::NoReview { .. }
        | Asked::FixerFailed
        | Asked::ImplementerFailed => {
            (Outcome::Failed, Reason::StoppedByPerson, Again::Resume(Box::new(stage)))
        }
    };
    finish::end(this, outcome, reason, again);
}

/// Takes a stage up where it stopped: what was finished stays finished.
fn take_up(this: &mut Loop, stage: Stage, policy: &Policy) {
    match stage {
        // Answers to a commit that is no longer the head are answers to nothing.
        Stage::Reviewing(panel) if panel.commit != this.head.commit || panel.missing().is_empty() => {
            judge::open(this, panel.scope, policy);
        }
        Stage::Reviewing(panel) => judge::call_missing(this, stop_running(panel)),
        Stage::Working { .. } | Stage::Researching { .. } => work::again(this, policy),
        Stage::Checking { .. } => judge::open(this, super::Scope::Full, policy),
        Stage::Fixing { .. } => fix::revive(this, stage, policy),
        Stage::Combining { fixes, from, .. } => {
            this.stage = Stage::Combining { slot: this.new_slot(), fixes, from };
        }
        Stage::Landing { outcome, reason, .. } | Stage::AwaitingLanding { outcome, reason } => {
            land::again(this, outcome, reason, policy);
        }
        Stage::Queued | Stage::Waiting { .. } | Stage::Done(_) => finish::enter(this, policy),
    }
}

/// A seat whose reviewer was at work when the loop ended is called again like a missing one.
fn stop_running(mut panel: Panel) -> Panel {
    for seat in panel.seats.values_mut() {
        if let Seat::Out { failures, unclear, .. } = seat {
            *seat = Seat::Failed { rung: crate::policy::Rung::Stop, failures: *failures, unclear: *unclear };
        }
    }
    panel
}

/// `retry`: an ended loop goes on where it ended, with one more of what it had run out of.
pub fn retried(this: &mut Loop, policy: &Policy) {
    let Stage::Done(ending) = &this.stage else { return };
    let (again, reason) = (ending.again.clone(), ending.reason);
    if again == Again::Nothing {
        return;
    }
    this.accounted_for();
    if reason == Some(Reason::AttemptsExhausted) {
        this.tally.granted.attempts += 1;
    }
    match again {
        Again::Nothing => {}
        Again::Resume(stage) => take_up(this, *stage, policy),
        Again::Fix => one_more(this, policy),
        Again::Work => work::redo(this, policy),
        Again::Restart => {
            this.tally.granted.passes += 1;
            finish::restart(this, policy);
        }
        Again::Land { outcome, reason } => {
            this.tally.granted.conflicts += 1;
            land::again(this, outcome, reason, policy);
        }
    }
}

/// `edit --verdict`: a person overrides, without a review. Only an approval lets the work go on.
pub fn edited(this: &mut Loop, (verdict, by): (FinalWord, String), head: Option<Head>, policy: &Policy) {
    this.head = head.unwrap_or_else(|| this.head.clone());
    let reason = Some(Reason::EditedByPerson);
    let begun = this.stage != Stage::Queued;
    let outcome = match verdict {
        FinalWord::Approved if begun && !this.landed => {
            return land::conclude(this, Outcome::Accepted { by }, reason, policy);
        }
        FinalWord::Approved => Outcome::Accepted { by },
        FinalWord::ChangesRequested => Outcome::Failed,
        FinalWord::MaxCyclesReached => Outcome::Exhausted,
        FinalWord::NeedsDiscussion => Outcome::Discussion,
    };
    let again = after_refusal(this, policy);
    this.stage = Stage::Done(Ending { outcome, reason, again });
}

/// What `retry` does after a person refused the work. Signed-off work is fixed and reviewed again: its approval is over.
fn after_refusal(this: &Loop, policy: &Policy) -> Again {
    let has_gate = gate_behind(this, policy).is_some();
    match &this.stage {
        Stage::Done(ending) if ending.outcome.is_approval() && !this.landed && has_gate => Again::Fix,
        Stage::Done(ending) => ending.again.clone(),
        Stage::AwaitingLanding { .. } | Stage::Landing { .. } if has_gate => Again::Fix,
        Stage::AwaitingLanding { .. } | Stage::Landing { .. } => Again::Nothing,
        Stage::Queued
        | Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Reviewing(_)
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::Waiting { .. } => finish::resume(this),
    }
}

/// Records why a person refuses the work, for the reviewers of the last gate to close.
pub fn refused(this: &mut Loop, findings: Vec<Finding>, policy: &Policy) {
    let Some(phase) = gate_behind(this, policy).filter(|_| !findings.is_empty()) else { return };
    let Some(reviewer) = checkpoint::first_reviewer(phase, policy) else { return };
    let round = Round {
        pass: this.at.pass,
        phase,
        item: None,
        cycle: this.cycles.get(&phase).copied().unwrap_or(0),
        commit: Some(this.head.commit.clone()),
        checkpoint: None,
        task: None,
    };
    let refusal = Review::of(reviewer.clone(), ReviewerKind::General, Verdict::ChangesRequested);
    this.ledger.record(&round, &[Review { findings, ..refusal }]);
}
