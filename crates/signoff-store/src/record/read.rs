//! The columns of the tables: parses rows from cells in column order, and writes the progress of a task.

use std::str::FromStr;

use jiff::Timestamp;
use signoff_core::ids::{FindingId, LoopId, RunId, TaskId};
use signoff_core::machine::{FinalVerdict, OutcomeKind, Reason};
use signoff_core::view::{QuestionRow, TaskRow};

use super::{Cell, Column};
use crate::{FindingRef, StoreError, StoredRun};

pub const RUN_COLUMNS: [&str; 12] = [
    "id",
    "preset",
    "status",
    "started_at",
    "ended_at",
    "cost_usd",
    "cost_is_estimated",
    "stage",
    "group_number",
    "group_count",
    "branch",
    "specification",
];
pub const QUESTION_COLUMNS: [&str; 5] = ["id", "run_id", "task_id", "text", "choices"];
pub const FINDING_COLUMNS: [&str; 4] = ["id", "run_id", "loop_id", "task_id"];

/// The columns of a task, in the order in which they are read.
pub const TASK_COLUMNS: &[&str] = &[
    "id",
    "run_id",
    "title",
    "type",
    "status",
    "state",
    "outcome",
    "final_verdict",
    "reason",
    "auto_review",
    "review_cycle",
    "max_review_cycles",
    "branch",
    "approved_commit",
    "landed_commit",
    "run_commit",
    "base",
    "worktree",
    "phase",
    "iteration",
    "open_findings",
    "cost_usd",
    "cost_is_estimated",
    "input_tokens",
    "output_tokens",
    "depends_on",
    "continues",
    "tracker_id",
    "added_at",
    "started_at",
    "ended_at",
];

/// The columns that change while a task is worked on.
pub fn task_progress(task: &TaskRow) -> Vec<Column> {
    vec![
        ("status", task.status.as_str().into()),
        ("state", task.state.as_str().into()),
        ("outcome", task.outcome.map(OutcomeKind::as_str).into()),
        ("final_verdict", task.final_verdict.map(FinalVerdict::as_str).into()),
        ("reason", task.reason.map(Reason::as_str).into()),
        ("review_cycle", task.review_cycle.into()),
        ("base", task.base.as_deref().into()),
        ("approved_commit", task.approved_commit.as_deref().into()),
        ("landed_commit", task.landed_commit.as_deref().into()),
        ("run_commit", task.run_commit.as_deref().into()),
        ("worktree", task.worktree.as_deref().filter(|text| !text.is_empty()).into()),
        ("phase", task.phase.as_deref().filter(|text| !text.is_empty()).into()),
        ("iteration", task.iteration.into()),
        ("open_findings", task.open_findings.into()),
        ("cost_usd", task.cost_usd.into()),
        ("cost_is_estimated", task.cost_is_estimated.into()),
        ("input_tokens", task.input_tokens.into()),
        ("output_tokens", task.output_tokens.into()),
        ("started_at", task.started_at.as_deref().into()),
        ("ended_at", task.ended_at.as_deref().into()),
    ]
}

/// Reads the cells of one row in order.
pub struct CellReader<F> {
    next: F,
}

impl<F: FnMut() -> Result<Cell, StoreError>> CellReader<F> {
    pub fn new(next: F) -> Self {
        Self { next }
    }

    pub fn run(mut self) -> Result<StoredRun, StoreError> {
        Ok(StoredRun {
            id: RunId(self.number()?),
            preset: self.text()?,
            status: self.keyword()?,
            started_at: self.maybe_time()?,
            ended_at: self.maybe_time()?,
            cost_usd: self.real()?,
            cost_is_estimated: self.number()? != 0,
            stage: self.keyword()?,
            group: self.maybe_number()?,
            groups: self.maybe_number()?,
            branch: self.maybe_text()?,
            specification: self.maybe_text()?,
        })
    }

