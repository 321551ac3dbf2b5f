//! The columns of the tables: parses rows from cells in column order, and writes the progress of a task.

use std::str::FromStr;

use jiff::Timestamp;
use signoff_core::ids::{FindingId, LoopId, RunId, TaskId};
use signoff_core::view::{QuestionRow, TaskRow};

use super::{Cell, Column};
use crate::{FindingRef, StoreError, StoredRun};

/// Defines the columns of tables, and how a row is made of their cells, which are read in the same order. Fields without
/// a column are not stored.
macro_rules! rows {
    ($cells:ident: $($columns:ident, $read:ident -> $row:ident$(.$last:ident())? {
        $($field:ident $(= $column:literal)?: $cell:expr,)*
    })*) => {
        $(pub const $columns: &[&str] = &[$($($column,)?)*];)*

        impl<F: FnMut() -> Result<Cell, StoreError>> CellReader<F> {
            $(pub fn $read(self) -> Result<$row, StoreError> {
                let mut $cells = self;
                Ok($row { $($field: $cell,)* }$(.$last())?)
            })*
        }
    };
}

rows! {
    cells:

    RUN_COLUMNS, run -> StoredRun {
        id = "id": RunId(cells.number()?),
        preset = "preset": cells.text()?,
        status = "status": cells.keyword()?,
        started_at = "started_at": cells.maybe_time()?,
        ended_at = "ended_at": cells.maybe_time()?,
        cost_usd = "cost_usd": cells.real()?,
        cost_is_estimated = "cost_is_estimated": cells.number()? != 0,
        stage = "stage": cells.keyword()?,
        group = "group_number": cells.maybe_number()?,
        groups = "group_count": cells.maybe_number()?,
        branch = "branch": cells.maybe_text()?,
        specification = "specification": cells.maybe_text()?,
    }

    TASK_COLUMNS, task -> TaskRow.with_current_state() {
        id = "id": cells.number()?,
        run_id = "run_id": cells.maybe_number()?,
        title = "title": cells.text()?,
        kind = "type": cells.keyword()?,
        status = "status": cells.keyword()?,
        state = "state": cells.keyword()?,
        outcome = "outcome": cells.maybe_keyword()?,
        final_verdict = "final_verdict": cells.maybe_keyword()?,
        reason = "reason": cells.keyword_if_known()?,
        auto_review = "auto_review": cells.number()? != 0,
        review_cycle = "review_cycle": cells.small_number()?,
        max_review_cycles = "max_review_cycles": cells.maybe_number()?.map(to_u32).transpose()?,
        branch = "branch": cells.maybe_text()?,
        approved_commit = "approved_commit": cells.maybe_text()?,
        landed_commit = "landed_commit": cells.maybe_text()?,
        run_commit = "run_commit": cells.maybe_text()?,
        base = "base": cells.maybe_text()?,
        worktree = "worktree": cells.maybe_text()?,
        phase = "phase": cells.maybe_text()?,
        iteration = "iteration": cells.small_number()?,
        open_findings = "open_findings": cells.small_number()?,
        cost_usd = "cost_usd": cells.real()?,
        cost_is_estimated = "cost_is_estimated": cells.number()? != 0,
        input_tokens = "input_tokens": cells.number()?,
        output_tokens = "output_tokens": cells.number()?,
        depends_on = "depends_on": cells.list()?,
        continues = "continues": cells.maybe_number()?,
        tracker_id = "tracker_id": cells.maybe_text()?,
        parent: None,
        added_at = "added_at": cells.text()?,
        started_at = "started_at": cells.maybe_text()?,
        ended_at = "ended_at": cells.maybe_text()?,
        wait: None,
        progress: None,
    }

    QUESTION_COLUMNS, question -> QuestionRow {
        id = "id": format!("q{}", cells.number()?),
        run_id = "run_id": cells.number()?,
        task_id = "task_id": cells.maybe_number()?,
        text = "text": cells.text()?,
        choices = "choices": cells.list()?,
    }

    FINDING_COLUMNS, finding -> FindingRef {
        finding = "id": FindingId::new(cells.text()?),
        run = "run_id": RunId(cells.number()?),
        loop_id = "loop_id": LoopId::new(cells.text()?),
        task = "task_id": cells.maybe_number()?.map(TaskId),
    }
}

/// The columns that change while a task is worked on.
pub fn task_progress(task: &TaskRow) -> Vec<Column> {
    vec![
        ("status", task.status.into_str().into()),
        ("state", task.state.into_str().into()),
        ("outcome", task.outcome.map(<&str>::from).into()),
        ("final_verdict", task.final_verdict.map(<&str>::from).into()),
        ("reason", task.reason.map(<&str>::from).into()),
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
