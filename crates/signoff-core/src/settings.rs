//! The configuration: parses layers of text into settings, each with its origin.
//!
//! Each layer becomes a tree of values with origins. It is checked alone, so that errors name its file and line, and is
//! then merged into the layers below it: built in, the person's file, files of other programs, the repository's file, the
//! environment, flags. Later layers win key by key, except that a repository may not loosen the person's sandbox. The
//! merged tree is read into [`SettingsFile`]; [`Settings`] keeps the tree for the origins.

mod agents;
mod assign;
pub mod edit;
mod file;
pub mod foreign;
pub(crate) mod formats;
pub(crate) mod key;
pub(crate) mod layer;
mod notify;
mod preset;
pub mod questions;
pub(crate) mod reader;
pub(crate) mod rules;
mod show;
mod task;
pub(crate) mod values;
mod workflows;

use std::collections::BTreeMap;

use serde::Serialize;

pub use agents::{AgentConfig, AgentKind};
pub use assign::{AssignedReviewer, AssignedWriter, PhaseContext};
pub use layer::{AGENT_VARIABLES, Flag, Layer, MAX_FILE_BYTES, SettingVariable, variables};
pub use notify::{AddressSource, Channel, ChannelTarget, Webhook, WebhookAddress, WebhookFormat};
pub use rules::file_schema as schema;
pub use show::{PhaseRow, PhaseSetting, SettingRow};
pub use task::{ExpectedReviews, TaskFlags};
pub use values::{LandingMethod, Network, ReviewWorkspace, Sandbox, WritablePaths};
pub use workflows::CHECKS;

use crate::ids::ReviewerName;
use crate::policy::{Caps, TimeSpan};
use crate::rate_limit::Backoff;
use crate::session::ResumePolicy;
use crate::workflow::Workflow;
use crate::workflow::resolve;
use file::{DEVELOPER_PROMPT_PATH, REVIEWER_PROMPT_PATH, SettingsFile};
use layer::ConfigNode;
use notify::ChannelTable;
use preset::check_gate_reviewers;
use values::StoreLocation;

/// A valid configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    file: SettingsFile,
    /// The merged layers, for the origins.
    tree: ConfigNode,
    workflows: BTreeMap<String, Workflow>,
    /// The channels of all layers. Those that later layers replace are kept because their secrets are still redacted.
    channels: Vec<ChannelTable>,
    /// The detected checks of the project, with their commands.
    found: Vec<(String, String)>,
}

/// Limits of time and cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeAndCostLimits {
    /// Time limit of one start of an agent, if no other is configured.
    pub attempt: TimeSpan,
    /// Time limit of an agent without output.
    pub silence: TimeSpan,
    /// Time between SIGTERM and SIGKILL.
    pub grace: TimeSpan,
    pub task: Caps,
    pub run: Caps,
    /// Waiting times after a rate limit.
    pub backoff: Backoff,
    /// The expected cost of an attempt before any cost is known.
    pub reserve_micro_usd: u64,
}

/// Reads a configuration. `layers` are the files in their order, the person's first.
pub fn read(layers: &[Layer], environment: &[(String, String)], flags: &[Flag]) -> Result<Settings, ConfigError> {
    let mut all = layers.to_vec();
    all.extend(layer::environment(environment)?);
    all.extend(flags.iter().map(Layer::flag));
    let (mut trees, mut files) = (Vec::new(), Vec::new());
    for layer in &all {
        let mut tree = layer.tree()?;
        let file: SettingsFile = tree.read()?;
        if layer.is_in_repository() {
            layer::keep_sandbox_strict(&mut tree, &file, &merged(&trees)?)?;
        }
        trees.push(tree);
        files.push(file);
    }
    let workflows = own_workflows(&trees, &files)?;
    preset::unify_phase_names(&mut trees, &workflows)?;
    let tree = merged(&trees)?;
    let channels = files.into_iter().rev().flat_map(|file| file.notify.channels.0.into_values()).collect();
    let settings = Settings { file: tree.read()?, tree, workflows, channels, found: Vec::new() };
    settings.check()?;
    Ok(settings)
}

fn merged(trees: &[ConfigNode]) -> Result<ConfigNode, ConfigError> {
    let mut merged = ConfigNode::empty();
    trees.iter().try_for_each(|tree| merged.merge(tree))?;
    Ok(merged)
}

/// The workflows of all layers, which may name the reviewers of all layers.
fn own_workflows(trees: &[ConfigNode], files: &[SettingsFile]) -> Result<BTreeMap<String, Workflow>, ConfigError> {
    let shared = merged(trees)?.read::<SettingsFile>()?.shared_reviewers();
    let mut workflows = BTreeMap::new();
    for (tree, file) in trees.iter().zip(files) {
        for name in file.workflows.keys().map(|name| name.as_str()) {
            let Some(node) = tree.get(&[key::WORKFLOWS, name]) else { continue };
            workflows.insert(name.to_owned(), resolve::workflow(name, node, &shared)?);
        }
    }
    Ok(workflows)
}

