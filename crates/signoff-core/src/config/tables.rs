//! Every table of the configuration with its keys and what holds where nobody says anything.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::gate::{GateSettings, PresetSettings};
use super::layer::Source;
use super::notify::{ChannelSettings, NotifySettings};
use super::phase::PhaseSettings;
use super::prices::{PriceSettings, Prices};
use super::role::Player;
use super::sandbox::{Network, Sandbox, Writable};
use super::slot::{Named, Slot, check_name, named_schema, row, table};
use super::value::{
    AgentKind, Amount, Argument, Arguments, Cycles, Dollars, Few, Inside, Jobs, LandBy, Minutes, Passed,
    Program, ReviewWorkspace, Store, Text, Wait, Whole, WorkflowName,
};
use super::{Row, Setting};
use crate::contract::Contract;
use crate::policy::Span;
use crate::review::ReviewerKind;
use crate::session::Resuming;
use crate::task::TaskType;
use crate::workflow::table::Checked;
use crate::workflow::value::Value as _;
use crate::workflow::{PRESETS, schema};

table! {
    /// The whole file.
    #[expect(non_snake_case, reason = "keys of the slots preset, as people have them in their files")]
    Written, "the configuration" {
        /// The workflow where a command names none: a preset, or one of your own.
        preset: Setting<WorkflowName> = Setting::built_in(WorkflowName("task".into())),
        /// How many loops run at once.
        jobs: Setting<Jobs> = Setting::built_in(Whole(4)),
        /// Where facts are kept.
        store: Setting<Store> = Setting::built_in(Store::Sqlite),
        /// `true`: a question stops its loop instead of waiting for a person.
        no_ask: Setting<bool> = Setting::built_in(false),
        /// How signed-off work lands: with a merge commit, or with the same changes on top.
        landing: Setting<LandBy> = Setting::built_in(LandBy::Merge),
        /// Where reviewers work: in the loop's worktree, or in a throw-away copy each. Without it, those have a copy that
        /// are told to run tests.
        review_workspace: Option<Setting<ReviewWorkspace>> = None,
        /// When an agent goes on in the session it had: "fresh", never; "retry", where it was cut off; "fix", also when it
        /// fixes what it wrote.
        sessions: Setting<Resuming> = Setting::built_in(Resuming::Retry),
        /// `true`: agents cannot write where they have no business, where the system can hold them to it; "required": nothing
        /// starts where it cannot.
        sandbox: Setting<Sandbox> = Setting::built_in(Sandbox::On),
        /// `false`: only readers are held, and whoever writes the work may write anywhere.
        sandbox_writers: Setting<bool> = Setting::built_in(true),
        /// Where writers may write besides their worktree: "caches" for the usual ones of build tools, paths from `/` or `~/`.
        sandbox_write: Setting<Writable> = Setting::built_in(Writable::default()),
        /// What agents reach: "open", everything; a list of TCP ports, only these and the server they report to, where Landlock (version 4) holds them.
        sandbox_network: Setting<Network> = Setting::built_in(Network::Open),
        /// Preset `slots`: whether tasks are reviewed where no flag says so.
        reviewEnabled: Option<Setting<bool>> = None,
        /// Preset `slots`: how many fixes a task gets.
        reviewMaxFixAttempts: Option<Setting<Whole<0, 1000>>> = None,
        /// Preset `slots`: a file with the prompt of whoever implements and fixes, from the repository's root.
        developerPromptPath: Option<Setting<Text>> = None,
        /// Preset `slots`: a file with the prompt of the reviewers, from the repository's root.
        reviewerPromptPath: Option<Setting<Text>> = None,
        /// A table for each agent.
        agents: Named<AgentSettings> = Named::default(),
        /// Which agent does what; a missing role falls back to `implement`.
        roles: Roles = Roles::default(),
        /// A table for each reviewer.
        reviewers: Named<ReviewerSettings> = Named::default(),
        /// The words of a gate, for the preset in use.
        gate: GateSettings = GateSettings::default(),
        /// A table for each workflow that is to be changed.
        presets: Named<PresetSettings> = Named::default(),
        /// What holds for tasks of every type.
        defaults: Defaults = Defaults::default(),
        /// A table for each type of task.
        task_types: TaskTypes = TaskTypes::default(),
        /// Time, money and tokens.
        limits: LimitSettings = LimitSettings::default(),
        /// What models cost whose agents do not say it, before the list that is shipped; the longest name that fits counts.
        prices: Prices = Prices::default(),
        /// Command lines under names, run in this order by checks and by agents of kind "checks".
        checks: Commands = Commands::default(),
        /// For each role, the file with its prompt, from the repository's root.
        prompts: Prompts = Prompts::default(),
        /// Where loops work.
        worktree: Worktree = Worktree::default(),
        /// Who is told of what, away from the screen.
        notify: NotifySettings = NotifySettings::default(),
        /// Workflows of your own.
        workflows: Elsewhere = Elsewhere,
    }
}

