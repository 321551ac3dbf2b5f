//! The log of facts, and the tables that are told from it.
//!
//! A [`Store`] keeps one log per run, and one for the queue of tasks that no run has taken up. Facts are
//! appended by whoever holds the run's [`Lease`]; the tables people query are written in the same
//! transaction and can be rebuilt from the log at any time. Nothing above this crate knows which database
//! is behind it.

mod book;
mod error;
mod journal;
mod lease;
mod memory;
mod record;
mod sqlite;
mod teller;

use jiff::Timestamp;
use signoff_core::command::Command;
use signoff_core::ids::{FindingId, LoopId, QuestionId, RunId, TaskId};
use signoff_core::task::TaskSpec;
use signoff_core::view::{self, QuestionRow, TaskRow};
use signoff_core::wire::{Fact, Recorded};

pub use error::StoreError;
pub use lease::Lease;
pub use memory::MemoryStore;
pub use sqlite::{SqliteOptions, SqliteStore};

/// A task to be put into the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    pub spec: TaskSpec,
    /// What the configuration makes of the fields that the task leaves open.
    pub auto_review: bool,
    pub max_review_cycles: Option<u32>,
}

/// A run as the tables know it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    pub id: RunId,
    pub preset: String,
    /// `running`, `blocked`, `completed`, `failed`, `cancelled`.
    pub status: String,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub cost_usd: f64,
    /// It is worked out from list prices, at least in part.
    pub cost_is_estimated: bool,
    /// `queued`, `preparing`, `working`, `blocked`, `reviewing`, `landing`, `done`.
    pub stage: String,
    /// The number of the group at hand, from 1, and how many there are.
    pub group: Option<u64>,
    pub groups: Option<u64>,
    pub branch: Option<String>,
    /// The name of what it is to bring about.
    pub specification: Option<String>,
}

impl From<RunRow> for view::RunRow {
    fn from(row: RunRow) -> Self {
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

/// A person's wish for a loop whose run somebody else drives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub id: u64,
    pub loop_id: LoopId,
    pub command: Command,
}

/// The tasks of a tracker, by how they are called there.
pub type Claims = std::collections::BTreeMap<String, TaskId>;

/// Where a finding stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingPlace {
    pub run: RunId,
    pub loop_id: LoopId,
    pub task: Option<TaskId>,
    pub finding: FindingId,
}

/// Where a question was asked, and under which number its loop knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionPlace {
    pub run: RunId,
    pub loop_id: LoopId,
    pub question: QuestionId,
    pub open: bool,
}

/// What a rebuild did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rebuilt {
    pub runs: usize,
    pub facts: usize,
}

/// The log, and what is told from it. Every call is one transaction: all of it happened, or nothing.
pub trait Store: Send + Sync {
    /// Puts tasks into the queue; their numbers, in order.
    fn add_tasks(&self, at: Timestamp, tasks: &[NewTask]) -> Result<Vec<TaskId>, StoreError>;

    /// Calls a task off that no run has taken up. [`StoreError::Taken`] if one has; twice is once.
    fn withdraw(&self, at: Timestamp, task: TaskId, by: &str) -> Result<(), StoreError>;

    /// Numbers for tasks that will be added in a run's own log.
    fn reserve_tasks(&self, count: usize) -> Result<Vec<TaskId>, StoreError>;

    /// A new run, held by the caller. Nothing is in its log yet.
    fn open_run(&self, at: Timestamp) -> Result<Lease, StoreError>;

    /// The lease of a run; [`StoreError::Held`] if somebody else has it.
    fn acquire(&self, run: RunId) -> Result<Lease, StoreError>;

    /// Whether somebody holds the run's lease now.
    fn is_held(&self, run: RunId) -> Result<bool, StoreError>;

    /// Appends facts to the log of the leased run: on the disk when this returns. No facts are no transaction.
    ///
    /// A [`signoff_core::wire::LoopFact::Added`] takes its task: if another run has it already or it was called
    /// off, nothing is appended and the error is [`StoreError::Taken`]; [`StoreError::NoTask`] if nobody added it.
    /// A [`signoff_core::wire::TaskFact::Added`] in a run's log gives the task to that run; its number must be new,
    /// and if it is a tracker's, no other task may be the same: [`StoreError::Claimed`].
    fn append(&self, lease: &Lease, at: Timestamp, facts: &[Fact]) -> Result<Vec<Recorded>, StoreError>;

