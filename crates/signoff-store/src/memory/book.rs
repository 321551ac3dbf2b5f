//! The log and the tables in memory.

use std::collections::BTreeMap;

use jiff::Timestamp;
use signoff_core::ids::{LoopId, QuestionId, RunId, TaskId};
use signoff_core::view::{QuestionRow, Status, TaskRow};
use signoff_core::wire::Recorded;

use crate::book::{Book, Counter, Holder, Rows};
use crate::record::{
    Cell, Cells, FINDING_COLUMNS, Key, Part, QUESTION_COLUMNS, RUN_COLUMNS, Row, TASK_COLUMNS, Table,
};
use crate::teller::Numbered;
use crate::{Claims, FindingPlace, QuestionPlace, RunRow, StoreError, journal};

#[derive(Default)]
pub(super) struct Shelf {
    pub events: Vec<Recorded>,
    counters: BTreeMap<Counter, u64>,
    fences: BTreeMap<RunId, u64>,
    tables: BTreeMap<Table, Rows>,
}

/// A row with its key.
type Entry<'a> = (&'a Key, &'a BTreeMap<String, Cell>);

impl Shelf {
    fn table(&self, table: Table) -> impl Iterator<Item = Entry<'_>> {
        self.tables.get(&table).into_iter().flatten()
    }

    pub fn runs(&self) -> Result<Vec<RunRow>, StoreError> {
        self.table(Table::Runs).map(|row| cells(Table::Runs, row, &RUN_COLUMNS).run()).collect()
    }

    pub fn open_runs(&self) -> Result<Vec<RunRow>, StoreError> {
        let open = self.table(Table::Runs).filter(|row| cell(*row, "open") == Cell::Integer(1));
        open.map(|row| cells(Table::Runs, row, &RUN_COLUMNS).run()).collect()
    }

    pub fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        let row = self.table(Table::Runs).find(|(key, _)| **key == [Part::Number(run.0)]);
        row.map(|row| cells(Table::Runs, row, &RUN_COLUMNS).run()).transpose()
    }

    pub fn last_run(&self) -> Result<Option<RunRow>, StoreError> {
        let row = self.table(Table::Runs).last();
        row.map(|row| cells(Table::Runs, row, &RUN_COLUMNS).run()).transpose()
    }

    pub fn tasks(&self) -> Result<Vec<TaskRow>, StoreError> {
        self.table(Table::Tasks).map(|row| cells(Table::Tasks, row, &TASK_COLUMNS).task()).collect()
    }

    pub fn task(&self, task: TaskId) -> Result<Option<TaskRow>, StoreError> {
        self.task_entry(task).map(|row| cells(Table::Tasks, row, &TASK_COLUMNS).task()).transpose()
    }

    fn task_entry(&self, task: TaskId) -> Option<Entry<'_>> {
        self.tables.get(&Table::Tasks)?.get_key_value(&vec![Part::Number(task.0)])
    }

    pub fn loop_of(&self, task: TaskId) -> Option<(RunId, LoopId)> {
        let row = self.task_entry(task)?;
        let (Cell::Integer(run), Cell::Text(id)) = (cell(row, "run_id"), cell(row, "loop_id")) else {
            return None;
        };
        Some((RunId(run.unsigned_abs()), LoopId::new(id)))
    }

    pub fn questions(&self) -> Result<Vec<QuestionRow>, StoreError> {
        let open = self.table(Table::Questions).filter(|row| cell(*row, "closed_at") == Cell::Null);
        open.map(|row| cells(Table::Questions, row, &QUESTION_COLUMNS).question()).collect()
    }

    pub fn question(&self, number: u64) -> Result<Option<QuestionPlace>, StoreError> {
        let row = self.table(Table::Questions).find(|(key, _)| **key == [Part::Number(number)]);
        row.map(|row| {
            let mut cells = cells(Table::Questions, row, &["run_id", "loop_id", "number"]);
            Ok(QuestionPlace {
                run: RunId(cells.number()?),
                loop_id: LoopId::new(cells.text()?),
                question: QuestionId(cells.number()?),
                open: cell(row, "closed_at") == Cell::Null,
            })
        })
        .transpose()
    }

    pub fn findings(&self, prefix: &str) -> Result<Vec<FindingPlace>, StoreError> {
        let starts = |part: Option<&Part>| matches!(part, Some(Part::Text(id)) if id.starts_with(prefix));
        let found = self.table(Table::Findings).filter(|(key, _)| starts(key.first()));
        found.map(|row| cells(Table::Findings, row, &FINDING_COLUMNS).finding()).collect()
    }
}

