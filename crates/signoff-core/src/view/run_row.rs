//! A run as a row of a list.

use serde::{Deserialize, Serialize};

use crate::group::{RunOutcome, RunStage};

/// One run, as stored in the tables and printed by `status --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunRow {
    pub id: u64,
    pub preset: String,
    /// The name of the specification's file. None for a run of single tasks.
    pub specification: Option<String>,
    /// `running`, `blocked`, `completed`, `failed`, `cancelled`.
    #[schemars(with = "String")]
    pub status: RunStatus,
    #[schemars(extend("enum" = ["queued", "preparing", "working", "blocked", "reviewing", "landing", "done"]))]
    pub stage: String,
    /// The number of the group that is worked or blocked, from 1.
    pub group: Option<u64>,
    /// The number of groups; 0 before planning, none if tasks are not worked in groups.
    pub groups: Option<u64>,
    /// The branch that its tasks share.
    pub branch: Option<String>,
    pub cost_usd: f64,
    /// The cost is at least partly estimated from list prices; omitted if it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
}

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::EnumString, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunStatus {
    Running,
    /// A group waits for a person.
    Blocked,
    Completed,
    Failed,
    Cancelled,
}

impl RunStatus {
    pub fn for_stage(stage: &RunStage) -> Self {
        match stage {
            RunStage::Queued
            | RunStage::Preparing
            | RunStage::Working { .. }
            | RunStage::Reviewing
            | RunStage::Landing(_) => Self::Running,
            RunStage::Blocked { .. } => Self::Blocked,
            RunStage::Done(RunOutcome::Approved | RunOutcome::Attention) => Self::Completed,
            RunStage::Done(RunOutcome::Failed) => Self::Failed,
            RunStage::Done(RunOutcome::Cancelled) => Self::Cancelled,
        }
    }

    /// The name in the JSON interfaces and in the tables.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn parse(word: &str) -> Option<Self> {
        word.parse().ok()
    }
}

impl RunRow {
    /// Whether the run itself failed, in planning or in the final review, independent of its tasks.
    pub fn failed_as_a_whole(&self) -> bool {
        self.status == RunStatus::Failed && self.groups.is_some()
    }
}
