//! The log and the tables in SQLite, within one transaction.

use jiff::Timestamp;
use rusqlite::{Connection, Params, params, params_from_iter};
use signoff_core::ids::{LoopId, QuestionId, RunId, TaskId};
use signoff_core::view::TaskStatus;
use signoff_core::wire::{RecordedFact, to_json};

use super::query::{EVENT_COLUMNS, cell, cells, parse_recorded, select, to_integer};
use crate::projection::QuestionIds;
use crate::record::{Cell, KeyPart, RowWrite, TableName, TableRow};
use crate::transaction::{Counter, TableRows, TaskOwner, Transaction};
use crate::{StoreError, TrackerClaims};

/// The database within a transaction.
pub(super) struct SqliteTransaction<'a>(pub &'a Connection);

impl SqliteTransaction<'_> {
    /// Executes a statement. Returns the number of changed rows.
    pub fn execute(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        Ok(self.0.prepare_cached(sql)?.execute(params)?)
    }

    fn number(&self, sql: &str, params: impl Params) -> Result<Option<u64>, StoreError> {
        Ok(select(self.0, sql, params, |row| cells(row).number())?.pop())
    }

    /// The results of SQLite's own integrity checks.
    pub fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let mut problems = select(self.0, "PRAGMA integrity_check", [], |row| cells(row).text())?;
        problems.retain(|line| line != "ok");
        let sql = "SELECT DISTINCT \"table\", parent FROM pragma_foreign_key_check";
        problems.extend(select(self.0, sql, [], |row| {
            let mut cells = cells(row);
            Ok(format!("table {} references missing rows of {}", cells.text()?, cells.text()?))
        })?);
        Ok(problems)
    }
}

