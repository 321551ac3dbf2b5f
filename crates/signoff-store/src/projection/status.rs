//! The status values of loops and reviews in the tables.

use signoff_core::machine::{GateEnd, Loop, Outcome, Stage};

pub(super) fn loop_status(machine: &Loop) -> &'static str {
    if machine.is_signed_off() { "completed" } else { stage_status(&machine.stage) }
}

fn stage_status(stage: &Stage) -> &'static str {
    match stage {
        Stage::Queued => "pending",
        Stage::Fixing { .. } | Stage::Combining { .. } => "needs_revision",
        Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Reviewing(_)
        | Stage::AwaitingLanding { .. }
        | Stage::Landing { .. } => "running",
        Stage::Waiting { interrupted_stage, .. } => stage_status(interrupted_stage),
        Stage::Done(ending) => match ending.outcome {
            Outcome::Approved { .. }
            | Outcome::Accepted { .. }
            | Outcome::Unreviewed
            | Outcome::CompletedWithIssues
            | Outcome::Exhausted
            | Outcome::Discussion
            | Outcome::NothingToReview => "completed",
            Outcome::Failed => "failed",
            Outcome::Stuck => "stuck",
            Outcome::Cancelled => "interrupted",
        },
    }
}

/// The review status of a loop.
pub(super) fn review_status(machine: &Loop) -> &'static str {
    match &machine.stage {
        Stage::Reviewing(_) => "in_progress",
        Stage::AwaitingLanding { outcome, .. } | Stage::Landing { outcome, .. } if outcome.is_approval() => "passed",
        Stage::Done(ending) if ending.outcome.is_approval() => "passed",
        Stage::Queued
        | Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::AwaitingLanding { .. }
        | Stage::Landing { .. }
        | Stage::Waiting { .. }
        | Stage::Done(_) => last_gate_status(machine),
    }
}

fn last_gate_status(machine: &Loop) -> &'static str {
    let fixing = matches!(machine.stage, Stage::Fixing { .. } | Stage::Combining { .. });
    match machine.gates.last().map(|gate| &gate.end) {
        _ if machine.counters.reviews == 0 => "pending",
        Some(GateEnd::Approved { .. }) if !fixing => "passed",
        Some(
            GateEnd::Approved { .. } | GateEnd::LeftFindings { .. } | GateEnd::ReviewersMissing | GateEnd::Unchecked,
        )
        | None => "failed",
    }
}
