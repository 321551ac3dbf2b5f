//! The state of an iteration as other programs keep it: JSON, version 4.
//!
//! [`told()`] tells it from a log, [`read()`] reads and checks a file, [`resume()`] says how a loop goes on from one.

mod behind;
mod read;
mod resume;
mod told;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use behind::unsure;
pub use read::{StateError, read};
pub use resume::resume;
pub use told::{NotAnIteration, told};

use crate::merge::render::plain_text::escaped_json;
use crate::review::{Finding, Severity};

/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 4;

/// The phase that stands beside the iterations: it comes once, at the end.
pub const LAST: u32 = 9;

/// Whoever counts further has miscounted.
const MOST_ITERATIONS: u32 = 1000;
const MOST_RETRIES: u32 = 1_000_000;

/// An iteration: what is asked for, how far it is, and what its reviews said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct State {
    #[schemars(extend("const" = 4))]
    pub version: u32,
    /// What is asked for, the whole text.
    pub task: String,
    pub mode: Mode,
    #[schemars(range(min = 1, max = 1000))]
    pub max_iterations: u32,
    #[schemars(range(min = 1))]
    pub current_iteration: u32,
    #[schemars(range(min = 1, max = 9))]
    pub current_phase: u32,
    /// UTC, to the second.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub started_at: Timestamp,
    /// One for each pass, the current one last.
    pub iterations: Vec<Iteration>,
    /// The last look, which is made once and not in every iteration.
    pub phase9: Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Full,
    /// Without phase 9, reviewed by the main agent.
    Lite,
}

impl Mode {
    pub const ALL: [Self; 2] = [Self::Full, Self::Lite];

    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Lite => "lite",
        }
    }
}

/// One pass through the phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Iteration {
    #[schemars(range(min = 1))]
    pub iteration: u32,
    /// UTC, to the second.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub started_at: Timestamp,
    pub phases: Phases,
}

/// The phases of one pass by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Phases {
    #[serde(rename = "1")]
    pub brainstorm: Plain,
    #[serde(rename = "2")]
    pub plan: Plain,
    #[serde(rename = "3")]
    pub plan_review: Reviewed,
    #[serde(rename = "4")]
    pub implement: Plain,
    #[serde(rename = "5")]
    pub code_review: Reviewed,
    #[serde(rename = "6")]
    pub test: Checked,
    #[serde(rename = "7")]
    pub simplify: Plain,
    #[serde(rename = "8")]
    pub final_review: Reviewed,
}

/// A phase in which an agent works.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Plain {
    pub status: Status,
}

/// A phase in which reviewers judge.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reviewed {
    pub status: Status,
    /// Fixes made here in this iteration; of a phase that restarts instead, the restarts it caused so far, those of
    /// earlier iterations included.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub retry_count: u32,
    /// What the last review that found something found, worst first.
    pub last_issues: Vec<Issue>,
}

/// The phase in which the project's checks run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    pub status: Status,
    #[schemars(range(min = 0, max = 1_000_000))]
    pub retry_count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    #[default]
    Pending,
    InProgress,
    Completed,
    /// It stopped here, or went back to the beginning from here.
    Failed,
    /// Switched off, not part of this mode, nothing to check, or nobody was heard.
    Skipped,
}

impl Status {
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::InProgress, Self::Completed, Self::Failed, Self::Skipped];

    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// Whether the phase is behind the iteration.
    pub fn is_over(self) -> bool {
        match self {
            Self::Completed | Self::Skipped => true,
            Self::Pending | Self::InProgress | Self::Failed => false,
        }
    }
}

/// What a reviewer found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Issue {
    pub severity: Level,
    pub message: String,
    /// `file:line`; the file alone where no line is known, empty where no place is.
    pub location: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    High,
    Medium,
    Low,
}

impl Level {
    pub const ALL: [Self; 3] = [Self::High, Self::Medium, Self::Low];

    pub fn word(self) -> &'static str {
        Severity::from(self).level()
    }
}

impl From<Level> for Severity {
    fn from(level: Level) -> Self {
        match level {
            Level::High => Self::Critical,
            Level::Medium => Self::Important,
            Level::Low => Self::Minor,
        }
    }
}

impl From<Severity> for Level {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Critical => Self::High,
            Severity::Important => Self::Medium,
            Severity::Minor => Self::Low,
        }
    }
}

impl Issue {
    pub fn of(finding: &Finding) -> Self {
        let file = finding.file.clone().unwrap_or_default();
        let location = match finding.line {
            Some(line) if !file.is_empty() => format!("{file}:{line}"),
            Some(_) | None => file,
        };
        Self { severity: finding.severity.into(), message: finding.description.clone(), location }
    }
}

impl Phases {
    pub fn status_mut(&mut self, number: u32) -> Option<&mut Status> {
        match number {
            1 => Some(&mut self.brainstorm.status),
            2 => Some(&mut self.plan.status),
            3 => Some(&mut self.plan_review.status),
            4 => Some(&mut self.implement.status),
            5 => Some(&mut self.code_review.status),
            6 => Some(&mut self.test.status),
            7 => Some(&mut self.simplify.status),
            8 => Some(&mut self.final_review.status),
            _ => None,
        }
    }

    pub fn retries_mut(&mut self, number: u32) -> Option<&mut u32> {
        match number {
            6 => Some(&mut self.test.retry_count),
            _ => self.reviewed_mut(number).map(|phase| &mut phase.retry_count),
        }
    }

    pub fn reviewed_mut(&mut self, number: u32) -> Option<&mut Reviewed> {
        match number {
            3 => Some(&mut self.plan_review),
            5 => Some(&mut self.code_review),
            8 => Some(&mut self.final_review),
            _ => None,
        }
    }

    pub fn status(&self, number: u32) -> Option<Status> {
        self.clone().status_mut(number).copied()
    }

    pub fn retries(&self, number: u32) -> Option<u32> {
        self.clone().retries_mut(number).copied()
    }

    pub fn issues(&self, number: u32) -> Vec<Issue> {
        self.clone().reviewed_mut(number).map(|phase| phase.last_issues.clone()).unwrap_or_default()
    }
}

impl State {
    /// The JSON, as a file holds it.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self).unwrap_or_default();
        escaped_json(&json) + "\n"
    }

    /// The status of a phase of the current iteration.
    pub fn status(&self, number: u32) -> Option<Status> {
        match number {
            LAST => Some(self.phase9.status),
            _ => self.iterations.last()?.phases.status(number),
        }
    }

    fn status_mut(&mut self, number: u32) -> Option<&mut Status> {
        match number {
            LAST => Some(&mut self.phase9.status),
            _ => self.iterations.last_mut()?.phases.status_mut(number),
        }
    }

    /// Whether nothing is left to do.
    pub fn is_finished(&self) -> bool {
        (1..=LAST).all(|number| self.status(number).is_some_and(Status::is_over))
    }
}

/// A time to the second.
fn seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
