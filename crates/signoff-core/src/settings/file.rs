//! Every table of a settings file: its keys with their defaults. The first line above a key is shown by editors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::agents::{AgentKind, PriceTable};
use super::notify::NotifyTable;
use super::preset::PresetTable;
use super::reader::checked;
use super::rules::{NamedTable, key_name, parts};
use super::values::{
    Arguments, CommandWords, Dollars, EnvironmentKey, FixCount, LandingMethod, Minutes, ModelName, Network,
    NonBlankText, PassedVariables, PlainName, PositiveNumber, RepositoryPaths, ReviewWorkspace, Sandbox, SecretText,
    SmallCount, StoreLocation, WaitTime, WorkflowName, WritablePaths,
};
use crate::contract::Contract;
use crate::policy::{Caps, TimeSpan};
use crate::review::ReviewerKind;
use crate::session::ResumePolicy;
use crate::source::json::in_order;
use crate::task::TaskType;
use crate::workflow::keys::{GateKeys, OwnWorkflowName, WorkflowTable};

/// The whole file.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default = "SettingsFile::built_in", rename = "the configuration")]
#[expect(non_snake_case, reason = "keys of the slots preset, as existing files have them")]
pub(super) struct SettingsFile {
    /// The workflow if a command names none: a preset, or one of your own.
    pub preset: WorkflowName,
    /// Maximum number of loops in parallel.
    pub jobs: SmallCount,
    /// Where the event log is kept.
    pub store: StoreLocation,
    /// `true`: a question stops its loop instead of waiting for a person.
    pub no_ask: bool,
    /// How signed-off work lands: with a merge commit, or with the same changes on top.
    pub landing: LandingMethod,
    /// Where reviewers work: in the loop's worktree, or in a throw-away copy each. Unset: a copy for reviewers whose prompt asks
    /// them to run tests.
    pub review_workspace: Option<ReviewWorkspace>,
    /// When an agent resumes its earlier session: "fresh", never; "retry", after it was cut off; "fix", also to fix its own work.
    pub sessions: ResumePolicy,
    /// `true`: agents can write only where they have to, if the system supports a sandbox; "required": nothing starts without
    /// one.
    pub sandbox: Sandbox,
    /// `false`: only readers are sandboxed; writers may write anywhere.
    pub sandbox_writers: bool,
    /// Where writers may write besides their worktree: "caches" for the usual ones of build tools, paths from `/` or `~/`.
    pub sandbox_write: WritablePaths,
    /// What agents may connect to: "open", everything; a list of TCP ports, only these and the report server, if Landlock
    /// (version 4) is available.
    pub sandbox_network: Network,
    /// Preset `slots`: whether tasks are reviewed if no flag decides it.
    pub reviewEnabled: Option<bool>,
    /// Preset `slots`: maximum number of fixes of a task.
    pub reviewMaxFixAttempts: Option<FixCount>,
    /// Preset `slots`: a file with the prompt of implementers and fixers, from the repository's root.
    pub developerPromptPath: Option<NonBlankText>,
    /// Preset `slots`: a file with the prompt of the reviewers, from the repository's root.
    pub reviewerPromptPath: Option<NonBlankText>,
    /// A table for each agent.
    pub agents: NamedTable<PlainName, AgentTable>,
    /// Which agent does what; a missing role falls back to `implement`.
    pub roles: RoleValues<AgentChoice>,
    /// A table for each reviewer.
    pub reviewers: NamedTable<PlainName, ReviewerTable>,
    /// The keys of a gate, for the preset in use.
    pub gate: GateKeys,
    /// A table for each workflow that is to be changed.
    pub presets: NamedTable<PlainName, PresetTable>,
    /// Defaults for tasks of every type.
    pub defaults: DefaultsTable,
    /// A table for each type of task.
    pub task_types: TaskTypesTable,
    /// Time, money and tokens.
    pub limits: LimitsTable,
    /// Prices of models whose agents report none. They override the built-in list; the longest matching name counts.
    pub prices: NamedTable<ModelName, PriceTable>,
    /// Command lines under names, run in this order by checks and by agents of kind "checks".
    pub checks: CheckCommands,
    /// For each role, the file with its prompt, from the repository's root.
    pub prompts: RoleValues<Option<NonBlankText>>,
    /// Where loops work.
    pub worktree: WorktreeTable,
    /// Which channels are notified of what.
    pub notify: NotifyTable,
    /// Workflows of your own.
    #[serde(skip_serializing)]
    pub workflows: NamedTable<OwnWorkflowName, WorkflowTable>,
}

pub(super) const TASK_TYPES: &str = key_name!(SettingsFile, task_types);
pub(super) const REVIEW_ENABLED: &str = key_name!(SettingsFile, reviewEnabled);
pub(super) const REVIEW_MAX_FIX_ATTEMPTS: &str = key_name!(SettingsFile, reviewMaxFixAttempts);
pub(super) const DEVELOPER_PROMPT_PATH: &str = key_name!(SettingsFile, developerPromptPath);
pub(super) const REVIEWER_PROMPT_PATH: &str = key_name!(SettingsFile, reviewerPromptPath);

