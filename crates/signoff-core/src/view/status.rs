//! The status of a task in the JSON interfaces.

use serde::{Deserialize, Serialize};

use crate::machine::{Loop, Outcome, Stage};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
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

impl TaskStatus {
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::InProgress,
        Self::Waiting,
        Self::Paused,
        Self::Completed,
        Self::Failed,
        Self::Stuck,
        Self::Blocked,
        Self::Cancelled,
    ];

    /// Whether the work has ended, with or without an approval.
    pub fn is_over(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Stuck | Self::Cancelled => true,
            Self::Pending | Self::InProgress | Self::Waiting | Self::Paused | Self::Blocked => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stuck => "stuck",
            Self::Blocked => "blocked",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Returns the status of a loop. `blocked` is whether its group waits for a person.
    pub fn for_loop(this: &Loop, blocked: bool) -> Self {
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

    /// The status shown in the prompts of other loops: a loop that only has to land is completed.
    pub fn for_other_loops(this: &Loop) -> Self {
        if this.is_signed_off() { Self::Completed } else { Self::for_loop(this, false) }
    }

    fn ended(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Approved { .. }
            | Outcome::Accepted { .. }
            | Outcome::Unreviewed
            | Outcome::CompletedWithIssues
            | Outcome::Exhausted
            | Outcome::Discussion
            | Outcome::NothingToReview => Self::Completed,
            Outcome::Failed => Self::Failed,
            Outcome::Stuck => Self::Stuck,
            Outcome::Cancelled => Self::Cancelled,
        }
    }
}