table! {
    /// `[agents.NAME]`.
    AgentSettings, "an agent" {
        /// What speaks to it; without it the name of the table, if that is one of these.
        kind: Option<Setting<AgentKind>> = None,
        /// The program and its arguments; needed for "command" and "acp".
        command: Option<Setting<Program>> = None,
        /// The model it is asked to use.
        model: Option<Setting<Text>> = None,
        /// More arguments.
        args: Setting<Arguments> = Setting::built_in(Arguments::default()),
        /// Variables it is given; their values are never shown.
        env: Variables = Variables::default(),
        /// Variables of yours that it is given besides those that every agent of its kind gets: names, or beginnings with a `*`.
        pass: Setting<Passed> = Setting::built_in(Passed::default()),
        /// How long one start of it may take.
        timeout: Option<Setting<Span>> = None,
        /// The agent that takes over while this one is refused by its provider.
        fallback: Option<Setting<Text>> = None,
        /// Whose servers it works with; agents of one provider share `agents_per_provider`.
        provider: Option<Setting<Text>> = None,
        /// How many of it run at once.
        max_agents: Option<Setting<Few>> = None,
    }
}

table! {
    /// `[roles]`: who does what.
    Roles, "a table of roles" {
        /// Whoever does the work.
        implement: Player = Player::default(),
        /// Whoever mends what reviewers found.
        fix: Player = Player::default(),
        /// Reviewers that name no agent.
        review: Player = Player::default(),
        /// Whoever finds the tasks of a specification.
        enumerate: Player = Player::default(),
        /// Whoever plans.
        plan: Player = Player::default(),
        /// Whoever thinks first.
        brainstorm: Player = Player::default(),
        /// Whoever makes finished work simpler.
        simplify: Player = Player::default(),
    }
}

table! {
    /// `[prompts]`: the file with the prompt of each role.
    Prompts, "[prompts]" {
        /// Whoever does the work.
        implement: Option<Setting<Text>> = None,
        /// Whoever mends what reviewers found.
        fix: Option<Setting<Text>> = None,
        /// Reviewers without a prompt of their own.
        review: Option<Setting<Text>> = None,
        /// Whoever finds the tasks of a specification.
        enumerate: Option<Setting<Text>> = None,
        /// Whoever plans.
        plan: Option<Setting<Text>> = None,
        /// Whoever thinks first.
        brainstorm: Option<Setting<Text>> = None,
        /// Whoever makes finished work simpler.
        simplify: Option<Setting<Text>> = None,
    }
}

table! {
    /// `[reviewers.NAME]`.
    ReviewerSettings, "a reviewer" {
        /// What it looks for, and its rank in the merge; without it the preset's, or the name of the table.
        kind: Option<Setting<ReviewerKind>> = None,
        /// The agent that plays it; without it that of the role `review`.
        agent: Option<Setting<Text>> = None,
        /// The model of that agent.
        model: Option<Setting<Text>> = None,
        /// How it answers.
        contract: Option<Setting<Contract>> = None,
        /// `true`: an answer without the nonce it was given is refused; `false`: it is read. Unset: refused from known kinds of agents.
        require_nonce: Option<Setting<bool>> = None,
        /// Where it works: in the loop's worktree, or in a throw-away copy.
        review_workspace: Option<Setting<ReviewWorkspace>> = None,
        /// How long each review may take.
        timeout: Option<Setting<Span>> = None,
        /// The file with its prompt, from the repository's root.
        prompt: Option<Setting<Text>> = None,
    }
}

table! {
    /// `[defaults]`.
    Defaults, "[defaults]" {
        /// Whether tasks are reviewed: the gate of the preset in use is on, also where the preset has it off. Left out, it
        /// is on wherever a reviewer or a check is configured, or a check is found in the project.
        auto_review: Setting<bool> = Setting::built_in(true),
        /// Reviews of a task.
        max_review_cycles: Setting<Cycles> = Setting::built_in(Whole(3)),
    }
}

