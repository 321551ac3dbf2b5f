//! The data that pages are rendered from. The backend supplies it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use signoff_core::view::{QuestionRow, RunRow, TaskRow};
use signoff_term::report::{Changes, PartSection, ReportResult};
use signoff_term::show::{AttemptRow, Cycle, LedgerLine, TaskReport};

/// A message at the top of a page, shown once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageNotice {
    pub kind: NoticeKind,
    pub message: String,
    /// How to fix it, or what to do next.
    pub hint: Option<String>,
    /// The input of a rejected form, to fill it in again.
    pub typed: Option<TypedFields>,
}

/// The values that a user typed into a form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypedFields {
    /// The path the form was sent to: `/tasks/3/edit`.
    pub action: String,
    pub verdict: String,
    pub reason: String,
}

/// Whether the action succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    Done,
    Refused,
}

/// The overview of all tasks and runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Home {
    /// The name of the repository.
    pub project: String,
    pub tasks: Vec<TaskRow>,
    pub runs: Vec<RunRow>,
    pub questions: Vec<QuestionRow>,
    /// The runs that a process works on now.
    pub driven: BTreeSet<u64>,
    /// Whether to list all tasks without a limit (`?all=1`).
    pub all: bool,
    pub now: Timestamp,
}

/// One task. Its diff page and its report use the same data.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskPage {
    pub project: String,
    pub report: TaskReport,
    /// The text of the task; empty if only the title is known.
    pub spec: String,
    /// The diff of its branch; `None` without a branch or if it cannot be computed.
    pub diff: Option<DiffText>,
    /// The diff statistics, or why there are none; only in reports.
    pub changes: Option<Changes>,
    pub transcripts: Vec<TranscriptTail>,
    /// The suggested next command, from `signoff_core::view::inbox`.
    pub next: String,
    /// Whether a process works on its run now.
    pub driven: bool,
    pub now: Timestamp,
}

/// A unified diff, as git prints it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiffText {
    pub patch: String,
    /// `3 files changed, 40 insertions(+), 2 deletions(-)`.
    pub stat: String,
    /// Number of bytes cut off at the end of the patch.
    pub left_out: u64,
    /// Changed files that the patch does not show, each with the reason.
    pub not_shown: Vec<(String, String)>,
}

/// The end of an attempt's transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptTail {
    /// `a3`.
    pub attempt: String,
    pub tail: String,
    /// Number of bytes before the tail.
    pub left_out: u64,
}

/// The page of one attempt's transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptPage {
    pub project: String,
    pub task: u64,
    pub title: String,
    pub attempt: AttemptRow,
    pub transcript: TranscriptTail,
}

/// One run with its tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPage {
    pub project: String,
    pub run: RunRow,
    /// The tasks of this run.
    pub tasks: Vec<TaskRow>,
    /// The questions of this run.
    pub questions: Vec<QuestionRow>,
    /// Whether a process works on it now.
    pub driven: bool,
    pub now: Timestamp,
}

/// Statistics over all tasks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatsPage {
    pub project: String,
    pub reviewers: Vec<ReviewerFigures>,
    pub roles: Vec<RoleFigures>,
    /// Number of tasks approved after a number of cycles, fewest cycles first.
    pub cycles: Vec<(u32, u64)>,
    /// Number of tasks by stop reason, most frequent first.
    pub stops: Vec<(String, u64)>,
    pub approved: u64,
    /// Average cost of an approved task; `None` if there is none.
    pub cost_per_approved: Option<Cost>,
}

/// Outcomes of the findings of one reviewer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReviewerFigures {
    pub name: String,
    pub upheld: u64,
    pub refuted: u64,
    pub out_of_scope: u64,
    /// Findings that were never decided, in loops that have ended.
    pub open: u64,
    /// Findings of loops that still run.
    pub pending: u64,
    pub cost: Cost,
}

impl ReviewerFigures {
    /// Number of findings with a final outcome.
    pub fn settled(&self) -> u64 {
        self.upheld + self.refuted + self.out_of_scope + self.open
    }

    pub fn raised(&self) -> u64 {
        self.settled() + self.pending
    }
}

/// Attempts, time and cost of one role.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoleFigures {
    pub role: String,
    pub attempts: u64,
    pub duration_ms: u64,
    pub cost: Cost,
}

/// An amount in dollars, and whether it is estimated from list prices.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    pub usd: f64,
    pub is_estimated: bool,
}

/// The form for a new task, with the values of a rejected submission.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddPage {
    pub project: String,
    pub text: String,
    /// The type of the task; empty means `implement`.
    pub kind: String,
    pub auto_review: bool,
    pub max_cycles: String,
    pub depends_on: String,
}

/// The head of a report file.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportHead {
    pub project: String,
    /// The run, if the report is about one. Tasks are listed in the given order.
    pub run: Option<RunRow>,
    pub overview: ReportOverview,
    pub made_at: Timestamp,
}

/// The parts of a report that do not belong to a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReportOverview {
    /// The result of the run.
    pub standing: Option<ReportResult>,
    /// The specification of the run; empty if it has none.
    pub specification: String,
    /// The combined changes of all tasks, if they share a branch.
    pub changes: Option<Changes>,
    /// Planning, checkpoint reviews and the final review.
    pub parts: Vec<PartSection>,
    /// Attempts, time and cost by role.
    pub roles: Vec<RoleFigures>,
}

/// The review cycles and the ledger of findings.
#[derive(Debug, Clone, Copy)]
pub struct ReviewHistory<'a> {
    pub cycles: &'a [Cycle],
    pub ledger: &'a [LedgerLine],
}

impl<'a> ReviewHistory<'a> {
    pub fn from_report(report: &'a TaskReport) -> Self {
        Self { cycles: &report.cycles, ledger: &report.ledger }
    }
}
