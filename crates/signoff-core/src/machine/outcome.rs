//! How a loop ended, why, and what `retry` would do.

use serde::{Deserialize, Serialize};

use super::event::FinalVerdict;
use super::state::Stage;
use crate::ids::Commit;

/// How a loop ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Approved {
        commit: Commit,
    },
    /// A person accepted the work without a review.
    Accepted {
        by: String,
    },
    /// Finished without a gate.
    Unreviewed,
    CompletedWithIssues,
    /// A limit was reached; a person should look.
    Exhausted,
    Discussion,
    /// The work changes nothing: there is no diff to approve.
    NothingToReview,
    Failed,
    Stuck,
    Cancelled,
}

/// How a task ended, in one word. Unreviewed work has none.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OutcomeKind {
    Approved,
    /// A person approved it instead of a review.
    Accepted,
    CompletedWithIssues,
    Exhausted,
    Discussion,
    NothingToReview,
    Failed,
    Stuck,
    Cancelled,
    /// A person rejected it for good.
    Rejected,
}

impl OutcomeKind {
    /// The name in the JSON interfaces and in the tables.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn parse(word: &str) -> Option<Self> {
        word.parse().ok()
    }

    /// Whether reviewers or a person approved the work.
    pub fn is_approval(self) -> bool {
        matches!(self, Self::Approved | Self::Accepted)
    }

    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Stuck)
    }

    /// Whether it ended before an approval, so that a person has to decide before dependent tasks start.
    pub fn needs_decision(self) -> bool {
        matches!(self, Self::Exhausted | Self::Discussion | Self::NothingToReview)
    }
}

impl Outcome {
    /// The outcome in one word; none for unreviewed work.
    pub fn kind(&self) -> Option<OutcomeKind> {
        match self {
            Self::Approved { .. } => Some(OutcomeKind::Approved),
            Self::Accepted { .. } => Some(OutcomeKind::Accepted),
            Self::Unreviewed => None,
            Self::CompletedWithIssues => Some(OutcomeKind::CompletedWithIssues),
            Self::Exhausted => Some(OutcomeKind::Exhausted),
            Self::Discussion => Some(OutcomeKind::Discussion),
            Self::NothingToReview => Some(OutcomeKind::NothingToReview),
            Self::Failed => Some(OutcomeKind::Failed),
            Self::Stuck => Some(OutcomeKind::Stuck),
            Self::Cancelled => Some(OutcomeKind::Cancelled),
        }
    }

    /// Whether reviewers or a person approved the work.
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

    /// Whether the work is completed, so that it can land and later tasks and groups can start.
    pub fn is_completed(&self) -> bool {
        match self {
            Self::Approved { .. } | Self::Accepted { .. } | Self::Unreviewed | Self::CompletedWithIssues => true,
            Self::Exhausted
            | Self::Discussion
            | Self::NothingToReview
            | Self::Failed
            | Self::Stuck
            | Self::Cancelled => false,
        }
    }
}

/// The end of a loop, and what `retry` would do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ending {
    pub outcome: Outcome,
    pub reason: Option<Reason>,
    #[serde(rename = "again")]
    pub retry: RetryAction,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAction {
    Nothing,
    /// Repeats the failed stage and keeps its finished parts.
    Resume(Box<Stage>),
    /// Allows one more fix and review.
    Fix,
    /// Repeats the work that the gate was to judge.
    Work,
    Restart,
    /// Tries to land again.
    Land {
        outcome: Outcome,
        reason: Option<Reason>,
    },
}

/// Why a loop ended, or went on without approval. The names are part of the JSON interface.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    CyclesExhausted,
    PassesExhausted,
    AttemptsExhausted,
    SameFinding,
    NoopFix,
    RecoveryExhausted,
    ConflictUnresolved,
    /// The checks fail after merging into the target branch, without a conflict.
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
    /// Approved, but the project has no checks.
    NothingToCheck,
    /// The work has no diff against its base.
    NothingToReview,
    /// The agent says that its tracker has no work left, and changed nothing.
    NoWorkLeft,
    /// Not ended: paused by a rate limit.
    RateLimited,
    /// Not ended: paused because a budget cap is reached.
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
    /// The name in the JSON interfaces and in the tables.
    pub fn code(self) -> &'static str {
        self.into()
    }

    pub fn parse(code: &str) -> Option<Self> {
        code.parse().ok()
    }

    /// Whether a person ended the work.
    pub fn is_of_person(self) -> bool {
        matches!(self, Self::StoppedByPerson | Self::CancelledByPerson | Self::EditedByPerson)
    }

    /// The final verdict of a loop that stopped or went on for this reason.
    pub(super) fn final_verdict(self) -> Option<FinalVerdict> {
        match self {
            Self::CyclesExhausted | Self::PassesExhausted => Some(FinalVerdict::MaxCyclesReached),
            Self::Discussion => Some(FinalVerdict::NeedsDiscussion),
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
            | Self::FindingsNoted => Some(FinalVerdict::ChangesRequested),
        }
    }
}
