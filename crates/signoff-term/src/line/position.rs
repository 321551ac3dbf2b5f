//! The position of a loop in its workflow, `[2/3] `, or `Phase 5/9: Code Review: ` in workflows with counted phases; and
//! lines about the step that starts there.

use signoff_core::ids::AttemptId;
use signoff_core::machine::{
    AttemptSlot, Event, Fix, FixOrder, FixState, Loop, Panel, PauseReason, Policy, ReviewScope, Stage,
};
use signoff_core::view::{LoopTransition, PhaseProgress};
use signoff_core::workflow::{Phase, PhaseKind, Role, Scheduling};

use super::ProgressLine;
use crate::fit::count;
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
fn position(machine: &Loop, policy: &Policy) -> String {
    let stage =
        if let Stage::Waiting { interrupted_stage, .. } = &machine.stage { interrupted_stage } else { &machine.stage };
    if !is_in_a_phase(stage) {
        return String::new();
    }
    if let Some(phase) = phase(machine, policy) {
        return format!("{phase}: ");
    }
    let several = has_several_gates(policy);
    let counter = || counter(machine, stage, policy, several).map(|(n, m)| counted(n, m));
    let counter = fix_of_slot(machine, stage, policy).or_else(counter);
    let phase = policy.workflow.phases.get(machine.position.phase);
    let name = phase.filter(|_| several).map(|phase| phase.name.clone());
    let item = phase.filter(|phase| phase.per_item && machine.items > 1);
    let item = item.map(|_| format!("item {}/{}", machine.position.item + 1, machine.items));
    let head = [name, counter].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let parts: Vec<_> = [Some(head), item].into_iter().flatten().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { String::new() } else { format!("[{}] ", parts.join(", ")) }
}

/// Whether the loop runs in a slot.
pub fn is_slot(policy: &Policy) -> bool {
    policy.workflow.arrangement == Scheduling::Slots
}

/// `fix 1/5`: slots count fixes instead of reviews.
fn fix_of_slot(machine: &Loop, stage: &Stage, policy: &Policy) -> Option<String> {
    let fixes = matches!(stage, Stage::Fixing { .. } | Stage::Combining { .. }) && is_slot(policy);
    let gate_policy =
        policy.workflow.phases.get(machine.position.phase).and_then(|phase| phase.policy()).filter(|_| fixes)?;
    let fix = machine.counters.fixes.max(1);
    let bound = gate_policy.gate.bound.fixes().map(|bound| format!("/{}", bound.max(fix)));
    Some(format!("fix {fix}{}", bound.unwrap_or_default()))
}

fn counted(n: u32, m: Option<u32>) -> String {
    m.map_or_else(|| n.to_string(), |m| format!("{n}/{m}"))
}

/// `Phase 5/9: Code Review 2/11`; the first review has no number.
fn phase(machine: &Loop, policy: &Policy) -> Option<String> {
    let stage =
        if let Stage::Waiting { interrupted_stage, .. } = &machine.stage { interrupted_stage } else { &machine.stage };
    let progress = PhaseProgress::for_loop(machine, policy)?;
    let phase = policy.workflow.phases.get(machine.position.phase)?;
    let again = counter(machine, stage, policy, true).filter(|(n, _)| *n > 1);
    let again = again.map(|(n, m)| format!(" {}", counted(n, m))).unwrap_or_default();
    let item = phase.per_item && machine.items > 1;
    let item = if item { format!(", item {}/{}", machine.position.item + 1, machine.items) } else { String::new() };
    let name = labels::phase(&phase.name);
    Some(format!("Phase {}/{}: {name}{again}{item}", progress.phase, progress.phases))
}

/// A line that consists of the phase's name and a suffix: `Phase 1/9: Brainstorm...`.
pub fn phase_line(machine: &Loop, policy: &Policy, suffix: &str) -> Option<ProgressLine> {
    phase(machine, policy).map(|position| ProgressLine::Step { position, text: suffix.to_owned() })
}

/// `Iteration 2/10`.
pub fn iteration(machine: &Loop, policy: &Policy) -> Option<String> {
    PhaseProgress::for_loop(machine, policy).map(|progress| format!("{}/{}", progress.pass, progress.max_passes))
}

