//! Every table of the configuration with its keys and what holds where nobody says anything.

use std::collections::BTreeMap;

use super::gate::{GateSettings, PresetSettings};
use super::layer::Source;
use super::phase::PhaseSettings;
use super::slot::{Named, Slot, check_name, row, table};
use super::value::{
    AgentKind, Amount, Argument, Arguments, Cycles, Dollars, Few, Inside, Jobs, LandBy, Minutes, Program,
    ReviewWorkspace, Store, Text, Wait, Whole,
};
use super::{Row, Setting};
use crate::contract::Contract;
use crate::policy::Span;
use crate::review::ReviewerKind;
use crate::task::TaskType;
use crate::workflow::table::Checked;

table! {
    /// The whole file.
    #[expect(non_snake_case, reason = "keys of the slots preset, as people have them in their files")]
    Written, "the configuration" {
        preset: Setting<Text> = Setting::built_in("task".into()),
        jobs: Setting<Jobs> = Setting::built_in(Whole(4)),
        store: Setting<Store> = Setting::built_in(Store::Sqlite),
        no_ask: Setting<bool> = Setting::built_in(false),
        landing: Setting<LandBy> = Setting::built_in(LandBy::Merge),
        review_workspace: Setting<ReviewWorkspace> = Setting::built_in(ReviewWorkspace::Shared),
        sandbox: Setting<bool> = Setting::built_in(true),
        reviewEnabled: Option<Setting<bool>> = None,
        reviewMaxFixAttempts: Option<Setting<Whole<0, 1000>>> = None,
        developerPromptPath: Option<Setting<Text>> = None,
        reviewerPromptPath: Option<Setting<Text>> = None,
        agents: Named<AgentSettings> = Named::default(),
        roles: Roles = Roles::default(),
        reviewers: Named<ReviewerSettings> = Named::default(),
        gate: GateSettings = GateSettings::default(),
        presets: Named<PresetSettings> = Named::default(),
        defaults: Defaults = Defaults::default(),
        task_types: TaskTypes = TaskTypes::default(),
        limits: LimitSettings = LimitSettings::default(),
        checks: Commands = Commands::default(),
        prompts: Roles = Roles::default(),
        worktree: Worktree = Worktree::default(),
        workflows: Elsewhere = Elsewhere,
    }
}

table! {
    /// `[agents.NAME]`.
    AgentSettings, "an agent" {
        kind: Option<Setting<AgentKind>> = None,
        command: Option<Setting<Program>> = None,
        model: Option<Setting<Text>> = None,
        args: Setting<Arguments> = Setting::built_in(Arguments::default()),
        env: Variables = Variables::default(),
        timeout: Option<Setting<Span>> = None,
        fallback: Option<Setting<Text>> = None,
        provider: Option<Setting<Text>> = None,
        max_agents: Option<Setting<Few>> = None,
    }
}

table! {
    /// `[roles]`, and `[prompts]`: something for each role.
    Roles, "a table of roles" {
        implement: Option<Setting<Text>> = None,
        fix: Option<Setting<Text>> = None,
        review: Option<Setting<Text>> = None,
        enumerate: Option<Setting<Text>> = None,
        plan: Option<Setting<Text>> = None,
        brainstorm: Option<Setting<Text>> = None,
        simplify: Option<Setting<Text>> = None,
    }
}

table! {
    /// `[reviewers.NAME]`.
    ReviewerSettings, "a reviewer" {
        kind: Option<Setting<ReviewerKind>> = None,
        agent: Option<Setting<Text>> = None,
        model: Option<Setting<Text>> = None,
        contract: Option<Setting<Contract>> = None,
        require_nonce: Option<Setting<bool>> = None,
        review_workspace: Option<Setting<ReviewWorkspace>> = None,
        timeout: Option<Setting<Span>> = None,
        prompt: Option<Setting<Text>> = None,
    }
}

table! {
    /// `[defaults]`.
    Defaults, "[defaults]" {
        auto_review: Setting<bool> = Setting::built_in(false),
        max_review_cycles: Setting<Cycles> = Setting::built_in(Whole(3)),
    }
}

table! {
    /// `[task_types]`.
    TaskTypes, "[task_types]" {
        implement: TaskTypeSettings = TaskTypeSettings::default(),
        review: TaskTypeSettings = TaskTypeSettings::default(),
        improve: TaskTypeSettings = TaskTypeSettings::default(),
        plan: TaskTypeSettings = TaskTypeSettings::default(),
    }
}

impl TaskTypes {
    pub fn of(&self, kind: TaskType) -> &TaskTypeSettings {
        match kind {
            TaskType::Implement => &self.implement,
            TaskType::Review => &self.review,
            TaskType::Improve => &self.improve,
            TaskType::Plan => &self.plan,
        }
    }
}

