//! Queries, and the values of their rows.

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Params, Row, ToSql};
use serde_json::json;
use signoff_core::ids::RunId;
use signoff_core::wire::{RecordedFact, from_json};

use crate::StoreError;
use crate::record::{Cell, CellReader};

pub const EVENT_COLUMNS: &str = "run_id, seq, at, version, kind, loop_id, task_id, body";

/// Runs a query and reads all rows.
pub fn select<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// A reader over the cells of a row.
pub fn cells<'a>(row: &'a Row<'a>) -> CellReader<impl FnMut() -> Result<Cell, StoreError> + 'a> {
    let mut columns = 0..;
    CellReader::new(move || match columns.next() {
        Some(column) => cell(row.get_ref(column)?),
        None => Ok(Cell::Null),
    })
}

pub fn cell(value: ValueRef<'_>) -> Result<Cell, StoreError> {
    let damaged = |what: &str| StoreError::Damaged(format!("a text column contains {what}"));
    match value {
        ValueRef::Null => Ok(Cell::Null),
        ValueRef::Integer(number) => Ok(Cell::Integer(number)),
        ValueRef::Real(number) => Ok(Cell::Real(number)),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cell::Text(text.to_owned())),
            Err(_) => Err(damaged("bytes that are not UTF-8")),
        },
        ValueRef::Blob(_) => Err(damaged("bytes")),
    }
}

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
pub fn parse_recorded(row: &Row<'_>) -> Result<RecordedFact, StoreError> {
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

/// Converts to SQLite's signed integer.
pub fn to_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