impl SettingsFile {
    /// The values of a file that sets nothing.
    fn built_in() -> Self {
        Self {
            preset: WorkflowName("task".to_owned()),
            jobs: SmallCount(4),
            sandbox_writers: true,
            sandbox_write: WritablePaths::caches(),
            limits: LimitsTable { keys: LimitKeys::built_in(), task: CapsTable::default() },
            ..Self::default()
        }
    }
}

/// `[agents.NAME]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "an agent")]
pub(super) struct AgentTable {
    /// The kind of program; without it the name of the table, if that is a kind.
    pub kind: Option<AgentKind>,
    /// The program and its arguments; needed for "command" and "acp".
    pub command: Option<CommandWords>,
    /// The model it is asked to use.
    pub model: Option<NonBlankText>,
    /// More arguments.
    pub args: Arguments,
    /// Variables it is given; their values are never shown.
    pub env: NamedTable<EnvironmentKey, SecretText>,
    /// Variables of yours that it gets besides those that every agent of its kind gets: names, or prefixes with a `*`.
    pub pass: PassedVariables,
    /// Time limit of one start.
    pub timeout: Option<TimeSpan>,
    /// The agent that takes over while the provider of this one refuses.
    pub fallback: Option<NonBlankText>,
    /// The provider of its models; agents of one provider share `agents_per_provider`.
    pub provider: Option<NonBlankText>,
    /// Maximum number of these agents in parallel.
    pub max_agents: Option<SmallCount>,
}

/// A value for each role: `[roles]` and `[prompts]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "[KEY]")]
pub(super) struct RoleValues<T: Default> {
    /// Implements tasks.
    pub implement: T,
    /// Fixes what reviewers found.
    pub fix: T,
    /// Reviews, unless a reviewer says otherwise for itself.
    pub review: T,
    /// Finds the tasks of a specification.
    pub enumerate: T,
    /// Plans.
    pub plan: T,
    /// Collects ideas first.
    pub brainstorm: T,
    /// Simplifies finished work.
    pub simplify: T,
}

/// The agent of a role, with a model of its own if it has one in this role. The merge turns a mere name into a table.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentChoice(pub RoleTable);

/// A role as a table.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "a role")]
pub(super) struct RoleTable {
    /// The agent; without it that of `implement`.
    pub agent: Option<NonBlankText>,
    /// Its model in this role.
    pub model: Option<NonBlankText>,
}

impl<'de> Deserialize<'de> for AgentChoice {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "the name of an agent in quotes, or { agent = \"…\", model = \"…\" }";
        checked(deserializer, expected, |table: RoleTable| {
            (table.agent.is_some() || table.model.is_some()).then_some(Self(table))
        })
    }
}

impl Serialize for AgentChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            RoleTable { agent, model: None } => agent.serialize(serializer),
            table => table.serialize(serializer),
        }
    }
}

impl JsonSchema for AgentChoice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AgentChoice".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut table = RoleTable::json_schema(generator);
        table.insert("minProperties".to_owned(), 1.into());
        schemars::json_schema!({ "anyOf": [generator.subschema_for::<NonBlankText>(), table] })
    }
}

/// `[reviewers.NAME]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "a reviewer")]
pub(super) struct ReviewerTable {
    /// What it looks for, and its rank in the merge; without it the preset's, or the name of the table.
    pub kind: Option<ReviewerKind>,
    /// Its agent; without it that of the role `review`.
    pub agent: Option<NonBlankText>,
    /// The model of that agent.
    pub model: Option<NonBlankText>,
    /// How it answers.
    pub contract: Option<Contract>,
    /// `true`: an answer without the nonce it was given is refused; `false`: it is read. Unset: refused from known kinds of agents.
    pub require_nonce: Option<bool>,
    /// Where it works: in the loop's worktree, or in a throw-away copy.
    pub review_workspace: Option<ReviewWorkspace>,
    /// Time limit of each review.
    pub timeout: Option<TimeSpan>,
    /// The file with its prompt, from the repository's root.
    pub prompt: Option<NonBlankText>,
}

/// `[defaults]`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "[defaults]")]
pub(super) struct DefaultsTable {
    /// Whether tasks are reviewed: the gate of the preset in use is on, also if the preset has it off. Unset: it is on if a
    /// reviewer or a check is configured, or a check is found in the project.
    pub auto_review: bool,
    /// Maximum number of reviews of a task.
    pub max_review_cycles: SmallCount,
}

pub(super) const AUTO_REVIEW: &str = key_name!(DefaultsTable, auto_review);
pub(super) const MAX_REVIEW_CYCLES: &str = key_name!(DefaultsTable, max_review_cycles);

