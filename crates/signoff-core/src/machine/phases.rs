//! Moves a loop from phase to phase and from pass to pass, and ends it.

use super::outcome::{Ending, Outcome, Reason, RetryAction};
use super::state::{GateEnd, GateRecord, Loop, Panel, Question, QuestionTopic, Stage};
use super::{Choice, Policy, gate, land, outside_findings, work};
use crate::policy::{ExhaustedAs, OnExhausted};
use crate::workflow::{GatePolicy, Phase, PhaseKind};

/// Starts the current phase, skipping disabled ones. After the last phase the loop is signed off.
pub fn enter(machine: &mut Loop, policy: &Policy) {
    while let Some(phase) = policy.phase(machine.position.phase) {
        let spent = phase.once && machine.once_done.contains(&machine.position.phase);
        if phase.is_off() || spent {
            next_position(machine, policy);
            continue;
        }
        return match &phase.kind {
            PhaseKind::Agent { .. } => work::begin(machine, policy),
            PhaseKind::Gate(_) | PhaseKind::Check(_) => gate::begin(machine, policy),
        };
    }
    sign_off(machine, policy);
}

/// Finishes the phase and enters the next.
pub fn advance(machine: &mut Loop, policy: &Policy) {
    machine.once_done.insert(machine.position.phase);
    next_position(machine, policy);
    enter(machine, policy);
}

/// Moves to the next phase, or back to the first of the per-item phases for the next item.
fn next_position(machine: &mut Loop, policy: &Policy) {
    let per_item = |index: usize| policy.phase(index).is_some_and(|phase| phase.per_item);
    let here = machine.position.phase;
    let block_ends = per_item(here) && !per_item(here + 1);
    if block_ends && machine.position.item + 1 < machine.items {
        machine.position.item += 1;
        machine.position.phase = (0..=here).rev().take_while(|index| per_item(*index)).last().unwrap_or(here);
        return;
    }
    if block_ends {
        machine.position.item = 0;
    }
    machine.position.phase = here + 1;
}

/// Records how a gate ended in this pass.
pub fn record_gate_end(machine: &mut Loop, end: GateEnd) {
    let (phase, item) = (machine.position.phase, machine.position.item);
    machine.gates.retain(|record| (record.phase, record.item) != (phase, item));
    machine.gates.push(GateRecord { phase, item, end });
}

/// All phases are done: determines the outcome and lands or ends the loop.
pub fn sign_off(machine: &mut Loop, policy: &Policy) {
    if outside_findings::reopen(machine, policy) {
        return;
    }
    let is_judged = policy.workflow.phases.iter().any(|phase| phase.policy().is_some() && !phase.is_off());
    if machine.is_unchanged() && is_judged {
        return nothing_to_review(machine, policy);
    }
    let (outcome, reason) = sign_off_outcome(machine, policy);
    land::finish_work(machine, outcome, reason, policy);
}

/// The work changes nothing. This is never an approval; a person decides how to go on.
pub fn nothing_to_review(machine: &mut Loop, policy: &Policy) {
    let has_findings = current_gate_policy(machine, policy).is_some() && !gate::blocking(machine, policy).is_empty();
    let has_agent = policy.workflow.phases.iter().any(|phase| phase.policy().is_none());
    let again = match (has_findings, has_agent) {
        (true, _) => RetryAction::Fix,
        (false, true) => RetryAction::Work,
        (false, false) => RetryAction::Nothing,
    };
    end(machine, Outcome::NothingToReview, Reason::NothingToReview, again);
}

