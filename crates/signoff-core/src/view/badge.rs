//! A one-word badge that says what a loop is doing.

use serde::Serialize;

use crate::ids::AttemptId;
use crate::machine::{AttemptSlot, Loop, Outcome, PauseReason, Stage};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Badge {
    Wait,
    Spawn,
    Work,
    Review,
    Fix,
    Check,
    Land,
    Ask,
    Paused,
    Done,
    Stuck,
}

impl Badge {
    /// Returns the badge of a loop. `has_started` is whether an attempt's start is recorded; before that the attempt
    /// is being spawned.
    pub fn for_loop(this: &Loop, has_started: impl Fn(AttemptId) -> bool) -> Self {
        if this.is_paused() {
            return Self::Paused;
        }
        if this.pause_reasons().contains(&PauseReason::Checkpoint) {
            return Self::Review;
        }
        let running: Vec<_> = this.slots().into_iter().filter_map(AttemptSlot::attempt).collect();
        let spawning = !running.is_empty() && !running.into_iter().any(has_started);
        match &this.stage {
            Stage::Queued | Stage::AwaitingLanding { .. } => Self::Wait,
            Stage::Waiting { .. } => Self::Ask,
            Stage::Done(ending) => match ending.outcome {
                Outcome::Failed | Outcome::Stuck => Self::Stuck,
                Outcome::Approved { .. }
                | Outcome::Accepted { .. }
                | Outcome::Unreviewed
                | Outcome::CompletedWithIssues
                | Outcome::Exhausted
                | Outcome::Discussion
                | Outcome::NothingToReview
                | Outcome::Cancelled => Self::Done,
            },
            Stage::Checking { .. } => Self::Check,
            Stage::Combining { .. } => Self::Fix,
            Stage::Landing { .. } => Self::Land,
            _ if spawning => Self::Spawn,
            Stage::Working { .. } | Stage::Researching { .. } => Self::Work,
            Stage::Reviewing(_) => Self::Review,
            Stage::Fixing { .. } => Self::Fix,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "WAIT",
            Self::Spawn => "SPAWN",
            Self::Work => "WORK",
            Self::Review => "REVIEW",
            Self::Fix => "FIX",
            Self::Check => "CHECK",
            Self::Land => "LAND",
            Self::Ask => "ASK",
            Self::Paused => "PAUSED",
            Self::Done => "DONE",
            Self::Stuck => "STUCK",
        }
    }
}
