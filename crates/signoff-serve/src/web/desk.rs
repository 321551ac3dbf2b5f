//! What the server asks of whoever has the store: pages to look at, wishes to fulfil, changes to tell.

use std::collections::BTreeSet;

use crate::page::{Home, ReportHead, RunPage, StatsPage, TaskPage, TranscriptPage};

/// Who knows and decides. Calls may wait for the disk, for git and for other programs.
pub trait Desk: Send + Sync + 'static {
    /// What the person calls the repository.
    fn project(&self) -> String;

    fn home(&self, all: bool) -> Result<Home, Refused>;

    fn run(&self, run: u64) -> Result<RunPage, Refused>;

    fn task(&self, task: u64) -> Result<TaskPage, Refused>;

    fn transcript(&self, task: u64, attempt: u64) -> Result<TranscriptPage, Refused>;

    fn stats(&self) -> Result<StatsPage, Refused>;

    /// What a report of one task, or of a run with all its tasks, is made of.
    fn report(&self, of: Reported) -> Result<(ReportHead, Vec<TaskPage>), Refused>;

    /// Whether a new task is reviewed until it is approved, unless its person says otherwise.
    fn reviews(&self) -> bool;

    /// Does what a person wishes. What it gives is safe on the disk.
    fn fulfil(&self, wish: Wish) -> Result<Done, Refused>;

    /// Somebody who looks for what changed, for a thread of its own.
    fn watcher(&self) -> Box<dyn Watcher>;
}

/// What a report is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    Task(u64),
    Run(u64),
}

/// What a person wants to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
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
        /// Whose finding it is, where several tasks have it.
        task: Option<u64>,
        reason: String,
    },
    Add(NewTask),
}

/// A task to be put into the queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewTask {
    pub text: String,
    /// The word of its type; `implement` where it is empty.
    pub kind: String,
    pub auto_review: bool,
    pub max_cycles: Option<u32>,
    pub depends_on: Vec<u64>,
}

/// A wish that was fulfilled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// What was done, in a line.
    pub message: String,
    /// What to do next, or what else to know.
    pub hint: Option<String>,
    /// The task that is there now and was not before.
    pub added: Option<u64>,
}

/// Why something was not done, or cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub why: Why,
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// There is no such thing.
    Unknown,
    /// It was asked for in a way that nobody understands.
    Unclear,
    /// It does not go with how things stand.
    Unfitting,
    /// Something is broken here.
    Broken,
}

/// Looks for what changed.
pub trait Watcher: Send {
    /// What changed since it was last asked. Cheap where nothing did.
    fn look(&mut self) -> Change;
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// More than can be named.
    pub everything: bool,
    pub runs: BTreeSet<u64>,
    pub tasks: BTreeSet<u64>,
    /// The tasks whose agents said something, which concerns those alone who look at one.
    pub said: BTreeSet<u64>,
}

impl Change {
    pub fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Both.
    pub fn add(&mut self, other: &Self) {
        self.everything |= other.everything;
        self.runs.extend(&other.runs);
        self.tasks.extend(&other.tasks);
        self.said.extend(&other.said);
    }
}
