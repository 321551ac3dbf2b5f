//! The configuration: texts in, settings out, each with its origin.
//!
//! Each layer becomes a tree of values with origins, is read alone so that its mistakes are reported with their place,
//! and is merged into the layers below it: built in, the person's file, files of other programs, the repository's file,
//! the environment, flags. Later layers win key by key, except that a repository may not loosen the person's sandbox.
//! The merged tree is read into [`SettingsFile`]; the tree stays for the origins.

mod agent_kind;
mod assign;
mod check;
pub mod edit;
mod file;
pub mod foreign;
pub(crate) mod formats;
mod layer;
mod notify;
mod preset;
mod prices;
pub mod questions;
pub(crate) mod reader;
pub(crate) mod rules;
mod sandbox;
mod show;
mod task;
pub(crate) mod tree;
pub(crate) mod values;
mod workflows;

use std::collections::BTreeMap;

pub use agent_kind::AgentKind;
pub use assign::{AgentConfig, AssignedReviewer, AssignedWriter, JobPlace};
pub use layer::{AGENT_VARIABLES, ConfigError, Flag, Layer, MAX_FILE_BYTES, SettingOrigin, SettingVariable, variables};
pub use notify::{AddressSource, Channel, ChannelTarget, Webhook, WebhookAddress, WebhookFormat};
pub use rules::file_schema as schema;
pub use sandbox::{Sandbox, Writable};
pub use show::{PhaseRow, PhaseSetting, SettingRow};
pub use task::{ExpectedReviews, TaskFlags};
pub use values::{FixBound, LandingMethod, Network, ReviewWorkspace, StoreLocation};
pub use workflows::CHECKS;

use crate::ids::ReviewerName;
use crate::policy::{Caps, TimeSpan};
use crate::rate_limit::Backoff;
use crate::session::ResumePolicy;
use crate::workflow::Workflow;
use crate::workflow::resolve;
use file::SettingsFile;
use notify::ChannelTable;
use tree::ConfigNode;
use values::{Amount, Dollars};

/// A configuration without mistakes.
#[derive(Debug, Clone)]
pub struct Settings {
    file: SettingsFile,
    /// The merged layers, for the origins.
    tree: ConfigNode,
    workflows: BTreeMap<String, OwnWorkflow>,
    /// The channels of every layer, also those that later layers replace: their secrets stay secret.
    channels: Vec<ChannelTable>,
    /// Checks that were found in the project, with their commands.
    found: Vec<(String, String)>,
}

/// A workflow of `[workflows]`.
#[derive(Debug, Clone)]
struct OwnWorkflow {
    workflow: Workflow,
    node: ConfigNode,
}

impl OwnWorkflow {
    /// The place of a key of a phase.
    fn origin(&self, phase: &str, key: &str) -> Option<&SettingOrigin> {
        let lists = ["before", "phases", "after"].into_iter().filter_map(|list| self.node.get(&[list]));
        let mut phases = lists.flat_map(ConfigNode::list);
        let phase = phases.find(|node| node.get(&["name"]).and_then(ConfigNode::text) == Some(phase))?;
        phase.get(&[key]).map(|node| &node.origin)
    }
}

