//! What the pages are made of: values that whoever serves them puts together.

use std::collections::BTreeSet;

use jiff::Timestamp;
use signoff_core::view::{QuestionRow, RunRow, TaskRow};
use signoff_term::report::{Changes, Part, Standing};
use signoff_term::show::{Attempt, Cycle, LedgerLine, Report};

/// Something to be said at the head of a page, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub kind: NoticeKind,
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What was typed into the form that was refused, which is there again.
    pub typed: Option<Typed>,
}

/// What a person typed into a form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Typed {
    /// Where the form was sent: `/tasks/3/edit`.
    pub action: String,
    pub verdict: String,
    pub reason: String,
}

/// Whether something was done or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    Done,
    Refused,
}

/// The overview: everything there is, what needs somebody first.
#[derive(Debug, Clone, PartialEq)]
pub struct Home {
    /// What the person calls the repository.
    pub project: String,
    pub tasks: Vec<TaskRow>,
    pub runs: Vec<RunRow>,
    pub questions: Vec<QuestionRow>,
    /// The runs that some program works on now.
    pub driven: BTreeSet<u64>,
    /// Whether all that is done is to be listed, however much that is (`?all=1`).
    pub all: bool,
    pub now: Timestamp,
}

/// Everything about one task. Its diff and a report of it are made of the same.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskPage {
    pub project: String,
    pub report: Report,
    /// The text that was asked for; empty where nothing but the title is known.
    pub spec: String,
    /// What changed on its branch; none where there is no branch, or where it cannot be told.
    pub diff: Option<DiffText>,
    /// How much that is, or why it cannot be told; only a report has it.
    pub changes: Option<Changes>,
    pub transcripts: Vec<Transcript>,
    /// What to type about it, as [`signoff_term::attention::next`] says.
    pub next: String,
    /// Whether some program works on its run now.
    pub driven: bool,
    pub now: Timestamp,
}

/// A unified patch, as git prints it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiffText {
    pub patch: String,
    /// `3 files changed, 40 insertions(+), 2 deletions(-)`.
    pub stat: String,
    /// How many bytes of the patch were left out at its end.
    pub left_out: u64,
    /// Changed files that the patch does not show, each with why.
    pub not_shown: Vec<(String, String)>,
}

/// The last that an attempt said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// `a3`.
    pub attempt: String,
    pub tail: String,
    /// How many bytes came before it.
    pub left_out: u64,
}

/// One attempt's transcript on a page of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptPage {
    pub project: String,
    pub task: u64,
    pub title: String,
    pub attempt: Attempt,
    pub transcript: Transcript,
}

/// One run with its tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPage {
    pub project: String,
    pub run: RunRow,
    /// Its tasks alone.
    pub tasks: Vec<TaskRow>,
    /// Its questions alone.
    pub questions: Vec<QuestionRow>,
    /// Whether some program works on it now.
    pub driven: bool,
    pub now: Timestamp,
}

/// What can be counted over all tasks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatsPage {
    pub project: String,
    pub reviewers: Vec<ReviewerFigures>,
    pub roles: Vec<RoleFigures>,
    /// How many tasks were approved after so many cycles, fewest cycles first.
    pub cycles: Vec<(u32, u64)>,
    /// How many tasks stopped for which reason, the most frequent first.
    pub stops: Vec<(String, u64)>,
    pub approved: u64,
    /// What an approved task cost, on average; none where none was approved.
    pub cost_per_approved: Option<Cost>,
}

/// What became of the findings of one reviewer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReviewerFigures {
    pub name: String,
    pub upheld: u64,
    pub refuted: u64,
    pub out_of_scope: u64,
    /// Nobody ever decided about it, and its loop is over.
    pub open: u64,
    /// What is still being worked on.
    pub pending: u64,
    pub cost: Cost,
}

impl ReviewerFigures {
    /// What can be judged by now.
    pub fn settled(&self) -> u64 {
        self.upheld + self.refuted + self.out_of_scope + self.open
    }

    pub fn raised(&self) -> u64 {
        self.settled() + self.pending
    }
}

/// What agents of one role used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoleFigures {
    pub role: String,
    pub attempts: u64,
    pub duration_ms: u64,
    pub cost: Cost,
}

/// Dollars, and whether they were worked out from list prices.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    pub usd: f64,
    pub is_estimated: bool,
}

/// The form for a new task, with what was typed before it was refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddPage {
    pub project: String,
    pub text: String,
    /// The word of its type; `implement` where it is empty.
    pub kind: String,
    pub auto_review: bool,
    pub max_cycles: String,
    pub depends_on: String,
}

/// What stands at the head of a report that is kept as a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportHead {
    pub project: String,
    /// The run, where the report is of one; its tasks are told in the order they are given.
    pub run: Option<RunRow>,
    pub whole: Whole,
    pub made_at: Timestamp,
}

/// What a report tells besides its tasks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Whole {
    /// How the run stands.
    pub standing: Option<Standing>,
    /// The text that the run was asked for; empty where it works single tasks.
    pub asked: String,
    /// All its tasks together, where they come together.
    pub changes: Option<Changes>,
    /// Planning, looks at work under way, the final review.
    pub parts: Vec<Part>,
    /// What agents of each role used, in all of it.
    pub roles: Vec<RoleFigures>,
}

/// What reviews said, and what became of that.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    pub cycles: &'a [Cycle],
    pub ledger: &'a [LedgerLine],
}

impl<'a> Judged<'a> {
    pub fn of(report: &'a Report) -> Self {
        Self { cycles: &report.cycles, ledger: &report.ledger }
    }
}
