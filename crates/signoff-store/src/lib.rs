//! The event log, and the tables that are projected from it.
//!
//! A [`Store`] keeps one log per run, and one for the queue of tasks that no run has started. The holder of a run's
//! [`Lease`] appends facts; the tables are written in the same transaction and can be rebuilt from the log at any
//! time. Nothing above this crate depends on the database behind it.

mod error;
mod lease;
mod operations;
mod projection;
mod record;
mod sqlite;
mod transaction;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use signoff_core::command::LoopCommand;
use signoff_core::group::RunStageKind;
use signoff_core::ids::{FindingId, LoopId, QuestionId, RunId, TaskId};
use signoff_core::notify::NotificationKey;
use signoff_core::task::TaskSpec;
use signoff_core::view::{self, QuestionRow, RunState, RunStatus, TaskRow, Transition};
use signoff_core::wire::{Fact, RecordedFact};

pub use error::StoreError;
pub use lease::Lease;
pub use operations::TransitionObserver;
pub use sqlite::{SqliteOptions, SqliteStore};

/// The parts of a back end outside of this crate. It implements [`backend::Transaction`], and its [`Store`] calls the
/// operations.
pub mod backend {
    pub use crate::operations::{
        NewFacts, RunCache, add_tasks, append, check, check_run_exists, load, new_run, next_fence, preload, rebuild,
        reserve, run_state, unknown_request, withdraw, write_row,
    };
    pub use crate::projection::QuestionIds;
    pub use crate::record::{
        Cell, CellReader, FINDING_COLUMNS, KeyPart, QUESTION_COLUMNS, RUN_COLUMNS, RowWrite, TASK_COLUMNS, TableKey,
        TableName, TableRow,
    };
    pub use crate::transaction::{Counter, StoreResult, TableRows, TaskOwner, Transaction};
}

/// A task to add to the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    pub spec: TaskSpec,
    /// The configured values of fields that the task does not set.
    pub auto_review: bool,
    pub max_review_cycles: Option<u32>,
}

/// A row of the `runs` table.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    pub id: RunId,
    pub preset: String,
    /// `running`, `blocked`, `completed`, `failed`, `cancelled`.
    pub status: RunStatus,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub cost_usd: f64,
    /// Whether any part of the cost is estimated from list prices.
    pub cost_is_estimated: bool,
    pub stage: RunStageKind,
    /// The number of the current group, from 1, and the number of groups.
    pub group: Option<u64>,
    pub groups: Option<u64>,
    pub branch: Option<String>,
    /// The name of its specification.
    pub specification: Option<String>,
}

impl From<StoredRun> for view::RunRow {
    fn from(row: StoredRun) -> Self {
        Self {
            id: row.id.0,
            preset: row.preset,
            specification: row.specification,
            status: row.status,
            stage: row.stage,
            group: row.group,
            groups: row.groups,
            branch: row.branch,
            cost_usd: row.cost_usd,
            cost_is_estimated: row.cost_is_estimated,
        }
    }
}

/// A user's command for a loop whose run another process executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRequest {
    pub id: u64,
    pub loop_id: LoopId,
    pub command: LoopCommand,
}

/// A notification that is due to a channel, or was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    pub message: NotificationKey,
    /// The name of the channel.
    pub channel: String,
    /// When the message became due, or was delivered.
    pub at: Timestamp,
    pub delivered: bool,
}

impl DeliveryRecord {
    /// How long delivery records are kept.
    pub const RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);
}

/// The tasks of a tracker, by their id there.
pub type TrackerClaims = std::collections::BTreeMap<String, TaskId>;

/// The run, loop and task of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingRef {
    pub run: RunId,
    pub loop_id: LoopId,
    pub task: Option<TaskId>,
    pub finding: FindingId,
}

/// The run and loop of a question, and its number within the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionRef {
    pub run: RunId,
    pub loop_id: LoopId,
    pub question: QuestionId,
    pub open: bool,
}

/// The result of a rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RebuildStats {
    pub runs: usize,
    pub facts: usize,
}

/// The event log and its tables. Every call is one atomic transaction.
pub trait Store: Send + Sync {
    /// Adds tasks to the queue. Returns their ids, in order.
    fn add_tasks(&self, at: Timestamp, tasks: &[NewTask]) -> Result<Vec<TaskId>, StoreError>;

    /// Cancels a task that no run has started; [`StoreError::TaskTaken`] if one has. Idempotent.
    fn withdraw(&self, at: Timestamp, task: TaskId, by: &str) -> Result<(), StoreError>;

    /// Reserves ids for tasks that will be added in a run's own log.
    fn reserve_tasks(&self, count: usize) -> Result<Vec<TaskId>, StoreError>;

    /// Creates a run with an empty log, leased by the caller.
    fn open_run(&self, at: Timestamp) -> Result<Lease, StoreError>;

    /// Acquires the lease of a run; [`StoreError::LeaseHeld`] if another holder has it.
    fn acquire(&self, run: RunId) -> Result<Lease, StoreError>;

    /// Whether the run's lease is held now.
    fn is_held(&self, run: RunId) -> Result<bool, StoreError>;

    /// The state of a run. `observe` gets the transition of each event of its log, in order.
    fn load(&self, run: RunId, observe: &mut dyn FnMut(&Transition)) -> Result<RunState, StoreError>;

    /// The state of a run that the caller may execute next. Keeps the transitions for the observer of the next
    /// `load`, so that no event is applied again.
    fn preload(&self, run: RunId) -> Result<RunState, StoreError>;

    /// The state of a run that the caller only reads. Applies only the events since the last call, and none of a run
    /// that this store appends to.
    fn run_state(&self, run: RunId) -> Result<RunState, StoreError>;

