//! The log and the tables in memory.

use std::collections::BTreeMap;

use jiff::Timestamp;
use signoff_core::ids::{LoopId, QuestionId, RunId, TaskId};
use signoff_core::view::{QuestionRow, TaskRow, TaskStatus};
use signoff_core::wire::RecordedFact;

use signoff_store::backend::{
    self, Cell, CellReader, Counter, FINDING_COLUMNS, KeyPart, QUESTION_COLUMNS, QuestionIds, RUN_COLUMNS,
    TASK_COLUMNS, TableKey, TableName, TableRow, TableRows, TaskOwner, Transaction,
};
use signoff_store::{FindingRef, QuestionRef, StoreError, StoredRun, TrackerClaims};

#[derive(Default)]
pub(super) struct MemoryTables {
    pub events: Vec<RecordedFact>,
    counters: BTreeMap<Counter, u64>,
    fences: BTreeMap<RunId, u64>,
    tables: BTreeMap<TableName, TableRows>,
}

/// A key and the other columns of its row.
type KeyedRow<'a> = (&'a TableKey, &'a BTreeMap<String, Cell>);

impl MemoryTables {
    fn table(&self, table: TableName) -> impl Iterator<Item = KeyedRow<'_>> {
        self.tables.get(&table).into_iter().flatten()
    }

    pub fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        self.table(TableName::Runs).map(|row| cells(TableName::Runs, row, RUN_COLUMNS).run()).collect()
    }

    pub fn open_runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        let open = self.table(TableName::Runs).filter(|row| cell(*row, "open") == Cell::Integer(1));
        open.map(|row| cells(TableName::Runs, row, RUN_COLUMNS).run()).collect()
    }

    pub fn run(&self, run: RunId) -> Result<Option<StoredRun>, StoreError> {
        let row = self.table(TableName::Runs).find(|(key, _)| **key == [KeyPart::Number(run.0)]);
        row.map(|row| cells(TableName::Runs, row, RUN_COLUMNS).run()).transpose()
    }

    pub fn last_run(&self) -> Result<Option<StoredRun>, StoreError> {
        let row = self.table(TableName::Runs).last();
        row.map(|row| cells(TableName::Runs, row, RUN_COLUMNS).run()).transpose()
    }

    pub fn tasks(&self) -> Result<Vec<TaskRow>, StoreError> {
        self.table(TableName::Tasks).map(|row| cells(TableName::Tasks, row, TASK_COLUMNS).task()).collect()
    }

    pub fn task(&self, task: TaskId) -> Result<Option<TaskRow>, StoreError> {
        self.task_entry(task).map(|row| cells(TableName::Tasks, row, TASK_COLUMNS).task()).transpose()
    }

    fn task_entry(&self, task: TaskId) -> Option<KeyedRow<'_>> {
        self.tables.get(&TableName::Tasks)?.get_key_value(&vec![KeyPart::Number(task.0)])
    }

    pub fn loop_of(&self, task: TaskId) -> Option<(RunId, LoopId)> {
        let row = self.task_entry(task)?;
        let (Cell::Integer(run), Cell::Text(id)) = (cell(row, "run_id"), cell(row, "loop_id")) else {
            return None;
        };
        Some((RunId(run.unsigned_abs()), LoopId::new(id)))
    }

    pub fn questions(&self) -> Result<Vec<QuestionRow>, StoreError> {
        let open = self.table(TableName::Questions).filter(|row| cell(*row, "closed_at") == Cell::Null);
        open.map(|row| cells(TableName::Questions, row, QUESTION_COLUMNS).question()).collect()
    }

    pub fn question(&self, number: u64) -> Result<Option<QuestionRef>, StoreError> {
        let row = self.table(TableName::Questions).find(|(key, _)| **key == [KeyPart::Number(number)]);
        row.map(|row| {
            let mut cells = cells(TableName::Questions, row, &["run_id", "loop_id", "number"]);
            Ok(QuestionRef {
                run: RunId(cells.number()?),
                loop_id: LoopId::new(cells.text()?),
                question: QuestionId(cells.number()?),
                open: cell(row, "closed_at") == Cell::Null,
            })
        })
        .transpose()
    }

    pub fn findings(&self, prefix: &str) -> Result<Vec<FindingRef>, StoreError> {
        let starts = |part: Option<&KeyPart>| matches!(part, Some(KeyPart::Text(id)) if id.starts_with(prefix));
        let found = self.table(TableName::Findings).filter(|(key, _)| starts(key.first()));
        found.map(|row| cells(TableName::Findings, row, FINDING_COLUMNS).finding()).collect()
    }
}

fn cell(row: KeyedRow<'_>, column: &str) -> Cell {
    row.1.get(column).cloned().unwrap_or(Cell::Null)
}