fn sign_off_outcome(machine: &Loop, policy: &Policy) -> (Outcome, Option<Reason>) {
    let is_gate = |phase: &Phase| matches!(phase.kind, PhaseKind::Gate(_));
    let gates = machine.gates.iter().filter(|record| policy.phase(record.phase).is_some_and(is_gate));
    let ends = || machine.gates.iter().map(|record| &record.end);
    if ends().any(|end| *end == GateEnd::ReviewersMissing) {
        return (Outcome::CompletedWithIssues, Some(Reason::ReviewSkipped));
    }
    let noted = |end: &GateEnd| if let GateEnd::LeftFindings { reason } = end { Some(*reason) } else { None };
    if let Some(reason) = ends().find_map(noted) {
        return (Outcome::CompletedWithIssues, Some(reason));
    }
    match gates.max_by_key(|record| (record.phase, record.item)).map(|record| &record.end) {
        Some(GateEnd::Approved { commit }) if *commit == machine.head.commit => {
            let unchecked = ends().any(|end| *end == GateEnd::Unchecked).then_some(Reason::NothingToCheck);
            (Outcome::Approved { commit: commit.clone() }, unchecked)
        }
        // An approval applies to one commit; later changes were not reviewed.
        Some(_) => (Outcome::CompletedWithIssues, Some(Reason::ChangedAfterReview)),
        None => (Outcome::Unreviewed, None),
    }
}

/// Starts the next pass, if the limit allows one.
pub fn restart(machine: &mut Loop, policy: &Policy) {
    if !has_next_pass(machine, policy) {
        return end(machine, Outcome::Failed, Reason::PassesExhausted, RetryAction::Restart);
    }
    let target = current_gate_policy(machine, policy).map_or(0, |gate_policy| gate_policy.restart_to);
    machine.position.pass += 1;
    machine.position.phase = target;
    machine.position.item = 0;
    // Phases that are not repeated in the next pass keep their records.
    let once_done = machine.once_done.clone();
    let spent = |phase: usize| once_done.contains(&phase) && policy.phase(phase).is_some_and(|phase| phase.once);
    machine.gates.retain(|record| record.phase < target || spent(record.phase));
    machine.cycles.clear();
    enter(machine, policy);
}

fn has_next_pass(machine: &Loop, policy: &Policy) -> bool {
    machine.position.pass < policy.workflow.limits.max_passes.saturating_add(machine.counters.granted.passes)
}

/// A gate's limit is reached. No way on counts as a pass.
pub fn exhausted(machine: &mut Loop, reason: Reason, policy: &Policy) {
    let reason = or_unclear(machine, reason, policy);
    let Some(gate_policy) = current_gate_policy(machine, policy) else {
        return end_resumable(machine, Outcome::Failed, reason);
    };
    match gate_policy.gate.on_exhausted {
        OnExhausted::Stop => end(machine, outcome_for(gate_policy.gate.exhausted_as), reason, RetryAction::Fix),
        OnExhausted::Restart => restart(machine, policy),
        OnExhausted::Proceed => proceed_with_findings(machine, reason, policy),
        OnExhausted::Ask => {
            let interrupted_stage = QuestionTopic::Exhausted(reason);
            ask(machine, interrupted_stage, &[Choice::Continue, Choice::Proceed, Choice::Stop], policy);
        }
    }
}

/// The given reason, or `UnclearReview` if no review could be parsed and that led to the end.
pub fn or_unclear(machine: &Loop, reason: Reason, policy: &Policy) -> Reason {
    let is_unclear = policy.fix_needs_review && machine.has_only_unclear_reviews();
    if is_unclear { Reason::UnclearReview } else { reason }
}

/// No review could be parsed, so there is nothing to fix. The loop stops, or goes on unreviewed if the gate's policy
/// says so.
pub fn end_unclear(machine: &mut Loop, policy: &Policy) {
    let Some(gate_policy) = current_gate_policy(machine, policy) else { return };
    if gate_policy.gate.on_failure.leaves_findings() {
        return proceed_with_findings(machine, Reason::UnclearReview, policy);
    }
    end_resumable(machine, outcome_for(gate_policy.gate.exhausted_as), Reason::UnclearReview);
}

/// Applies `on_exhausted` to a gate that has used up its restarts. A person's retry grants one more.
pub fn restarts_exhausted(machine: &mut Loop, policy: &Policy) {
    match current_gate_policy(machine, policy).filter(|gate_policy| gate_policy.gate.on_exhausted.stops()) {
        Some(gate_policy) => {
            end(machine, outcome_for(gate_policy.gate.exhausted_as), Reason::CyclesExhausted, RetryAction::Restart);
        }
        None => exhausted(machine, Reason::CyclesExhausted, policy),
    }
}