impl Transaction for SqliteTransaction<'_> {
    fn counter(&self, counter: Counter) -> Result<u64, StoreError> {
        Ok(self.number("SELECT value FROM counters WHERE name = ?", [counter.into_str()])?.unwrap_or(0))
    }

    fn set_counter(&mut self, counter: Counter, value: u64) -> Result<(), StoreError> {
        let sql = "INSERT INTO counters (name, value) VALUES (?, ?)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.execute(sql, params![counter.into_str(), to_integer(value)]).map(drop)
    }

    fn fence(&self, run: RunId) -> Result<Option<u64>, StoreError> {
        self.number("SELECT fence FROM leases WHERE run_id = ?", [to_integer(run.0)])
    }

    fn new_run(&mut self, run: RunId, at: Timestamp) -> Result<(), StoreError> {
        let sql = "INSERT INTO leases (run_id, fence, opened_at) VALUES (?, 1, ?)";
        self.execute(sql, params![to_integer(run.0), at.to_string()]).map(drop)
    }

    fn set_fence(&mut self, run: RunId, fence: u64) -> Result<(), StoreError> {
        let sql = "UPDATE leases SET fence = ? WHERE run_id = ?";
        self.execute(sql, [to_integer(fence), to_integer(run.0)]).map(drop)
    }

    fn last_seq(&self, run: RunId) -> Result<u64, StoreError> {
        Ok(self.number("SELECT COALESCE(MAX(seq), 0) FROM events WHERE run_id = ?", [to_integer(run.0)])?.unwrap_or(0))
    }

    fn log_page(&self, run: RunId, seq: u64, limit: usize) -> Result<Vec<RecordedFact>, StoreError> {
        let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?");
        select(self.0, &sql, [to_integer(run.0), to_integer(seq), to_integer(limit as u64)], parse_recorded)
    }

    fn for_each_fact(
        &self,
        visit: &mut dyn FnMut(Result<RecordedFact, StoreError>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = format!("SELECT {EVENT_COLUMNS} FROM events ORDER BY position");
        let mut statement = self.0.prepare_cached(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            visit(parse_recorded(row))?;
        }
        Ok(())
    }

    fn record(&mut self, one: &RecordedFact) -> Result<(), StoreError> {
        let form = to_json(one);
        let sql = format!("INSERT INTO events ({EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
        self.execute(
            &sql,
            params![
                to_integer(one.run.0),
                to_integer(one.seq),
                form["at"].as_str(),
                form["version"].as_i64(),
                form["kind"].as_str(),
                form["loop_id"].as_str(),
                form["task_id"].as_i64(),
                form["body"].to_string(),
            ],
        )
        .map(drop)
    }

    fn task_owner(&self, task: TaskId) -> Result<Option<TaskOwner>, StoreError> {
        let sql = "SELECT COALESCE(run_id, 0), status FROM tasks WHERE id = ?";
        let found = select(self.0, sql, [to_integer(task.0)], |row| {
            let mut cells = cells(row);
            Ok(match (cells.number()?, cells.text()?) {
                (0, status) if status == TaskStatus::Pending.into_str() => TaskOwner::Queued,
                (0, _) => TaskOwner::Withdrawn,
                (run, _) => TaskOwner::Run(RunId(run)),
            })
        })?;
        Ok(found.into_iter().next())
    }

    fn claims(&self, tracker: &str, id: Option<&str>) -> Result<TrackerClaims, StoreError> {
        let condition = if id.is_some() { "tracker_id = ?2" } else { "?2 IS NULL" };
        let sql =
            format!("SELECT tracker_id, id FROM tasks WHERE tracker = ?1 AND {condition} AND status <> ?3 ORDER BY id");
        let found = select(self.0, &sql, params![tracker, id, TaskStatus::Cancelled.into_str()], |row| {
            let mut cells = cells(row);
            Ok((cells.text()?, TaskId(cells.number()?)))
        })?;
        Ok(found.into_iter().collect())
    }

    fn question_ids(&self, run: RunId) -> Result<QuestionIds, StoreError> {
        let sql = "SELECT loop_id, number, id FROM questions WHERE run_id = ?";
        let found = select(self.0, sql, [to_integer(run.0)], |row| {
            let mut cells = cells(row);
            Ok(((LoopId::new(cells.text()?), QuestionId(cells.number()?)), cells.number()?))
        })?;
        Ok(found.into_iter().collect())
    }

    fn last_question(&self) -> Result<u64, StoreError> {
        Ok(self.number("SELECT COALESCE(MAX(id), 0) FROM questions", [])?.unwrap_or(0))
    }

    fn put(&mut self, row: &TableRow) -> Result<(), StoreError> {
        let key: Vec<_> = row.key.iter().cloned().map(Cell::from).collect();
        let values = row.columns.iter().map(|(_, cell)| cell).chain(&key);
        self.execute(&statement(row), params_from_iter(values)).map(drop)
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        // Delete referenced rows last.
        TableName::ALL
            .iter()
            .rev()
            .try_for_each(|table| self.execute(&format!("DELETE FROM {}", table.into_str()), []).map(drop))
    }

    fn rows(&self, table: TableName) -> Result<TableRows, StoreError> {
        let sql = format!("SELECT * FROM {}", table.into_str());
        let found = select(self.0, &sql, [], |row| {
            let mut key = vec![KeyPart::Number(0); table.key().len()];
            let mut columns = std::collections::BTreeMap::new();
            for (index, name) in row.as_ref().column_names().enumerate() {
                let value = cell(row.get_ref(index)?)?;
                match table.key().iter().position(|part| *part == name) {
                    Some(place) => key[place] = key_part(value),
                    None => drop(columns.insert(name.to_owned(), value)),
                }
            }
            Ok((key, columns))
        })?;
        Ok(found.into_iter().collect())
    }
}

fn key_part(cell: Cell) -> KeyPart {
    match cell {
        Cell::Integer(number) => KeyPart::Number(number.unsigned_abs()),
        Cell::Text(text) => KeyPart::Text(text),
        Cell::Null | Cell::Real(_) => KeyPart::Text(String::new()),
    }
}

/// The SQL that writes a row: its columns first, its key last.
fn statement(row: &TableRow) -> String {
    let (table, key) = (row.table.into_str(), row.table.key());
    let columns: Vec<_> = row.columns.iter().map(|(name, _)| *name).collect();
    let all: Vec<_> = columns.iter().chain(key).copied().collect();
    let insert = || format!("INSERT INTO {table} ({}) VALUES ({})", all.join(", "), vec!["?"; all.len()].join(", "));
    let each = |form: &dyn Fn(&str) -> String, names: &[&str], between: &str| {
        names.iter().map(|name| form(name)).collect::<Vec<_>>().join(between)
    };
    match row.mode {
        RowWrite::Insert => format!("{} ON CONFLICT DO NOTHING", insert()),
        RowWrite::Put => {
            let set = each(&|name| format!("{name} = excluded.{name}"), &columns, ", ");
            format!("{} ON CONFLICT ({}) DO UPDATE SET {set}", insert(), key.join(", "))
        }
        RowWrite::Update => {
            let set = each(&|name| format!("{name} = ?"), &columns, ", ");
            format!("UPDATE {table} SET {set} WHERE {}", each(&|name| format!("{name} = ?"), key, " AND "))
        }
    }
}
