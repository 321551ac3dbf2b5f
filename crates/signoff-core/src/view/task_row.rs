//! A task as every list shows it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{PhasePlace, Status, TaskState, Wait};
use crate::ids::RunId;
use crate::machine::{Outcome, Reason};
use crate::task::TaskType;

/// One task, as tables keep it and `status --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskRow {
    pub id: u64,
    /// The run that works it; none while it is queued.
    pub run_id: Option<u64>,
    pub title: String,
    #[serde(rename = "type")]
    pub kind: TaskType,
    pub status: Status,
    /// Where it stands in one word. [`TaskRow::state`] tells it from the other fields; this is what is printed.
    pub state: TaskState,
    /// `approved`, `accepted`, `completed_with_issues`, `exhausted`, `discussion`,
    /// `nothing_to_review`, `failed`, `stuck`, `cancelled`.
    pub outcome: Option<String>,
    /// `APPROVED`, `CHANGES_REQUESTED`, `MAX_CYCLES_REACHED`, `NEEDS_DISCUSSION`.
    pub final_verdict: Option<String>,
    /// Why it ended, or went on without approval: a code of the documented list.
    pub reason: Option<String>,
    pub auto_review: bool,
    /// The number of the current or last review; 0 before the first.
    pub review_cycle: u32,
    /// None is unlimited.
    pub max_review_cycles: Option<u32>,
    pub branch: Option<String>,
    /// The commit that its reviewers or a person approved.
    pub approved_commit: Option<String>,
    /// The commit with which its work is in the default branch.
    #[serde(default)]
    pub landed_commit: Option<String>,
    /// The commit with which its work is in its run's branch.
    #[serde(default)]
    pub run_commit: Option<String>,
    pub base: Option<String>,
    pub worktree: Option<String>,
    /// The phase at hand.
    pub phase: Option<String>,
    /// Implement and fix attempts so far.
    pub iteration: u32,
    pub open_findings: u32,
    pub cost_usd: f64,
    /// The cost is worked out from list prices, at least in part; left out where it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub depends_on: Vec<u64>,
    pub continues: Option<u64>,
    /// What the tracker calls it that it comes from.
    #[serde(default)]
    pub tracker_id: Option<String>,
    /// The task whose work it goes on with.
    #[serde(default)]
    pub parent: Option<u64>,
    pub added_at: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    /// The rate limit that a paused task waits out; left out where there is none, and by the tables, which tell the
    /// log's facts and not its waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// How far a task is whose phases people count; left out where nobody counts them, by the tables, and in lists for
    /// tasks that have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PhasePlace>,
}

impl TaskRow {
    /// Where it stands, from its status, its outcome and whether it has landed.
    pub fn state(&self) -> TaskState {
        let state = TaskState::new(self.status, self.outcome.as_deref(), self.state);
        if !state.is_approved() {
            return state;
        }
        if self.landed_commit.is_some() { TaskState::Landed } else { TaskState::Approved }
    }

    /// The same row with the state that its other fields tell, to be printed.
    #[must_use]
    pub fn restated(self) -> Self {
        Self { state: self.state(), parent: self.continues, ..self }
    }

    /// Whether a person said that it is not approved: `improve` goes on with it.
    pub fn is_refused_by_person(&self) -> bool {
        let is_refused = matches!(self.outcome.as_deref(), Some("failed" | "exhausted" | "discussion"));
        is_refused && self.reason.as_deref() == Some("edited_by_person")
    }

    /// Whether a person accepted it although it changes nothing: there is nothing to land.
    pub fn is_approved_empty(&self) -> bool {
        self.approved_commit.is_some() && self.approved_commit == self.base
    }

    /// Whether it is worked in order with others, on one branch: what it goes on with is their run.
    pub fn is_of_a_plan(&self) -> bool {
        self.continues.is_none() && self.branch.as_deref().is_some_and(is_shared)
    }
}

/// How many approvals are looked at, the latest first: a list must come at once, and old branches are mostly gone.
const LOOKED_AT: usize = 1000;

/// What is known of a branch.
#[derive(Default)]
struct Worked {
    /// The last task that was started on it.
    last: u64,
    approved: BTreeSet<String>,
}

/// Takes the approval from tasks that have not landed and whose branch has moved on to a commit without approval. `tip`
/// returns the head of a branch; nothing where it is unknown, or where the program itself moved the branch.
pub fn void_approvals(rows: &mut [TaskRow], mut tip: impl FnMut(&str) -> Option<String>) {
    let mut branches: BTreeMap<String, Worked> = BTreeMap::new();
    for (row, branch) in rows.iter().filter_map(|row| Some((row, row.branch.clone()?))) {
        let worked = branches.entry(branch).or_default();
        worked.last = if row.base.is_some() { worked.last.max(row.id) } else { worked.last };
        worked.approved.extend(row.approved_commit.clone());
    }
    let is_to_land = |row: &&mut TaskRow| row.approved_commit.is_some() && row.landed_commit.is_none();
    let approved = rows.iter_mut().rev().filter(is_to_land);
    for row in approved.take(LOOKED_AT) {
        let Some((branch, worked)) = row.branch.as_ref().and_then(|name| branches.get_key_value(name)) else {
            continue;
        };
        let answers = worked.last == row.id || !is_shared(branch);
        if answers && tip(branch).is_some_and(|tip| !worked.approved.contains(&tip)) {
            row.final_verdict = None;
            row.outcome = Outcome::CompletedWithIssues.word().map(str::to_owned);
            row.reason = Some(Reason::ChangedAfterReview.word());
        }
    }
}

/// The tasks of a chain work on one branch, which moves on with each of them: only the last one answers for its tip.
pub fn is_shared(branch: &str) -> bool {
    RunId::of_branch(branch).is_some()
}

/// A question that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QuestionRow {
    /// `q1`, `q2`, …: unique in the repository.
    pub id: String,
    pub run_id: u64,
    pub task_id: Option<u64>,
    pub text: String,
    /// What can be answered.
    pub choices: Vec<String>,
}
