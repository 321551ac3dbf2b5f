//! The parts of an account: the run, what served it, and its tasks.

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ids::LoopId;
use signoff_core::view::{LoopView, RunRow, TaskRow};

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
    /// How it ended: `approved` if all its tasks were signed off and still are, else `attention`, `failed` or
    /// `cancelled`; null until it has.
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
    /// `tasks` are how all of its tasks stand; `driven` tells whether somebody is at work on it.
    pub fn of(row: RunRow, folded: &Folded, tasks: &[Standing], driven: bool) -> Self {
        let outcome = standing::outcome(folded.view.stage(), tasks);
        Self {
            standing: standing::of_run(&row, outcome, tasks, driven),
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

/// A loop that carries no task.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Part {
    /// `Planning SPEC.md`, `Final review`, `Look 2 at task 29`.
    pub name: String,
    /// How it ended; null until it has.
    pub outcome: Option<&'static str>,
    /// Why, in words.
    pub reason: Option<String>,
    pub cycles: Vec<Cycle>,
    /// Every finding, open ones first.
    pub ledger: Vec<LedgerLine>,
    pub attempts: Vec<Attempt>,
}

impl Part {
    /// The parts of a run; with a task's loop only the looks at that.
    pub fn all(folded: &Folded, of: Option<&LoopId>) -> Vec<Self> {
        let is_wanted = |loop_id: &&LoopId| match (of, loop_id.of_checkpoint()) {
            (None, _) => loop_id.serves_the_run(),
            (Some(of), Some((looked_at, _))) => looked_at == *of,
            (Some(_), None) => false,
        };
        let wanted = folded.loops().filter(is_wanted);
        wanted.filter_map(|loop_id| Some(Self::of(folded, loop_id, folded.view.row(loop_id)?))).collect()
    }

    fn of(folded: &Folded, loop_id: &LoopId, row: LoopView) -> Self {
        let looked_at = loop_id.of_checkpoint().map(|(of, number)| {
            let task = folded.view.row(&of).and_then(|row| row.task);
            let of = task.map_or_else(|| of.to_string(), |task| format!("task {task}"));
            format!("Look {number} at {of}")
        });
        Self {
            name: looked_at.unwrap_or(row.title),
            outcome: row.outcome,
            reason: row.reason.map(words::why),
            cycles: folded.cycles(loop_id),
            ledger: folded.ledger(loop_id),
            attempts: folded.attempts(loop_id),
        }
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
