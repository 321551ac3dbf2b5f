//! The status words of the JSON interfaces, told from facts.

use serde::Serialize;

use crate::machine::{Loop, Outcome, Stage};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    InProgress,
    Waiting,
    Paused,
    Completed,
    Failed,
    Stuck,
    /// Signed off, but its group waits for a person.
    Blocked,
    Cancelled,
}

impl Status {
    /// `blocked` tells whether the loop's group waits for a person.
    pub fn of(this: &Loop, blocked: bool) -> Self {
        match &this.stage {
            Stage::Queued => Self::Pending,
            Stage::Waiting { .. } => Self::Waiting,
            Stage::AwaitingLanding { .. } if blocked => Self::Blocked,
            Stage::Done(ending) => Self::ended(&ending.outcome),
            Stage::AwaitingLanding { .. }
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { .. }
            | Stage::Combining { .. }
            | Stage::Landing { .. } => {
                if this.is_paused() {
                    Self::Paused
                } else {
                    Self::InProgress
                }
            }
        }
    }

    fn ended(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Approved { .. }
            | Outcome::Accepted { .. }
            | Outcome::Unreviewed
            | Outcome::CompletedWithIssues
            | Outcome::Exhausted
            | Outcome::Discussion => Self::Completed,
            Outcome::Failed => Self::Failed,
            Outcome::Stuck => Self::Stuck,
            Outcome::Cancelled => Self::Cancelled,
        }
    }
}
