//! The log and the tables in SQLite, within one transaction.

use jiff::Timestamp;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql, params, params_from_iter};
use serde_json::json;
use signoff_core::command::LoopCommand;
use signoff_core::ids::{LoopId, QuestionId, RunId, TaskId};
use signoff_core::view::TaskStatus;
use signoff_core::wire::{RecordedFact, from_json, to_json};

use super::query::{cell, cells, select, to_integer};
use super::{error_mapping, query};
use crate::projection::QuestionIds;
use crate::record::{Cell, KeyPart, RowWrite, TableName, TableRow};
use crate::transaction::{Counter, Holder, TableRows, Transaction};
use crate::{Claims, StoreError, operations};

pub(super) const EVENT_COLUMNS: &str = "run_id, seq, at, version, kind, loop_id, task_id, body";

/// The database within a transaction.
pub(super) struct SqliteTransaction<'a>(pub &'a Connection);

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Integer(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Real(number) => ToSqlOutput::Owned(Value::Real(*number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

/// Parses a row of the log.
pub(super) fn parse_recorded(row: &rusqlite::Row<'_>) -> Result<RecordedFact, StoreError> {
    let mut place = cells(row);
    let (run, seq) = (place.number()?, place.number()?);
    let unreadable =
        |message: String| StoreError::Unreadable { run: RunId(run), seq, message: message.replace('\n', " ") };
    let text = |index: usize, name: &str| {
        row.get::<_, Option<String>>(index).map_err(|error| unreadable(format!("`{name}`: {error}")))
    };
    let body = text(7, "body")?.unwrap_or_default();
    let body: serde_json::Value =
        serde_json::from_str(&body).map_err(|error| unreadable(format!("`body`: {error}")))?;
    let version: i64 = row.get(3).map_err(|error| unreadable(error.to_string()))?;
    let task: Option<i64> = row.get(6).map_err(|error| unreadable(error.to_string()))?;
    let mut form = json!({
        "version": version,
        "run_id": run,
        "seq": seq,
        "at": text(2, "at")?,
        "kind": text(4, "kind")?,
        "loop_id": text(5, "loop_id")?,
        "task_id": task,
    });
    // Move the body instead of copying it: logs are long.
    form["body"] = body;
    from_json(&form).map_err(|error| unreadable(error.to_string()))
}

impl SqliteTransaction<'_> {
    fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize, StoreError> {
        let mut statement = self.0.prepare_cached(sql).map_err(error_mapping::from_sqlite)?;
        statement.execute(params).map_err(error_mapping::from_sqlite)
    }

    fn query_number(&self, sql: &str, params: impl rusqlite::Params) -> Result<u64, StoreError> {
        let found = select(self.0, sql, params, |row| cells(row).number())?;
        Ok(found.into_iter().next().unwrap_or(0))
    }

    pub fn post_request(&mut self, run: RunId, loop_id: &LoopId, command: &LoopCommand) -> Result<u64, StoreError> {
        if self.fence(run)?.is_none() {
            return Err(StoreError::NoRun(run));
        }
        let command = serde_json::to_string(command).map_err(|error| StoreError::Other(error.to_string()))?;
        let sql = "INSERT INTO requests (run_id, loop_id, command) VALUES (?, ?, ?)";
        self.execute(sql, params![to_integer(run.0), loop_id.as_str(), command])?;
        Ok(self.0.last_insert_rowid().unsigned_abs())
    }

    pub fn answer_request(&mut self, request: u64, refusal: Option<&str>) -> Result<(), StoreError> {
        let sql = "UPDATE requests SET settled = 1, refusal = ? WHERE id = ?";
        match self.execute(sql, params![refusal, to_integer(request)])? {
            0 => Err(operations::no_request(request)),
            _ => Ok(()),
        }
    }
}

impl Transaction for SqliteTransaction<'_> {
    fn counter(&self, counter: Counter) -> Result<u64, StoreError> {
        self.query_number("SELECT value FROM counters WHERE name = ?", [counter.name()])
    }

    fn set_counter(&mut self, counter: Counter, value: u64) -> Result<(), StoreError> {
        let sql = "INSERT INTO counters (name, value) VALUES (?, ?)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.execute(sql, params![counter.name(), to_integer(value)]).map(drop)
    }

    fn fence(&self, run: RunId) -> Result<Option<u64>, StoreError> {
        query::fence(self.0, run)
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
        self.query_number("SELECT COALESCE(MAX(seq), 0) FROM events WHERE run_id = ?", [to_integer(run.0)])
    }

    fn log_after(&self, run: RunId, seq: u64) -> Result<Vec<RecordedFact>, StoreError> {
        let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE run_id = ? AND seq > ? ORDER BY seq");
        select(self.0, &sql, [to_integer(run.0), to_integer(seq)], parse_recorded)
    }

    fn for_each_fact(
        &self,
        visit: &mut dyn FnMut(Result<RecordedFact, StoreError>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = format!("SELECT {EVENT_COLUMNS} FROM events ORDER BY position");
        let mut statement = self.0.prepare_cached(&sql).map_err(error_mapping::from_sqlite)?;
        let mut rows = statement.query([]).map_err(error_mapping::from_sqlite)?;
        while let Some(row) = rows.next().map_err(error_mapping::from_sqlite)? {
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

    fn holder(&self, task: TaskId) -> Result<Option<Holder>, StoreError> {
        let sql = "SELECT COALESCE(run_id, 0), status FROM tasks WHERE id = ?";
        let found = select(self.0, sql, [to_integer(task.0)], |row| {
            let mut cells = cells(row);
            Ok(match (cells.number()?, cells.text()?) {
                (0, status) if status == TaskStatus::Pending.as_str() => Holder::Queued,
                (0, _) => Holder::Withdrawn,
                (run, _) => Holder::Run(RunId(run)),
            })
        })?;
        Ok(found.into_iter().next())
    }

    fn claims(&self, tracker: &str, id: Option<&str>) -> Result<Claims, StoreError> {
        let which = if id.is_some() { "tracker_id = ?2" } else { "?2 IS NULL" };
        let sql =
            format!("SELECT tracker_id, id FROM tasks WHERE tracker = ?1 AND {which} AND status <> ?3 ORDER BY id");
        let found = select(self.0, &sql, params![tracker, id, TaskStatus::Cancelled.as_str()], |row| {
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
        self.query_number("SELECT COALESCE(MAX(id), 0) FROM questions", [])
    }

    fn put(&mut self, row: &TableRow) -> Result<(), StoreError> {
        let columns = row.columns();
        let sql = statement(row, &columns.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        let values = columns.into_iter().map(|(_, cell)| cell);
        let values = values.chain(row.key().into_iter().map(Cell::from));
        self.execute(&sql, params_from_iter(values)).map(drop)
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        // Delete referenced rows last.
        TableName::ALL
            .iter()
            .rev()
            .try_for_each(|table| self.execute(&format!("DELETE FROM {}", table.name()), []).map(drop))
    }

    fn rows(&self, table: TableName) -> Result<TableRows, StoreError> {
        let sql = format!("SELECT * FROM {}", table.name());
        let found = select(self.0, &sql, [], |row| {
            let mut key = vec![KeyPart::Number(0); table.key().len()];
            let mut columns = std::collections::BTreeMap::new();
            for (index, name) in row.as_ref().column_names().enumerate() {
                let value = cell(row.get_ref(index).map_err(error_mapping::from_sqlite)?)?;
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
fn statement(row: &TableRow, columns: &[&str]) -> String {
    let (table, key) = (row.table().name(), row.table().key());
    let all: Vec<_> = columns.iter().chain(key).copied().collect();
    let insert = || format!("INSERT INTO {table} ({}) VALUES ({})", all.join(", "), vec!["?"; all.len()].join(", "));
    let each = |form: &dyn Fn(&str) -> String, names: &[&str], between: &str| {
        names.iter().map(|name| form(name)).collect::<Vec<_>>().join(between)
    };
    match row.write_mode() {
        RowWrite::Insert => format!("{} ON CONFLICT DO NOTHING", insert()),
        RowWrite::Put => {
            let set = each(&|name| format!("{name} = excluded.{name}"), columns, ", ");
            format!("{} ON CONFLICT ({}) DO UPDATE SET {set}", insert(), key.join(", "))
        }
        RowWrite::Update => {
            let set = each(&|name| format!("{name} = ?"), columns, ", ");
            format!("UPDATE {table} SET {set} WHERE {}", each(&|name| format!("{name} = ?"), key, " AND "))
        }
    }
}
