//! The parts of an account: the run, what served it, and its tasks.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ids::LoopId;
use signoff_core::view::{LoopView, QuestionRow, RunRow, TaskRow};

use super::Changes;
use super::standing::{self, Standing};
use crate::show::{Attempt, Cycle, Folded, LedgerLine, Report};
use crate::words;

/// A run as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunAccount {
    pub id: u64,
    pub preset: String,
    /// The name of what it is to bring about; null where it works single tasks.
    pub specification: Option<String>,
    /// The text of that, as it was when the run was started.
    pub asked: Option<String>,
    /// `running`, `blocked`, `completed`, `failed`, `cancelled`.
    pub status: String,
    /// How it ended: `approved` if all its tasks were signed off and still are, `accepted` if a person approved it in
    /// place of its final review, else `attention`, `failed` or `cancelled`; null until it has.
    pub outcome: Option<&'static str>,
    /// Whether somebody is at work on it.
    pub driven: bool,
    pub standing: Standing,
    /// Where its tasks come together.
    pub branch: Option<String>,
    pub started_at: Option<String>,
    /// The time of its last fact.
    pub last_at: Option<String>,
    /// All its tasks together; null where they do not come together.
    pub changes: Option<Changes>,
}

impl RunAccount {
    /// `tasks` are how all of its tasks stand, `questions` what it waits for; `driven` tells whether somebody is at work
    /// on it.
    pub fn of(
        row: RunRow,
        folded: &Folded,
        (tasks, questions): (&[Standing], &[QuestionRow]),
        driven: bool,
    ) -> Self {
        let whole = folded.view.row(&LoopId::whole());
        let outcome = standing::outcome(folded.view.stage(), tasks, whole.as_ref());
        let checkout = folded.view.row(&LoopId::checkout()).filter(|row| row.task.is_none());
        Self {
            standing: match checkout {
                Some(looked_at) => standing::of_checkout(&looked_at, driven),
                None => standing::of_run(&row, (outcome, tasks, questions), driven).accepted(whole.as_ref()),
            },
            asked: None,
            outcome,
            driven,
            id: row.id,
            preset: row.preset,
            specification: row.specification,
            status: row.status,
            branch: row.branch,
            started_at: folded.view.started_at.map(|at| at.to_string()),
            last_at: folded.view.last_at.map(|at| at.to_string()),
            changes: None,
        }
    }
}

/// A loop that carries no task, or one that another run has taken up since.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Part {
    /// `Planning SPEC.md`, `Final review`, `Look 2 at task 29`, `Review of the checkout`.
    pub name: String,
    /// How it ended; null until it has.
    pub outcome: Option<&'static str>,
    /// Why, in words.
    pub reason: Option<String>,
    pub cycles: Vec<Cycle>,
    /// Every finding, open ones first; of a checkpoint review only those that its task does not have.
    pub ledger: Vec<LedgerLine>,
    pub attempts: Vec<Attempt>,
    /// Whether it is a checkpoint review: its findings are judged by the gates of the task it looked at.
    #[serde(skip)]
    pub is_checkpoint: bool,
}

impl Part {
    /// The parts of a run: all its loops but those that are told as tasks.
    pub fn all(folded: &Folded, tasks: &BTreeSet<LoopId>) -> Vec<Self> {
        Self::among(folded, |loop_id| !tasks.contains(loop_id))
    }

    /// The looks at a task's loop.
    pub fn looks(folded: &Folded, of: &LoopId) -> Vec<Self> {
        Self::among(folded, |loop_id| loop_id.of_checkpoint().is_some_and(|(looked_at, _)| looked_at == *of))
    }

    fn among(folded: &Folded, is_wanted: impl Fn(&LoopId) -> bool) -> Vec<Self> {
        let wanted = folded.loops().filter(|loop_id| is_wanted(loop_id));
        wanted.filter_map(|loop_id| Some(Self::of(folded, loop_id, folded.view.row(loop_id)?))).collect()
    }

    fn of(folded: &Folded, loop_id: &LoopId, row: LoopView) -> Self {
        Self {
            name: name(folded, &row),
            outcome: row.outcome,
            reason: row.reason.map(words::why),
            cycles: folded.cycles(loop_id),
            ledger: folded.ledger(loop_id),
            attempts: folded.attempts(loop_id),
            is_checkpoint: loop_id.of_checkpoint().is_some(),
        }
    }
}

/// What people call it.
fn name(folded: &Folded, row: &LoopView) -> String {
    if let Some((of, number)) = row.id.of_checkpoint() {
        let task = folded.view.row(&of).and_then(|row| row.task);
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

/// A task with all that is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TaskAccount {
    /// The whole text that was asked for.
    pub asked: String,
    pub standing: Standing,
    /// What `show --json` prints.
    pub report: Report,
    pub changes: Changes,
}

impl TaskAccount {
    /// `driven` tells whether somebody is at work on its run.
    pub fn of(report: Report, asked: String, changes: Changes, driven: bool) -> Self {
        let standing = standing::of_report(&report, driven);
        Self { asked, standing, report, changes }
    }

    pub fn row(&self) -> &TaskRow {
        &self.report.task
    }
}
