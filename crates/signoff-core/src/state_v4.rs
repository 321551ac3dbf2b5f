//! The state of an iteration in the JSON format (version 4) that other programs use.
//!
//! `export()` computes it from a log, [`read()`] parses and checks a file, [`resume()`] continues a loop from one.

mod export;
mod import;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use export::{UnnumberedPhases, export};
pub use import::{StateError, read, resume, uncertain_phases};

use crate::merge::render::plain_text::escaped_json;
use crate::review::{Finding, Severity};

/// The version that is written, and the only one that is accepted.
pub const VERSION: u32 = 4;

/// The final phase. It runs once at the end and is not part of the iterations.
pub const FINAL_PHASE: u32 = 9;

/// The state of an iteration: the task, the progress and the reviews.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IterationState {
    #[schemars(extend("const" = 4))]
    pub version: u32,
    /// The full text of the task.
    pub task: String,
    pub mode: IterationMode,
    #[serde(deserialize_with = "import::iteration_bound")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_iterations: u32,
    #[serde(deserialize_with = "import::iteration_number")]
    #[schemars(range(min = 1))]
    pub current_iteration: u32,
    #[serde(deserialize_with = "import::phase_number")]
    #[schemars(range(min = 1, max = 9))]
    pub current_phase: u32,
    /// UTC, to the second.
    #[serde(deserialize_with = "import::time")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub started_at: Timestamp,
    /// One for each pass, the current one last.
    pub iterations: Vec<Iteration>,
    /// The final phase, which runs once and not in every iteration.
    pub phase9: AgentPhase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum IterationMode {
    Full,
    /// Without phase 9; the main agent reviews.
    Lite,
}

/// One pass through the phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Iteration {
    #[serde(deserialize_with = "import::iteration_number")]
    #[schemars(range(min = 1))]
    pub iteration: u32,
    /// UTC, to the second.
    #[serde(deserialize_with = "import::time")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub started_at: Timestamp,
    pub phases: PhaseStates,
}

/// The phases of one pass, by number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PhaseStates {
    #[serde(rename = "1")]
    pub brainstorm: AgentPhase,
    #[serde(rename = "2")]
    pub plan: AgentPhase,
    #[serde(rename = "3")]
    pub plan_review: ReviewPhase,
    #[serde(rename = "4")]
    pub implement: AgentPhase,
    #[serde(rename = "5")]
    pub code_review: ReviewPhase,
    #[serde(rename = "6")]
    pub test: CheckPhase,
    #[serde(rename = "7")]
    pub simplify: AgentPhase,
    #[serde(rename = "8")]
    pub final_review: ReviewPhase,
}

/// A phase in which an agent works.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentPhase {
    pub status: PhaseStatus,
}

/// A phase in which reviewers judge.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewPhase {
    pub status: PhaseStatus,
    /// Fixes made here in this iteration. For a phase that restarts instead, the restarts it caused so far, including
    /// earlier iterations.
    #[serde(default, deserialize_with = "import::retry_count")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub retry_count: u32,
    /// The findings of the last review that had any, worst first.
    #[serde(default)]
    pub last_issues: Vec<ReviewIssue>,
}

/// The phase in which the project's checks run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckPhase {
    pub status: PhaseStatus,
    #[serde(default, deserialize_with = "import::retry_count")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub retry_count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum PhaseStatus {
    #[default]
    Pending,
    InProgress,
    Completed,
    /// The iteration stopped here, or restarted from here.
    Failed,
    /// Disabled, not part of this mode, nothing to check, or no reviewer answered.
    Skipped,
}

impl PhaseStatus {
    /// Whether the phase is done.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Skipped)
    }
}

/// A finding of a reviewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewIssue {
    pub severity: IssueSeverity,
    pub message: String,
    /// `file:line`; the file alone if no line is known, empty if no location is known.
    #[serde(default)]
    pub location: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::VariantArray)]
#[serde(rename_all = "UPPERCASE")]
pub enum IssueSeverity {
    High,
    Medium,
    Low,
}

impl From<IssueSeverity> for Severity {
    fn from(level: IssueSeverity) -> Self {
        match level {
            IssueSeverity::High => Self::Critical,
            IssueSeverity::Medium => Self::Important,
            IssueSeverity::Low => Self::Minor,
        }
    }
}

impl From<Severity> for IssueSeverity {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Critical => Self::High,
            Severity::Important => Self::Medium,
            Severity::Minor => Self::Low,
        }
    }
}

impl ReviewIssue {
    pub fn from_finding(finding: &Finding) -> Self {
        let file = finding.file.clone().unwrap_or_default();
        let location = match finding.line {
            Some(line) if !file.is_empty() => format!("{file}:{line}"),
            Some(_) | None => file,
        };
        Self { severity: finding.severity.into(), message: finding.description.clone(), location }
    }
}

impl PhaseStates {
    pub fn status_mut(&mut self, number: u32) -> Option<&mut PhaseStatus> {
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

    pub fn reviewed_mut(&mut self, number: u32) -> Option<&mut ReviewPhase> {
        match number {
            3 => Some(&mut self.plan_review),
            5 => Some(&mut self.code_review),
            8 => Some(&mut self.final_review),
            _ => None,
        }
    }

    pub fn status(&self, number: u32) -> Option<PhaseStatus> {
        self.clone().status_mut(number).copied()
    }

    pub fn retries(&self, number: u32) -> Option<u32> {
        self.clone().retries_mut(number).copied()
    }

    pub fn issues(&self, number: u32) -> Vec<ReviewIssue> {
        self.clone().reviewed_mut(number).map(|phase| phase.last_issues.clone()).unwrap_or_default()
    }
}

impl IterationState {
    /// The JSON text of the file.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self).unwrap_or_default();
        escaped_json(&json) + "\n"
    }

    /// The status of a phase in the current iteration.
    pub fn status(&self, number: u32) -> Option<PhaseStatus> {
        match number {
            FINAL_PHASE => Some(self.phase9.status),
            _ => self.iterations.last()?.phases.status(number),
        }
    }

    fn status_mut(&mut self, number: u32) -> Option<&mut PhaseStatus> {
        match number {
            FINAL_PHASE => Some(&mut self.phase9.status),
            _ => self.iterations.last_mut()?.phases.status_mut(number),
        }
    }
}

/// Truncates a time to the second.
fn truncate_to_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
