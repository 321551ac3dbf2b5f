//! A task as a row of a list.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{LoopRow, PhaseProgress, RateLimitWait, TaskState, TaskStatus};
use crate::ids::RunId;
use crate::machine::{FinalVerdict, OutcomeKind, Reason};
use crate::task::TaskType;

/// One task, as stored in the tables and printed by `status --json`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskRow {
    pub id: u64,
    /// The run that works on it; none while it is queued.
    pub run_id: Option<u64>,
    pub title: String,
    #[serde(rename = "type")]
    pub kind: TaskType,
    pub status: TaskStatus,
    /// The state in one word, as printed. [`TaskRow::state`] computes it from the other fields.
    pub state: TaskState,
    /// `approved`, `accepted`, `completed_with_issues`, `exhausted`, `discussion`,
    /// `nothing_to_review`, `failed`, `stuck`, `cancelled`.
    #[schemars(with = "Option<String>")]
    pub outcome: Option<OutcomeKind>,
    /// `APPROVED`, `CHANGES_REQUESTED`, `MAX_CYCLES_REACHED`, `NEEDS_DISCUSSION`.
    #[schemars(with = "Option<String>")]
    pub final_verdict: Option<FinalVerdict>,
    /// Why it ended, or went on without approval: a code of the documented list.
    #[schemars(with = "Option<String>")]
    pub reason: Option<Reason>,
    pub auto_review: bool,
    /// The number of the current or last review; 0 before the first.
    pub review_cycle: u32,
    /// None means unlimited.
    pub max_review_cycles: Option<u32>,
    pub branch: Option<String>,
    /// The commit that reviewers or a person approved.
    pub approved_commit: Option<String>,
    /// The commit that brought the work into the default branch.
    #[serde(default)]
    pub landed_commit: Option<String>,
    /// The commit that brought the work into the run's branch.
    #[serde(default)]
    pub run_commit: Option<String>,
    pub base: Option<String>,
    pub worktree: Option<String>,
    /// The current phase.
    pub phase: Option<String>,
    /// Implement and fix attempts so far.
    pub iteration: u32,
    pub open_findings: u32,
    pub cost_usd: f64,
    /// The cost is at least partly estimated from list prices; omitted if it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub depends_on: Vec<u64>,
    pub continues: Option<u64>,
    /// The id of the task in its tracker.
    #[serde(default)]
    pub tracker_id: Option<String>,
    /// The task that this one continues.
    #[serde(default)]
    pub parent: Option<u64>,
    pub added_at: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    /// The rate limit that a paused task waits for. Omitted if there is none, and not stored in the tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<RateLimitWait>,
    /// The progress through numbered phases. Omitted if the phases are not numbered, in lists for ended tasks, and
    /// not stored in the tables.
    #[serde(rename = "place", default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<PhaseProgress>,
}

impl TaskRow {
    /// A new task that no run has started.
    pub fn new(id: u64, title: &str, status: TaskStatus) -> Self {
        Self { id, title: title.to_owned(), status, auto_review: true, ..Self::default() }
    }

    /// The row with the progress of the task's loop at another point of the log.
    #[must_use]
    pub fn with_progress(self, row: LoopRow) -> Self {
        Self {
            status: row.status,
            outcome: row.outcome,
            final_verdict: row.final_verdict,
            reason: row.reason,
            review_cycle: row.cycle,
            phase: Some(row.phase),
            iteration: row.iteration,
            open_findings: u32::try_from(row.open_findings).unwrap_or(u32::MAX),
            cost_usd: row.usage.cost_micro_usd as f64 / 1_000_000.0,
            cost_is_estimated: row.usage.cost_is_estimated,
            input_tokens: row.usage.input_tokens,
            output_tokens: row.usage.output_tokens,
            wait: row.wait,
            progress: row.progress,
            ..self
        }
    }

    /// Computes the state from the status, the outcome and whether the task has landed.
    pub fn state(&self) -> TaskState {
        let state = TaskState::new(self.status, self.outcome, self.state);
        if !state.is_approved() {
            return state;
        }
        if self.landed_commit.is_some() { TaskState::Landed } else { TaskState::Approved }
    }

    /// Returns this row with the state computed from the other fields, for printing.
    #[must_use]
    pub fn with_current_state(self) -> Self {
        Self { state: self.state(), parent: self.continues, ..self }
    }

    /// Whether a person refused the work: `improve` continues it.
    pub fn is_refused_by_person(&self) -> bool {
        let is_refused =
            matches!(self.outcome, Some(OutcomeKind::Failed | OutcomeKind::Exhausted | OutcomeKind::Discussion));
        is_refused && self.reason == Some(Reason::EditedByPerson)
    }

    /// Whether a person accepted the work although it changes nothing: there is nothing to land.
    pub fn is_approved_empty(&self) -> bool {
        self.approved_commit.is_some() && self.approved_commit == self.base
    }

    /// Whether the task shares a branch with others of its plan.
    pub fn is_plan_task(&self) -> bool {
        self.continues.is_none() && self.branch.as_deref().is_some_and(is_run_branch)
    }
}

/// Maximum number of approvals to check, latest first. Lists must be fast, and most old branches are gone.
const MAX_CHECKED_APPROVALS: usize = 1000;

/// The tasks of one branch.
#[derive(Default)]
struct BranchApprovals {
    /// The last task that was started on it.
    last: u64,
    approved: BTreeSet<String>,
}

/// Removes the approval of tasks that have not landed and whose branch has moved to an unapproved commit. `tip`
/// returns the head of a branch; none if it is unknown, or if the program itself moved the branch.
pub fn void_approvals(rows: &mut [TaskRow], mut tip: impl FnMut(&str) -> Option<String>) {
    let mut branches: BTreeMap<String, BranchApprovals> = BTreeMap::new();
    for (row, branch) in rows.iter().filter_map(|row| Some((row, row.branch.clone()?))) {
        let worked = branches.entry(branch).or_default();
        worked.last = if row.base.is_some() { worked.last.max(row.id) } else { worked.last };
        worked.approved.extend(row.approved_commit.clone());
    }
    let is_to_land = |row: &&mut TaskRow| row.approved_commit.is_some() && row.landed_commit.is_none();
    let approved = rows.iter_mut().rev().filter(is_to_land);
    for row in approved.take(MAX_CHECKED_APPROVALS) {
        let Some((branch, worked)) = row.branch.as_ref().and_then(|name| branches.get_key_value(name)) else {
            continue;
        };
        let answers = worked.last == row.id || !is_run_branch(branch);
        if answers && tip(branch).is_some_and(|tip| !worked.approved.contains(&tip)) {
            row.final_verdict = None;
            row.outcome = Some(OutcomeKind::CompletedWithIssues);
            row.reason = Some(Reason::ChangedAfterReview);
        }
    }
}

/// Whether a branch is shared by the tasks of a run. It moves with each task, so only the last one is checked against
/// its tip.
pub fn is_run_branch(branch: &str) -> bool {
    RunId::from_branch(branch).is_some()
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QuestionRow {
    /// `q1`, `q2`, …: unique in the repository.
    pub id: String,
    pub run_id: u64,
    pub task_id: Option<u64>,
    pub text: String,
    /// The possible answers.
    pub choices: Vec<String>,
}
