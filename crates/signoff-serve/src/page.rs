//! The pages of the web UI: values in, HTML out.
//!
//! Nothing here does I/O or reads the clock. Pages work without JavaScript; the one script only refreshes them when
//! something has changed. They comply with a content security policy without inline script and style.

mod attempts;
mod badges;
mod chart;
mod cycles;
mod diff;
mod findings;
mod forms;
mod frame;
mod home;
mod report;
mod run;
mod task;
mod text;

use std::collections::BTreeSet;

use jiff::Timestamp;
use signoff_core::view::inbox::NextStep;
use signoff_core::view::{QuestionRow, RunRow, TaskRow};
use signoff_term::report::{Changes, PartSection, RunSection};
use signoff_term::show::{AttemptRow, Cycle, LedgerLine, TaskReport};
use signoff_term::stats::RoleStats;

pub use attempts::page as transcript;
pub use chart::stats_page as stats;
pub use diff::page as diff;
pub use forms::add_page as add;
pub use frame::{error as error_page, return_path};
pub use home::page as home;
pub use report::file as report_file;
pub use run::page as run;
pub use task::page as task;

/// A file that is served as `/assets/NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset {
    pub name: &'static str,
    pub content_type: &'static str,
    pub text: &'static str,
}

const STYLE: &str = include_str!("../assets/style.css");

/// The style sheet, script and icon of the pages, built into the program.
pub const ASSETS: [Asset; 3] = [
    Asset { name: "style.css", content_type: "text/css; charset=utf-8", text: STYLE },
    Asset { name: "live.js", content_type: "text/javascript; charset=utf-8", text: include_str!("../assets/live.js") },
    Asset { name: "icon.svg", content_type: "image/svg+xml", text: include_str!("../assets/icon.svg") },
];

/// The asset with this name.
pub fn asset(name: &str) -> Option<Asset> {
    ASSETS.into_iter().find(|asset| asset.name == name)
}

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
pub struct HomePage {
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
    pub next: NextStep,
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
    /// Changed files that the patch does not show.
    pub not_shown: Vec<HiddenFile>,
}

/// A changed file that a diff does not show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenFile {
    pub path: String,
    /// Why it is not shown.
    pub reason: String,
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
    /// The result, the specification and the changes of the run.
    pub section: Option<RunSection>,
    /// Planning, checkpoint reviews and the final review.
    pub parts: Vec<PartSection>,
    /// Attempts, time and cost by role.
    pub roles: Vec<RoleStats>,
    pub made_at: Timestamp,
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
