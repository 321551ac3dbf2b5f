//! The one word that says what a loop is doing.

use serde::Serialize;

use crate::ids::AttemptId;
use crate::machine::{Hold, Loop, Outcome, Slot, Stage};

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
    /// `has_started` tells whether an attempt's start is on record; before that it is being spawned.
    pub fn of(this: &Loop, has_started: impl Fn(AttemptId) -> bool) -> Self {
        if this.is_paused() {
            return Self::Paused;
        }
        if this.holds().contains(&Hold::Checkpoint) {
            return Self::Review;
        }
        let running: Vec<_> = this.slots().into_iter().filter_map(Slot::attempt).collect();
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

    pub fn word(self) -> &'static str {
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
