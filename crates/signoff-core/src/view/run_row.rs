//! A run as a row of a list.

use serde::{Deserialize, Serialize};

/// One run, as stored in the tables and printed by `status --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunRow {
    pub id: u64,
    pub preset: String,
    /// The name of the specification's file. None for a run of single tasks.
    pub specification: Option<String>,
    /// `running`, `blocked`, `completed`, `failed`, `cancelled`.
    pub status: String,
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

impl RunRow {
    /// Whether the run itself failed, in planning or in the final review, independent of its tasks.
    pub fn failed_as_a_whole(&self) -> bool {
        self.status == "failed" && self.groups.is_some()
    }
}
