//! The configuration: texts in, settings out, each with its origin.
//!
//! Layers are laid over each other: what is built in, the person's file, files of other programs, the repository's
//! file, the environment, flags; later ones win, key by key, but for what the person demands of the sandbox. All of them go through the same reader, so that an unknown
//! key or a bad value is an error with its place wherever it stands. What a task or a gate finally gets is
//! decided here too, and nowhere else.

mod assign;
mod check;
mod default_gate;
pub mod dialogue;
pub mod edit;
mod error;
pub mod foreign;
mod gate;
mod layer;
mod notify;
mod origin;
mod overview;
mod phase;
mod prices;
pub mod questions;
mod rank;
mod role;
mod sandbox;
mod schema;
mod show;
mod slot;
mod tables;
mod task;
mod value;
mod workflows;

use std::collections::BTreeMap;

pub use assign::{Agent, Assigned, AssignedReviewer, Place};
pub use default_gate::CHECKS;
pub use error::ConfigError;
pub use layer::{FOR_AGENTS, Flag, LONGEST, Layer, VARIABLES};
pub use notify::{Address, Channel, ChannelKind, Format, Way, Webhook, Where};
pub use origin::Origin;
pub use overview::{PhaseRow, PhaseSetting};
pub use sandbox::{Network, Sandbox, Writable};
pub use schema::schema;
pub use show::Row;
pub use tables::keys;
pub use task::{Expected, TaskFlags};
pub use value::{AgentKind, LandBy, ReviewWorkspace, Store};

use crate::ids::ReviewerName;
use crate::limited::Backoff;
use crate::policy::{Caps, Span};
use crate::session::Resuming;
use crate::workflow::{PRESETS, Workflow, resolve};
use layer::Reading;
use origin::Setting;
use sandbox::Demanded;
use tables::{Prompts, Written};
use value::{Amount, Dollars};

/// A configuration without mistakes.
#[derive(Debug, Clone)]
pub struct Settings {
    written: Written,
    workflows: BTreeMap<String, Own>,
    /// Checks that were found in the project, with their commands.
    found: Vec<(String, String)>,
}

/// A workflow of one's own.
#[derive(Debug, Clone)]
struct Own {
    workflow: Workflow,
    origin: Origin,
    /// Where each key of each phase is written.
    written: BTreeMap<(String, String), Origin>,
}

/// How long things may take and how much they may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// One start of one agent, where nothing else is said.
    pub attempt: Span,
    /// Without a sign of life.
    pub silence: Span,
    /// Between asking an agent to end and ending it.
    pub grace: Span,
    pub task: Caps,
    pub run: Caps,
    /// How long to wait when a provider refuses.
    pub backoff: Backoff,
    /// What an attempt is expected to cost as long as nothing is known.
    pub reserve_micro_usd: u64,
}

/// Reads a configuration. `layers` are the files in their order, the person's first.
pub fn read(
    layers: &[Layer],
    environment: &[(String, String)],
    flags: &[Flag],
) -> Result<Settings, ConfigError> {
    let mut all = layers.to_vec();
    all.extend(layer::environment(environment)?);
    all.extend(flags.iter().map(Layer::flag));
    let readings: Vec<_> = all.iter().map(Reading::new).collect();
    let mut settings =
        Settings { written: Written::default(), workflows: BTreeMap::new(), found: Vec::new() };
    for reading in &readings {
        let demanded = Demanded::of(&settings.written);
        settings.lay(reading).map_err(|error| reading.layer.error(error))?;
        if reading.layer.is_of_the_repository() {
            demanded.uphold(&mut settings.written);
        }
    }
    for reading in &readings {
        settings.take_workflows(reading).map_err(|error| reading.layer.error(error))?;
    }
    settings.check()?;
    Ok(settings)
}

impl Settings {
    fn lay(&mut self, reading: &Reading<'_>) -> Result<(), crate::workflow::WorkflowError> {
        let entries = reading.parse()?;
        let whole = reading.whole(&entries);
        whole.table.only("the configuration", Written::KEYS)?;
        self.written.take(&whole)
    }

    /// Reads the workflows of a layer, which may name the reviewers of all layers.
    fn take_workflows(&mut self, reading: &Reading<'_>) -> Result<(), crate::workflow::WorkflowError> {
        let entries = reading.parse()?;
        let Some(tables) = reading.whole(&entries).inside("workflows")? else { return Ok(()) };
        let shared = self.shared_reviewers();
        for (name, table) in tables.table.children()? {
            slot::check_name(name, &tables)?;
            if PRESETS.contains(&name) {
                let message = format!(
                    "`{name}` is a preset: write [presets.{name}] to change it, or choose another name"
                );
                return Err(tables.table.error(name, message));
            }
            let workflow = resolve::workflow(&table, name, &shared)?;
            let written = tables.inside(name)?.map_or(Ok(BTreeMap::new()), |own| written(&own))?;
            self.workflows.insert(name.to_owned(), Own { workflow, origin: tables.origin(name), written });
        }
        Ok(())
    }

    /// The workflow where a command names none.
    pub fn preset(&self) -> &str {
        self.written.preset.value.0.as_str()
    }

    /// How many loops may run at once.
    pub fn jobs(&self) -> u32 {
        self.written.jobs.value.small()
    }

    pub fn store(&self) -> &Store {
        &self.written.store.value
    }

