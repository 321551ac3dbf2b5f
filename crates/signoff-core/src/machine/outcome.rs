//! How a loop ended, why, and what a person's `retry` would do.

use serde::{Deserialize, Serialize};

use super::event::FinalWord;
use super::state::Stage;
use crate::ids::Commit;

/// How a loop ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Approved {
        commit: Commit,
    },
    /// A person said so, without a review.
    Accepted {
        by: String,
    },
    /// Finished where no review was asked for.
    Unreviewed,
    CompletedWithIssues,
    /// A bound was reached; somebody should look.
    Exhausted,
    Discussion,
    /// The work changes nothing: there is no diff to approve.
    NothingToReview,
    Failed,
    Stuck,
    Cancelled,
}

impl Outcome {
    /// The word of the JSON interfaces; work that nobody was asked to review has none.
    pub fn word(&self) -> Option<&'static str> {
        match self {
            Self::Approved { .. } => Some("approved"),
            Self::Accepted { .. } => Some("accepted"),
            Self::Unreviewed => None,
            Self::CompletedWithIssues => Some("completed_with_issues"),
            Self::Exhausted => Some("exhausted"),
            Self::Discussion => Some("discussion"),
            Self::NothingToReview => Some("nothing_to_review"),
            Self::Failed => Some("failed"),
            Self::Stuck => Some("stuck"),
            Self::Cancelled => Some("cancelled"),
        }
    }

    /// Whether somebody signed it off: reviewers or a person.
    pub fn is_approval(&self) -> bool {
        match self {
            Self::Approved { .. } | Self::Accepted { .. } => true,
            Self::Unreviewed
            | Self::CompletedWithIssues
            | Self::Exhausted
            | Self::Discussion
            | Self::NothingToReview
            | Self::Failed
            | Self::Stuck
            | Self::Cancelled => false,
        }
    }

    /// Whether the work goes on from here: to landing, to the next task, to the next group.
    pub fn carries_on(&self) -> bool {
        match self {
            Self::Approved { .. } | Self::Accepted { .. } | Self::Unreviewed | Self::CompletedWithIssues => {
                true
            }
            Self::Exhausted
            | Self::Discussion
            | Self::NothingToReview
            | Self::Failed
            | Self::Stuck
            | Self::Cancelled => false,
        }
    }
}

/// The end of a loop, and what a person's `retry` would do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ending {
    pub outcome: Outcome,
    pub reason: Option<Reason>,
    pub again: Again,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Again {
    Nothing,
    /// The stage that failed, with what it had finished.
    Resume(Box<Stage>),
    /// One more fix and review.
    Fix,
    /// Another attempt at the work that the gate was to judge.
    Work,
    Restart,
    /// Another landing.
    Land {
        outcome: Outcome,
        reason: Option<Reason>,
    },
}

/// Why a loop ended, or went on without approval. The words are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    CyclesExhausted,
    PassesExhausted,
    AttemptsExhausted,
    SameFinding,
    NoopFix,
    RecoveryExhausted,
    ConflictUnresolved,
    /// The checks fail where it lands, and without a conflict.
    LandingChecksFailed,
    UnclearReview,
    ReviewerFailed,
    FixerFailed,
    ImplementerFailed,
    LandingFailed,
    GateFailed,
    Discussion,
    TaskStuck,
    NoOneToAsk,
    StoppedByPerson,
    CancelledByPerson,
    EditedByPerson,
    ReviewSkipped,
    FindingsNoted,
    ChangedAfterReview,
    /// It is approved, and its tests said nothing, for there are none.
    NothingToCheck,
    /// The work has no diff against its base.
    NothingToReview,
    /// The agent says that its tracker has no work left, and changed nothing.
    NoWorkLeft,
    /// It has not ended: it is paused until its agent's provider lets it go on.
    RateLimited,
    /// It has not ended: it is paused because a cap is reached.
    Budget,
}

impl Reason {
    pub const ALL: [Self; 28] = [
        Self::CyclesExhausted,
        Self::PassesExhausted,
        Self::AttemptsExhausted,
        Self::SameFinding,
        Self::NoopFix,
        Self::RecoveryExhausted,
        Self::ConflictUnresolved,
        Self::LandingChecksFailed,
        Self::UnclearReview,
        Self::ReviewerFailed,
        Self::FixerFailed,
        Self::ImplementerFailed,
        Self::LandingFailed,
        Self::GateFailed,
        Self::Discussion,
        Self::TaskStuck,
        Self::NoOneToAsk,
        Self::StoppedByPerson,
        Self::CancelledByPerson,
        Self::EditedByPerson,
        Self::ReviewSkipped,
        Self::FindingsNoted,
        Self::ChangedAfterReview,
        Self::NothingToCheck,
        Self::NothingToReview,
        Self::NoWorkLeft,
        Self::RateLimited,
        Self::Budget,
    ];
}

impl Reason {
    /// The code of the JSON interfaces.
    pub fn word(self) -> String {
        let form = serde_json::to_value(self).ok();
        form.and_then(|form| form.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// The verdict that stands when a loop stopped at it, or went on past it.
    pub(super) fn left_standing(self) -> Option<FinalWord> {
        match self {
            Self::CyclesExhausted | Self::PassesExhausted => Some(FinalWord::MaxCyclesReached),
            Self::Discussion => Some(FinalWord::NeedsDiscussion),
            Self::ReviewSkipped
            | Self::ChangedAfterReview
            | Self::NothingToCheck
            | Self::NothingToReview
            | Self::NoWorkLeft
            | Self::RateLimited
            | Self::Budget => None,
            Self::AttemptsExhausted
            | Self::SameFinding
            | Self::NoopFix
            | Self::RecoveryExhausted
            | Self::ConflictUnresolved
            | Self::LandingChecksFailed
            | Self::UnclearReview
            | Self::ReviewerFailed
            | Self::FixerFailed
            | Self::ImplementerFailed
            | Self::LandingFailed
            | Self::GateFailed
            | Self::TaskStuck
            | Self::NoOneToAsk
            | Self::StoppedByPerson
            | Self::CancelledByPerson
            | Self::EditedByPerson
            | Self::FindingsNoted => Some(FinalWord::ChangesRequested),
        }
    }
}
