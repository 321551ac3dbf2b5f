//! The statuses of a loop in the database.

use crate::machine::{GateEnd, Loop, Outcome, Stage};

/// The status of the work of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum LoopRowStatus {
    Pending,
    NeedsRevision,
    Running,
    Completed,
    Failed,
    Stuck,
    Interrupted,
}

impl LoopRowStatus {
    pub fn for_loop(machine: &Loop) -> Self {
        if machine.is_signed_off() { Self::Completed } else { Self::for_stage(&machine.stage) }
    }

    fn for_stage(stage: &Stage) -> Self {
        match stage {
            Stage::Queued => Self::Pending,
            Stage::Fixing { .. } | Stage::Combining { .. } => Self::NeedsRevision,
            Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::AwaitingLanding { .. }
            | Stage::Landing { .. } => Self::Running,
            Stage::Waiting { interrupted_stage, .. } => Self::for_stage(interrupted_stage),
            Stage::Done(ending) => match ending.outcome {
                Outcome::Approved { .. }
                | Outcome::Accepted { .. }
                | Outcome::Unreviewed
                | Outcome::CompletedWithIssues
                | Outcome::Exhausted
                | Outcome::Discussion
                | Outcome::NothingToReview => Self::Completed,
                Outcome::Failed => Self::Failed,
                Outcome::Stuck => Self::Stuck,
                Outcome::Cancelled => Self::Interrupted,
            },
        }
    }
}

/// The result of the reviews of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum LoopReviewStatus {
    Pending,
    InProgress,
    Passed,
    Failed,
}

impl LoopReviewStatus {
    pub fn for_loop(machine: &Loop) -> Self {
        match &machine.stage {
            Stage::Reviewing(_) => Self::InProgress,
            Stage::AwaitingLanding { outcome, .. } | Stage::Landing { outcome, .. } if outcome.is_approval() => {
                Self::Passed
            }
            Stage::Done(ending) if ending.outcome.is_approval() => Self::Passed,
            Stage::Queued
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Fixing { .. }
            | Stage::Combining { .. }
            | Stage::AwaitingLanding { .. }
            | Stage::Landing { .. }
            | Stage::Waiting { .. }
            | Stage::Done(_) => Self::for_last_gate(machine),
        }
    }

    fn for_last_gate(machine: &Loop) -> Self {
        let fixing = matches!(machine.stage, Stage::Fixing { .. } | Stage::Combining { .. });
        match machine.gates.last().map(|gate| &gate.end) {
            _ if machine.counters.reviews == 0 => Self::Pending,
            Some(GateEnd::Approved { .. }) if !fixing => Self::Passed,
            Some(
                GateEnd::Approved { .. }
                | GateEnd::LeftFindings { .. }
                | GateEnd::ReviewersMissing
                | GateEnd::Unchecked,
            )
            | None => Self::Failed,
        }
    }
}
