//! The read queries, and the ids that files of an earlier database still use, so that a new database does not assign
//! them again.

use std::fs;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use signoff_core::command::LoopCommand;
use signoff_core::ids::{LoopId, QuestionId, RunId, TaskId};
use signoff_core::task::TaskSpec;
use signoff_core::view::{QuestionRow, TaskRow};
use signoff_core::wire::{Fact, RecordedFact, TaskFact};

use super::error_mapping;
use super::transaction::{EVENT_COLUMNS, parse_recorded};
use crate::record::{Cell, CellReader, FINDING_COLUMNS, QUESTION_COLUMNS, RUN_COLUMNS, TASK_COLUMNS};
use crate::{CommandRequest, FindingRef, QuestionRef, StoreError, StoredRun, operations};

/// Runs a query and reads all rows.
pub(super) fn select<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql).map_err(error_mapping::from_sqlite)?;
    let mut rows = statement.query(params).map_err(error_mapping::from_sqlite)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(error_mapping::from_sqlite)? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// A reader over the cells of a row.
pub(super) fn cells<'a>(row: &'a Row<'a>) -> CellReader<impl FnMut() -> Result<Cell, StoreError> + 'a> {
    let mut columns = 0..;
    CellReader::new(move || match columns.next() {
        Some(column) => cell(row.get_ref(column).map_err(error_mapping::from_sqlite)?),
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
    first_row(connection, sql, [to_integer(run.0)], |row| cells(row).number())
}

/// The first row.
fn first_row<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    Ok(select(connection, sql, params, read)?.into_iter().next())
}

/// Converts to SQLite's signed integer.
pub(super) fn to_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn open_runs(connection: &Connection) -> Result<Vec<StoredRun>, StoreError> {
    let sql = format!("SELECT {} FROM runs WHERE open ORDER BY id", RUN_COLUMNS.join(", "));
    select(connection, &sql, [], |row| cells(row).run())
}

pub(super) fn runs(connection: &Connection) -> Result<Vec<StoredRun>, StoreError> {
    let sql = format!("SELECT {} FROM runs ORDER BY id", RUN_COLUMNS.join(", "));
    select(connection, &sql, [], |row| cells(row).run())
}

pub(super) fn run(connection: &Connection, run: RunId) -> Result<Option<StoredRun>, StoreError> {
    let sql = format!("SELECT {} FROM runs WHERE id = ?", RUN_COLUMNS.join(", "));
    first_row(connection, &sql, [to_integer(run.0)], |row| cells(row).run())
}

pub(super) fn failed_runs(connection: &Connection) -> Result<Vec<StoredRun>, StoreError> {
    let columns = RUN_COLUMNS.join(", ");
    let sql = format!("SELECT {columns} FROM runs WHERE status = 'failed' AND group_count IS NOT NULL ORDER BY id");
    select(connection, &sql, [], |row| cells(row).run())
}

pub(super) fn last_run(connection: &Connection) -> Result<Option<StoredRun>, StoreError> {
    let sql = format!("SELECT {} FROM runs ORDER BY id DESC LIMIT 1", RUN_COLUMNS.join(", "));
    first_row(connection, &sql, [], |row| cells(row).run())
}

pub(super) fn tasks(connection: &Connection) -> Result<Vec<TaskRow>, StoreError> {
    let sql = format!("SELECT {} FROM tasks ORDER BY id", TASK_COLUMNS.join(", "));
    select(connection, &sql, [], |row| cells(row).task())
}

pub(super) fn task(connection: &Connection, task: TaskId) -> Result<Option<TaskRow>, StoreError> {
    let sql = format!("SELECT {} FROM tasks WHERE id = ?", TASK_COLUMNS.join(", "));
    first_row(connection, &sql, [to_integer(task.0)], |row| cells(row).task())
}

/// The task and specification that a row of the log adds.
fn added_task(row: &Row<'_>) -> Result<Option<(TaskId, TaskSpec)>, StoreError> {
    Ok(match parse_recorded(row)?.fact {
        Fact::Task(task, TaskFact::Added { spec, .. }) => Some((task, *spec)),
        Fact::Task(_, TaskFact::Withdrawn { .. }) | Fact::Run(_) | Fact::Loop(..) => None,
    })
}

pub(super) fn task_spec(connection: &Connection, task: TaskId) -> Result<Option<TaskSpec>, StoreError> {
    let sql = format!(
        "SELECT {EVENT_COLUMNS} FROM events WHERE task_id = ? AND kind = 'task.added' ORDER BY position LIMIT 1"
    );
    let found = first_row(connection, &sql, [to_integer(task.0)], added_task)?;
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
    select(connection, sql, [to_integer(after.0), most], |row| {
        let mut cells = cells(row);
        Ok((TaskId(cells.number()?), cells.list()?.into_iter().map(TaskId).collect()))
    })
}

pub(super) fn log_page(
    connection: &Connection,
    run: RunId,
    seq: u64,
    most: usize,
) -> Result<Vec<RecordedFact>, StoreError> {
    let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?");
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    select(connection, &sql, [to_integer(run.0), to_integer(seq), most], parse_recorded)
}

pub(super) fn loop_log(connection: &Connection, run: RunId, loop_id: &LoopId) -> Result<Vec<RecordedFact>, StoreError> {
    // Two index lookups, merged. With OR, SQLite would scan the whole run.
    let of = |which: &str| format!("SELECT {EVENT_COLUMNS} FROM events WHERE run_id = ?1 AND {which}");
    let sql = format!("{} UNION ALL {} ORDER BY seq", of("loop_id IS NULL"), of("loop_id = ?2"));
    select(connection, &sql, params![to_integer(run.0), loop_id.as_str()], parse_recorded)
}

pub(super) fn loop_for_task(connection: &Connection, task: TaskId) -> Result<Option<(RunId, LoopId)>, StoreError> {
    let sql = "SELECT run_id, loop_id FROM tasks WHERE id = ? AND run_id NOTNULL AND loop_id NOTNULL";
    first_row(connection, sql, [to_integer(task.0)], |row| {
        let mut cells = cells(row);
        Ok((RunId(cells.number()?), LoopId::new(cells.text()?)))
    })
}

pub(super) fn questions(connection: &Connection) -> Result<Vec<QuestionRow>, StoreError> {
    let columns = QUESTION_COLUMNS.join(", ");
    let sql = format!("SELECT {columns} FROM questions WHERE closed_at IS NULL ORDER BY id");
    select(connection, &sql, [], |row| cells(row).question())
}

pub(super) fn question(connection: &Connection, id: u64) -> Result<Option<QuestionRef>, StoreError> {
    let sql = "SELECT run_id, loop_id, number, closed_at IS NULL FROM questions WHERE id = ?";
    first_row(connection, sql, [to_integer(id)], |row| {
        let mut cells = cells(row);
        Ok(QuestionRef {
            run: RunId(cells.number()?),
            loop_id: LoopId::new(cells.text()?),
            question: QuestionId(cells.number()?),
            open: cells.number()? != 0,
        })
    })
}

pub(super) fn findings(connection: &Connection, prefix: &str) -> Result<Vec<FindingRef>, StoreError> {
    let columns = FINDING_COLUMNS.join(", ");
    let sql = format!(
        "SELECT {columns} FROM findings WHERE id >= ?1 AND substr(id, 1, length(?1)) = ?1
         ORDER BY id, run_id, loop_id"
    );
    select(connection, &sql, [prefix], |row| cells(row).finding())
}

pub(super) fn pending_requests(connection: &Connection, run: RunId) -> Result<Vec<CommandRequest>, StoreError> {
    let sql = "SELECT id, loop_id, command FROM requests WHERE run_id = ? AND settled = 0 ORDER BY id";
    select(connection, sql, [to_integer(run.0)], |row| {
        let mut cells = cells(row);
        let (id, loop_id, command) = (cells.number()?, LoopId::new(cells.text()?), cells.text()?);
        let command: LoopCommand = serde_json::from_str(&command)
            .map_err(|error| StoreError::Damaged(format!("request {id} cannot be read: {error}")))?;
        Ok(CommandRequest { id, loop_id, command })
    })
}

pub(super) fn request_answer(connection: &Connection, request: u64) -> Result<Option<Result<(), String>>, StoreError> {
    let sql = "SELECT settled, refusal FROM requests WHERE id = ?";
    let read = |row: &Row<'_>| Ok((row.get::<_, bool>(0)?, row.get::<_, Option<String>>(1)?));
    let found =
        connection.query_row(sql, [to_integer(request)], read).optional().map_err(error_mapping::from_sqlite)?;
    let (settled, refusal) = found.ok_or_else(|| operations::no_request(request))?;
    Ok(settled.then(|| refusal.map_or(Ok(()), Err)))
}

/// The results of SQLite's own integrity checks.
pub(super) fn integrity(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut problems = select(connection, "PRAGMA integrity_check", [], |row| cells(row).text())?;
    problems.retain(|line| line != "ok");
    let sql = "SELECT DISTINCT \"table\", parent FROM pragma_foreign_key_check";
    problems.extend(select(connection, sql, [], |row| {
        let mut cells = cells(row);
        Ok(format!("table {} names rows that {} does not have", cells.text()?, cells.text()?))
    })?);
    Ok(problems)
}

/// The highest ids in the names of files and directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ExistingIds {
    pub task: u64,
    pub run: u64,
}

