//! How a loop stands, as far as its run cares.

use serde::{Deserialize, Serialize};

use crate::machine::{Hold, Loop, Outcome, Stage};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Queued,
    Active,
    /// Its next attempt waits for a checkpoint review.
    AtCheckpoint,
    /// A person is needed; others go on.
    Waiting,
    /// Signed off, until the group is.
    Ready,
    Landing,
    Ended(Outcome),
}

impl Standing {
    /// Told from the loop's state, never kept beside it.
    pub fn of(this: &Loop) -> Self {
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
                if this.holds().contains(&Hold::Checkpoint) {
                    Self::AtCheckpoint
                } else {
                    Self::Active
                }
            }
        }
    }

    /// Whether it holds one of the run's jobs.
    pub fn is_active(&self) -> bool {
        match self {
            Self::Active | Self::AtCheckpoint => true,
            Self::Queued | Self::Waiting | Self::Ready | Self::Landing | Self::Ended(_) => false,
        }
    }

    pub fn has_ended(&self) -> bool {
        match self {
            Self::Ended(_) => true,
            Self::Queued
            | Self::Active
            | Self::AtCheckpoint
            | Self::Waiting
            | Self::Ready
            | Self::Landing => false,
        }
    }

    /// Whether the group has nothing more to wait for: signed off, through, or called off by a person.
    pub fn is_resolved(&self) -> bool {
        match self {
            Self::Ready | Self::Landing => true,
            Self::Ended(outcome) => outcome.carries_on() || *outcome == Outcome::Cancelled,
            Self::Queued | Self::Active | Self::AtCheckpoint | Self::Waiting => false,
        }
    }

    /// Ended in a way that only a person can resolve.
    pub fn blocks(&self) -> bool {
        self.has_ended() && !self.is_resolved()
    }
}
