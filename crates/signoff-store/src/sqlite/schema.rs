//! The schema, in numbered steps. A step that was released is never changed; a new one is added.

use rusqlite::{Connection, TransactionBehavior};

use super::book::Pages;
use super::fault;
use super::lease_file::LeaseFiles;
use super::left_behind::LeftBehind;
use crate::book::{Book as _, Counter};
use crate::{StoreError, journal};

const STEPS: [&str; 7] = [
    include_str!("../../migrations/sqlite/0001_log_and_tables.sql"),
    include_str!("../../migrations/sqlite/0002_approved_commit.sql"),
    include_str!("../../migrations/sqlite/0003_trackers.sql"),
    include_str!("../../migrations/sqlite/0004_run_stage.sql"),
    include_str!("../../migrations/sqlite/0005_estimated_cost.sql"),
    include_str!("../../migrations/sqlite/0006_events_by_loop.sql"),
    include_str!("../../migrations/sqlite/0007_task_state.sql"),
];

const KNOWN: u32 = STEPS.len() as u32;

/// The last step that added columns to what is told from the log.
const LAST_COLUMNS: u32 = 7;

/// Takes the steps that are missing. Where none is, this is one look at the file's first page.
pub(super) fn bring_up_to_date(connection: &mut Connection, leases: &LeaseFiles) -> Result<(), StoreError> {
    let found = version(connection)?;
    if found == KNOWN {
        return Ok(());
    }
    if found > KNOWN {
        return Err(StoreError::Newer { found, known: KNOWN });
    }
    // Two programs that make the database at once would not wait for each other by SQLite's own means.
    let _alone = leases.schema()?;
    let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
    mode.map_err(fault::of)?;
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault::of)?;
    let found = version(&transaction)?;
    let missing = STEPS.get(found as usize..).unwrap_or_default();
    missing.iter().try_for_each(|sql| transaction.execute_batch(sql)).map_err(fault::of)?;
    if found > 0 && found < LAST_COLUMNS {
        // New columns are empty until the log has been told again.
        journal::rebuild(&mut Pages(&transaction))?;
    }
    if found == 0 {
        count_on(&mut Pages(&transaction), LeftBehind::in_dir(leases.beside()))?;
    }
    transaction.pragma_update(None, "user_version", KNOWN.max(found)).map_err(fault::of)?;
    transaction.commit().map_err(fault::of)
}

/// A new database goes on counting where the one before it ended.
fn count_on(pages: &mut Pages<'_>, left: LeftBehind) -> Result<(), StoreError> {
    for (counter, last) in [(Counter::Task, left.task), (Counter::Run, left.run)] {
        if last > 0 {
            pages.set_counter(counter, last)?;
        }
    }
    Ok(())
}

fn version(connection: &Connection) -> Result<u32, StoreError> {
    let found = connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    // A negative number was never ours.
    u32::try_from(found.map_err(fault::of)?).map_err(|_| StoreError::Damaged("not a signoff database".into()))
}
