//! What is asked of the tables.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use signoff_core::command::Command;
use signoff_core::ids::{LoopId, QuestionId, RunId, TaskId};
use signoff_core::task::TaskSpec;
use signoff_core::view::{QuestionRow, TaskRow};
use signoff_core::wire::{Fact, Recorded, TaskFact};

use super::book::{EVENT_COLUMNS, recorded};
use super::fault;
use crate::record::{Cell, Cells, FINDING_COLUMNS, QUESTION_COLUMNS, RUN_COLUMNS, TASK_COLUMNS};
use crate::{FindingPlace, QuestionPlace, Request, RunRow, StoreError, journal};

/// All rows of a query, read to the end.
pub(super) fn select<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql).map_err(fault::of)?;
    let mut rows = statement.query(params).map_err(fault::of)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(fault::of)? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// The cells of a row, from the first on.
pub(super) fn cells<'a>(row: &'a Row<'a>) -> Cells<impl FnMut() -> Result<Cell, StoreError> + 'a> {
    let mut columns = 0..;
    Cells::new(move || match columns.next() {
        Some(column) => cell(row.get_ref(column).map_err(fault::of)?),
        None => Ok(Cell::Null),
    })
}

pub(super) fn cell(value: ValueRef<'_>) -> Result<Cell, StoreError> {
    let damaged = |what: &str| StoreError::Damaged(format!("a table holds {what} where text belongs"));
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

pub(super) fn fence(connection: &Connection, run: RunId) -> Result<Option<u64>, StoreError> {
    let sql = "SELECT fence FROM leases WHERE run_id = ?";
    one(connection, sql, [number(run.0)], |row| cells(row).number())
}

/// The first row.
fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    Ok(select(connection, sql, params, read)?.into_iter().next())
}

/// A number as SQLite keeps it.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn open_runs(connection: &Connection) -> Result<Vec<RunRow>, StoreError> {
    let sql = format!("SELECT {} FROM runs WHERE open ORDER BY id", RUN_COLUMNS.join(", "));
    select(connection, &sql, [], |row| cells(row).run())
}

pub(super) fn runs(connection: &Connection) -> Result<Vec<RunRow>, StoreError> {
    let sql = format!("SELECT {} FROM runs ORDER BY id", RUN_COLUMNS.join(", "));
    select(connection, &sql, [], |row| cells(row).run())
}

pub(super) fn run(connection: &Connection, run: RunId) -> Result<Option<RunRow>, StoreError> {
    let sql = format!("SELECT {} FROM runs WHERE id = ?", RUN_COLUMNS.join(", "));
    one(connection, &sql, [number(run.0)], |row| cells(row).run())
}

pub(super) fn failed_runs(connection: &Connection) -> Result<Vec<RunRow>, StoreError> {
    let columns = RUN_COLUMNS.join(", ");
    let sql =
        format!("SELECT {columns} FROM runs WHERE status = 'failed' AND group_count IS NOT NULL ORDER BY id");
    select(connection, &sql, [], |row| cells(row).run())
}

pub(super) fn last_run(connection: &Connection) -> Result<Option<RunRow>, StoreError> {
    let sql = format!("SELECT {} FROM runs ORDER BY id DESC LIMIT 1", RUN_COLUMNS.join(", "));
    one(connection, &sql, [], |row| cells(row).run())
}

pub(super) fn tasks(connection: &Connection) -> Result<Vec<TaskRow>, StoreError> {
    let sql = format!("SELECT {} FROM tasks ORDER BY id", TASK_COLUMNS.join(", "));
    select(connection, &sql, [], |row| cells(row).task())
}

pub(super) fn task(connection: &Connection, task: TaskId) -> Result<Option<TaskRow>, StoreError> {
    let sql = format!("SELECT {} FROM tasks WHERE id = ?", TASK_COLUMNS.join(", "));
    one(connection, &sql, [number(task.0)], |row| cells(row).task())
}

/// The task that a row of the log adds, and what was asked for.
fn added(row: &Row<'_>) -> Result<Option<(TaskId, TaskSpec)>, StoreError> {
    Ok(match recorded(row)?.fact {
        Fact::Task(task, TaskFact::Added { spec, .. }) => Some((task, *spec)),
        Fact::Task(_, TaskFact::Withdrawn { .. }) | Fact::Run(_) | Fact::Loop(..) => None,
    })
}

pub(super) fn task_spec(connection: &Connection, task: TaskId) -> Result<Option<TaskSpec>, StoreError> {
    let sql = format!(
        "SELECT {EVENT_COLUMNS} FROM events WHERE task_id = ? AND kind = 'task.added' ORDER BY position LIMIT 1"
    );
    let found = one(connection, &sql, [number(task.0)], added)?;
    Ok(found.flatten().map(|(_, spec)| spec))
}

