//! The sections of a report: the run, its loops without a task, and its tasks.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ids::LoopId;
use signoff_core::machine::OutcomeKind;
use signoff_core::view::{LoopRow, QuestionRow, RunRow, RunStatus, TaskRow};

use super::Changes;
use super::result::{self, ReportResult};
use crate::labels;
use crate::show::{AttemptRow, Cycle, LedgerLine, RunHistory, TaskReport};

/// The run of a report.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunSection {
    pub id: u64,
    pub preset: String,
    /// The name of the specification; null for runs of single tasks.
    pub specification: Option<String>,
    /// The text of the specification when the run started.
    pub asked: Option<String>,
    /// `running`, `blocked`, `completed`, `failed`, `cancelled`.
    #[schemars(with = "String")]
    pub status: RunStatus,
    /// The result: `approved` if the approvals of all its tasks are valid, `accepted` if a person approved it
    /// instead of the final review, otherwise `attention`, `failed` or `cancelled`; null until it has ended.
    pub outcome: Option<&'static str>,
    /// Whether a process is working on it.
    pub driven: bool,
    #[serde(rename = "standing")]
    pub result: ReportResult,
    /// The branch on which its tasks land.
    pub branch: Option<String>,
    pub started_at: Option<String>,
    /// The time of its last event.
    pub last_at: Option<String>,
    /// The changes of all its tasks; null if they have no common branch.
    pub changes: Option<Changes>,
}

impl RunSection {
    /// `tasks` are the results of all its tasks, `questions` its open questions; `driven` is whether a process is
    /// working on it.
    pub fn new(
        row: RunRow,
        history: &RunHistory,
        tasks: &[ReportResult],
        questions: &[QuestionRow],
        driven: bool,
    ) -> Self {
        let whole = history.state.row(&LoopId::final_review());
        let outcome = result::outcome(history.state.stage(), tasks, whole.as_ref());
        let checkout = history.state.row(&LoopId::checkout()).filter(|row| row.task.is_none());
        Self {
            result: match checkout {
                Some(looked_at) => result::result_of_checkout(&looked_at, driven),
                None => {
                    result::result_of_run(&row, outcome, tasks, questions, driven).with_accepted_review(whole.as_ref())
                }
            },
            asked: None,
            outcome,
            driven,
            id: row.id,
            preset: row.preset,
            specification: row.specification,
            status: row.status,
            branch: row.branch,
            started_at: history.state.started_at.map(|at| at.to_string()),
            last_at: history.state.last_at.map(|at| at.to_string()),
            changes: None,
        }
    }
}

/// A loop without a task, or with a task that another run has continued since.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PartSection {
    /// `Planning SPEC.md`, `Final review`, `Look 2 at task 29`, `Review of the checkout`.
    pub name: String,
    /// The result; null until it has ended.
    #[schemars(with = "Option<&'static str>")]
    pub outcome: Option<OutcomeKind>,
    /// The reason, as a sentence.
    pub reason: Option<String>,
    pub cycles: Vec<Cycle>,
    /// Every finding, open ones first; for a checkpoint review only those that its task does not have.
    pub ledger: Vec<LedgerLine>,
    pub attempts: Vec<AttemptRow>,
    /// Whether it is a checkpoint review. The gates of the task under review decide about its findings.
    #[serde(skip)]
    pub is_checkpoint: bool,
}

impl PartSection {
    /// All loops of a run except those of the given tasks.
    pub fn all(history: &RunHistory, tasks: &BTreeSet<LoopId>) -> Vec<Self> {
        Self::filtered(history, |loop_id| !tasks.contains(loop_id))
    }

    /// The checkpoint reviews of a task's loop.
    pub fn checkpoint_reviews(history: &RunHistory, of: &LoopId) -> Vec<Self> {
        Self::filtered(history, |loop_id| loop_id.checkpoint_target().is_some_and(|(looked_at, _)| looked_at == *of))
    }

    fn filtered(history: &RunHistory, is_wanted: impl Fn(&LoopId) -> bool) -> Vec<Self> {
        let wanted = history.loops().filter(|loop_id| is_wanted(loop_id));
        wanted.filter_map(|loop_id| Some(Self::new(history, loop_id, history.state.row(loop_id)?))).collect()
    }

    fn new(history: &RunHistory, loop_id: &LoopId, row: LoopRow) -> Self {
        Self {
            name: name(history, &row),
            outcome: row.outcome,
            reason: row.reason.map(labels::reason_with_code),
            cycles: history.cycles(loop_id),
            ledger: history.ledger(loop_id),
            attempts: history.attempts(loop_id),
            is_checkpoint: loop_id.checkpoint_target().is_some(),
        }
    }
}

/// The display name of the loop.
fn name(history: &RunHistory, row: &LoopRow) -> String {
    if let Some((of, number)) = row.id.checkpoint_target() {
        let task = history.state.row(&of).and_then(|row| row.task);
        let of = task.map_or_else(|| of.to_string(), |task| format!("task {task}"));
        return format!("Look {number} at {of}");
    }
    match row.task {
        Some(task) => format!("Task {task}: {}", row.title),
        None if row.id == LoopId::checkout() => "Review of the checkout".to_owned(),
        None if row.title.is_empty() => row.id.to_string(),
        None => row.title.clone(),
    }
}

/// A task of a report.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TaskSection {
    /// The full request.
    pub asked: String,
    #[serde(rename = "standing")]
    pub result: ReportResult,
    /// The output of `show --json`.
    pub report: TaskReport,
    pub changes: Changes,
}

impl TaskSection {
    /// `driven` is whether a process is working on its run.
    pub fn new(report: TaskReport, asked: String, changes: Changes, driven: bool) -> Self {
        let standing = result::result_of_report(&report, driven);
        Self { asked, result: standing, report, changes }
    }

    pub fn row(&self) -> &TaskRow {
        &self.report.task
    }
}