/// Whether a phase of the workflow is worked on.
pub fn is_in_a_phase(stage: &Stage) -> bool {
    let works = matches!(stage, Stage::Working { .. } | Stage::Researching { .. });
    let reviews = matches!(stage, Stage::Checking { .. } | Stage::Reviewing(_));
    works || reviews || matches!(stage, Stage::Fixing { .. } | Stage::Combining { .. })
}

/// Whether the workflow has several gates or checks.
pub fn has_several_gates(policy: &Policy) -> bool {
    let is_gate = |phase: &&Phase| phase.policy().is_some() && !phase.is_off();
    policy.workflow.phases.iter().filter(is_gate).count() > 1
}

fn counter(machine: &Loop, stage: &Stage, policy: &Policy, several: bool) -> Option<(u32, Option<u32>)> {
    let phases = &policy.workflow.phases;
    let (phase, n) = match stage {
        Stage::Reviewing(_) | Stage::Checking { .. } => (machine.position.phase, machine.review_number()),
        // The review number of an item already includes the current fix.
        Stage::Fixing { .. } | Stage::Combining { .. } if machine.position.item > 0 => {
            (machine.position.phase, machine.review_number())
        }
        Stage::Fixing { .. } | Stage::Combining { .. } => (machine.position.phase, machine.counters.cycle + 1),
        Stage::Working { .. } | Stage::Researching { .. } if !several => {
            let is_gate = |phase: &Phase| matches!(phase.kind, PhaseKind::Gate(_)) && !phase.is_off();
            let next = (machine.position.phase..phases.len()).find(|index| is_gate(&phases[*index]))?;
            (next, machine.cycles.get(&next).copied().unwrap_or(0) + 1)
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

/// The lines about the step that starts with this event, if one does.
pub fn start_lines(step: &LoopTransition) -> Vec<ProgressLine> {
    let Some(text) = text(step) else { return Vec::new() };
    let itself = starts_phase(step).then(|| phase_line(step.after, step.policy, "...")).flatten();
    let line = itself.unwrap_or_else(|| ProgressLine::Step { position: after(step), text });
    iteration_line(step).into_iter().chain([line]).collect()
}

/// `Iteration 2/10`, before the first step of an iteration.
fn iteration_line(step: &LoopTransition) -> Option<ProgressLine> {
    let new = step.before.stage == Stage::Queued || step.before.position.pass != step.after.position.pass;
    let iteration = iteration(step.after, step.policy).filter(|_| new)?;
    Some(ProgressLine::Unindented(format!("Iteration {iteration}")))
}

/// Whether the phase itself starts, rather than a fix or a repetition within it.
fn starts_phase(step: &LoopTransition) -> bool {
    let fresh = step.before.position != step.after.position || step.before.stage == Stage::Queued;
    if let Stage::Reviewing(panel) = &step.after.stage {
        return panel.scope == ReviewScope::Full && step.before.counters.reviews != step.after.counters.reviews;
    }
    fresh && matches!(step.after.stage, Stage::Working { .. } | Stage::Checking { .. })
}

fn text(step: &LoopTransition) -> Option<String> {
    let waits_for_checkpoint = |machine: &Loop| machine.pause_reasons().contains(&PauseReason::Checkpoint);
    if waits_for_checkpoint(step.after) && !waits_for_checkpoint(step.before) {
        return Some("Waiting for a checkpoint review".to_owned());
    }
    match &step.after.stage {
        Stage::Working { .. } => working(step),
        Stage::Researching { team } => {
            let starts = !matches!(step.before.stage, Stage::Researching { .. });
            starts.then(|| researching(step, team.len()))
        }
        Stage::Checking { .. } => checking(step),
        Stage::Reviewing(panel) => reviewing(step, panel),
        Stage::Fixing { fixes, order, .. } => fixing(step, fixes, *order),
        Stage::Combining { .. } => {
            let starts = !matches!(step.before.stage, Stage::Combining { .. });
            starts.then(|| "Combining the fixes...".to_owned())
        }
        Stage::AwaitingLanding { outcome, .. } => {
            let waited = matches!(step.before.stage, Stage::AwaitingLanding { .. });
            let starts = !waited || step.before.checkpoint.is_some();
            let result = if outcome.is_approval() { "Signed off" } else { "Finished" };
            let under_review = step.after.checkpoint.is_some();
            let until = if under_review { "waiting for a checkpoint review" } else { "lands with its group" };
            starts.then(|| format!("{result}, {until}"))
        }
        Stage::Landing { .. } => landing(step),
        Stage::Queued | Stage::Waiting { .. } | Stage::Done(_) => None,
    }
}

/// The role of the phase's agent.
pub fn role(machine: &Loop, step: &LoopTransition) -> Role {
    match step.policy.workflow.phases.get(machine.position.phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Agent { role, .. }) => *role,
        Some(PhaseKind::Gate(_) | PhaseKind::Check(_)) | None => Role::Implement,
    }
}

/// Whether an attempt is running that was not running before.
fn has_new_attempt(step: &LoopTransition) -> bool {
    let running =
        |machine: &Loop| -> Vec<AttemptId> { machine.slots().into_iter().filter_map(AttemptSlot::attempt).collect() };
    let before = running(step.before);
    running(step.after).iter().any(|attempt| !before.contains(attempt))
}

/// Whether the step is repeated. Lost and paused attempts have lines of their own.
fn is_retry(step: &LoopTransition) -> bool {
    let ended = matches!(
        step.event,
        Event::WorkEnded { .. }
            | Event::AttemptFailed { .. }
            | Event::CheckpointEnded { .. }
            | Event::Resumed { reason: PauseReason::Checkpoint }
    );
    ended && has_new_attempt(step)
}

fn working(step: &LoopTransition) -> Option<String> {
    let activity = labels::role_activity(role(step.after, step));
    let same = matches!(step.before.stage, Stage::Working { .. }) && step.before.position == step.after.position;
    if same {
        // Only the attempts of these roles are counted.
        let attempt = match role(step.after, step) {
            Role::Implement | Role::Fix => format!(" (attempt {})", step.after.counters.attempts),
            Role::Enumerate | Role::Plan | Role::Brainstorm | Role::Simplify => String::new(),
        };
        return is_retry(step).then(|| format!("{activity} again{attempt}..."));
    }
    if matches!(step.before.stage, Stage::Researching { .. }) {
        return Some("Combining the results...".to_owned());
    }
    Some(format!("{activity}..."))
}

fn researching(step: &LoopTransition, team: usize) -> String {
    let researchers = format!("{} first...", count(team as u64, "researcher"));
    if iteration(step.after, step.policy).is_some() {
        return researchers;
    }
    format!("{}: {researchers}", labels::role_activity(role(step.after, step)))
}

fn checking(step: &LoopTransition) -> Option<String> {
    let same = matches!(step.before.stage, Stage::Checking { .. });
    let again = same && step.before.position == step.after.position;
    if again {
        return is_retry(step).then(|| "Running checks again...".to_owned());
    }
    Some("Running checks...".to_owned())
}

fn reviewing(step: &LoopTransition, panel: &Panel) -> Option<String> {
    if step.before.counters.reviews != step.after.counters.reviews {
        return Some(match panel.scope {
            ReviewScope::Full => "Running review...".to_owned(),
            ReviewScope::Scoped => "Running review of the fix...".to_owned(),
        });
    }
    let called: Vec<_> = panel.missing().iter().map(|name| name.as_str().to_owned()).collect();
    let starts = !matches!(step.before.stage, Stage::Reviewing(_));
    starts.then(|| format!("Asking {} again...", called.join(" and ")))
}

fn fixing(step: &LoopTransition, fixes: &[Fix], order: FixOrder) -> Option<String> {
    let out = fixes.iter().filter(|fix| matches!(fix.state, FixState::Assigned(_))).count();
    let activity = if is_slot(step.policy) { "Fixing" } else { "Improving" };
    if matches!(step.before.stage, Stage::Fixing { .. }) {
        let ended = matches!(step.event, Event::WorkEnded { .. });
        if ended {
            // Parallel fixes share one line.
            return (order == FixOrder::Sequential && out > 0).then(|| format!("{activity}..."));
        }
        return is_retry(step).then(|| format!("{activity} again..."));
    }
    Some(match order {
        FixOrder::Parallel if out > 1 => format!("{activity} ({out} fixes at once)..."),
        FixOrder::Parallel | FixOrder::Sequential => format!("{activity}..."),
    })
}

fn landing(step: &LoopTransition) -> Option<String> {
    if matches!(step.before.stage, Stage::Landing { .. }) {
        return is_retry(step).then(|| "Landing again...".to_owned());
    }
    Some("Landing...".to_owned())
}
