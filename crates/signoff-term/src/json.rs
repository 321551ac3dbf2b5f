//! The types of the JSON output of commands. Their schemas are in `docs/schema/`.

use schemars::{JsonSchema, Schema, json_schema};
use serde::Serialize;
use signoff_core::group::{RunOutcome, RunStage, RunStageKind};
use signoff_core::ledger::FindingState;
use signoff_core::merge::render::plain_text::escaped_json;
use signoff_core::sandbox::SandboxBackend;
use signoff_core::settings::edit::ChangedKey;
use signoff_core::settings::{AgentKind, PhaseRow, SettingRow};
use signoff_core::view::{QuestionRow, RunRow, TaskRow};
use signoff_core::wire::{self, RecordedFact};

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
    pub stage: Option<RunStageKind>,
    /// The result of the run; null until it has ended.
    pub outcome: Option<RunOutcome>,
    /// The tasks of this invocation.
    pub tasks: Vec<TaskRow>,
    pub questions: Vec<QuestionRow>,
}

impl RunReport {
    pub fn new(
        run_id: Option<u64>,
        stage: Option<&RunStage>,
        tasks: Vec<TaskRow>,
        questions: Vec<QuestionRow>,
    ) -> Self {
        let outcome = stage.and_then(RunStage::outcome);
        let tasks = tasks.into_iter().map(TaskRow::with_current_state).collect();
        Self { version: VERSION, run_id, stage: stage.map(RunStageKind::from), outcome, tasks, questions }
    }
}

/// A line of `--json-events`: one recorded event, without the line break.
pub fn event(recorded: &RecordedFact) -> String {
    escaped_json(&wire::to_json(recorded).to_string())
}

/// The merged review has its own schema file.
pub(crate) fn merged_review(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "merged-review.schema.json" })
}

/// `doctor --json`: the result of every check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DoctorReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// Whether no check failed. Warnings do not count.
    pub ok: bool,
    /// The sandbox that restricts what agents may write.
    #[serde(rename = "hold")]
    pub sandbox: SandboxBackend,
    pub checks: Vec<DoctorCheck>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DoctorCheck {
    pub what: &'static str,
    pub ok: bool,
    /// The check passed, but the setup is not what was configured or recommended.
    pub warning: bool,
    pub message: String,
}

impl DoctorReport {
    pub fn new(checks: Vec<DoctorCheck>, sandbox: SandboxBackend) -> Self {
        Self { version: VERSION, ok: checks.iter().all(|check| check.ok), sandbox, checks }
    }
}

impl DoctorCheck {
    pub fn passed(what: &'static str, message: impl Into<String>) -> Self {
        Self { what, ok: true, warning: false, message: message.into() }
    }

    pub fn warning(what: &'static str, message: impl Into<String>) -> Self {
        Self { warning: true, ..Self::passed(what, message) }
    }

    pub fn failed(what: &'static str, message: impl Into<String>) -> Self {
        Self { ok: false, ..Self::passed(what, message) }
    }
}

/// `merge --json` and `land --json`: which tasks landed and which did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MergeReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// The default branch, or the branch of the run for a task that lands with its group.
    pub target: String,
    pub tasks: Vec<LandedTask>,
}

/// The landing result of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LandedTask {
    pub task_id: u64,
    /// `ready`: it would land (with `--dry-run`). `waiting`: it lands with its group.
    pub status: LandedStatus,
    /// The commit that landed; the approved commit for `already` and `ready`.
    pub commit: Option<String>,
    /// Why it was refused.
    pub reason: Option<String>,
}

/// Whether work landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LandedStatus {
    Landed,
    Already,
    Refused,
    Ready,
    Waiting,
}

impl MergeReport {
    pub fn new(target: String, tasks: Vec<LandedTask>) -> Self {
        Self { version: VERSION, target, tasks }
    }
}

/// `init --json`: what was found and written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InitReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub written: Vec<&'static str>,
    /// Files that existed already.
    pub kept: Vec<&'static str>,
    /// The path of the old signoff.toml.
    pub backup: Option<String>,
    pub agents: Vec<AgentKind>,
    pub checks: Vec<ProjectCheck>,
    /// Configuration files of other programs, which are used unchanged.
    pub found: Vec<String>,
    /// Text output only: checks whose programs are not installed.
    #[serde(skip)]
    pub missing: Vec<String>,
    /// Text output only: a line per agent that was found.
    #[serde(skip)]
    pub agent_lines: Vec<String>,
}

/// A check command of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProjectCheck {
    pub name: String,
    pub command: String,
}

/// `config --json`: every setting, and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ConfigReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub settings: Vec<SettingRow>,
}

impl ConfigReport {
    pub fn new(settings: Vec<SettingRow>) -> Self {
        Self { version: VERSION, settings }
    }
}

/// `configure --show --json`: the phases of the preset `phases`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PhasesReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub phases: Vec<PhaseRow>,
}

impl PhasesReport {
    pub fn new(phases: Vec<PhaseRow>) -> Self {
        Self { version: VERSION, phases }
    }
}

/// `configure --json` with `--set`, `--import` or `--reset`: what was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfigureReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// The file that was changed.
    pub file: String,
    /// False if the file already had these values.
    pub written: bool,
    /// The copy of the previous file.
    pub backup: Option<String>,
    pub changes: Vec<ChangedKey>,
    /// Further information.
    pub notes: Vec<String>,
}

/// `diff --json`: the changes of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiffReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub task_id: u64,
    /// The commit the task started from.
    pub base: String,
    pub branch: String,
    pub stat: String,
    pub diff: String,
    /// Files that are in `stat` but not in `diff`, because they are binary or too large.
    pub left_out: Vec<String>,
}

/// `serve --json`: the address of the web UI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServeReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// Contains the token, which gives full access.
    pub url: String,
    pub port: u16,
}

/// `answer --json`: the question that was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AnswerReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub question: String,
    /// Null for a question about a run as a whole.
    pub task_id: Option<u64>,
    pub choice: String,
}

/// `dispute --json`: the finding that is now refuted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DisputeReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub finding: String,
    /// Null for a finding of a review of the checkout.
    pub task_id: Option<u64>,
    #[schemars(with = "String", extend("const" = "refuted"))]
    pub state: FindingState,
}

/// A line of `logs --json`: a part of the output of an attempt. Long text is split over several lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogLine {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub task_id: u64,
    pub attempt: u64,
    pub role: String,
    /// Null if the attempt is not a review.
    pub reviewer: Option<String>,
    pub agent: String,
    pub cycle: u32,
    #[schemars(extend("enum" = ["stdout", "stderr", "prompt"]))]
    pub stream: &'static str,
    pub text: String,
}

/// `notify --json`: the test result of each channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotifyReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// Whether every channel accepted the message.
    pub ok: bool,
    pub channels: Vec<ChannelRow>,
}

/// A tested channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChannelRow {
    pub name: String,
    /// A description of the channel; for a webhook only the host.
    pub what: String,
    /// The events it is sent.
    pub events: Vec<&'static str>,
    /// Why the delivery failed; null if it succeeded.
    pub problem: Option<String>,
}

impl NotifyReport {
    pub fn new(channels: Vec<ChannelRow>) -> Self {
        let ok = channels.iter().all(|channel| channel.problem.is_none());
        Self { version: VERSION, ok, channels }
    }
}