    /// Whether questions stop a loop, because nobody is there to answer.
    pub fn no_ask(&self) -> bool {
        self.written.no_ask.value
    }

    pub fn landing(&self) -> LandBy {
        self.written.landing.value
    }

    /// The default workspace of reviewers; `None` if the configuration sets none.
    pub fn review_workspace(&self) -> Option<ReviewWorkspace> {
        self.written.review_workspace.as_ref().map(|set| set.value)
    }

    /// When agents go on in sessions that they had.
    pub fn sessions(&self) -> Resuming {
        self.written.sessions.value
    }

    /// Whether agents are kept from writing where they have no business.
    pub fn sandbox(&self) -> Sandbox {
        self.written.sandbox.value
    }

    /// Where that is written.
    pub fn sandbox_origin(&self) -> &Origin {
        &self.written.sandbox.origin
    }

    /// Whether those are held too who write the work.
    pub fn holds_writers(&self) -> bool {
        self.sandbox() != Sandbox::Off && self.written.sandbox_writers.value
    }

    /// Where writers may write besides their worktree, as it is written.
    pub fn sandbox_write(&self) -> &[String] {
        &self.written.sandbox_write.value.0
    }

    /// What held agents may connect to.
    pub fn sandbox_network(&self) -> &Network {
        &self.written.sandbox_network.value
    }

    pub fn limits(&self) -> Limits {
        let limits = &self.written.limits;
        Limits {
            attempt: limits.attempt.value,
            silence: limits.silence.value,
            grace: limits.grace.value,
            task: caps(&limits.max_cost_usd, &limits.max_tokens, &limits.max_minutes),
            run: caps(&limits.run.max_cost_usd, &limits.run.max_tokens, &limits.run.max_minutes),
            backoff: Backoff { first: limits.backoff.value.0, most: limits.backoff_max.value.0 },
            reserve_micro_usd: limits.reserve_usd.as_ref().map_or(0, |reserve| reserve.value.micro),
        }
    }

    /// The project's own commands with their names, in the order they were written.
    pub fn checks(&self) -> Vec<(&str, &str)> {
        self.written.checks.in_order()
    }

    /// The file with the prompt for a role, with its origin.
    pub fn prompt(&self, role: &str) -> Option<(&str, &Origin)> {
        self.written.prompts.of(role).map(|setting| (setting.value.as_str(), &setting.origin))
    }

    /// The file with the prompt of one reviewer, with its origin.
    pub fn reviewer_prompt(&self, name: &ReviewerName) -> Option<(&str, &Origin)> {
        let prompt = self.written.reviewers.0.get(name.as_str())?.prompt.as_ref()?;
        Some((prompt.value.as_str(), &prompt.origin))
    }

    /// The files with prompts that roles and reviewers have, with their origins.
    pub fn named_prompts(&self) -> Vec<(&str, &Origin)> {
        let of_roles = Prompts::KEYS.iter().map(|role| self.written.prompts.of(role));
        let of_reviewers = self.written.reviewers.0.values().map(|reviewer| reviewer.prompt.as_ref());
        let named = of_roles.chain(of_reviewers).flatten();
        named.map(|setting| (setting.value.as_str(), &setting.origin)).collect()
    }

    /// Those of the preset `slots`, in whose place a flag may name others.
    pub fn slot_prompts(&self) -> Vec<(&str, &Origin)> {
        let named = [&self.written.developerPromptPath, &self.written.reviewerPromptPath];
        let named = named.into_iter().flatten();
        named.map(|setting| (setting.value.as_str(), &setting.origin)).collect()
    }

    /// Where the prompt that a workflow has for a role was named, in words.
    pub fn laid_prompt_origin(&self, role: &str) -> String {
        let written = &self.written;
        let key = if role == "review" { &written.reviewerPromptPath } else { &written.developerPromptPath };
        key.as_ref().map_or_else(|| "the command line".to_owned(), |setting| setting.origin.to_string())
    }

    /// Files that git does not know but a worktree needs.
    pub fn copied_into_worktrees(&self) -> &[String] {
        &self.written.worktree.copy.value.0
    }

    /// Where worktrees are made, from the repository's root.
    pub fn worktree_directory(&self) -> &str {
        self.written.worktree.directory.value.as_str()
    }
}

/// Where each key of each phase of a workflow is written.
fn written(
    own: &layer::Source<'_>,
) -> Result<BTreeMap<(String, String), Origin>, crate::workflow::WorkflowError> {
    let mut written = BTreeMap::new();
    for list in ["before", "phases", "after"] {
        for phase in own.list(list)? {
            let name = phase.table.text("name").unwrap_or_default();
            let keys = phase.table.names().into_iter();
            written.extend(keys.map(|key| ((name.to_owned(), key.to_owned()), phase.origin(key))));
        }
    }
    Ok(written)
}

fn caps(
    cost: &Option<Setting<Dollars>>,
    tokens: &Option<Setting<Amount>>,
    minutes: &Option<Setting<Amount>>,
) -> Caps {
    Caps {
        max_cost_micro_usd: cost.as_ref().map(|cost| cost.value.micro),
        max_tokens: tokens.as_ref().map(|tokens| tokens.value.0),
        max_minutes: minutes.as_ref().map(|minutes| minutes.value.0),
    }
}
