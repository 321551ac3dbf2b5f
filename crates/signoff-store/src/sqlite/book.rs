//! The log and the tables within one transaction.

use jiff::Timestamp;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql, params, params_from_iter};
use serde_json::json;
use signoff_core::command::Command;
use signoff_core::ids::{LoopId, QuestionId, RunId, TaskId};
use signoff_core::view::Status;
use signoff_core::wire::{Recorded, from_json, to_json};

use super::query::{cell, cells, number, select};
use super::{fault, query};
use crate::book::{Book, Counter, Holder, Rows};
use crate::record::{Cell, Part, Row, Table, Write};
use crate::teller::Numbered;
use crate::{Claims, StoreError, journal};

pub(super) const EVENT_COLUMNS: &str = "run_id, seq, at, version, kind, loop_id, task_id, body";

/// The database, open for one transaction.
pub(super) struct Pages<'a>(pub &'a Connection);

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

/// A fact, from the columns of the log.
pub(super) fn recorded(row: &rusqlite::Row<'_>) -> Result<Recorded, StoreError> {
    let mut place = cells(row);
    let (run, seq) = (place.number()?, place.number()?);
    let unreadable = |message: String| StoreError::Unreadable {
        run: RunId(run),
        seq,
        message: message.replace('\n', " "),
    };
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
    // Moved, not copied: logs are long.
    form["body"] = body;
    from_json(&form).map_err(|error| unreadable(error.to_string()))
}

impl Pages<'_> {
    fn run(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize, StoreError> {
        let mut statement = self.0.prepare_cached(sql).map_err(fault::of)?;
        statement.execute(params).map_err(fault::of)
    }

    fn number(&self, sql: &str, params: impl rusqlite::Params) -> Result<u64, StoreError> {
        let found = select(self.0, sql, params, |row| cells(row).number())?;
        Ok(found.into_iter().next().unwrap_or(0))
    }

    pub fn post(&mut self, run: RunId, loop_id: &LoopId, command: &Command) -> Result<u64, StoreError> {
        if self.fence(run)?.is_none() {
            return Err(StoreError::NoRun(run));
        }
        let command = serde_json::to_string(command).map_err(|error| StoreError::Other(error.to_string()))?;
        let sql = "INSERT INTO requests (run_id, loop_id, command) VALUES (?, ?, ?)";
        self.run(sql, params![number(run.0), loop_id.as_str(), command])?;
        Ok(self.0.last_insert_rowid().unsigned_abs())
    }

    pub fn settle(&mut self, request: u64, refusal: Option<&str>) -> Result<(), StoreError> {
        let sql = "UPDATE requests SET settled = 1, refusal = ? WHERE id = ?";
        match self.run(sql, params![refusal, number(request)])? {
            0 => Err(journal::no_request(request)),
            _ => Ok(()),
        }
    }
}