    /// Appends facts to the log of the leased run and applies them to its state. They are on disk when this returns.
    /// No facts, no transaction.
    ///
    /// A state that is not at the end of the log is brought there first. After an error the state may be empty.
    ///
    /// A [`signoff_core::wire::LoopFact::Added`] claims its task. If another run has the task or it was cancelled,
    /// nothing is appended and the error is [`StoreError::TaskTaken`]; [`StoreError::NoTask`] if it does not exist.
    /// A [`signoff_core::wire::TaskFact::Added`] in a run's log assigns the task to that run. Its id must be new, and a
    /// tracker's issue must not belong to another task: [`StoreError::IssueClaimed`].
    fn append_to(
        &self,
        state: &mut RunState,
        lease: &Lease,
        at: Timestamp,
        facts: &[Fact],
    ) -> Result<Vec<Transition>, StoreError>;

    /// Like `append_to`, for a caller without the state of the run.
    fn append(&self, lease: &Lease, at: Timestamp, facts: &[Fact]) -> Result<Vec<RecordedFact>, StoreError> {
        let transitions = self.append_to(&mut RunState::new(lease.run()), lease, at, facts)?;
        Ok(transitions.into_iter().map(|transition| Arc::unwrap_or_clone(transition.event)).collect())
    }

    /// The log of a run, or of the queue with [`signoff_core::wire::QUEUE`]. Facts are numbered from 1.
    fn log(&self, run: RunId) -> Result<Vec<RecordedFact>, StoreError> {
        self.log_after(run, 0)
    }

    /// The facts of a run after the fact `seq`.
    fn log_after(&self, run: RunId, seq: u64) -> Result<Vec<RecordedFact>, StoreError>;

    /// At most `limit` facts after the fact `seq`, to read a long log without holding all of it in memory.
    fn log_page(&self, run: RunId, seq: u64, limit: usize) -> Result<Vec<RecordedFact>, StoreError>;

    /// The facts of one loop and those of the run itself. The facts of other loops are not read.
    fn loop_log(&self, run: RunId, loop_id: &LoopId) -> Result<Vec<RecordedFact>, StoreError>;

    /// The number of the last fact in a run's log; 0 if it is empty. Cheap for logs of any length.
    fn last_seq(&self, run: RunId) -> Result<u64, StoreError>;

    /// All runs, oldest first.
    fn runs(&self) -> Result<Vec<StoredRun>, StoreError>;

    /// The runs with work left, oldest first: those that have not ended, cancelled ones with loops still open, and
    /// those in which a user reopened a loop.
    fn open_runs(&self) -> Result<Vec<StoredRun>, StoreError>;

    fn run(&self, run: RunId) -> Result<Option<StoredRun>, StoreError>;

    /// The failed runs that have groups, oldest first.
    fn failed_runs(&self) -> Result<Vec<StoredRun>, StoreError>;

    /// The newest run.
    fn last_run(&self) -> Result<Option<StoredRun>, StoreError>;

    /// All tasks, by id.
    fn tasks(&self) -> Result<Vec<TaskRow>, StoreError>;

    fn task(&self, task: TaskId) -> Result<Option<TaskRow>, StoreError>;

    /// The specification of a task.
    fn task_spec(&self, task: TaskId) -> Result<Option<TaskSpec>, StoreError>;

    /// Queued tasks by id, each with its dependencies: at most `limit` tasks after the id `after`.
    fn queued(&self, after: TaskId, limit: usize) -> Result<Vec<(TaskId, Vec<TaskId>)>, StoreError>;

    /// The tasks of a tracker that were not cancelled. For a reopened issue, its latest task.
    fn claims(&self, tracker: &str) -> Result<TrackerClaims, StoreError>;

    /// The run and loop of a task.
    fn loop_for_task(&self, task: TaskId) -> Result<Option<(RunId, LoopId)>, StoreError>;

    /// The open questions, oldest first.
    fn questions(&self) -> Result<Vec<QuestionRow>, StoreError>;

    /// The question that users see as `q` plus this number, open or closed.
    fn question(&self, number: u64) -> Result<Option<QuestionRef>, StoreError>;

    /// The findings whose id has this prefix.
    fn findings(&self, prefix: &str) -> Result<Vec<FindingRef>, StoreError>;

    /// Posts a command for the process that executes the run. Returns the id of the request.
    fn post_request(&self, run: RunId, loop_id: &LoopId, command: &LoopCommand) -> Result<u64, StoreError>;

    /// The requests of a run that have no answer yet.
    fn pending_requests(&self, run: RunId) -> Result<Vec<CommandRequest>, StoreError>;

    /// Answers a request: `None` if it was carried out, otherwise why it was refused.
    fn answer_request(&self, request: u64, refusal: Option<&str>) -> Result<(), StoreError>;

    /// The answer to a request, if there is one yet.
    fn request_answer(&self, request: u64) -> Result<Option<Result<(), String>>, StoreError>;

    /// Records that a message is due to a channel, or was delivered. A delivered message stays delivered.
    ///
    /// Removes records older than [`DeliveryRecord::RETENTION`], except those of messages about open runs that were
    /// delivered.
    fn record_delivery(&self, record: &DeliveryRecord) -> Result<(), StoreError>;

    /// The records of messages that were delivered, or are due and not older than [`DeliveryRecord::RETENTION`].
    fn deliveries(&self, now: Timestamp) -> Result<Vec<DeliveryRecord>, StoreError>;

    /// A number that changes whenever another process writes. Cheap enough to poll.
    fn version(&self) -> Result<u64, StoreError>;

    /// Rebuilds all tables from the log.
    fn rebuild(&self) -> Result<RebuildStats, StoreError>;

    /// Checks the store. Returns one message per problem.
    fn check(&self) -> Result<Vec<String>, StoreError>;
}
