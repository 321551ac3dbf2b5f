//! The message of a notification, as channels send it.

use serde::Serialize;

use super::NotificationKind;

/// The version of the JSON shape. It changes when a key is removed or changes its meaning.
pub const VERSION: u32 = 1;

/// The JSON that a webhook receives as its body and a command on its stdin.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct NotificationMessage {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub event: NotificationKind,
    /// The name of the repository's directory.
    pub project: String,
    pub run_id: u64,
    /// The task it is about; null if it is about a run of several tasks, or about a loop without a task.
    pub task_id: Option<u64>,
    /// What happened, on one line.
    pub title: String,
    /// The title with the reason.
    pub text: String,
    /// The open question; null if there is none.
    pub question: Option<MessageQuestion>,
    /// `approved`, `accepted`, `completed_with_issues`, `exhausted`, `discussion`,
    /// `nothing_to_review`, `failed`, `stuck`, of a task; of a run
    /// `approved`, `attention`, `failed`.
    pub outcome: Option<String>,
    /// `APPROVED`, `CHANGES_REQUESTED`, `MAX_CYCLES_REACHED`, `NEEDS_DISCUSSION`.
    pub final_verdict: Option<String>,
    /// Why it ended or is paused: a code of the documented list.
    pub reason: Option<String>,
    /// The cost so far.
    pub cost_usd: f64,
    /// The branch that holds the work.
    pub branch: Option<String>,
    /// The command to type next.
    pub next: Option<String>,
    /// When it was recorded, UTC.
    pub at: String,
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MessageQuestion {
    /// `q1`, `q2`, …: unique in the repository.
    pub id: String,
    pub text: String,
    /// The possible answers.
    pub choices: Vec<String>,
}