pub(super) fn queued(
    connection: &Connection,
    after: TaskId,
    most: usize,
) -> Result<Vec<(TaskId, Vec<TaskId>)>, StoreError> {
    let sql = "SELECT id, depends_on FROM tasks
               WHERE run_id IS NULL AND status = 'pending' AND id > ? ORDER BY id LIMIT ?";
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    select(connection, sql, [number(after.0), most], |row| {
        let mut cells = cells(row);
        Ok((TaskId(cells.number()?), cells.list()?.into_iter().map(TaskId).collect()))
    })
}

pub(super) fn log_part(
    connection: &Connection,
    run: RunId,
    seq: u64,
    most: usize,
) -> Result<Vec<Recorded>, StoreError> {
    let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?");
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    select(connection, &sql, [number(run.0), number(seq), most], recorded)
}

pub(super) fn log_of_loop(
    connection: &Connection,
    run: RunId,
    loop_id: &LoopId,
) -> Result<Vec<Recorded>, StoreError> {
    // Two looks at an index, merged: with OR in its place the whole run would be gone through.
    let of = |which: &str| format!("SELECT {EVENT_COLUMNS} FROM events WHERE run_id = ?1 AND {which}");
    let sql = format!("{} UNION ALL {} ORDER BY seq", of("loop_id IS NULL"), of("loop_id = ?2"));
    select(connection, &sql, params![number(run.0), loop_id.as_str()], recorded)
}

pub(super) fn loop_of(connection: &Connection, task: TaskId) -> Result<Option<(RunId, LoopId)>, StoreError> {
    let sql = "SELECT run_id, loop_id FROM tasks WHERE id = ? AND run_id NOTNULL AND loop_id NOTNULL";
    one(connection, sql, [number(task.0)], |row| {
        let mut cells = cells(row);
        Ok((RunId(cells.number()?), LoopId::new(cells.text()?)))
    })
}

pub(super) fn questions(connection: &Connection) -> Result<Vec<QuestionRow>, StoreError> {
    let columns = QUESTION_COLUMNS.join(", ");
    let sql = format!("SELECT {columns} FROM questions WHERE closed_at IS NULL ORDER BY id");
    select(connection, &sql, [], |row| cells(row).question())
}

pub(super) fn question(connection: &Connection, id: u64) -> Result<Option<QuestionPlace>, StoreError> {
    let sql = "SELECT run_id, loop_id, number, closed_at IS NULL FROM questions WHERE id = ?";
    one(connection, sql, [number(id)], |row| {
        let mut cells = cells(row);
        Ok(QuestionPlace {
            run: RunId(cells.number()?),
            loop_id: LoopId::new(cells.text()?),
            question: QuestionId(cells.number()?),
            open: cells.number()? != 0,
        })
    })
}

pub(super) fn findings(connection: &Connection, prefix: &str) -> Result<Vec<FindingPlace>, StoreError> {
    let columns = FINDING_COLUMNS.join(", ");
    let sql = format!(
        "SELECT {columns} FROM findings WHERE id >= ?1 AND substr(id, 1, length(?1)) = ?1
         ORDER BY id, run_id, loop_id"
    );
    select(connection, &sql, [prefix], |row| cells(row).finding())
}

pub(super) fn requests(connection: &Connection, run: RunId) -> Result<Vec<Request>, StoreError> {
    let sql = "SELECT id, loop_id, command FROM requests WHERE run_id = ? AND settled = 0 ORDER BY id";
    select(connection, sql, [number(run.0)], |row| {
        let mut cells = cells(row);
        let (id, loop_id, command) = (cells.number()?, LoopId::new(cells.text()?), cells.text()?);
        let command: Command = serde_json::from_str(&command)
            .map_err(|error| StoreError::Damaged(format!("request {id} cannot be read: {error}")))?;
        Ok(Request { id, loop_id, command })
    })
}

pub(super) fn answer(
    connection: &Connection,
    request: u64,
) -> Result<Option<Result<(), String>>, StoreError> {
    let sql = "SELECT settled, refusal FROM requests WHERE id = ?";
    let read = |row: &Row<'_>| Ok((row.get::<_, bool>(0)?, row.get::<_, Option<String>>(1)?));
    let found = connection.query_row(sql, [number(request)], read).optional().map_err(fault::of)?;
    let (settled, refusal) = found.ok_or_else(|| journal::no_request(request))?;
    Ok(settled.then(|| refusal.map_or(Ok(()), Err)))
}

/// What SQLite itself finds wrong with the file.
pub(super) fn integrity(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut wrong = select(connection, "PRAGMA integrity_check", [], |row| cells(row).text())?;
    wrong.retain(|line| line != "ok");
    let sql = "SELECT DISTINCT \"table\", parent FROM pragma_foreign_key_check";
    wrong.extend(select(connection, sql, [], |row| {
        let mut cells = cells(row);
        Ok(format!("table {} names rows that {} does not have", cells.text()?, cells.text()?))
    })?);
    Ok(wrong)
}
