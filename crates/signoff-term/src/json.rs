//! The types of the JSON output of commands. Their schemas are in `docs/schema/`.

mod command;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, json_schema};
use serde::Serialize;
use serde_json::Value;
use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::merge::render::plain_text::escaped_json;
use signoff_core::notify::NotificationMessage;
use signoff_core::state_v4::IterationState;
use signoff_core::view::{QuestionRow, RunRow, TaskRow};
use signoff_core::wire::{self, RecordedFact};

pub use command::{
    AnswerReport, ChannelRow, ConfigReport, ConfigureReport, DiffReport, DisputeReport, DoctorCheck, DoctorReport,
    InitReport, LandedTask, LogLine, MergeReport, NotifyReport, PhasesReport, ProjectCheck, ServeReport,
};

use crate::agents::AgentsReport;
use crate::report::ReportDocument;
use crate::show::TaskReport;
use crate::slots::SlotsReport;
use crate::stats::StatsReport;

/// The version of all JSON output. It changes when a key changes its meaning or is removed.
pub const VERSION: u32 = 1;

/// `status --json`: all tasks, the open questions, and the unfinished runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StatusReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub tasks: Vec<TaskRow>,
    pub questions: Vec<QuestionRow>,
    /// The open runs, and the last run if it failed in planning or in its final review.
    pub runs: Vec<RunRow>,
}

impl StatusReport {
    pub fn new(tasks: Vec<TaskRow>, questions: Vec<QuestionRow>, runs: Vec<RunRow>) -> Self {
        let tasks = tasks.into_iter().map(TaskRow::with_current_state).collect();
        Self { version: VERSION, tasks, questions, runs }
    }
}

/// `add --json`: the task that was added.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AddReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub task: TaskRow,
}

impl AddReport {
    pub fn new(task: TaskRow) -> Self {
        Self { version: VERSION, task: task.with_current_state() }
    }
}

/// `work --json` and `run --json`: how the invocation ended.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// Null if there was nothing to work on.
    pub run_id: Option<u64>,
    #[schemars(extend("enum" = ["queued", "preparing", "working", "blocked", "reviewing", "landing", "done", null]))]
    pub stage: Option<&'static str>,
    /// The result of the run; null until it has ended.
    #[schemars(extend("enum" = ["approved", "attention", "failed", "cancelled", null]))]
    pub outcome: Option<&'static str>,
    /// The tasks of this invocation.
    pub tasks: Vec<TaskRow>,
    pub questions: Vec<QuestionRow>,
}

impl RunReport {
    pub fn new(run: Option<(u64, &RunStage)>, tasks: Vec<TaskRow>, questions: Vec<QuestionRow>) -> Self {
        let stage = run.map(|(_, stage)| stage.as_str());
        let outcome = run.and_then(|(_, stage)| stage.outcome()).map(RunOutcome::as_str);
        let tasks = tasks.into_iter().map(TaskRow::with_current_state).collect();
        Self { version: VERSION, run_id: run.map(|(run, _)| run), stage, outcome, tasks, questions }
    }
}

/// A line of `--json-events`: one recorded event, without the line break.
pub fn event(recorded: &RecordedFact) -> String {
    escaped_json(&wire::to_json(recorded).to_string())
}

/// One recorded event. The content of `body` depends on `kind`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used: the core writes events")]
struct EventLine {
    #[schemars(extend("const" = 1))]
    version: u32,
    run_id: u64,
    /// The number of the event in the log of its run.
    seq: u64,
    /// When it was recorded, UTC.
    at: String,
    /// `task.added`, `run.opened`, `loop.review_arrived`, …
    kind: String,
    /// Present in events of a loop; null in events of the run.
    #[schemars(skip_serializing_if = "Option::is_none")]
    loop_id: Option<String>,
    /// Present in events of a task.
    #[schemars(skip_serializing_if = "Option::is_none")]
    task_id: Option<u64>,
    body: Value,
}

/// The schemas of all JSON output, by file name without extension.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    let titled = |title: &str, root: fn() -> Schema| {
        let mut schema = root();
        schema.insert("title".to_owned(), title.into());
        schema
    };
    vec![
        ("add", titled("`add --json`, version 1", printed::<AddReport>)),
        ("agents", titled("`agents --json`, version 1", printed::<AgentsReport>)),
        ("answer", titled("`answer --json`, version 1", printed::<AnswerReport>)),
        ("config", titled("`config --json`, version 1", printed::<ConfigReport>)),
        (
            "configure",
            titled("`configure --json` with `--set`, `--import` or `--reset`, version 1", printed::<ConfigureReport>),
        ),
        ("configure-show", titled("`configure --show --json`, version 1", printed::<PhasesReport>)),
        ("diff", titled("`diff --json`, version 1", printed::<DiffReport>)),
        ("dispute", titled("`dispute --json`, version 1", printed::<DisputeReport>)),
        ("doctor", titled("`doctor --json`, version 1", printed::<DoctorReport>)),
        ("event", titled("A line of `--json-events`, version 1", printed::<EventLine>)),
        ("init", titled("`init --json`, version 1", printed::<InitReport>)),
        ("land", titled("`merge --json` and `land --json`, version 1", printed::<MergeReport>)),
        ("logs", titled("A line of `logs --json`, version 1", printed::<LogLine>)),
        (
            "notification",
            titled("The body sent to webhooks and to commands on stdin, version 1", printed::<NotificationMessage>),
        ),
        ("notify", titled("`notify --json`, version 1", printed::<NotifyReport>)),
        ("report", titled("`report --format json`, version 1", printed::<ReportDocument>)),
        ("run", titled("The end of `work --json` and `run --json`, version 1", printed::<RunReport>)),
        (
            "slots",
            titled("`run beads --dry-run --json` and `run queue --dry-run --json`, version 1", printed::<SlotsReport>),
        ),
        ("state-v4", titled("`export --format state-v4`, and what `import` reads", printed::<IterationState>)),
        ("serve", titled("`serve --json`, version 1", printed::<ServeReport>)),
        ("show", titled("`show --json`, version 1", printed::<TaskReport>)),
        ("stats", titled("`stats --json`, version 1", printed::<StatsReport>)),
        ("status", titled("`status --json`, version 1", printed::<StatusReport>)),
    ]
}

/// A schema for output: every key is present, and an unknown value is null.
fn printed<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// The merged review has its own schema file.
pub(crate) fn merged_review(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "merged-review.schema.json" })
}
