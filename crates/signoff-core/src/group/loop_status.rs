//! The status of a loop, as far as its run needs it.

use serde::{Deserialize, Serialize};

use crate::machine::{Loop, Outcome, PauseReason, Stage};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopStatus {
    Queued,
    Active,
    /// The next attempt waits for a checkpoint review.
    AtCheckpoint,
    /// Waits for a person; other loops continue.
    Waiting,
    /// Signed off; waits for its group.
    Ready,
    Landing,
    Ended(Outcome),
}

impl LoopStatus {
    /// Derives the status from the loop's state. It is never stored separately.
    pub fn for_loop(this: &Loop) -> Self {
        match &this.stage {
            Stage::Queued => Self::Queued,
            Stage::Waiting { .. } => Self::Waiting,
            Stage::AwaitingLanding { .. } if this.checkpoint.is_some() => Self::Active,
            Stage::AwaitingLanding { .. } => Self::Ready,
            Stage::Landing { .. } => Self::Landing,
            Stage::Done(ending) => Self::Ended(ending.outcome.clone()),
            Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { .. }
            | Stage::Combining { .. } => {
                if this.pause_reasons().contains(&PauseReason::Checkpoint) {
                    Self::AtCheckpoint
                } else {
                    Self::Active
                }
            }
        }
    }

    /// Whether the loop occupies one of the run's jobs.
    pub fn is_active(&self) -> bool {
        match self {
            Self::Active | Self::AtCheckpoint => true,
            Self::Queued | Self::Waiting | Self::Ready | Self::Landing | Self::Ended(_) => false,
        }
    }

    pub fn has_ended(&self) -> bool {
        match self {
            Self::Ended(_) => true,
            Self::Queued | Self::Active | Self::AtCheckpoint | Self::Waiting | Self::Ready | Self::Landing => false,
        }
    }

    /// Whether the group no longer waits for this loop: signed off, completed, or cancelled by a person.
    pub fn is_resolved(&self) -> bool {
        match self {
            Self::Ready | Self::Landing => true,
            Self::Ended(outcome) => outcome.is_completed() || *outcome == Outcome::Cancelled,
            Self::Queued | Self::Active | Self::AtCheckpoint | Self::Waiting => false,
        }
    }

    /// Whether the loop ended in a way that only a person can resolve.
    pub fn blocks(&self) -> bool {
        self.has_ended() && !self.is_resolved()
    }
}