impl Default for DefaultsTable {
    fn default() -> Self {
        Self { auto_review: true, max_review_cycles: SmallCount(3) }
    }
}

/// `[task_types]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "[task_types]")]
pub(super) struct TaskTypesTable {
    /// Tasks that change the work.
    pub implement: TaskTypeTable,
    /// Tasks that only review.
    pub review: TaskTypeTable,
    /// Tasks that continue reviewed work.
    pub improve: TaskTypeTable,
    /// Tasks that write a plan.
    pub plan: TaskTypeTable,
}

impl TaskTypesTable {
    pub fn get(&self, kind: TaskType) -> &TaskTypeTable {
        match kind {
            TaskType::Implement => &self.implement,
            TaskType::Review => &self.review,
            TaskType::Improve => &self.improve,
            TaskType::Plan => &self.plan,
        }
    }
}

/// `[task_types.TYPE]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "a task type")]
pub(super) struct TaskTypeTable {
    /// Whether tasks of this type are reviewed.
    pub auto_review: Option<bool>,
    /// Maximum number of reviews of a task.
    pub max_review_cycles: Option<SmallCount>,
    /// The model of writers.
    pub model: Option<NonBlankText>,
    /// The model of reviewers.
    pub review_model: Option<NonBlankText>,
    /// Minutes for the work.
    pub timeout_minutes: Option<Minutes>,
    /// Minutes for each review.
    pub review_timeout_minutes: Option<Minutes>,
    /// Minutes for each fix.
    pub improve_timeout_minutes: Option<Minutes>,
}

/// `[limits]`.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct LimitsTable {
    #[serde(flatten)]
    pub task: CapsTable,
    #[serde(flatten)]
    pub keys: LimitKeys,
}

parts!(LimitsTable { keys, task });

/// The keys of `[limits]` that `[limits.run]` does not have.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default = "LimitKeys::built_in", rename = "[limits]")]
pub(super) struct LimitKeys {
    /// Time limit of one start of an agent.
    pub attempt: TimeSpan,
    /// Time limit of an agent without output.
    pub silence: TimeSpan,
    /// Time between asking an agent to end and killing it.
    pub grace: TimeSpan,
    /// Maximum number of agents of one provider in parallel.
    pub agents_per_provider: Option<SmallCount>,
    /// The first wait after a provider refuses; "0s" is none.
    pub backoff: WaitTime,
    /// The longest wait that we choose ourselves.
    pub backoff_max: WaitTime,
    /// Maximum number of refusals of one job in a row; one more, and its agent has failed.
    pub max_rate_limits: SmallCount,
    /// The expected cost of an attempt as long as nothing is known.
    pub reserve_usd: Option<Dollars>,
    /// The limits of a whole run.
    pub run: CapsTable,
}

impl LimitKeys {
    fn built_in() -> Self {
        Self {
            attempt: TimeSpan::minutes(60),
            silence: TimeSpan::minutes(10),
            grace: TimeSpan { seconds: 5 },
            backoff: WaitTime(TimeSpan { seconds: 30 }),
            backoff_max: WaitTime(TimeSpan::minutes(15)),
            max_rate_limits: SmallCount(20),
            ..Self::default()
        }
    }
}

/// The caps of each task in `[limits]`, and of a whole run in `[limits.run]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "[limits.run]")]
pub(super) struct CapsTable {
    /// Dollars for each task; in `[limits.run]` for the run.
    pub max_cost_usd: Option<Dollars>,
    /// Tokens for each task; in `[limits.run]` for the run.
    pub max_tokens: Option<PositiveNumber>,
    /// Minutes of work for each task; in `[limits.run]` for the run.
    pub max_minutes: Option<PositiveNumber>,
}

impl CapsTable {
    pub fn caps(&self) -> Caps {
        Caps {
            max_cost_micro_usd: self.max_cost_usd.map(|cost| cost.0),
            max_tokens: self.max_tokens.map(|tokens| tokens.0),
            max_minutes: self.max_minutes.map(|minutes| minutes.0),
        }
    }
}

/// `[worktree]`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "[worktree]")]
pub(super) struct WorktreeTable {
    /// Files that are not in git but that every worktree needs.
    pub copy: RepositoryPaths,
    /// Where worktrees are made, from the root of the repository; it must not be a link.
    pub directory: NonBlankText,
}

impl Default for WorktreeTable {
    fn default() -> Self {
        Self { copy: RepositoryPaths::default(), directory: ".signoff/worktrees".into() }
    }
}

/// `[checks]`: command lines under names, in the order of the files.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct CheckCommands(
    #[schemars(with = "NamedTable<PlainName, NonBlankText>")]
    #[serde(deserialize_with = "in_order")]
    pub Vec<(PlainName, NonBlankText)>,
);

impl Serialize for CheckCommands {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, command)| (name, command)))
    }
}
