//! A run as every list shows it.

use serde::{Deserialize, Serialize};

/// One run, as tables keep it and `status --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunRow {
    pub id: u64,
    pub preset: String,
    /// What people call that which it is to bring about: the name of a file. None where it works single tasks.
    pub specification: Option<String>,
    /// `running`, `blocked`, `completed`, `failed`, `cancelled`.
    pub status: String,
    #[schemars(extend("enum" = ["queued", "preparing", "working", "blocked", "reviewing", "landing", "done"]))]
    pub stage: String,
    /// The number of the group that is worked or blocked, from 1.
    pub group: Option<u64>,
    /// How many groups there are; 0 before they are planned, none where tasks are not worked in groups.
    pub groups: Option<u64>,
    /// Where its tasks come together.
    pub branch: Option<String>,
    pub cost_usd: f64,
    /// The cost is worked out from list prices, at least in part; left out where it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
}

impl RunRow {
    /// Whether it failed as a whole: in planning, or in the review of all it did. Its tasks do not tell.
    pub fn failed_as_a_whole(&self) -> bool {
        self.status == "failed" && self.groups.is_some()
    }
}
