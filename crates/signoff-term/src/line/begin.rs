//! Lines about the step that a loop starts.

use signoff_core::ids::AttemptId;
use signoff_core::machine::{
    AttemptSlot, Event, Fix, FixOrder, FixState, Loop, Panel, PauseReason, ReviewScope, Stage,
};
use signoff_core::view::LoopTransition;
use signoff_core::workflow::{PhaseKind, Role};

use super::{ProgressLine, position};
use crate::fit::count;
use crate::labels;

/// The lines about the step that starts with this event, if one does.
pub fn start_lines(step: &LoopTransition) -> Vec<ProgressLine> {
    let Some(text) = text(step) else { return Vec::new() };
    let itself = starts_phase(step).then(|| position::phase_line(step.after, step.policy, "...")).flatten();
    let line = itself.unwrap_or_else(|| ProgressLine::Step { place: position::after(step), text });
    iteration(step).into_iter().chain([line]).collect()
}

/// `Iteration 2/10`, before the first step of an iteration.
fn iteration(step: &LoopTransition) -> Option<ProgressLine> {
    let new = step.before.stage == Stage::Queued || step.before.at.pass != step.after.at.pass;
    let iteration = position::iteration(step.after, step.policy).filter(|_| new)?;
    Some(ProgressLine::Margin(format!("Iteration {iteration}")))
}

/// Whether the phase itself starts, rather than a fix or a repetition within it.
fn starts_phase(step: &LoopTransition) -> bool {
    let fresh = step.before.at != step.after.at || step.before.stage == Stage::Queued;
    if let Stage::Reviewing(panel) = &step.after.stage {
        return panel.scope == ReviewScope::Full && step.before.tally.reviews != step.after.tally.reviews;
    }
    fresh && matches!(step.after.stage, Stage::Working { .. } | Stage::Checking { .. })
}

fn text(step: &LoopTransition) -> Option<String> {
    if starts_waiting_for_checkpoint(step) {
        return Some("Waiting for a checkpoint review".to_owned());
    }
    match &step.after.stage {
        Stage::Working { .. } => working(step),
        Stage::Researching { team } => {
            let begun = !matches!(step.before.stage, Stage::Researching { .. });
            begun.then(|| researching(step, team.len()))
        }
        Stage::Checking { .. } => checking(step),
        Stage::Reviewing(panel) => reviewing(step, panel),
        Stage::Fixing { fixes, order, .. } => fixing(step, fixes, *order),
        Stage::Combining { .. } => {
            let begun = !matches!(step.before.stage, Stage::Combining { .. });
            begun.then(|| "Putting the fixes together...".to_owned())
        }
        Stage::AwaitingLanding { outcome, .. } => {
            let waited = matches!(step.before.stage, Stage::AwaitingLanding { .. });
            let begun = !waited || step.before.checkpoint.is_some();
            let word = if outcome.is_approval() { "Signed off" } else { "Finished" };
            let looked_at = step.after.checkpoint.is_some();
            let until = if looked_at { "waiting for a checkpoint review" } else { "lands with its group" };
            begun.then(|| format!("{word}, {until}"))
        }
        Stage::Landing { .. } => landing(step),
        Stage::Queued | Stage::Waiting { .. } | Stage::Done(_) => None,
    }
}

/// The role of the phase's agent.
pub fn role(this: &Loop, step: &LoopTransition) -> Role {
    match step.policy.workflow.phases.get(this.at.phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Agent { role, .. }) => *role,
        Some(PhaseKind::Gate(_) | PhaseKind::Check(_)) | None => Role::Implement,
    }
}

fn starts_waiting_for_checkpoint(step: &LoopTransition) -> bool {
    let waits = |this: &Loop| this.pause_reasons().contains(&PauseReason::Checkpoint);
    waits(step.after) && !waits(step.before)
}

/// Whether an attempt is running that was not running before.
fn has_new_attempt(step: &LoopTransition) -> bool {
    let running =
        |this: &Loop| -> Vec<AttemptId> { this.slots().into_iter().filter_map(AttemptSlot::attempt).collect() };
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
            | Event::Resumed { hold: PauseReason::Checkpoint }
    );
    ended && has_new_attempt(step)
}

fn working(step: &LoopTransition) -> Option<String> {
    let doing = labels::role_activity(role(step.after, step));
    let same = matches!(step.before.stage, Stage::Working { .. }) && step.before.at == step.after.at;
    if same {
        // Only the attempts of these roles are counted.
        let attempt = match role(step.after, step) {
            Role::Implement | Role::Fix => format!(" (attempt {})", step.after.tally.iteration),
            Role::Enumerate | Role::Plan | Role::Brainstorm | Role::Simplify => String::new(),
        };
        return is_retry(step).then(|| format!("{doing} again{attempt}..."));
    }
    if matches!(step.before.stage, Stage::Researching { .. }) {
        return Some("Bringing it together...".to_owned());
    }
    Some(format!("{doing}..."))
}

fn researching(step: &LoopTransition, team: usize) -> String {
    let researchers = format!("{} first...", count(team as u64, "researcher"));
    if position::iteration(step.after, step.policy).is_some() {
        return researchers;
    }
    format!("{}: {researchers}", labels::role_activity(role(step.after, step)))
}

fn checking(step: &LoopTransition) -> Option<String> {
    let same = matches!(step.before.stage, Stage::Checking { .. });
    let again = same && step.before.at == step.after.at;
    if again {
        return is_retry(step).then(|| "Running checks again...".to_owned());
    }
    Some("Running checks...".to_owned())
}

fn reviewing(step: &LoopTransition, panel: &Panel) -> Option<String> {
    if step.before.tally.reviews != step.after.tally.reviews {
        return Some(match panel.scope {
            ReviewScope::Full => "Running review...".to_owned(),
            ReviewScope::Scoped => "Running review of the fix...".to_owned(),
        });
    }
    let called: Vec<_> = panel.missing().iter().map(|name| name.as_str().to_owned()).collect();
    let begun = !matches!(step.before.stage, Stage::Reviewing(_));
    begun.then(|| format!("Asking {} again...", called.join(" and ")))
}

fn fixing(step: &LoopTransition, fixes: &[Fix], order: FixOrder) -> Option<String> {
    let out = fixes.iter().filter(|fix| matches!(fix.state, FixState::Assigned(_))).count();
    let doing = if position::is_slot(step.policy) { "Fixing" } else { "Improving" };
    if matches!(step.before.stage, Stage::Fixing { .. }) {
        let ended = matches!(step.event, Event::WorkEnded { .. });
        if ended {
            // Parallel fixes share one line.
            return (order == FixOrder::InTurn && out > 0).then(|| format!("{doing}..."));
        }
        return is_retry(step).then(|| format!("{doing} again..."));
    }
    Some(match order {
        FixOrder::AtOnce if out > 1 => format!("{doing} ({out} fixes at once)..."),
        FixOrder::AtOnce | FixOrder::InTurn => format!("{doing}..."),
    })
}

fn landing(step: &LoopTransition) -> Option<String> {
    if matches!(step.before.stage, Stage::Landing { .. }) {
        return is_retry(step).then(|| "Landing again...".to_owned());
    }
    Some("Landing...".to_owned())
}
