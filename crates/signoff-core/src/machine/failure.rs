//! Why an agent ended badly, and what a person can do about it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::CHECKS;
use crate::heard::{Trouble, by_hand};
use crate::wire::Launch;

/// Why an agent ended badly.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// It ended with an error of its own.
    Exit {
        code: i32,
    },
    Signal {
        number: i32,
    },
    TimedOut,
    Silent,
    /// It ended well, and nothing was changed.
    NothingDone,
    /// It left the branch in a state nobody can go on from.
    Unusable {
        message: String,
    },
    /// It ended well, and what it answered breaks the rules of the answer.
    BadAnswer {
        message: String,
    },
    /// It could not be started.
    NotStarted {
        message: String,
    },
    /// It says itself why it could not go on.
    Trouble(Trouble),
    /// Its provider refused it again and again.
    RateLimited {
        times: u32,
        /// What it said last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Trouble>,
        /// It is to wait longer than anybody waits.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        too_long: bool,
    },
}

impl Failure {
    /// What a person can do about an attempt that ended so.
    pub fn hint(&self, launch: &Launch) -> Option<String> {
        match self {
            Self::Trouble(trouble) => trouble.hint(&launch.agent),
            Self::TimedOut => {
                Some(format!("{} gives it longer; `signoff config` shows what holds", longer(launch)))
            }
            Self::Silent => Some(
                "`[limits] silence` lets it say nothing for longer; `signoff config` shows what holds"
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

    /// The same where the agent is being tried by itself: `program` is what a person would start by hand.
    pub fn hint_in_trial(&self, agent: &str, program: &str) -> Option<String> {
        match self {
            Self::Trouble(trouble) => trouble.hint_in_trial(agent, program),
            Self::Exit { .. }
            | Self::Signal { .. }
            | Self::TimedOut
            | Self::Silent
            | Self::NothingDone
            | Self::Unusable { .. }
            | Self::BadAnswer { .. }
            | Self::NotStarted { .. }
            | Self::RateLimited { .. } => Some(by_hand(program)),
        }
    }
}

/// The setting that says how long an attempt may take: what is said about a reviewer, a gate or a type of task counts before
/// what is said about an agent.
fn longer(launch: &Launch) -> String {
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

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit { code } => write!(f, "exit code {code}"),
            Self::Signal { number } => write!(f, "killed by signal {number}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Silent => f.write_str("said nothing for too long"),
            Self::NothingDone => f.write_str("ended without changing anything"),
            Self::Unusable { message } => write!(f, "left work nobody can go on from: {message}"),
            Self::BadAnswer { message } => write!(f, "gave an answer that cannot be used: {message}"),
            Self::NotStarted { message } => write!(f, "could not be started: {message}"),
            Self::Trouble(trouble) => trouble.fmt(f),
            Self::RateLimited { why, too_long: true, .. } => {
                let why = Said(why.as_ref());
                write!(f, "its provider wants it to wait for more than a day{why}")
            }
            Self::RateLimited { times: 1, why, .. } => {
                write!(f, "its provider refused it{}", Said(why.as_ref()))
            }
            Self::RateLimited { times, why, .. } => {
                write!(f, "its provider refused it {times} times in a row{}", Said(why.as_ref()))
            }
        }
    }
}

/// ` (rate limited: its own words)`.
struct Said<'a>(Option<&'a Trouble>);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(why) => write!(f, " ({why})"),
            None => f.write_str(" (rate limit)"),
        }
    }
}
