//! The interface between the web server and the program: page data, actions and change notifications.

use std::collections::BTreeSet;

use signoff_term::stats::StatsReport;

use crate::page::{HomePage, ReportHead, RunPage, TaskPage, TranscriptPage};

/// Supplies the pages and performs the actions. Calls may block on the disk, on git and on other programs.
pub trait Backend: Send + Sync + 'static {
    /// The name of the repository.
    fn project(&self) -> String;

    fn home(&self, all: bool) -> Result<HomePage, RequestError>;

    fn run(&self, run: u64) -> Result<RunPage, RequestError>;

    fn task(&self, task: u64) -> Result<TaskPage, RequestError>;

    fn transcript(&self, task: u64, attempt: u64) -> Result<TranscriptPage, RequestError>;

    fn stats(&self) -> Result<StatsReport, RequestError>;

    /// The data for a report of one task, or of a run with all its tasks.
    fn report(&self, subject: ReportSubject) -> Result<(ReportHead, Vec<TaskPage>), RequestError>;

    /// The configured default of `auto_review` for new tasks.
    fn auto_review_default(&self) -> bool;

    /// Performs an action. It is stored on disk when this returns.
    fn perform(&self, action: WebAction) -> Result<ActionOutcome, RequestError>;

    /// A watcher for changes, to be polled from its own thread.
    fn watcher(&self) -> Box<dyn Watcher>;
}

/// The subject of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportSubject {
    Task(u64),
    Run(u64),
}

/// An action that a user submits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebAction {
    Answer {
        question: String,
        choice: String,
    },
    Retry {
        task: u64,
    },
    Cancel {
        task: u64,
    },
    Edit {
        task: u64,
        verdict: String,
        reason: String,
    },
    Dispute {
        finding: String,
        /// The task of the finding, if several tasks have it.
        task: Option<u64>,
        reason: String,
    },
    Add(AddTask),
}

/// The form fields of a new task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddTask {
    pub text: String,
    /// The type of the task; empty means `implement`.
    pub kind: String,
    pub auto_review: bool,
    pub max_cycles: Option<u32>,
    pub depends_on: Vec<u64>,
}

/// The result of a performed action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionOutcome {
    /// One line that says what was done.
    pub message: String,
    /// What to do next, or other information.
    pub hint: Option<String>,
    /// The id of the created task.
    pub added_task: Option<u64>,
}

/// Why an action failed or a page cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestError {
    pub kind: RequestErrorKind,
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// The kind of failure; it determines the HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestErrorKind {
    /// The requested item does not exist.
    NotFound,
    /// The request is malformed.
    Invalid,
    /// The request conflicts with the current state.
    Conflict,
    /// An internal error.
    Internal,
}

/// Polls for changes.
pub trait Watcher: Send {
    /// Returns the changes since the last call. Cheap if nothing changed.
    fn poll(&mut self) -> ChangeSet;
}

/// The runs and tasks that changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangeSet {
    /// Anything may have changed.
    pub everything: bool,
    pub runs: BTreeSet<u64>,
    pub tasks: BTreeSet<u64>,
    /// Tasks whose transcripts grew. Only pages of those tasks need this.
    pub transcripts: BTreeSet<u64>,
}

impl ChangeSet {
    pub fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Merges another set of changes into this one.
    pub fn merge(&mut self, other: &Self) {
        self.everything |= other.everything;
        self.runs.extend(&other.runs);
        self.tasks.extend(&other.tasks);
        self.transcripts.extend(&other.transcripts);
    }
}