impl Settings {
    /// Checks the whole configuration before a run starts.
    fn check(&self) -> Result<(), ConfigError> {
        self.check_agents()?;
        for (role, choice) in self.tree.get(&[key::ROLES]).map(ConfigNode::entries).unwrap_or_default() {
            if choice.get(&[key::AGENT]).is_some() {
                self.check_worker(&[key::ROLES, role, key::AGENT], role)?;
            }
        }
        self.check_reviewers()?;
        self.check_preset()?;
        check_gate_reviewers(&self.file.gate, self.tree.get(&[key::GATE]))?;
        self.check_presets()?;
        self.check_prices()?;
        self.check_notify()?;
        self.workflow_names().into_iter().try_for_each(|name| self.check_workers(&self.workflow(name)?))
    }

    /// Whether the configured store is supported.
    pub fn check_store(&self) -> Result<(), ConfigError> {
        match self.file.store {
            StoreLocation::Sqlite => Ok(()),
            StoreLocation::Postgres(_) => Err(self.error(
                &[key::STORE],
                "`store` names a PostgreSQL database, which is not supported yet: expected \"sqlite\"",
            )),
        }
    }

    /// The origin of the value at a path, if a layer sets it.
    fn origin_at(&self, path: &[&str]) -> Option<&SettingOrigin> {
        self.tree.get(path).map(|node| &node.origin)
    }

    fn is_set(&self, path: &[&str]) -> bool {
        self.tree.get(path).is_some()
    }

    /// The origin of a phase's key in `[workflows]`.
    fn own_phase_origin(&self, workflow: &str, phase: &str, key: &str) -> Option<&SettingOrigin> {
        let workflow = self.tree.get(&[key::WORKFLOWS, workflow])?;
        let lists = [key::BEFORE, key::PHASES, key::AFTER].into_iter().filter_map(|list| workflow.get(&[list]));
        let mut phases = lists.flat_map(ConfigNode::list);
        let phase = phases.find(|node| node.get(&[key::NAME]).and_then(ConfigNode::text) == Some(phase))?;
        phase.get(&[key]).map(|node| &node.origin)
    }

    /// An error about the value at a path.
    fn error(&self, path: &[&str], message: impl Into<String>) -> ConfigError {
        self.origin_at(path).unwrap_or(&SettingOrigin::Default).error(message)
    }

    /// The workflow of commands that name none.
    pub fn preset(&self) -> &str {
        &self.file.preset.0
    }

    /// Maximum number of loops in parallel.
    pub fn jobs(&self) -> u32 {
        self.file.jobs.0
    }

    /// Whether a question stops its loop instead of waiting for a person.
    pub fn no_ask(&self) -> bool {
        self.file.no_ask
    }

    pub fn landing(&self) -> LandingMethod {
        self.file.landing
    }

    /// The default workspace of reviewers; `None` if the configuration sets none.
    pub fn review_workspace(&self) -> Option<ReviewWorkspace> {
        self.file.review_workspace
    }

    /// When agents resume earlier sessions.
    pub fn resume_policy(&self) -> ResumePolicy {
        self.file.sessions
    }

    /// Whether agents are sandboxed.
    pub fn sandbox(&self) -> Sandbox {
        self.file.sandbox
    }

    /// The origin of `sandbox`.
    pub fn sandbox_origin(&self) -> &SettingOrigin {
        self.origin_at(&[key::SANDBOX]).unwrap_or(&SettingOrigin::Default)
    }

    /// Whether writers are sandboxed too.
    pub fn sandboxes_writers(&self) -> bool {
        self.sandbox() != Sandbox::Off && self.file.sandbox_writers
    }

    /// The configured paths that writers may write besides their worktree.
    pub fn sandbox_write(&self) -> &[String] {
        &self.file.sandbox_write.0
    }

    /// What sandboxed agents may connect to.
    pub fn sandbox_network(&self) -> &Network {
        &self.file.sandbox_network
    }

    pub fn limits(&self) -> TimeAndCostLimits {
        let limits = &self.file.limits.keys;
        TimeAndCostLimits {
            attempt: limits.attempt,
            silence: limits.silence,
            grace: limits.grace,
            task: self.file.limits.task.caps(),
            run: limits.run.caps(),
            backoff: Backoff { first: limits.backoff.0, max: limits.backoff_max.0 },
            reserve_micro_usd: limits.reserve_usd.map_or(0, |reserve| reserve.0),
        }
    }

    /// The project's own commands with their names, in the order of the files.
    pub fn checks(&self) -> Vec<(&str, &str)> {
        self.file.checks.0.iter().map(|(name, command)| (name.as_str(), command.as_str())).collect()
    }

    /// The file with the prompt for a role, with its origin.
    pub fn prompt(&self, role: &str) -> Option<(&str, &SettingOrigin)> {
        self.prompt_at(&[key::PROMPTS, role])
    }

    /// The file with the prompt of one reviewer, with its origin.
    pub fn reviewer_prompt(&self, name: &ReviewerName) -> Option<(&str, &SettingOrigin)> {
        self.prompt_at(&[key::REVIEWERS, name.as_str(), key::PROMPT])
    }

