//! The position of a loop in its workflow: `[2/3] `, or `Phase 5/9: Code Review: ` in workflows with counted phases.

use signoff_core::machine::{Loop, Policy, Stage};
use signoff_core::view::{LoopTransition, PhaseProgress};
use signoff_core::workflow::{Arrangement, Phase, PhaseKind};

use super::ProgressLine;
use crate::labels;

/// The position before the event.
pub fn before(step: &LoopTransition) -> String {
    position(step.before, step.policy)
}

/// The position after the event.
pub fn after(step: &LoopTransition) -> String {
    position(step.after, step.policy)
}

/// The number of the next review and the gate's limit, with the name of the phase if there are several gates.
fn position(this: &Loop, policy: &Policy) -> String {
    let stage = if let Stage::Waiting { asked, .. } = &this.stage { asked } else { &this.stage };
    if !is_in_a_phase(stage) {
        return String::new();
    }
    if let Some(phase) = phase(this, policy) {
        return format!("{phase}: ");
    }
    let several = has_several_judges(policy);
    let counter = || counter(this, stage, policy, several).map(|(n, m)| counted(n, m));
    let counter = fix_of_slot(this, stage, policy).or_else(counter);
    let phase = policy.workflow.phases.get(this.at.phase);
    let name = phase.filter(|_| several).map(|phase| phase.name.clone());
    let item = phase.filter(|phase| phase.per_item && this.items > 1);
    let item = item.map(|_| format!("item {}/{}", this.at.item + 1, this.items));
    let head = [name, counter].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let parts: Vec<_> = [Some(head), item].into_iter().flatten().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { String::new() } else { format!("[{}] ", parts.join(", ")) }
}

/// Whether the loop runs in a slot.
pub fn is_slot(policy: &Policy) -> bool {
    policy.workflow.arrangement == Arrangement::Slots
}

/// `fix 1/5`: slots count fixes instead of reviews.
fn fix_of_slot(this: &Loop, stage: &Stage, policy: &Policy) -> Option<String> {
    let fixes = matches!(stage, Stage::Fixing { .. } | Stage::Combining { .. }) && is_slot(policy);
    let judge = policy.workflow.phases.get(this.at.phase).and_then(|phase| phase.policy()).filter(|_| fixes)?;
    let fix = this.tally.fixes.max(1);
    let bound = judge.gate.bound.fixes().map(|bound| format!("/{}", bound.max(fix)));
    Some(format!("fix {fix}{}", bound.unwrap_or_default()))
}

fn counted(n: u32, m: Option<u32>) -> String {
    m.map_or_else(|| n.to_string(), |m| format!("{n}/{m}"))
}

/// `Phase 5/9: Code Review 2/11`; the first review has no number.
fn phase(this: &Loop, policy: &Policy) -> Option<String> {
    let stage = if let Stage::Waiting { asked, .. } = &this.stage { asked } else { &this.stage };
    let place = PhaseProgress::for_loop(this, policy)?;
    let phase = policy.workflow.phases.get(this.at.phase)?;
    let again = counter(this, stage, policy, true).filter(|(n, _)| *n > 1);
    let again = again.map(|(n, m)| format!(" {}", counted(n, m))).unwrap_or_default();
    let item = phase.per_item && this.items > 1;
    let item = if item { format!(", item {}/{}", this.at.item + 1, this.items) } else { String::new() };
    let name = labels::phase(&phase.name);
    Some(format!("Phase {}/{}: {name}{again}{item}", place.phase, place.phases))
}

/// A line that consists of the phase's name and a suffix: `Phase 1/9: Brainstorm...`.
pub fn phase_line(this: &Loop, policy: &Policy, suffix: &str) -> Option<ProgressLine> {
    phase(this, policy).map(|place| ProgressLine::Step { place, text: suffix.to_owned() })
}

/// `Iteration 2/10`.
pub fn iteration(this: &Loop, policy: &Policy) -> Option<String> {
    PhaseProgress::for_loop(this, policy).map(|place| format!("{}/{}", place.pass, place.max_passes))
}

/// Whether a phase of the workflow is worked on.
pub fn is_in_a_phase(stage: &Stage) -> bool {
    let makes = matches!(stage, Stage::Working { .. } | Stage::Researching { .. });
    let judges = matches!(stage, Stage::Checking { .. } | Stage::Reviewing(_));
    makes || judges || matches!(stage, Stage::Fixing { .. } | Stage::Combining { .. })
}

/// Whether the workflow has several gates or checks.
pub fn has_several_judges(policy: &Policy) -> bool {
    let judges = |phase: &&Phase| phase.policy().is_some() && !phase.is_off();
    policy.workflow.phases.iter().filter(judges).count() > 1
}

fn counter(this: &Loop, stage: &Stage, policy: &Policy, several: bool) -> Option<(u32, Option<u32>)> {
    let phases = &policy.workflow.phases;
    let (phase, n) = match stage {
        Stage::Reviewing(_) | Stage::Checking { .. } => (this.at.phase, this.review_number()),
        // The review number of an item already includes the current fix.
        Stage::Fixing { .. } | Stage::Combining { .. } if this.at.item > 0 => (this.at.phase, this.review_number()),
        Stage::Fixing { .. } | Stage::Combining { .. } => (this.at.phase, this.tally.cycle + 1),
        Stage::Working { .. } | Stage::Researching { .. } if !several => {
            let is_gate = |phase: &Phase| matches!(phase.kind, PhaseKind::Gate(_)) && !phase.is_off();
            let next = (this.at.phase..phases.len()).find(|index| is_gate(&phases[*index]))?;
            (next, this.cycles.get(&next).copied().unwrap_or(0) + 1)
        }
        Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Queued
        | Stage::AwaitingLanding { .. }
        | Stage::Landing { .. }
        | Stage::Waiting { .. }
        | Stage::Done(_) => return None,
    };
    let bound = phases.get(phase)?.policy()?.gate.bound;
    // Cycles granted by a person and rejected landings may exceed the limit.
    Some((n, bound.reviews().map(|m| m.max(n))))
}