    pub fn task(mut self) -> Result<TaskRow, StoreError> {
        Ok(TaskRow {
            id: self.number()?,
            run_id: self.maybe_number()?,
            title: self.text()?,
            kind: self.keyword()?,
            status: self.keyword()?,
            state: self.keyword()?,
            outcome: self.maybe_keyword()?,
            final_verdict: self.maybe_keyword()?,
            reason: self.keyword_if_known()?,
            auto_review: self.number()? != 0,
            review_cycle: self.small_number()?,
            max_review_cycles: self.maybe_number()?.map(to_u32).transpose()?,
            branch: self.maybe_text()?,
            approved_commit: self.maybe_text()?,
            landed_commit: self.maybe_text()?,
            run_commit: self.maybe_text()?,
            base: self.maybe_text()?,
            worktree: self.maybe_text()?,
            phase: self.maybe_text()?,
            iteration: self.small_number()?,
            open_findings: self.small_number()?,
            cost_usd: self.real()?,
            cost_is_estimated: self.number()? != 0,
            input_tokens: self.number()?,
            output_tokens: self.number()?,
            depends_on: self.list()?,
            continues: self.maybe_number()?,
            tracker_id: self.maybe_text()?,
            parent: None,
            added_at: self.text()?,
            started_at: self.maybe_text()?,
            ended_at: self.maybe_text()?,
            wait: None,
            progress: None,
        }
        .with_current_state())
    }
    pub fn question(mut self) -> Result<QuestionRow, StoreError> {
        Ok(QuestionRow {
            id: format!("q{}", self.number()?),
            run_id: self.number()?,
            task_id: self.maybe_number()?,
            text: self.text()?,
            choices: self.list()?,
        })
    }

    pub fn finding(mut self) -> Result<FindingRef, StoreError> {
        Ok(FindingRef {
            finding: FindingId::new(self.text()?),
            run: RunId(self.number()?),
            loop_id: LoopId::new(self.text()?),
            task: self.maybe_number()?.map(TaskId),
        })
    }

    pub fn maybe_number(&mut self) -> Result<Option<u64>, StoreError> {
        match (self.next)()? {
            Cell::Null => Ok(None),
            Cell::Integer(number) => u64::try_from(number).map(Some).map_err(|_| unexpected_cell("a number", number)),
            other @ (Cell::Real(_) | Cell::Text(_)) => Err(unexpected_cell("a number", other)),
        }
    }

    pub fn number(&mut self) -> Result<u64, StoreError> {
        self.maybe_number()?.ok_or_else(|| unexpected_cell("a number", "nothing"))
    }

    pub fn small_number(&mut self) -> Result<u32, StoreError> {
        self.number().and_then(to_u32)
    }

    pub fn real(&mut self) -> Result<f64, StoreError> {
        match (self.next)()? {
            Cell::Real(number) => Ok(number),
            other @ (Cell::Null | Cell::Integer(_) | Cell::Text(_)) => Err(unexpected_cell("an amount", other)),
        }
    }

    pub fn maybe_text(&mut self) -> Result<Option<String>, StoreError> {
        match (self.next)()? {
            Cell::Null => Ok(None),
            Cell::Text(text) => Ok(Some(text)),
            other @ (Cell::Integer(_) | Cell::Real(_)) => Err(unexpected_cell("a text", other)),
        }
    }

    pub fn text(&mut self) -> Result<String, StoreError> {
        self.maybe_text()?.ok_or_else(|| unexpected_cell("a text", "nothing"))
    }

    pub fn time(&mut self) -> Result<Timestamp, StoreError> {
        let text = self.text()?;
        text.parse().map_err(|_| unexpected_cell("a time", text))
    }

    fn maybe_time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let text = self.maybe_text()?;
        text.map(|text| text.parse().map_err(|_| unexpected_cell("a time", text))).transpose()
    }

    pub fn maybe_keyword<T: FromStr>(&mut self) -> Result<Option<T>, StoreError> {
        let text = self.maybe_text()?;
        text.map(|text| text.parse().map_err(|_| unexpected_cell("a known word", text))).transpose()
    }

    /// A word that only explains the row: one of a newer version is left out.
    pub fn keyword_if_known<T: FromStr>(&mut self) -> Result<Option<T>, StoreError> {
        Ok(self.maybe_text()?.and_then(|text| text.parse().ok()))
    }

    pub fn keyword<T: FromStr>(&mut self) -> Result<T, StoreError> {
        let text = self.text()?;
        text.parse().map_err(|_| unexpected_cell("a known word", text))
    }

    pub fn list<T: serde::de::DeserializeOwned>(&mut self) -> Result<Vec<T>, StoreError> {
        let text = self.text()?;
        serde_json::from_str(&text).map_err(|_| unexpected_cell("a list", text))
    }
}

fn to_u32(number: u64) -> Result<u32, StoreError> {
    u32::try_from(number).map_err(|_| unexpected_cell("a small number", number))
}

fn unexpected_cell(wanted: &str, found: impl std::fmt::Debug) -> StoreError {
    StoreError::Damaged(format!(
        "a table holds {found:?} instead of {wanted}; `signoff doctor --rebuild` rebuilds the tables"
    ))
}
