//! The trait of one backend transaction. `crate::operations` is built on it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use signoff_core::ids::{RunId, TaskId};
use signoff_core::wire::RecordedFact;

use crate::projection::QuestionIds;
use crate::record::{Cell, TableKey, TableName, TableRow};
use crate::{StoreError, TrackerClaims};

/// The result of an access to the store.
pub type StoreResult<T> = Result<T, StoreError>;

/// Counters for unique ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Counter {
    Task,
    Run,
}

/// The owner of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskOwner {
    Queued,
    Run(RunId),
    /// The task was cancelled.
    Withdrawn,
}

/// The rows of one table by key, each with its other columns.
pub type TableRows = BTreeMap<TableKey, BTreeMap<String, Cell>>;

pub trait Transaction {
    /// The last id that was assigned.
    fn counter(&self, counter: Counter) -> StoreResult<u64>;
    fn set_counter(&mut self, counter: Counter, value: u64) -> StoreResult<()>;

    /// The current fence of a run; `None` if the run does not exist.
    fn fence(&self, run: RunId) -> StoreResult<Option<u64>>;
    fn new_run(&mut self, run: RunId, at: Timestamp) -> StoreResult<()>;
    fn set_fence(&mut self, run: RunId, fence: u64) -> StoreResult<()>;

    fn last_seq(&self, run: RunId) -> StoreResult<u64>;
    /// At most `limit` facts of a run after `seq`.
    fn log_page(&self, run: RunId, seq: u64, limit: usize) -> StoreResult<Vec<RecordedFact>>;
    /// Calls `visit` with every fact of every log in write order. Unreadable facts are passed as errors.
    fn for_each_fact(&self, visit: &mut dyn FnMut(StoreResult<RecordedFact>) -> StoreResult<()>) -> StoreResult<()>;
    fn record(&mut self, recorded: &RecordedFact) -> StoreResult<()>;

    fn task_owner(&self, task: TaskId) -> StoreResult<Option<TaskOwner>>;
    /// The tasks of a tracker that were not cancelled, by their id there: all of them, or the one with this id. For a
    /// reopened issue, its latest task.
    fn claims(&self, tracker: &str, id: Option<&str>) -> StoreResult<TrackerClaims>;
    fn question_ids(&self, run: RunId) -> StoreResult<QuestionIds>;
    /// The id of the last question in any run.
    fn last_question(&self) -> StoreResult<u64>;

    fn put(&mut self, row: &TableRow) -> StoreResult<()>;
    /// Empties all tables that are projected from the log.
    fn clear(&mut self) -> StoreResult<()>;
    fn rows(&self, table: TableName) -> StoreResult<TableRows>;
}