table! {
    /// `[task_types]`.
    TaskTypes, "[task_types]" {
        /// Tasks that change the work.
        implement: TaskTypeSettings = TaskTypeSettings::default(),
        /// Tasks that only review.
        review: TaskTypeSettings = TaskTypeSettings::default(),
        /// Tasks that go on with reviewed work.
        improve: TaskTypeSettings = TaskTypeSettings::default(),
        /// Tasks that write a plan.
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
        /// Whether tasks of this type are reviewed.
        auto_review: Option<Setting<bool>> = None,
        /// Reviews of a task.
        max_review_cycles: Option<Setting<Cycles>> = None,
        /// The model of those who do the work.
        model: Option<Setting<Text>> = None,
        /// The model of reviewers.
        review_model: Option<Setting<Text>> = None,
        /// Minutes for the work.
        timeout_minutes: Option<Setting<Minutes>> = None,
        /// Minutes for each review.
        review_timeout_minutes: Option<Setting<Minutes>> = None,
        /// Minutes for each fix.
        improve_timeout_minutes: Option<Setting<Minutes>> = None,
    }
}

table! {
    /// `[limits]`.
    LimitSettings, "[limits]" {
        /// Dollars for each task.
        max_cost_usd: Option<Setting<Dollars>> = None,
        /// Tokens for each task.
        max_tokens: Option<Setting<Amount>> = None,
        /// Minutes of work for each task.
        max_minutes: Option<Setting<Amount>> = None,
        /// How long one start of an agent may take.
        attempt: Setting<Span> = Setting::built_in(Span::minutes(60)),
        /// How long an agent may say nothing.
        silence: Setting<Span> = Setting::built_in(Span::minutes(10)),
        /// Between asking an agent to end and ending it.
        grace: Setting<Span> = Setting::built_in(Span { seconds: 5 }),
        /// How many agents of one provider run at once.
        agents_per_provider: Option<Setting<Few>> = None,
        /// The first wait when a provider refuses; "0s" is none.
        backoff: Setting<Wait> = Setting::built_in(Wait(Span { seconds: 30 })),
        /// The longest wait of our own choosing.
        backoff_max: Setting<Wait> = Setting::built_in(Wait(Span::minutes(15))),
        /// Refusals of one job in a row; one more, and its agent has failed.
        max_rate_limits: Setting<Few> = Setting::built_in(Whole(20)),
        /// What an attempt is expected to cost as long as nothing is known.
        reserve_usd: Option<Setting<Dollars>> = None,
        /// The limits of a whole run.
        run: RunLimits = RunLimits::default(),
    }
}

table! {
    /// `[limits.run]`.
    RunLimits, "[limits.run]" {
        /// Dollars for the run.
        max_cost_usd: Option<Setting<Dollars>> = None,
        /// Tokens for the run.
        max_tokens: Option<Setting<Amount>> = None,
        /// Minutes of work for the run.
        max_minutes: Option<Setting<Amount>> = None,
    }
}

table! {
    /// `[worktree]`.
    Worktree, "[worktree]" {
        /// Files that git does not know but every worktree needs.
        copy: Setting<Inside> = Setting::built_in(Inside::default()),
        /// Where worktrees are made, from the root of the repository; it must not be a link.
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

    fn schema(key: &str) -> Json {
        named_schema(Text::schema(key))
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
                let message = format!("{name:?} cannot be the name of a variable: expected one without `=`");
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

    fn schema(key: &str) -> Json {
        let names = json!({ "pattern": "^[^=]+$" });
        json!({ "type": "object", "propertyNames": names, "additionalProperties": Argument::schema(key) })
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

    fn schema(_: &str) -> Json {
        let mut named = named_schema(schema::workflow());
        named["propertyNames"]["not"] = json!({ "enum": PRESETS });
        named
    }
}

/// Every key of a configuration file, by the table it stands in.
pub fn keys() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("the file", Written::KEYS.to_vec()),
        ("[agents.NAME]", AgentSettings::KEYS.to_vec()),
        ("[roles]", Roles::KEYS.to_vec()),
        ("[prompts]", Prompts::KEYS.to_vec()),
        ("[reviewers.NAME]", ReviewerSettings::KEYS.to_vec()),
        ("[presets.NAME]", PresetSettings::own_keys()),
        ("[presets.NAME.phase.PHASE]", PhaseSettings::KEYS.to_vec()),
        ("[defaults]", Defaults::KEYS.to_vec()),
        ("[task_types.TYPE]", TaskTypeSettings::KEYS.to_vec()),
        ("[limits]", LimitSettings::KEYS.to_vec()),
        ("[limits.run]", RunLimits::KEYS.to_vec()),
        ("[prices.MODEL]", PriceSettings::KEYS.to_vec()),
        ("[worktree]", Worktree::KEYS.to_vec()),
        ("[notify]", NotifySettings::KEYS.to_vec()),
        ("[notify.channels.NAME]", ChannelSettings::KEYS.to_vec()),
    ]
}