/// Leaves a gate with its findings open.
pub fn proceed_with_findings(machine: &mut Loop, reason: Reason, policy: &Policy) {
    record_gate_end(machine, GateEnd::LeftFindings { reason });
    advance(machine, policy);
}

/// The outcome that `exhausted_as` or `attempts_exhausted_as` names.
pub fn outcome_for(kind: ExhaustedAs) -> Outcome {
    match kind {
        ExhaustedAs::Attention => Outcome::Exhausted,
        ExhaustedAs::Failed => Outcome::Failed,
        ExhaustedAs::Stuck => Outcome::Stuck,
    }
}

/// Asks a person. With `no_ask` the loop ends instead.
pub fn ask(machine: &mut Loop, topic: QuestionTopic, choices: &[Choice], policy: &Policy) {
    if policy.no_ask {
        let exhausted = matches!(topic, QuestionTopic::Exhausted(_));
        let again = if exhausted { RetryAction::Fix } else { resume_action(machine) };
        let is_unclear = matches!(topic, QuestionTopic::UnclearReview { .. });
        let reason = if is_unclear { or_unclear(machine, Reason::NoOneToAsk, policy) } else { Reason::NoOneToAsk };
        return end(machine, Outcome::Failed, reason, again);
    }
    let mut choices = choices.to_vec();
    let earlier =
        current_gate_policy(machine, policy).map_or(0, |gate_policy| gate_policy.restart_to) < machine.position.phase;
    if earlier && has_next_pass(machine, policy) {
        choices.push(Choice::Restart);
    }
    let question = Question { id: machine.new_question(), topic, choices };
    let interrupted_stage = Box::new(machine.stage.clone());
    machine.stage = Stage::Waiting { question, interrupted_stage };
}

pub fn end(machine: &mut Loop, outcome: Outcome, reason: Reason, again: RetryAction) {
    machine.stage = Stage::Done(Ending { outcome, reason: Some(reason), retry: again });
}

/// Ends a loop. A retry resumes the current stage with its finished parts.
pub fn end_resumable(machine: &mut Loop, outcome: Outcome, reason: Reason) {
    let retry = resume_action(machine);
    end(machine, outcome, reason, retry);
}

/// Cancels a loop. One that failed can be cancelled too, so that its run stops waiting for it.
pub fn cancel(machine: &mut Loop) {
    if machine.can_be_cancelled() {
        end(machine, Outcome::Cancelled, Reason::CancelledByPerson, RetryAction::Nothing);
    }
}

/// A retry that resumes the current stage with its finished parts.
pub fn resume_action(machine: &Loop) -> RetryAction {
    let stage =
        if let Stage::Waiting { interrupted_stage, .. } = &machine.stage { interrupted_stage } else { &machine.stage };
    RetryAction::Resume(Box::new(stage.clone()))
}

/// The policy of the current gate or check.
pub fn current_gate_policy<'a>(machine: &Loop, policy: &'a Policy) -> Option<&'a GatePolicy> {
    policy.phase(machine.position.phase).and_then(|phase| phase.policy())
}

/// The gate policy that applies to an agent phase: that of the next gate, else of the last one.
pub fn nearest_gate_policy<'a>(machine: &Loop, policy: &'a Policy) -> Option<&'a GatePolicy> {
    let gates = |range: &'a [Phase]| range.iter().filter_map(|phase| phase.policy());
    let phases = &policy.workflow.phases;
    let (before, after) = phases.split_at(machine.position.phase.min(phases.len()));
    gates(after).next().or_else(|| gates(before).next_back())
}

/// The current panel, or the one that a question is about.
pub fn panel(machine: &Loop) -> Option<&Panel> {
    let stage =
        if let Stage::Waiting { interrupted_stage, .. } = &machine.stage { interrupted_stage } else { &machine.stage };
    if let Stage::Reviewing(panel) = stage { Some(panel) } else { None }
}
