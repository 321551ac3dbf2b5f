//! The JSON of the commands that look at one thing or decide one.

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::config::edit::Changed;
use signoff_core::config::{AgentKind, PhaseRow, Row};
use signoff_core::hold::Hold;

use super::VERSION;

/// `doctor --json`: everything that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DoctorReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// Whether nothing is wrong; a warning is not.
    pub ok: bool,
    /// Who holds agents to what they may write.
    #[schemars(extend("enum" = ["nobody", "bubblewrap", "landlock"]))]
    pub hold: &'static str,
    pub checks: Vec<Look>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Look {
    pub what: &'static str,
    pub ok: bool,
    /// Nothing is broken, but it is not as somebody wanted it.
    pub warning: bool,
    pub message: String,
}

impl DoctorReport {
    pub fn of(checks: Vec<Look>, hold: Hold) -> Self {
        Self { version: VERSION, ok: checks.iter().all(|look| look.ok), hold: hold.word(), checks }
    }
}

impl Look {
    pub fn well(what: &'static str, message: impl Into<String>) -> Self {
        Self { what, ok: true, warning: false, message: message.into() }
    }

    pub fn warning(what: &'static str, message: impl Into<String>) -> Self {
        Self { warning: true, ..Self::well(what, message) }
    }

    pub fn ill(what: &'static str, message: impl Into<String>) -> Self {
        Self { ok: false, ..Self::well(what, message) }
    }
}

/// `merge --json` and `land --json`: what came into the default branch, and what did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LandReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// The default branch; of a task that lands with its group, the branch of its run.
    pub target: String,
    pub tasks: Vec<LandedTask>,
}

/// What became of one task's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LandedTask {
    pub task_id: u64,
    /// `ready` is said by `--dry-run`: it would land. `waiting` lands with its group.
    #[schemars(extend("enum" = ["landed", "already", "refused", "ready", "waiting"]))]
    pub status: &'static str,
    /// The commit that brought it in; of what was there before or is ready, the one that was approved.
    pub commit: Option<String>,
    /// Why it was refused.
    pub reason: Option<String>,
}

impl LandReport {
    pub fn of(target: String, tasks: Vec<LandedTask>) -> Self {
        Self { version: VERSION, target, tasks }
    }
}

/// `init --json`: what was found and done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InitReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub written: Vec<&'static str>,
    /// Files that were there.
    pub kept: Vec<&'static str>,
    /// Where the old signoff.toml is now.
    pub backup: Option<String>,
    pub agents: Vec<AgentKind>,
    pub checks: Vec<Check>,
    /// Files of other programs, which are read as they are.
    pub found: Vec<String>,
    /// For people: which checks would be there if their programs were.
    #[serde(skip)]
    pub missing: Vec<String>,
    /// For people: what can be told of each agent that was found.
    #[serde(skip)]
    pub seen: Vec<String>,
}

/// A command that judges the project's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    pub name: String,
    pub command: String,
}

/// `config --json`: every setting, and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ConfigReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub settings: Vec<Row>,
}

impl ConfigReport {
    pub fn of(settings: Vec<Row>) -> Self {
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
    pub fn of(phases: Vec<PhaseRow>) -> Self {
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
    /// False if it said so already.
    pub written: bool,
    /// The copy of the file as it was.
    pub backup: Option<String>,
    pub changes: Vec<Changed>,
    /// What else there is to know.
    pub notes: Vec<String>,
}

/// `diff --json`: what a task has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiffReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub task_id: u64,
    /// The commit the task began at.
    pub base: String,
    pub branch: String,
    pub stat: String,
    pub diff: String,
    /// Files whose changes are named in `stat` and not shown: binary or huge ones.
    pub left_out: Vec<String>,
}

/// `serve --json`: where the page is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServeReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// With the token: whoever has it may decide everything.
    pub url: String,
    pub port: u16,
}

/// `answer --json`: which question was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AnswerReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub question: String,
    /// Null for a question about a run as a whole.
    pub task_id: Option<u64>,
    pub choice: String,
}

/// `dispute --json`: which finding is refuted now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DisputeReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub finding: String,
    /// Null for a finding of a review of the checkout.
    pub task_id: Option<u64>,
    #[schemars(extend("const" = "refuted"))]
    pub state: &'static str,
}

/// A line of `logs --json`: a piece of what an attempt wrote. A long text comes in several lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogLine {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub task_id: u64,
    pub attempt: u64,
    pub role: String,
    /// Null where the attempt is no review.
    pub reviewer: Option<String>,
    pub agent: String,
    pub cycle: u32,
    #[schemars(extend("enum" = ["stdout", "stderr", "prompt"]))]
    pub stream: &'static str,
    pub text: String,
}

/// `notify --json`: what came of a test of each channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotifyReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// Whether all of them took it.
    pub ok: bool,
    pub channels: Vec<ChannelRow>,
}

/// A channel that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChannelRow {
    pub name: String,
    /// What it is; of a webhook the host alone.
    pub what: String,
    /// What it is told of.
    pub events: Vec<&'static str>,
    /// Why it did not take it; null if it did.
    pub problem: Option<String>,
}

impl NotifyReport {
    pub fn of(channels: Vec<ChannelRow>) -> Self {
        let ok = channels.iter().all(|channel| channel.problem.is_none());
        Self { version: VERSION, ok, channels }
    }
}
