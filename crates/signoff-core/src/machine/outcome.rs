//! How a loop ended, why, what `retry` would do, and the final verdict; and why an attempt failed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::event::{AttemptRole, FinalVerdict};
use super::state::{Loop, Stage};
use crate::agent_output::{AgentError, manual_check_hint};
use crate::ids::Commit;
use crate::settings::CHECKS;
use crate::wire::Launch;
use crate::workflow::Role;

/// How a loop ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// Reviewers approved this commit.
    Approved { commit: Commit },
    /// A person accepted the work without a review.
    Accepted { by: String },
    /// Finished without a gate.
    Unreviewed,
    /// Finished with open findings or without an answer of every reviewer.
    CompletedWithIssues,
    /// A limit was reached; a person should look.
    Exhausted,
    /// A reviewer asks for a discussion.
    Discussion,
    /// The work changes nothing: there is no diff to approve.
    NothingToReview,
    /// An agent or a gate failed for good.
    Failed,
    /// The agent gave up, or the work cannot land.
    Stuck,
    /// A person cancelled it, or there was nothing to do.
    Cancelled,
}

/// How a task ended, in one word. Unreviewed work has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
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
        matches!(self, Self::Approved { .. } | Self::Accepted { .. })
    }

    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed | Self::Stuck)
    }

    /// Whether the work is completed, so that it can land and later tasks and groups can start.
    pub fn is_completed(&self) -> bool {
        self.is_approval() || matches!(self, Self::Unreviewed | Self::CompletedWithIssues)
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

/// What `retry` does to an ended loop.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAction {
    /// There is nothing to retry.
    Nothing,
    /// Repeats the failed stage and keeps its finished parts.
    Resume(Box<Stage>),
    /// Allows one more fix and review.
    Fix,
    /// Repeats the work that the gate was to judge.
    Work,
    /// Starts one more pass.
    Restart,
    /// Tries to land again.
    Land { outcome: Outcome, reason: Option<Reason> },
}