impl Book for Pages<'_> {
    fn counter(&self, counter: Counter) -> Result<u64, StoreError> {
        self.number("SELECT value FROM counters WHERE name = ?", [counter.name()])
    }

    fn set_counter(&mut self, counter: Counter, value: u64) -> Result<(), StoreError> {
        let sql = "INSERT INTO counters (name, value) VALUES (?, ?)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.run(sql, params![counter.name(), number(value)]).map(drop)
    }

    fn fence(&self, run: RunId) -> Result<Option<u64>, StoreError> {
        query::fence(self.0, run)
    }

    fn new_run(&mut self, run: RunId, at: Timestamp) -> Result<(), StoreError> {
        let sql = "INSERT INTO leases (run_id, fence, opened_at) VALUES (?, 1, ?)";
        self.run(sql, params![number(run.0), at.to_string()]).map(drop)
    }

    fn set_fence(&mut self, run: RunId, fence: u64) -> Result<(), StoreError> {
        let sql = "UPDATE leases SET fence = ? WHERE run_id = ?";
        self.run(sql, [number(fence), number(run.0)]).map(drop)
    }

    fn last_seq(&self, run: RunId) -> Result<u64, StoreError> {
        self.number("SELECT COALESCE(MAX(seq), 0) FROM events WHERE run_id = ?", [number(run.0)])
    }

    fn log_after(&self, run: RunId, seq: u64) -> Result<Vec<Recorded>, StoreError> {
        let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE run_id = ? AND seq > ? ORDER BY seq");
        select(self.0, &sql, [number(run.0), number(seq)], recorded)
    }

    fn all(
        &self,
        take: &mut dyn FnMut(Result<Recorded, StoreError>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = format!("SELECT {EVENT_COLUMNS} FROM events ORDER BY position");
        let mut statement = self.0.prepare_cached(&sql).map_err(fault::of)?;
        let mut rows = statement.query([]).map_err(fault::of)?;
        while let Some(row) = rows.next().map_err(fault::of)? {
            take(recorded(row))?;
        }
        Ok(())
    }

    fn record(&mut self, one: &Recorded) -> Result<(), StoreError> {
        let form = to_json(one);
        let sql = format!("INSERT INTO events ({EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
        self.run(
            &sql,
            params![
                number(one.run.0),
                number(one.seq),
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
        let found = select(self.0, sql, [number(task.0)], |row| {
            let mut cells = cells(row);
            Ok(match (cells.number()?, cells.text()?) {
                (0, status) if status == Status::Pending.word() => Holder::Nobody,
                (0, _) => Holder::Withdrawn,
                (run, _) => Holder::Run(RunId(run)),
            })
        })?;
        Ok(found.into_iter().next())
    }

    fn claims(&self, tracker: &str, id: Option<&str>) -> Result<Claims, StoreError> {
        let which = if id.is_some() { "tracker_id = ?2" } else { "?2 IS NULL" };
        let sql = format!(
            "SELECT tracker_id, id FROM tasks WHERE tracker = ?1 AND {which} AND status <> ?3 ORDER BY id"
        );
        let found = select(self.0, &sql, params![tracker, id, Status::Cancelled.word()], |row| {
            let mut cells = cells(row);
            Ok((cells.text()?, TaskId(cells.number()?)))
        })?;
        Ok(found.into_iter().collect())
    }

    fn numbered(&self, run: RunId) -> Result<Numbered, StoreError> {
        let sql = "SELECT loop_id, number, id FROM questions WHERE run_id = ?";
        let found = select(self.0, sql, [number(run.0)], |row| {
            let mut cells = cells(row);
            Ok(((LoopId::new(cells.text()?), QuestionId(cells.number()?)), cells.number()?))
        })?;
        Ok(found.into_iter().collect())
    }

    fn last_question(&self) -> Result<u64, StoreError> {
        self.number("SELECT COALESCE(MAX(id), 0) FROM questions", [])
    }

    fn put(&mut self, row: &Row) -> Result<(), StoreError> {
        let columns = row.columns();
        let sql = statement(row, &columns.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        let values = columns.into_iter().map(|(_, cell)| cell);
        let values = values.chain(row.key().into_iter().map(Cell::from));
        self.run(&sql, params_from_iter(values)).map(drop)
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        // Rows that are named by others go last.
        Table::ALL
            .into_iter()
            .rev()
            .try_for_each(|table| self.run(&format!("DELETE FROM {}", table.name()), []).map(drop))
    }

    fn rows(&self, table: Table) -> Result<Rows, StoreError> {
        let sql = format!("SELECT * FROM {}", table.name());
        let found = select(self.0, &sql, [], |row| {
            let mut key = vec![Part::Number(0); table.key().len()];
            let mut columns = std::collections::BTreeMap::new();
            for (index, name) in row.as_ref().column_names().enumerate() {
                let value = cell(row.get_ref(index).map_err(fault::of)?)?;
                match table.key().iter().position(|part| *part == name) {
                    Some(place) => key[place] = part(value),
                    None => drop(columns.insert(name.to_owned(), value)),
                }
            }
            Ok((key, columns))
        })?;
        Ok(found.into_iter().collect())
    }
}

fn part(cell: Cell) -> Part {
    match cell {
        Cell::Integer(number) => Part::Number(number.unsigned_abs()),
        Cell::Text(text) => Part::Text(text),
        Cell::Null | Cell::Real(_) => Part::Text(String::new()),
    }
}

/// The SQL that writes a row: its columns first, its key last.
fn statement(row: &Row, columns: &[&str]) -> String {
    let (table, key) = (row.table().name(), row.table().key());
    let all: Vec<_> = columns.iter().chain(key).copied().collect();
    let insert =
        || format!("INSERT INTO {table} ({}) VALUES ({})", all.join(", "), vec!["?"; all.len()].join(", "));
    let each = |form: &dyn Fn(&str) -> String, names: &[&str], between: &str| {
        names.iter().map(|name| form(name)).collect::<Vec<_>>().join(between)
    };
    match row.write() {
        Write::Insert => format!("{} ON CONFLICT DO NOTHING", insert()),
        Write::Put => {
            let set = each(&|name| format!("{name} = excluded.{name}"), columns, ", ");
            format!("{} ON CONFLICT ({}) DO UPDATE SET {set}", insert(), key.join(", "))
        }
        Write::Update => {
            let set = each(&|name| format!("{name} = ?"), columns, ", ");
            format!("UPDATE {table} SET {set} WHERE {}", each(&|name| format!("{name} = ?"), key, " AND "))
        }
    }
}