    fn prompt_at(&self, path: &[&str]) -> Option<(&str, &SettingOrigin)> {
        let node = self.tree.get(path)?;
        Some((node.text()?, &node.origin))
    }

    /// The files with prompts that roles and reviewers have, with their origins.
    pub fn named_prompts(&self) -> Vec<(&str, &SettingOrigin)> {
        let roles = self.tree.get(&[key::PROMPTS]).map(ConfigNode::entries).unwrap_or_default();
        let of_roles = roles.into_iter().map(|(role, _)| self.prompt(role));
        let reviewers = self.file.reviewers.keys();
        let of_reviewers = reviewers.map(|name| self.prompt_at(&[key::REVIEWERS, name.as_str(), key::PROMPT]));
        of_roles.chain(of_reviewers).flatten().collect()
    }

    /// The prompts of the preset `slots`, which flags may replace.
    pub fn slot_prompts(&self) -> Vec<(&str, &SettingOrigin)> {
        [key::IMPLEMENT, key::REVIEW].iter().filter_map(|role| self.prompt_at(&[slot_prompt_key(role)])).collect()
    }

    /// The origin of a workflow's prompt for a role, for messages.
    pub fn workflow_prompt_origin(&self, role: &str) -> String {
        self.origin_at(&[slot_prompt_key(role)])
            .map_or_else(|| "the command line".to_owned(), |origin| origin.to_string())
    }

    /// Files that are not in git but that a worktree needs.
    pub fn copied_into_worktrees(&self) -> &[String] {
        &self.file.worktree.copy.0
    }

    /// The directory of worktrees, relative to the repository's root.
    pub fn worktree_directory(&self) -> &str {
        self.file.worktree.directory.as_str()
    }
}

/// The key of the preset `slots` with the prompt of a role.
fn slot_prompt_key(role: &str) -> &'static str {
    if role == key::REVIEW { REVIEWER_PROMPT_PATH } else { DEVELOPER_PROMPT_PATH }
}

/// The origin of a value. Lines are counted from one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema, strum::Display)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum SettingOrigin {
    /// Built in.
    #[strum(to_string = "built in")]
    Default,
    /// The workflow that is shipped under this name.
    #[strum(to_string = "preset {name}")]
    Preset { name: String },
    /// The person's own file.
    #[strum(to_string = "{file}:{line}")]
    Person { file: String, line: usize },
    /// A file of another program.
    #[strum(to_string = "{file}:{line}")]
    Foreign { file: String, line: usize },
    /// The repository's file.
    #[strum(to_string = "{file}:{line}")]
    Repository { file: String, line: usize },
    /// A variable of the environment.
    #[strum(to_string = "{name}")]
    Environment { name: String },
    /// A flag of the command line.
    #[strum(to_string = "{name}")]
    Flag { name: String },
    /// The task itself.
    #[strum(to_string = "the task")]
    Task,
}

impl SettingOrigin {
    /// Replaces the line if the origin is a file.
    fn with_line(mut self, new_line: usize) -> Self {
        if let Self::Person { line, .. } | Self::Foreign { line, .. } | Self::Repository { line, .. } = &mut self {
            *line = new_line;
        }
        self
    }

    /// An error about a value with this origin.
    pub(crate) fn error(&self, message: impl Into<String>) -> ConfigError {
        let message = message.into();
        match self {
            Self::Person { file, line } | Self::Foreign { file, line } | Self::Repository { file, line } => {
                ConfigError::File { file: file.clone(), line: *line, message }
            }
            Self::Environment { name } | Self::Flag { name } => {
                ConfigError::InFlagOrVariable { name: name.clone(), message }
            }
            Self::Default | Self::Preset { .. } | Self::Task => ConfigError::WithoutLocation { message },
        }
    }
}

impl ConfigError {
    /// The message without file and line.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::File { message, .. } | Self::InFlagOrVariable { message, .. } | Self::WithoutLocation { message } => {
                message.clone()
            }
            Self::UnknownWorkflow { .. } | Self::NoAgent | Self::Unassigned { .. } => self.to_string(),
        }
    }
}

/// An error in the configuration, or a missing setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An error in a file.
    #[error("{file}:{line}: {message}")]
    File { file: String, line: usize, message: String },
    /// An error in a flag or an environment variable.
    #[error("{name}: {message}")]
    InFlagOrVariable { name: String, message: String },
    /// An error without a location.
    #[error("{message}")]
    WithoutLocation { message: String },
    /// The workflow is neither a preset nor in `[workflows]`.
    #[error("unknown workflow `{name}`: {expected}")]
    UnknownWorkflow { name: String, expected: String },
    /// No agent can do the work.
    #[error("no agent is configured")]
    NoAgent,
    /// There are several agents, and `[roles]` assigns none of them to the role.
    #[error("no agent is assigned to the role `{role}`: set `[roles] {role}` to one of {}", agents.join(", "))]
    Unassigned { role: &'static str, agents: Vec<String> },
}