    /// The log of a run, in order, its facts numbered from 1; of the queue with [`signoff_core::wire::QUEUE`].
    fn log(&self, run: RunId) -> Result<Vec<Recorded>, StoreError> {
        self.log_after(run, 0)
    }

    /// What was added to the log of a run after the fact of this number: for those who have seen it until there.
    fn log_after(&self, run: RunId, seq: u64) -> Result<Vec<Recorded>, StoreError>;

    /// At most so many of the facts that come after the one of this number: for those who fold a long log and do not want to
    /// hold all of it.
    fn log_part(&self, run: RunId, seq: u64, most: usize) -> Result<Vec<Recorded>, StoreError>;

    /// What the log of a run tells of one loop and of the run as a whole. The facts of other loops, mostly many more, are
    /// not read.
    fn log_of_loop(&self, run: RunId, loop_id: &LoopId) -> Result<Vec<Recorded>, StoreError>;

    /// The number of the last fact in the log of a run; 0 before the first. Cheap, however long the log is.
    fn last_seq(&self, run: RunId) -> Result<u64, StoreError>;

    /// All runs, oldest first.
    fn runs(&self) -> Result<Vec<RunRow>, StoreError>;

    /// The runs in which something is left to do, oldest first: those that have not ended, those that were called
    /// off before all their loops were, and those of which a person reopened a loop.
    fn open_runs(&self) -> Result<Vec<RunRow>, StoreError>;

    fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError>;

    /// The runs of groups that failed, oldest first.
    fn failed_runs(&self) -> Result<Vec<RunRow>, StoreError>;

    /// The run that was opened last.
    fn last_run(&self) -> Result<Option<RunRow>, StoreError>;

    /// All tasks, by number.
    fn tasks(&self) -> Result<Vec<TaskRow>, StoreError>;

    fn task(&self, task: TaskId) -> Result<Option<TaskRow>, StoreError>;

    /// What was asked for.
    fn task_spec(&self, task: TaskId) -> Result<Option<TaskSpec>, StoreError>;

    /// Tasks that no run has taken up and that were not withdrawn, by number, each with what it depends on: at
    /// most so many of those after the one named.
    fn queued(&self, after: TaskId, most: usize) -> Result<Vec<(TaskId, Vec<TaskId>)>, StoreError>;

    /// The tasks of a tracker that were not called off; of those that were opened again the last.
    fn claims(&self, tracker: &str) -> Result<Claims, StoreError>;

    /// The loop that works a task, and its run.
    fn loop_of(&self, task: TaskId) -> Result<Option<(RunId, LoopId)>, StoreError>;

    /// The questions that wait for a person, oldest first.
    fn questions(&self) -> Result<Vec<QuestionRow>, StoreError>;

    /// Where the question that people know as `q` and this number was asked, open or not.
    fn question(&self, number: u64) -> Result<Option<QuestionPlace>, StoreError>;

    /// The findings whose id starts with these characters.
    fn findings(&self, prefix: &str) -> Result<Vec<FindingPlace>, StoreError>;

    /// Leaves a wish for whoever drives the run.
    fn post(&self, run: RunId, loop_id: &LoopId, command: &Command) -> Result<u64, StoreError>;

    /// The wishes nobody has answered yet.
    fn requests(&self, run: RunId) -> Result<Vec<Request>, StoreError>;

    /// Answers a wish: none if it was carried out, else why not.
    fn settle(&self, request: u64, refusal: Option<&str>) -> Result<(), StoreError>;

    /// The answer to a wish, once there is one.
    fn answer(&self, request: u64) -> Result<Option<Result<(), String>>, StoreError>;

    /// A number that changes whenever another program wrote something. Cheap enough to ask often.
    fn version(&self) -> Result<u64, StoreError>;

    /// Tells all tables again from the log.
    fn rebuild(&self) -> Result<Rebuilt, StoreError>;

    /// What is wrong with the store, in sentences; empty if nothing is.
    fn check(&self) -> Result<Vec<String>, StoreError>;
}
