//! The JSON that commands print, as types; their schemas stand in `docs/schema/`.

mod command;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, json_schema};
use serde::Serialize;
use serde_json::Value;
use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::merge::render::plain_text::escaped_json;
use signoff_core::notify::Message;
use signoff_core::state_v4::State;
use signoff_core::view::{QuestionRow, RunRow, TaskRow};
use signoff_core::wire::{self, Recorded};

pub use command::{
    AnswerReport, ChannelRow, Check, ConfigReport, ConfigureReport, DiffReport, DisputeReport, DoctorReport,
    InitReport, LandReport, LandedTask, LogLine, Look, NotifyReport, PhasesReport, ServeReport,
};

use crate::agents::AgentsReport;
use crate::report::Account;
use crate::show::Report;
use crate::slots::SlotsReport;
use crate::stats::StatsReport;

/// The version of every shape here. It changes when a key changes its meaning or goes.
pub const VERSION: u32 = 1;

/// `status --json`: all tasks, what people are asked, and the runs in which something is left to do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StatusReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub tasks: Vec<TaskRow>,
    pub questions: Vec<QuestionRow>,
    /// Those that are open; and the last one, if it failed in planning or in its final review.
    pub runs: Vec<RunRow>,
}

impl StatusReport {
    pub fn of(tasks: Vec<TaskRow>, questions: Vec<QuestionRow>, runs: Vec<RunRow>) -> Self {
        let tasks = tasks.into_iter().map(TaskRow::restated).collect();
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
    pub fn of(task: TaskRow) -> Self {
        Self { version: VERSION, task: task.restated() }
    }
}

/// `work --json` and `run --json`: how the invocation ended.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// None where there was nothing to work.
    pub run_id: Option<u64>,
    #[schemars(extend("enum" = ["queued", "preparing", "working", "blocked", "reviewing", "landing", "done", null]))]
    pub stage: Option<&'static str>,
    /// How the run ended; null until it has.
    #[schemars(extend("enum" = ["approved", "attention", "failed", "cancelled", null]))]
    pub outcome: Option<&'static str>,
    /// The tasks of this invocation.
    pub tasks: Vec<TaskRow>,
    pub questions: Vec<QuestionRow>,
}

impl RunReport {
    pub fn of(run: Option<(u64, &RunStage)>, tasks: Vec<TaskRow>, questions: Vec<QuestionRow>) -> Self {
        let stage = run.map(|(_, stage)| stage.word());
        let outcome = run.and_then(|(_, stage)| stage.outcome()).map(RunOutcome::word);
        let tasks = tasks.into_iter().map(TaskRow::restated).collect();
        Self { version: VERSION, run_id: run.map(|(run, _)| run), stage, outcome, tasks, questions }
    }
}

/// A line of `--json-events`: one recorded fact, without the line break.
pub fn event(recorded: &Recorded) -> String {
    escaped_json(&wire::to_json(recorded).to_string())
}

/// One recorded fact. What `body` holds depends on `kind`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used: facts are written by the core")]
struct EventLine {
    #[schemars(extend("const" = 1))]
    version: u32,
    run_id: u64,
    /// The number of the fact in its run's log.
    seq: u64,
    /// When it was recorded, UTC.
    at: String,
    /// `task.added`, `run.opened`, `loop.review_arrived`, …
    kind: String,
    /// Of facts about a loop; null in facts about the run.
    #[schemars(skip_serializing_if = "Option::is_none")]
    loop_id: Option<String>,
    /// Of facts about a task.
    #[schemars(skip_serializing_if = "Option::is_none")]
    task_id: Option<u64>,
    body: Value,
}

/// The schemas of everything printed here, by file name without its ending.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    let of = |title: &str, root: fn() -> Schema| {
        let mut schema = root();
        schema.insert("title".to_owned(), title.into());
        schema
    };
    vec![
        ("add", of("`add --json`, version 1", printed::<AddReport>)),
        ("agents", of("`agents --json`, version 1", printed::<AgentsReport>)),
        ("answer", of("`answer --json`, version 1", printed::<AnswerReport>)),
        ("config", of("`config --json`, version 1", printed::<ConfigReport>)),
        (
            "configure",
            of(
                "`configure --json` with `--set`, `--import` or `--reset`, version 1",
                printed::<ConfigureReport>,
            ),
        ),
        ("configure-show", of("`configure --show --json`, version 1", printed::<PhasesReport>)),
        ("diff", of("`diff --json`, version 1", printed::<DiffReport>)),
        ("dispute", of("`dispute --json`, version 1", printed::<DisputeReport>)),
        ("doctor", of("`doctor --json`, version 1", printed::<DoctorReport>)),
        ("event", of("A line of `--json-events`, version 1", printed::<EventLine>)),
        ("init", of("`init --json`, version 1", printed::<InitReport>)),
        ("land", of("`merge --json` and `land --json`, version 1", printed::<LandReport>)),
        ("logs", of("A line of `logs --json`, version 1", printed::<LogLine>)),
        (
            "notification",
            of("What webhooks are posted and commands find on stdin, version 1", printed::<Message>),
        ),
        ("notify", of("`notify --json`, version 1", printed::<NotifyReport>)),
        ("report", of("`report --format json`, version 1", printed::<Account>)),
        ("run", of("The end of `work --json` and `run --json`, version 1", printed::<RunReport>)),
        (
            "slots",
            of(
                "`run beads --dry-run --json` and `run queue --dry-run --json`, version 1",
                printed::<SlotsReport>,
            ),
        ),
        ("state-v4", of("`export --format state-v4`, and what `import` reads", printed::<State>)),
        ("serve", of("`serve --json`, version 1", printed::<ServeReport>)),
        ("show", of("`show --json`, version 1", printed::<Report>)),
        ("stats", of("`stats --json`, version 1", printed::<StatsReport>)),
        ("status", of("`status --json`, version 1", printed::<StatusReport>)),
    ]
}

/// What is written has all its keys; what is not known is null.
fn printed<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// The merged review has a schema of its own, beside these.
pub(crate) fn merged_review(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "merged-review.schema.json" })
}
