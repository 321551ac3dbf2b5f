//! What a back end can do within one transaction. What is to be done is decided in [`crate::journal`].

use std::collections::BTreeMap;

use jiff::Timestamp;
use signoff_core::ids::{RunId, TaskId};
use signoff_core::wire::Recorded;

use crate::record::{Cell, Key, Row, Table};
use crate::teller::Numbered;
use crate::{Claims, StoreError};

type Outcome<T> = Result<T, StoreError>;

/// Numbers that are given away once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Counter {
    Task,
    Run,
}

impl Counter {
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Run => "run",
        }
    }
}

/// Who may work a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    Nobody,
    Run(RunId),
    /// It was called off.
    Withdrawn,
}

/// The rows of one table by key, each with the columns that are not part of it.
pub(crate) type Rows = BTreeMap<Key, BTreeMap<String, Cell>>;

pub(crate) trait Book {
    /// The last number given away.
    fn counter(&self, counter: Counter) -> Outcome<u64>;
    fn set_counter(&mut self, counter: Counter, value: u64) -> Outcome<()>;

    /// The present fence of a run, if the run was opened.
    fn fence(&self, run: RunId) -> Outcome<Option<u64>>;
    fn new_run(&mut self, run: RunId, at: Timestamp) -> Outcome<()>;
    fn set_fence(&mut self, run: RunId, fence: u64) -> Outcome<()>;

    fn last_seq(&self, run: RunId) -> Outcome<u64>;
    fn log(&self, run: RunId) -> Outcome<Vec<Recorded>> {
        self.log_after(run, 0)
    }
    fn log_after(&self, run: RunId, seq: u64) -> Outcome<Vec<Recorded>>;
    /// Every fact of every log in the order they were written; those that cannot be read as errors.
    fn all(&self, take: &mut dyn FnMut(Outcome<Recorded>) -> Outcome<()>) -> Outcome<()>;
    fn record(&mut self, recorded: &Recorded) -> Outcome<()>;

    fn holder(&self, task: TaskId) -> Outcome<Option<Holder>>;
    /// The tasks of a tracker that were not called off, by how they are called there: all, or the one with this id. Of
    /// those that were opened again it is the last.
    fn claims(&self, tracker: &str, id: Option<&str>) -> Outcome<Claims>;
    fn numbered(&self, run: RunId) -> Outcome<Numbered>;
    /// The number of the last question in any run.
    fn last_question(&self) -> Outcome<u64>;

    fn put(&mut self, row: &Row) -> Outcome<()>;
    /// Empties all tables that are told from the log.
    fn clear(&mut self) -> Outcome<()>;
    fn rows(&self, table: Table) -> Outcome<Rows>;
}