fn cell(row: Entry<'_>, column: &str) -> Cell {
    row.1.get(column).cloned().unwrap_or(Cell::Null)
}

/// The cells of a row under these columns, those of its key among them.
fn cells<'a>(
    table: Table,
    row: Entry<'a>,
    columns: &'a [&str],
) -> Cells<impl FnMut() -> Result<Cell, StoreError> + 'a> {
    let mut columns = columns.iter();
    Cells::new(move || {
        let column = columns.next().copied().unwrap_or_default();
        let part = table.key().iter().position(|name| *name == column).and_then(|place| row.0.get(place));
        Ok(part.cloned().map_or_else(|| cell(row, column), Cell::from))
    })
}

impl Book for Shelf {
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

    fn log_after(&self, run: RunId, seq: u64) -> Result<Vec<Recorded>, StoreError> {
        let later = |recorded: &&Recorded| recorded.run == run && recorded.seq > seq;
        Ok(self.events.iter().filter(later).cloned().collect())
    }

    fn all(
        &self,
        take: &mut dyn FnMut(Result<Recorded, StoreError>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.events.iter().cloned().try_for_each(|recorded| take(Ok(recorded)))
    }

    fn record(&mut self, recorded: &Recorded) -> Result<(), StoreError> {
        self.events.push(recorded.clone());
        Ok(())
    }

    fn holder(&self, task: TaskId) -> Result<Option<Holder>, StoreError> {
        let Some(row) = self.task_entry(task) else { return Ok(None) };
        let waits = cell(row, "status") == Status::Pending.word().into();
        Ok(Some(match cell(row, "run_id") {
            Cell::Integer(run) => Holder::Run(RunId(run.unsigned_abs())),
            Cell::Null | Cell::Real(_) | Cell::Text(_) if waits => Holder::Nobody,
            Cell::Null | Cell::Real(_) | Cell::Text(_) => Holder::Withdrawn,
        }))
    }

    fn claims(&self, tracker: &str, id: Option<&str>) -> Result<Claims, StoreError> {
        let mut claims = Claims::new();
        for row in self.table(Table::Tasks) {
            let (named, known) = (cell(row, "tracker"), cell(row, "tracker_id"));
            let called_off = cell(row, "status") == Status::Cancelled.word().into();
            if let (Cell::Text(named), Cell::Text(known), [Part::Number(task)]) = (named, known, &row.0[..])
                && named == tracker
                && id.is_none_or(|id| id == known)
                && !called_off
            {
                claims.insert(known, TaskId(*task));
            }
        }
        Ok(claims)
    }

    fn numbered(&self, run: RunId) -> Result<Numbered, StoreError> {
        let mut numbered = Numbered::new();
        for row in self.table(Table::Questions) {
            let mut cells = cells(Table::Questions, row, &["run_id", "loop_id", "number", "id"]);
            if cells.number()? == run.0 {
                numbered.insert((LoopId::new(cells.text()?), QuestionId(cells.number()?)), cells.number()?);
            }
        }
        Ok(numbered)
    }

    fn last_question(&self) -> Result<u64, StoreError> {
        let last = self.tables.get(&Table::Questions).and_then(|rows| rows.keys().next_back());
        match last.and_then(|key| key.first()) {
            Some(Part::Number(number)) => Ok(*number),
            Some(Part::Text(_)) | None => Ok(0),
        }
    }

    fn put(&mut self, row: &Row) -> Result<(), StoreError> {
        journal::write(&mut self.tables, row);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        self.tables.clear();
        Ok(())
    }

    fn rows(&self, table: Table) -> Result<Rows, StoreError> {
        Ok(self.tables.get(&table).cloned().unwrap_or_default())
    }
}