table! {
    /// `[task_types.TYPE]`.
    TaskTypeSettings, "a task type" {
        auto_review: Option<Setting<bool>> = None,
        max_review_cycles: Option<Setting<Cycles>> = None,
        model: Option<Setting<Text>> = None,
        review_model: Option<Setting<Text>> = None,
        timeout_minutes: Option<Setting<Minutes>> = None,
        review_timeout_minutes: Option<Setting<Minutes>> = None,
        improve_timeout_minutes: Option<Setting<Minutes>> = None,
    }
}

table! {
    /// `[limits]`.
    LimitSettings, "[limits]" {
        max_cost_usd: Option<Setting<Dollars>> = None,
        max_tokens: Option<Setting<Amount>> = None,
        max_minutes: Option<Setting<Amount>> = None,
        attempt: Setting<Span> = Setting::built_in(Span::minutes(60)),
        silence: Setting<Span> = Setting::built_in(Span::minutes(10)),
        grace: Setting<Span> = Setting::built_in(Span { seconds: 5 }),
        agents_per_provider: Option<Setting<Few>> = None,
        backoff: Setting<Wait> = Setting::built_in(Wait(Span { seconds: 30 })),
        backoff_max: Setting<Wait> = Setting::built_in(Wait(Span::minutes(15))),
        max_rate_limits: Setting<Few> = Setting::built_in(Whole(20)),
        reserve_usd: Option<Setting<Dollars>> = None,
        run: RunLimits = RunLimits::default(),
    }
}

table! {
    /// `[limits.run]`.
    RunLimits, "[limits.run]" {
        max_cost_usd: Option<Setting<Dollars>> = None,
        max_tokens: Option<Setting<Amount>> = None,
        max_minutes: Option<Setting<Amount>> = None,
    }
}

table! {
    /// `[worktree]`.
    Worktree, "[worktree]" {
        copy: Setting<Inside> = Setting::built_in(Inside::default()),
        directory: Setting<Text> = Setting::built_in(".signoff/worktrees".into()),
    }
}

/// `[checks]`: command lines under names, each with its place in the order people wrote them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Commands(BTreeMap<String, (usize, Setting<Text>)>);

impl Commands {
    /// In the order people wrote them.
    pub fn in_order(&self) -> Vec<(&str, &str)> {
        self.sorted().into_iter().map(|(name, command)| (name, command.value.as_str())).collect()
    }

    fn sorted(&self) -> Vec<(&str, &Setting<Text>)> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(_, (place, _))| *place);
        all.into_iter().map(|(name, (_, command))| (name.as_str(), command)).collect()
    }
}

impl Slot for Commands {
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        let Some(table) = source.inside(key)? else { return Ok(()) };
        for name in table.table.names() {
            check_name(name, &table)?;
            let mut command: Option<Setting<Text>> = None;
            command.lay(name, &table)?;
            let place = self.0.get(name).map_or(self.0.len(), |(place, _)| *place);
            self.0.extend(command.map(|command| (name.to_owned(), (place, command))));
        }
        Ok(())
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        for (name, command) in self.sorted() {
            command.rows(&format!("{key}.{name}"), rows);
        }
    }
}

/// Variables for an agent. They may be secrets, so they are not shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Variables(pub BTreeMap<String, Setting<Argument>>);

impl Slot for Variables {
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        let Some(table) = source.inside(key)? else { return Ok(()) };
        for name in table.table.names() {
            if name.is_empty() || name.contains(['=', '\0']) {
                let message = format!("{name:?} cannot be the name of a variable");
                return Err(table.table.error(name, message));
            }
            let mut value: Option<Setting<Argument>> = None;
            value.lay(name, &table)?;
            self.0.extend(value.map(|value| (name.to_owned(), value)));
        }
        Ok(())
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        for (name, value) in &self.0 {
            rows.push(row(&format!("{key}.{name}"), &"(set)", &value.origin));
        }
    }
}

/// `[workflows]` is read when all reviewers are known, by the reader of workflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Elsewhere;

impl Slot for Elsewhere {
    fn lay(&mut self, _: &str, _: &Source<'_>) -> Checked<()> {
        Ok(())
    }

    fn rows(&self, _: &str, _: &mut Vec<Row>) {}
}

/// Every key of a configuration file, by the table it stands in.
pub fn keys() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("the file", Written::KEYS.to_vec()),
        ("[agents.NAME]", AgentSettings::KEYS.to_vec()),
        ("[roles]", Roles::KEYS.to_vec()),
        ("[reviewers.NAME]", ReviewerSettings::KEYS.to_vec()),
        ("[presets.NAME]", PresetSettings::own_keys()),
        ("[presets.NAME.phase.PHASE]", PhaseSettings::KEYS.to_vec()),
        ("[defaults]", Defaults::KEYS.to_vec()),
        ("[task_types.TYPE]", TaskTypeSettings::KEYS.to_vec()),
        ("[limits]", LimitSettings::KEYS.to_vec()),
        ("[limits.run]", RunLimits::KEYS.to_vec()),
        ("[worktree]", Worktree::KEYS.to_vec()),
    ]
}
