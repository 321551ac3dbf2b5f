//! What a loop begins.

use signoff_core::ids::AttemptId;
use signoff_core::machine::{Event, Fix, FixState, Hold, Loop, Order, Panel, Scope, Slot, Stage};
use signoff_core::workflow::{PhaseKind, Role};

use super::{Line, place};
use crate::fit::count;
use crate::round::Step;
use crate::words;

/// The lines of what begins with this fact, if something does.
pub fn begins(step: &Step) -> Vec<Line> {
    let Some(text) = text(step) else { return Vec::new() };
    let itself = has_begun(step).then(|| place::itself(step.after, step.policy, "...")).flatten();
    let line = itself.unwrap_or_else(|| Line::Step { place: place::reached(step), text });
    iteration(step).into_iter().chain([line]).collect()
}

/// `Iteration 2/10`, with the first thing that is done in it.
fn iteration(step: &Step) -> Option<Line> {
    let new = step.before.stage == Stage::Queued || step.before.at.pass != step.after.at.pass;
    let iteration = place::iteration(step.after, step.policy).filter(|_| new)?;
    Some(Line::Margin(format!("Iteration {iteration}")))
}

/// Whether what begins is the phase's own work, and that from its beginning.
fn has_begun(step: &Step) -> bool {
    let fresh = step.before.at != step.after.at || step.before.stage == Stage::Queued;
    match &step.after.stage {
        Stage::Working { .. } | Stage::Checking { .. } => fresh,
        Stage::Reviewing(panel) => {
            panel.scope == Scope::Full && step.before.tally.reviews != step.after.tally.reviews
        }
        Stage::Queued
        | Stage::Researching { .. }
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::AwaitingLanding { .. }
        | Stage::Landing { .. }
        | Stage::Waiting { .. }
        | Stage::Done(_) => false,
    }
}

fn text(step: &Step) -> Option<String> {
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
            let approved = outcome.is_approval();
            let word = if approved { "Signed off" } else { "Finished" };
            let looked_at = step.after.checkpoint.is_some();
            let until = if looked_at { "waiting for a checkpoint review" } else { "lands with its group" };
            begun.then(|| format!("{word}, {until}"))
        }
        Stage::Landing { .. } => landing(step),
        Stage::Queued | Stage::Waiting { .. } | Stage::Done(_) => None,
    }
}

/// The role of the phase's agent.
pub fn role(this: &Loop, step: &Step) -> Role {
    match step.policy.workflow.phases.get(this.at.phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Agent { role, .. }) => *role,
        Some(PhaseKind::Gate(_) | PhaseKind::Check(_)) | None => Role::Implement,
    }
}

fn starts_waiting_for_checkpoint(step: &Step) -> bool {
    let waits = |this: &Loop| this.holds().contains(&Hold::Checkpoint);
    waits(step.after) && !waits(step.before)
}

/// Whether an attempt runs that did not run before.
fn has_new_attempt(step: &Step) -> bool {
    let running =
        |this: &Loop| -> Vec<AttemptId> { this.slots().into_iter().filter_map(Slot::attempt).collect() };
    let before = running(step.before);
    running(step.after).iter().any(|attempt| !before.contains(attempt))
}

/// Whether what went before asks for the same once more. Lost and held attempts are told elsewhere.
fn is_another_try(step: &Step) -> bool {
    let ended = matches!(
        step.event,
        Event::WorkEnded { .. }
            | Event::AttemptFailed { .. }
            | Event::CheckpointEnded { .. }
            | Event::Resumed { hold: Hold::Checkpoint }
    );
    ended && has_new_attempt(step)
}

fn working(step: &Step) -> Option<String> {
    let doing = words::doing(role(step.after, step));
    let same = matches!(step.before.stage, Stage::Working { .. }) && step.before.at == step.after.at;
    if same {
        // Only implementing and fixing is counted.
        let attempt = match role(step.after, step) {
            Role::Implement | Role::Fix => format!(" (attempt {})", step.after.tally.iteration),
            Role::Enumerate | Role::Plan | Role::Brainstorm | Role::Simplify => String::new(),
        };
        return is_another_try(step).then(|| format!("{doing} again{attempt}..."));
    }
    if matches!(step.before.stage, Stage::Researching { .. }) {
        return Some("Bringing it together...".to_owned());
    }
    Some(format!("{doing}..."))
}

fn researching(step: &Step, team: usize) -> String {
    let researchers = format!("{} first...", count(team as u64, "researcher"));
    if place::iteration(step.after, step.policy).is_some() {
        return researchers;
    }
    format!("{}: {researchers}", words::doing(role(step.after, step)))
}

fn checking(step: &Step) -> Option<String> {
    let same = matches!(step.before.stage, Stage::Checking { .. });
    let again = same && step.before.at == step.after.at;
    if again {
        return is_another_try(step).then(|| "Running checks again...".to_owned());
    }
    Some("Running checks...".to_owned())
}

fn reviewing(step: &Step, panel: &Panel) -> Option<String> {
    if step.before.tally.reviews != step.after.tally.reviews {
        return Some(match panel.scope {
            Scope::Full => "Running review...".to_owned(),
            Scope::Scoped => "Running review of the fix...".to_owned(),
        });
    }
    let called: Vec<_> = panel.missing().iter().map(|name| name.as_str().to_owned()).collect();
    let begun = !matches!(step.before.stage, Stage::Reviewing(_));
    begun.then(|| format!("Asking {} again...", called.join(" and ")))
}

fn fixing(step: &Step, fixes: &[Fix], order: Order) -> Option<String> {
    let out = fixes.iter().filter(|fix| matches!(fix.state, FixState::Out(_))).count();
    let doing = if place::is_slot(step.policy) { "Fixing" } else { "Improving" };
    if matches!(step.before.stage, Stage::Fixing { .. }) {
        let ended = matches!(step.event, Event::WorkEnded { .. });
        if ended {
            // Those at once were told of together.
            return (order == Order::InTurn && out > 0).then(|| format!("{doing}..."));
        }
        return is_another_try(step).then(|| format!("{doing} again..."));
    }
    Some(match order {
        Order::AtOnce if out > 1 => format!("{doing} ({out} fixes at once)..."),
        Order::AtOnce | Order::InTurn => format!("{doing}..."),
    })
}

fn landing(step: &Step) -> Option<String> {
    if matches!(step.before.stage, Stage::Landing { .. }) {
        return is_another_try(step).then(|| "Landing again...".to_owned());
    }
    Some("Landing...".to_owned())
}
