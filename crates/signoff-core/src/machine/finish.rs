//! From phase to phase, from pass to pass, and to the end.

use super::outcome::{Again, Ending, Outcome, Reason};
use super::state::{Asked, GateEnd, GateRecord, Loop, Panel, Question, Stage};
use super::{Choice, Policy, checkpoint, judge, land, work};
use crate::policy::{ExhaustedAs, OnExhausted, OnFailure};
use crate::workflow::{PhaseKind, Restarting};

/// Begins the phase the loop stands at, passing over what is switched off; past the last one it is done.
pub fn enter(this: &mut Loop, policy: &Policy) {
    while let Some(phase) = policy.phase(this.at.phase) {
        let spent = phase.once && this.once_done.contains(&this.at.phase);
        if phase.is_off() || spent {
            move_on(this, policy);
            continue;
        }
        return match &phase.kind {
            PhaseKind::Agent { .. } => work::begin(this, policy),
            PhaseKind::Gate(_) | PhaseKind::Check(_) => judge::first(this, policy),
        };
    }
    sign_off(this, policy);
}

/// The phase is finished: on to the next.
pub fn advance(this: &mut Loop, policy: &Policy) {
    this.once_done.insert(this.at.phase);
    move_on(this, policy);
    enter(this, policy);
}

/// Moves to the next phase, or back to the first of the per-item phases for the next item.
fn move_on(this: &mut Loop, policy: &Policy) {
    let per_item = |index: usize| policy.phase(index).is_some_and(|phase| phase.per_item);
    let here = this.at.phase;
    let block_ends = per_item(here) && !per_item(here + 1);
    if block_ends && this.at.item + 1 < this.items {
        this.at.item += 1;
        this.at.phase = (0..=here).rev().take_while(|index| per_item(*index)).last().unwrap_or(here);
        return;
    }
    if block_ends {
        this.at.item = 0;
    }
    this.at.phase = here + 1;
}

/// Remembers how a gate ended in this pass.
pub fn record(this: &mut Loop, end: GateEnd) {
    let (phase, item) = (this.at.phase, this.at.item);
    this.gates.retain(|record| (record.phase, record.item) != (phase, item));
    this.gates.push(GateRecord { phase, item, end });
}

/// All phases are behind it: what is it worth?
pub fn sign_off(this: &mut Loop, policy: &Policy) {
    if checkpoint::is_reopened(this, policy) {
        return;
    }
    let is_judged = policy.workflow.phases.iter().any(|phase| phase.judge().is_some() && !phase.is_off());
    if this.is_unchanged() && is_judged {
        return nothing_to_review(this, policy);
    }
    let (outcome, reason) = worth(this, policy);
    land::conclude(this, outcome, reason, policy);
}

/// The work changes nothing. That is never an approval: a person decides how to go on.
pub fn nothing_to_review(this: &mut Loop, policy: &Policy) {
    let has_findings = judge_here(this, policy).is_some() && !judge::blocking(this, policy).is_empty();
    let has_agent = policy.workflow.phases.iter().any(|phase| phase.judge().is_none());
    let again = match (has_findings, has_agent) {
        (true, _) => Again::Fix,
        (false, true) => Again::Work,
        (false, false) => Again::Nothing,
    };
    end(this, Outcome::NothingToReview, Reason::NothingToReview, again);
}

fn worth(this: &Loop, policy: &Policy) -> (Outcome, Option<Reason>) {
    let gates = || this.gates.iter().filter(|record| is_gate(policy, record));
    let ends = || this.gates.iter().map(|record| &record.end);
    if ends().any(|end| *end == GateEnd::Unheard) {
        return (Outcome::CompletedWithIssues, Some(Reason::ReviewSkipped));
    }
    for end in ends() {
        if let GateEnd::Noted { reason } = end {
            return (Outcome::CompletedWithIssues, Some(*reason));
        }
    }
    match gates().max_by_key(|record| (record.phase, record.item)).map(|record| &record.end) {
        Some(GateEnd::Approved { commit }) if *commit == this.head.commit => {
            let unchecked = ends().any(|end| *end == GateEnd::Unchecked).then_some(Reason::NothingToCheck);
            (Outcome::Approved { commit: commit.clone() }, unchecked)
        }
        // Approval belongs to a commit: whatever came after it was seen by nobody.
        Some(_) => (Outcome::CompletedWithIssues, Some(Reason::ChangedAfterReview)),
        None => (Outcome::Unreviewed, None),
    }
}

fn is_gate(policy: &Policy, record: &GateRecord) -> bool {
    policy.phase(record.phase).is_some_and(|phase| matches!(phase.kind, PhaseKind::Gate(_)))
}

/// The next pass begins, as long as there is one.
pub fn restart(this: &mut Loop, policy: &Policy) {
    if !has_next_pass(this, policy) {
        return end(this, Outcome::Failed, Reason::PassesExhausted, Again::Restart);
    }
    let target = judge_here(this, policy).map_or(0, |judge| judge.restart_to);
    this.at.pass += 1;
    this.at.phase = target;
    this.at.item = 0;
    // What is not run again in the next pass keeps its record.
    let once_done = this.once_done.clone();
    let spent =
        |phase: usize| once_done.contains(&phase) && policy.phase(phase).is_some_and(|phase| phase.once);
    this.gates.retain(|record| record.phase < target || spent(record.phase));
    this.cycles.clear();
    enter(this, policy);
}

fn has_next_pass(this: &Loop, policy: &Policy) -> bool {
    this.at.pass < policy.workflow.limits.max_passes.saturating_add(this.tally.granted.passes)
}