impl ExistingIds {
    /// Scans file names. Unreadable directories are skipped.
    pub fn scan(dir: &Path) -> Self {
        let named = ["worktrees", "reviews", "leases"].map(|subdir| names(&dir.join(subdir))).concat();
        let runs = names(&dir.join("runs"));
        let tasks: Vec<_> = runs.iter().flat_map(|run| names(&dir.join("runs").join(run))).collect();
        let plain_ids = |names: &[String]| names.iter().filter_map(|name| name.parse().ok()).max();
        let prefixed_ids = |mark: &str| named.iter().filter_map(|name| id_after(name, mark)).max();
        Self {
            task: plain_ids(&tasks).max(prefixed_ids("task-")).unwrap_or(0),
            run: plain_ids(&runs).max(prefixed_ids("run-")).unwrap_or(0),
        }
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The number in `task-7`, or in the middle as in `2026-11-15-task-7-review-1.md`.
fn id_after(name: &str, mark: &str) -> Option<u64> {
    let at = name.match_indices(mark).map(|(at, _)| at).find(|&at| at == 0 || name[..at].ends_with('-'))?;
    let rest = &name[at + mark.len()..];
    let digits = rest.split(|char: char| !char.is_ascii_digit()).next()?;
    // Larger ids would overflow the counters.
    digits.parse().ok().filter(|number| *number < u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_file_names() {
        assert_eq!(id_after("task-7", "task-"), Some(7));
        assert_eq!(id_after("2026-11-15-task-12-p1-gate-review-3.md", "task-"), Some(12));
        assert_eq!(id_after("worktree-run-4", "run-"), Some(4));
        assert_eq!(id_after("multitask-7", "task-"), None);
        assert_eq!(id_after("task-x", "task-"), None);
        assert_eq!(id_after("task-99999999999999999999", "task-"), None);
    }
}
