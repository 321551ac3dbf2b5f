//! Why an attempt failed, and what the user can do about it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::agent_output::{AgentError, manual_check_hint};
use crate::settings::CHECKS;
use crate::wire::Launch;

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
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<AgentError>,
        /// The requested delay exceeds the maximum.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        too_long: bool,
    },
}

impl AttemptFailure {
    /// A hint for the user about an attempt that failed this way.
    pub fn hint(&self, launch: &Launch) -> Option<String> {
        match self {
            Self::Agent(trouble) => trouble.hint(&launch.agent),
            Self::TimedOut => Some(format!(
                "{} gives it longer; `signoff config` shows the settings in effect",
                timeout_setting(launch)
            )),
            Self::Silent => Some(
                "`[limits] silence` lets it say nothing for longer; `signoff config` shows the settings in effect"
                    .to_owned(),
            ),
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
    match (launch.role.as_str(), &launch.reviewer) {
        ("check", _) => "`review_timeout` of the gate".to_owned(),
        (_, Some(reviewer)) if reviewer.as_str() == CHECKS && agent == CHECKS => {
            "`review_timeout` of the gate".to_owned()
        }
        (_, Some(reviewer)) => format!("`[reviewers.{reviewer}] timeout`"),
        ("fix", None) => format!("`fix_timeout` of the gate, or without one `[agents.{agent}] timeout`,"),
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
            Self::Agent(trouble) => trouble.fmt(f),
            Self::RateLimited { why, too_long: true, .. } => {
                let why = LimitCause(why.as_ref());
                write!(f, "its provider wants it to wait for more than a day{why}")
            }
            Self::RateLimited { times: 1, why, .. } => {
                write!(f, "its provider refused it{}", LimitCause(why.as_ref()))
            }
            Self::RateLimited { times, why, .. } => {
                write!(f, "its provider refused it {times} times in a row{}", LimitCause(why.as_ref()))
            }
        }
    }
}

/// Formats ` (rate limited: message)`.
struct LimitCause<'a>(Option<&'a AgentError>);

impl fmt::Display for LimitCause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(why) => write!(f, " ({why})"),
            None => f.write_str(" (rate limit)"),
        }
    }
}