/// Why a loop ended, or went on without approval. The names are part of the JSON interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
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
    /// Whether a person ended the work.
    pub fn is_by_person(self) -> bool {
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

impl Loop {
    /// The commit that reviewers or a person approved, if the loop ended with an approval.
    pub fn approved_commit(&self) -> Option<&Commit> {
        self.signed_off_commit().filter(|_| self.is_done())
    }

    /// The approved commit, also while it waits to land.
    pub fn signed_off_commit(&self) -> Option<&Commit> {
        let (outcome, _) = self.result()?;
        if let Outcome::Approved { commit } = outcome {
            return Some(commit);
        }
        matches!(outcome, Outcome::Accepted { .. }).then_some(&self.head.commit)
    }

    /// Whether the loop was reviewed and no review could be parsed.
    pub fn has_only_unclear_reviews(&self) -> bool {
        self.counters.has_unclear && !self.counters.has_readable
    }

    /// The outcome and reason of a loop that ended or is signed off and waits to land; none while a checkpoint review
    /// is under way.
    fn result(&self) -> Option<(&Outcome, Option<Reason>)> {
        let (Stage::Done(Ending { outcome, reason, .. })
        | Stage::AwaitingLanding { outcome, reason }
        | Stage::Landing { outcome, reason, .. }) = &self.stage
        else {
            return None;
        };
        let is_under_review = matches!(self.stage, Stage::AwaitingLanding { .. }) && self.checkpoint.is_some();
        (!is_under_review).then_some((outcome, *reason))
    }

    /// Whether the loop is signed off and only has to land.
    pub fn is_signed_off(&self) -> bool {
        !self.is_done() && self.result().is_some()
    }

    /// The final verdict as displayed.
    pub fn final_verdict(&self) -> Option<FinalVerdict> {
        let (outcome, reason) = self.result()?;
        let by_person = outcome.is_approval() || reason == Some(Reason::EditedByPerson);
        if self.has_only_unclear_reviews() && !by_person {
            return None;
        }
        match outcome {
            Outcome::Approved { .. } | Outcome::Accepted { .. } => Some(FinalVerdict::Approved),
            Outcome::Unreviewed | Outcome::NothingToReview | Outcome::Cancelled => None,
            Outcome::CompletedWithIssues => reason.and_then(Reason::final_verdict),
            // A verdict set by a person is kept.
            Outcome::Exhausted if reason == Some(Reason::EditedByPerson) => Some(FinalVerdict::MaxCyclesReached),
            Outcome::Exhausted if self.counters.reviews == 0 => None,
            Outcome::Exhausted => reason.and_then(Reason::final_verdict),
            Outcome::Discussion => Some(FinalVerdict::NeedsDiscussion),
            Outcome::Failed | Outcome::Stuck => {
                let edited = reason == Some(Reason::EditedByPerson);
                (edited || self.counters.reviews > 0).then_some(FinalVerdict::ChangesRequested)
            }
        }
    }
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptFailure {
    /// The process exited with an error code.
    Exit { code: i32 },
    /// A signal ended the process.
    Signal { number: i32 },
    /// The attempt took longer than its limit.
    TimedOut,
    /// The agent printed nothing for longer than its limit.
    Silent,
    /// The agent succeeded but changed nothing.
    NothingDone,
    /// The agent left the branch in an unusable state.
    Unusable { message: String },
    /// The agent succeeded, but its answer is invalid.
    BadAnswer { message: String },
    /// The agent could not be started.
    NotStarted { message: String },
    /// The agent reported an error.
    #[serde(rename = "trouble")]
    Agent(AgentError),
    /// The provider rate-limited the agent repeatedly.
    RateLimited {
        times: u32,
        /// The last error message.
        #[serde(rename = "why", default, skip_serializing_if = "Option::is_none")]
        error: Option<AgentError>,
        /// The requested delay exceeds the maximum.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        too_long: bool,
    },
}

impl AttemptFailure {
    /// A hint for the user about an attempt that failed this way.
    pub fn hint(&self, launch: &Launch) -> Option<String> {
        match self {
            Self::Agent(error) => error.hint(&launch.agent),
            Self::TimedOut => Some(format!(
                "{} sets the timeout; `signoff config` shows the settings in effect",
                timeout_setting(launch)
            )),
            Self::Silent => Some("raise `[limits] silence`; `signoff config` shows the settings in effect".to_owned()),
            Self::Exit { .. }
            | Self::Signal { .. }
            | Self::NothingDone
            | Self::Unusable { .. }
            | Self::BadAnswer { .. }
            | Self::NotStarted { .. }
            | Self::RateLimited { .. } => None,
        }
    }

    /// The hint while the agent is being checked by itself. `program` is the command to start by hand.
    pub fn hint_for_check(&self, agent: &str, program: &str) -> Option<String> {
        let Self::Agent(error) = self else { return Some(manual_check_hint(program)) };
        error.hint_for_check(agent, program)
    }
}

/// The setting that limits the duration of an attempt. Settings of a reviewer, gate or task type take precedence over
/// those of an agent.
fn timeout_setting(launch: &Launch) -> String {
    let agent = &launch.agent;
    match (launch.role(), &launch.reviewer) {
        (Some(AttemptRole::Check), _) => "`review_timeout` of the gate".to_owned(),
        (_, Some(reviewer)) if reviewer.as_str() == CHECKS && agent == CHECKS => {
            "`review_timeout` of the gate".to_owned()
        }
        (_, Some(reviewer)) => format!("`[reviewers.{reviewer}] timeout`"),
        (Some(AttemptRole::Agent(Role::Fix)), None) => {
            format!("`fix_timeout` of the gate, or without one `[agents.{agent}] timeout`,")
        }
        (_, None) => {
            format!("`timeout_minutes` of the task's type, or without one `[agents.{agent}] timeout`,")
        }
    }
}

impl fmt::Display for AttemptFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit { code } => write!(f, "exit code {code}"),
            Self::Signal { number } => write!(f, "killed by signal {number}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Silent => f.write_str("printed nothing for too long"),
            Self::NothingDone => f.write_str("ended without changing anything"),
            Self::Unusable { message } => write!(f, "left the branch in an unusable state: {message}"),
            Self::BadAnswer { message } => write!(f, "gave an answer that cannot be used: {message}"),
            Self::NotStarted { message } => write!(f, "could not be started: {message}"),
            Self::Agent(error) => error.fmt(f),
            Self::RateLimited { times, error, too_long } => {
                let error = error.as_ref().map_or_else(|| "rate limit".to_owned(), AgentError::to_string);
                match times {
                    _ if *too_long => write!(f, "its provider asks for a delay of more than a day ({error})"),
                    1 => write!(f, "its provider rate-limited it ({error})"),
                    _ => write!(f, "its provider rate-limited it {times} times in a row ({error})"),
                }
            }
        }
    }
}