/// Limits of time and cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeAndCostLimits {
    /// One start of one agent, if nothing else is configured.
    pub attempt: TimeSpan,
    /// Without output.
    pub silence: TimeSpan,
    /// Between asking an agent to end and killing it.
    pub grace: TimeSpan,
    pub task: Caps,
    pub run: Caps,
    /// Waits after a provider refuses.
    pub backoff: Backoff,
    /// The expected cost of an attempt as long as nothing is known.
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
        if layer.is_of_the_repository() {
            sandbox::keep_strict(&mut tree, &file, &merged(&trees)?)?;
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
fn own_workflows(trees: &[ConfigNode], files: &[SettingsFile]) -> Result<BTreeMap<String, OwnWorkflow>, ConfigError> {
    let shared = merged(trees)?.read::<SettingsFile>()?.shared_reviewers();
    let mut workflows = BTreeMap::new();
    for (tree, file) in trees.iter().zip(files) {
        for name in file.workflows.keys().map(|name| name.as_str()) {
            let Some(node) = tree.get(&["workflows", name]) else { continue };
            let workflow = resolve::workflow(name, node, &shared)?;
            workflows.insert(name.to_owned(), OwnWorkflow { workflow, node: node.clone() });
        }
    }
    Ok(workflows)
}

impl Settings {
    /// Where the value at a path comes from, if a layer sets it.
    fn set_at(&self, path: &[&str]) -> Option<&SettingOrigin> {
        self.tree.get(path).map(|node| &node.origin)
    }

    fn is_set(&self, path: &[&str]) -> bool {
        self.tree.get(path).is_some()
    }

    /// An error about the value at a path.
    fn error(&self, path: &[&str], message: impl Into<String>) -> ConfigError {
        self.set_at(path).unwrap_or(&SettingOrigin::Default).error(message)
    }

    /// The workflow if a command names none.
    pub fn preset(&self) -> &str {
        &self.file.preset.0
    }

    /// Maximum number of loops in parallel.
    pub fn jobs(&self) -> u32 {
        self.file.jobs.0
    }

    pub fn store(&self) -> &StoreLocation {
        &self.file.store
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
    pub fn sessions(&self) -> ResumePolicy {
        self.file.sessions
    }

    /// Whether agents are sandboxed.
    pub fn sandbox(&self) -> Sandbox {
        self.file.sandbox
    }

    /// Where that is configured.
    pub fn sandbox_origin(&self) -> &SettingOrigin {
        self.set_at(&["sandbox"]).unwrap_or(&SettingOrigin::Default)
    }

    /// Whether writers are sandboxed too.
    pub fn sandboxes_writers(&self) -> bool {
        self.sandbox() != Sandbox::Off && self.file.sandbox_writers
    }

    /// Where writers may write besides their worktree, as configured.
    pub fn sandbox_write(&self) -> &[String] {
        &self.file.sandbox_write.0
    }

    /// What sandboxed agents may connect to.
    pub fn sandbox_network(&self) -> &Network {
        &self.file.sandbox_network
    }

    pub fn limits(&self) -> TimeAndCostLimits {
        let limits = &self.file.limits;
        TimeAndCostLimits {
            attempt: limits.attempt,
            silence: limits.silence,
            grace: limits.grace,
            task: caps(limits.max_cost_usd, limits.max_tokens, limits.max_minutes),
            run: caps(limits.run.max_cost_usd, limits.run.max_tokens, limits.run.max_minutes),
            backoff: Backoff { first: limits.backoff.0, max: limits.backoff_max.0 },
            reserve_micro_usd: limits.reserve_usd.map_or(0, |reserve| reserve.micro),
        }
    }

    /// The project's own commands with their names, in the order of the files.
    pub fn checks(&self) -> Vec<(&str, &str)> {
        self.file.checks.0.iter().map(|(name, command)| (name.as_str(), command.as_str())).collect()
    }

    /// The file with the prompt for a role, with its origin.
    pub fn prompt(&self, role: &str) -> Option<(&str, &SettingOrigin)> {
        self.prompt_at(&["prompts", role])
    }

    /// The file with the prompt of one reviewer, with its origin.
    pub fn reviewer_prompt(&self, name: &ReviewerName) -> Option<(&str, &SettingOrigin)> {
        self.prompt_at(&["reviewers", name.as_str(), "prompt"])
    }

    fn prompt_at(&self, path: &[&str]) -> Option<(&str, &SettingOrigin)> {
        let node = self.tree.get(path)?;
        Some((node.text()?, &node.origin))
    }

    /// The files with prompts that roles and reviewers have, with their origins.
    pub fn named_prompts(&self) -> Vec<(&str, &SettingOrigin)> {
        let roles = self.tree.get(&["prompts"]).map(ConfigNode::entries).unwrap_or_default();
        let of_roles = roles.into_iter().map(|(role, _)| self.prompt(role));
        let reviewers = self.file.reviewers.keys();
        let of_reviewers = reviewers.map(|name| self.prompt_at(&["reviewers", name.as_str(), "prompt"]));
        of_roles.chain(of_reviewers).flatten().collect()
    }

    /// The prompts of the preset `slots`, which flags may replace.
    pub fn slot_prompts(&self) -> Vec<(&str, &SettingOrigin)> {
        ["implement", "review"].iter().filter_map(|role| self.prompt_at(&[slot_prompt_key(role)])).collect()
    }

    /// Where the prompt that a workflow has for a role was named, for messages.
    pub fn workflow_prompt_origin(&self, role: &str) -> String {
        self.set_at(&[slot_prompt_key(role)]).map_or_else(|| "the command line".to_owned(), |origin| origin.to_string())
    }

    /// Files that are not in git but that a worktree needs.
    pub fn copied_into_worktrees(&self) -> &[String] {
        &self.file.worktree.copy.0
    }

    /// Where worktrees are made, from the repository's root.
    pub fn worktree_directory(&self) -> &str {
        self.file.worktree.directory.as_str()
    }
}

/// The key of the preset `slots` with the prompt of a role.
fn slot_prompt_key(role: &str) -> &'static str {
    if role == "review" { "reviewerPromptPath" } else { "developerPromptPath" }
}

fn caps(cost: Option<Dollars>, tokens: Option<Amount>, minutes: Option<Amount>) -> Caps {
    Caps {
        max_cost_micro_usd: cost.map(|cost| cost.micro),
        max_tokens: tokens.map(|tokens| tokens.0),
        max_minutes: minutes.map(|minutes| minutes.0),
    }
}