/// A reader over these columns of a row, including its key.
fn cells<'a>(
    table: TableName,
    row: KeyedRow<'a>,
    columns: &'a [&str],
) -> CellReader<impl FnMut() -> Result<Cell, StoreError> + 'a> {
    let mut columns = columns.iter();
    CellReader::new(move || {
        let column = columns.next().copied().unwrap_or_default();
        let part = table.key().iter().position(|name| *name == column).and_then(|place| row.0.get(place));
        Ok(part.cloned().map_or_else(|| cell(row, column), Cell::from))
    })
}

impl Transaction for MemoryTables {
    fn counter(&self, counter: Counter) -> Result<u64, StoreError> {
        Ok(self.counters.get(&counter).copied().unwrap_or(0))
    }

    fn set_counter(&mut self, counter: Counter, value: u64) -> Result<(), StoreError> {
        self.counters.insert(counter, value);
        Ok(())
    }

    fn fence(&self, run: RunId) -> Result<Option<u64>, StoreError> {
        Ok(self.fences.get(&run).copied())
    }

    fn new_run(&mut self, run: RunId, _at: Timestamp) -> Result<(), StoreError> {
        self.set_fence(run, 1)
    }

    fn set_fence(&mut self, run: RunId, fence: u64) -> Result<(), StoreError> {
        self.fences.insert(run, fence);
        Ok(())
    }

    fn last_seq(&self, run: RunId) -> Result<u64, StoreError> {
        let last = self.events.iter().rfind(|recorded| recorded.run == run);
        Ok(last.map_or(0, |recorded| recorded.seq))
    }

    fn log_page(&self, run: RunId, seq: u64, limit: usize) -> Result<Vec<RecordedFact>, StoreError> {
        let is_later = |recorded: &&RecordedFact| recorded.run == run && recorded.seq > seq;
        Ok(self.events.iter().filter(is_later).take(limit).cloned().collect())
    }

    fn for_each_fact(
        &self,
        visit: &mut dyn FnMut(Result<RecordedFact, StoreError>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.events.iter().cloned().try_for_each(|recorded| visit(Ok(recorded)))
    }

    fn record(&mut self, recorded: &RecordedFact) -> Result<(), StoreError> {
        self.events.push(recorded.clone());
        Ok(())
    }

    fn task_owner(&self, task: TaskId) -> Result<Option<TaskOwner>, StoreError> {
        let Some(row) = self.task_entry(task) else { return Ok(None) };
        let is_pending = cell(row, "status") == TaskStatus::Pending.into_str().into();
        Ok(Some(match cell(row, "run_id") {
            Cell::Integer(run) => TaskOwner::Run(RunId(run.unsigned_abs())),
            Cell::Null | Cell::Real(_) | Cell::Text(_) if is_pending => TaskOwner::Queued,
            Cell::Null | Cell::Real(_) | Cell::Text(_) => TaskOwner::Withdrawn,
        }))
    }

    fn claims(&self, tracker: &str, id: Option<&str>) -> Result<TrackerClaims, StoreError> {
        let mut claims = TrackerClaims::new();
        for row in self.table(TableName::Tasks) {
            let (named, known) = (cell(row, "tracker"), cell(row, "tracker_id"));
            let cancelled = cell(row, "status") == TaskStatus::Cancelled.into_str().into();
            if let (Cell::Text(named), Cell::Text(known), [KeyPart::Number(task)]) = (named, known, &row.0[..])
                && named == tracker
                && id.is_none_or(|id| id == known)
                && !cancelled
            {
                claims.insert(known, TaskId(*task));
            }
        }
        Ok(claims)
    }

    fn question_ids(&self, run: RunId) -> Result<QuestionIds, StoreError> {
        let mut numbered = QuestionIds::new();
        for row in self.table(TableName::Questions) {
            let mut cells = cells(TableName::Questions, row, &["run_id", "loop_id", "number", "id"]);
            if cells.number()? == run.0 {
                numbered.insert((LoopId::new(cells.text()?), QuestionId(cells.number()?)), cells.number()?);
            }
        }
        Ok(numbered)
    }

    fn last_question(&self) -> Result<u64, StoreError> {
        let last = self.tables.get(&TableName::Questions).and_then(|rows| rows.keys().next_back());
        match last.and_then(|key| key.first()) {
            Some(KeyPart::Number(number)) => Ok(*number),
            Some(KeyPart::Text(_)) | None => Ok(0),
        }
    }

    fn put(&mut self, row: &TableRow) -> Result<(), StoreError> {
        backend::write_row(&mut self.tables, row);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        self.tables.clear();
        Ok(())
    }

    fn rows(&self, table: TableName) -> Result<TableRows, StoreError> {
        Ok(self.tables.get(&table).cloned().unwrap_or_default())
    }
}