/// A gate's bound is reached: none of the ways on is a pass.
pub fn exhausted(this: &mut Loop, reason: Reason, policy: &Policy) {
    let reason = or_unclear(this, reason, policy);
    let Some(judge) = judge_here(this, policy) else {
        let again = resume(this);
        return end(this, Outcome::Failed, reason, again);
    };
    match judge.gate.on_exhausted {
        OnExhausted::Stop => end(this, exhausted_as(judge.gate.exhausted_as), reason, Again::Fix),
        OnExhausted::Restart => restart(this, policy),
        OnExhausted::Proceed => note(this, reason, policy),
        OnExhausted::Ask => {
            let asked = Asked::Exhausted(reason);
            ask(this, asked, &[Choice::Continue, Choice::Proceed, Choice::Stop], policy);
        }
    }
}

/// The reason of an end, or that no review could be read where that is what led to it.
pub fn or_unclear(this: &Loop, reason: Reason, policy: &Policy) -> Reason {
    let is_unclear = policy.fix_needs_review && this.has_only_unclear_reviews();
    if is_unclear { Reason::UnclearReview } else { reason }
}

/// No review could be read, so there is nothing to fix: the loop stops, or goes on unreviewed where its gate says so.
pub fn unclear(this: &mut Loop, policy: &Policy) {
    let Some(judge) = judge_here(this, policy) else { return };
    if judge.gate.on_failure == OnFailure::Proceed {
        return note(this, Reason::UnclearReview, policy);
    }
    let again = resume(this);
    end(this, exhausted_as(judge.gate.exhausted_as), Reason::UnclearReview, again);
}

/// Applies `on_exhausted` to a gate that has used up its restarts. A person's retry grants one more.
pub fn restarts_exhausted(this: &mut Loop, policy: &Policy) {
    match judge_here(this, policy).map(|judge| (judge.gate.on_exhausted, judge.gate.exhausted_as)) {
        Some((OnExhausted::Stop, word)) => {
            end(this, exhausted_as(word), Reason::CyclesExhausted, Again::Restart);
        }
        Some((OnExhausted::Restart | OnExhausted::Proceed | OnExhausted::Ask, _)) | None => {
            exhausted(this, Reason::CyclesExhausted, policy);
        }
    }
}

/// Goes on past a gate with its findings open.
pub fn note(this: &mut Loop, reason: Reason, policy: &Policy) {
    record(this, GateEnd::Noted { reason });
    advance(this, policy);
}

pub fn exhausted_as(word: ExhaustedAs) -> Outcome {
    match word {
        ExhaustedAs::Attention => Outcome::Exhausted,
        ExhaustedAs::Failed => Outcome::Failed,
        ExhaustedAs::Stuck => Outcome::Stuck,
    }
}

/// Asks a person; where nobody is there to answer, the loop ends instead.
pub fn ask(this: &mut Loop, about: Asked, choices: &[Choice], policy: &Policy) {
    if policy.no_ask {
        let exhausted = matches!(about, Asked::Exhausted(_));
        let again = if exhausted { Again::Fix } else { resume(this) };
        let reason = match about {
            Asked::UnclearReview { .. } => or_unclear(this, Reason::NoOneToAsk, policy),
            Asked::PartialReview { .. }
            | Asked::NoReview { .. }
            | Asked::Exhausted(_)
            | Asked::FixerFailed
            | Asked::ImplementerFailed
            | Asked::Discussion { .. } => Reason::NoOneToAsk,
        };
        return end(this, Outcome::Failed, reason, again);
    }
    let mut choices = choices.to_vec();
    let earlier = judge_here(this, policy).map_or(0, |judge| judge.restart_to) < this.at.phase;
    if earlier && has_next_pass(this, policy) {
        choices.push(Choice::Restart);
    }
    let question = Question { id: this.new_question(), about, choices };
    let asked = Box::new(this.stage.clone());
    this.stage = Stage::Waiting { question, asked };
}

pub fn end(this: &mut Loop, outcome: Outcome, reason: Reason, again: Again) {
    this.stage = Stage::Done(Ending { outcome, reason: Some(reason), again });
}

/// Calls a loop off. One that ended badly can be called off too, so that nobody waits for it any more.
pub fn cancel(this: &mut Loop) {
    if this.can_be_cancelled() {
        end(this, Outcome::Cancelled, Reason::CancelledByPerson, Again::Nothing);
    }
}

/// A retry would take up the present stage, with what it has finished.
pub fn resume(this: &Loop) -> Again {
    let stage = if let Stage::Waiting { asked, .. } = &this.stage { asked } else { &this.stage };
    Again::Resume(Box::new(stage.clone()))
}

/// The policy of the gate or check the loop stands at.
pub fn judge_here<'a>(this: &Loop, policy: &'a Policy) -> Option<&'a Restarting> {
    policy.phase(this.at.phase).and_then(|phase| phase.judge())
}

/// The policy in whose reach an agent phase works: the next gate's, else the last one's.
pub fn judge_near<'a>(this: &Loop, policy: &'a Policy) -> Option<&'a Restarting> {
    let judges = |range: &'a [crate::workflow::Phase]| range.iter().filter_map(|phase| phase.judge());
    let phases = &policy.workflow.phases;
    let (before, after) = phases.split_at(this.at.phase.min(phases.len()));
    judges(after).next().or_else(|| judges(before).next_back())
}

/// The panel at work, or the one a question is about.
pub fn panel(this: &Loop) -> Option<&Panel> {
    let stage = if let Stage::Waiting { asked, .. } = &this.stage { asked } else { &this.stage };
    if let Stage::Reviewing(panel) = stage { Some(panel) } else { None }
}
