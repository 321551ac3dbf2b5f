//! Schema migrations. A released migration is never changed; a new one is added.

use rusqlite::{Connection, TransactionBehavior};

use super::error_mapping;
use super::existing_ids::ExistingIds;
use super::lease_file::LeaseFiles;
use super::transaction::SqliteTransaction;
use crate::transaction::{Counter, Transaction as _};
use crate::{StoreError, operations};

const MIGRATIONS: [&str; 7] = [
    include_str!("../../migrations/sqlite/0001_log_and_tables.sql"),
    include_str!("../../migrations/sqlite/0002_approved_commit.sql"),
    include_str!("../../migrations/sqlite/0003_trackers.sql"),
    include_str!("../../migrations/sqlite/0004_run_stage.sql"),
    include_str!("../../migrations/sqlite/0005_estimated_cost.sql"),
    include_str!("../../migrations/sqlite/0006_events_by_loop.sql"),
    include_str!("../../migrations/sqlite/0007_task_state.sql"),
];

const LATEST_VERSION: u32 = MIGRATIONS.len() as u32;

/// The last migration that added columns to a projected table.
const LAST_COLUMN_MIGRATION: u32 = 7;

/// Runs the missing migrations. If there are none, this reads only the first page of the file.
pub(super) fn migrate(connection: &mut Connection, leases: &LeaseFiles) -> Result<(), StoreError> {
    let found = version(connection)?;
    if found == LATEST_VERSION {
        return Ok(());
    }
    if found > LATEST_VERSION {
        return Err(StoreError::Newer { found, known: LATEST_VERSION });
    }
    // SQLite itself does not serialize two processes that create the database at the same time.
    let _lock = leases.lock_schema()?;
    let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
    mode.map_err(error_mapping::from_sqlite)?;
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(error_mapping::from_sqlite)?;
    let found = version(&transaction)?;
    let missing = MIGRATIONS.get(found as usize..).unwrap_or_default();
    missing.iter().try_for_each(|sql| transaction.execute_batch(sql)).map_err(error_mapping::from_sqlite)?;
    if found > 0 && found < LAST_COLUMN_MIGRATION {
        // New columns are empty until the tables are rebuilt.
        operations::rebuild(&mut SqliteTransaction(&transaction))?;
    }
    if found == 0 {
        skip_existing_ids(&mut SqliteTransaction(&transaction), ExistingIds::scan(leases.store_dir()))?;
    }
    transaction.pragma_update(None, "user_version", LATEST_VERSION.max(found)).map_err(error_mapping::from_sqlite)?;
    transaction.commit().map_err(error_mapping::from_sqlite)
}

/// Sets the counters of a new database past the ids that already exist on disk.
fn skip_existing_ids(tx: &mut SqliteTransaction<'_>, existing: ExistingIds) -> Result<(), StoreError> {
    for (counter, last) in [(Counter::Task, existing.task), (Counter::Run, existing.run)] {
        if last > 0 {
            tx.set_counter(counter, last)?;
        }
    }
    Ok(())
}

fn version(connection: &Connection) -> Result<u32, StoreError> {
    let found = connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    // signoff never writes a negative version.
    u32::try_from(found.map_err(error_mapping::from_sqlite)?)
        .map_err(|_| StoreError::Damaged("not a signoff database".into()))
}
