//! A notification in words, as channels send it and programs read it.

use serde::Serialize;

use super::Occasion;

/// The version of the shape. It changes when a key changes its meaning or goes.
pub const VERSION: u32 = 1;

/// What a webhook is posted, and a command finds on its stdin.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Message {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub event: Occasion,
    /// The name of the repository's directory.
    pub project: String,
    pub run_id: u64,
    /// The task it is about; null where it is about a run of several, or about a part of one.
    pub task_id: Option<u64>,
    /// What happened, on one line.
    pub title: String,
    /// The same with why, for people.
    pub text: String,
    /// What a person is asked; null where nobody is.
    pub question: Option<MessageQuestion>,
    /// `approved`, `accepted`, `completed_with_issues`, `exhausted`, `discussion`,
    /// `nothing_to_review`, `failed`, `stuck`, of a task; of a run
    /// `approved`, `attention`, `failed`.
    pub outcome: Option<String>,
    /// `APPROVED`, `CHANGES_REQUESTED`, `MAX_CYCLES_REACHED`, `NEEDS_DISCUSSION`.
    pub final_verdict: Option<String>,
    /// Why it ended or is paused: a code of the documented list.
    pub reason: Option<String>,
    /// What it cost so far.
    pub cost_usd: f64,
    /// The branch that holds the work.
    pub branch: Option<String>,
    /// What to type next.
    pub next: Option<String>,
    /// When it was recorded, UTC.
    pub at: String,
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MessageQuestion {
    /// `q1`, `q2`, …: unique in the repository.
    pub id: String,
    pub text: String,
    /// What can be answered.
    pub choices: Vec<String>,
}
