//! Who does a job: which agent, with which model, for how long.

use std::collections::BTreeMap;

use super::phase::PhaseSettings;
use super::tables::AgentSettings;
use super::value::{AgentKind, ReviewWorkspace, Text};
use super::{ConfigError, Origin, Setting, Settings};
use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::policy::{Gate, Span};
use crate::review::ReviewerKind;
use crate::task::{TaskSpec, TaskType};
use crate::workflow::problem::{either, nearest};
use crate::workflow::{Phase, PhaseKind, Role, Workflow};

/// An agent with everything that is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub name: String,
    pub kind: AgentKind,
    /// The program and its first arguments. Empty: the one that the kind is called after.
    pub command: Vec<String>,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Names of variables of the person's that it is given, or how they begin: `AWS_*`.
    pub pass: Vec<String>,
    pub model: Option<String>,
    pub timeout: Option<Span>,
    /// Who takes over while this one is overloaded.
    pub fallback: Option<String>,
    /// Whose servers it works with: agents of one provider share its bound.
    pub provider: String,
    /// How many of it may run at once.
    pub max_agents: Option<u32>,
}

/// Who changes the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    pub agent: Agent,
    pub model: Option<String>,
    pub timeout: Span,
}

/// Who reviews it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedReviewer {
    pub name: ReviewerName,
    pub kind: ReviewerKind,
    pub contract: Contract,
    pub require_nonce: bool,
    /// `None` if the configuration sets none: the engine then chooses a copy if the prompt asks for tests.
    pub workspace: Option<ReviewWorkspace>,
    /// The file that takes the place of the built-in prompt.
    pub prompt: Option<String>,
    pub agent: Agent,
    pub model: Option<String>,
    pub timeout: Span,
}

/// The place of a job: a phase of a workflow that a task goes through.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub workflow: &'a Workflow,
    pub phase: &'a Phase,
    pub task: &'a TaskSpec,
}

/// How the tools begin that an agent of kind codex stands for without being told.
const CODEX_TOOLS: &str = "mcp__codex";

/// The role of reviewers that name no agent.
const REVIEW: &str = "review";

impl Settings {
    /// An agent by name.
    pub fn agent(&self, name: &str) -> Option<Agent> {
        self.written.agents.0.get(name).and_then(|settings| agent(name, settings))
    }

    /// Every agent, by name.
    pub fn agents(&self) -> Vec<Agent> {
        self.written.agents.0.iter().filter_map(|(name, settings)| agent(name, settings)).collect()
    }

    /// The agents that take over from one while it is overloaded, in turn.
    pub fn stand_ins(&self, name: &str) -> Vec<Agent> {
        let mut chain: Vec<Agent> = Vec::new();
        let next = |last: &str| self.agent(&self.agent(last)?.fallback?);
        while let Some(agent) = next(chain.last().map_or(name, |last| &last.name)) {
            chain.push(agent);
        }
        chain
    }

    /// Who has its turn: the agent itself first. A configuration that has become shorter ends with its last.
    fn in_turn(&self, agent: Agent, turn: usize) -> Agent {
        let mut chain = if turn == 0 { Vec::new() } else { self.stand_ins(&agent.name) };
        chain.truncate(turn);
        chain.pop().unwrap_or(agent)
    }

    /// How many agents of one provider may run at once.
    pub fn agents_per_provider(&self) -> Option<u32> {
        self.written.limits.agents_per_provider.as_ref().map(|bound| bound.value.small())
    }

    /// Who plays a role.
    pub fn writer(&self, role: Role, place: Place<'_>) -> Result<Assigned, ConfigError> {
        self.writer_in_turn(role, place, 0)
    }

    /// The same while others are refused: `turn` says who falls in.
    pub fn writer_in_turn(&self, role: Role, place: Place<'_>, turn: usize) -> Result<Assigned, ConfigError> {
        self.worker(role, place, (None, turn))
    }

    /// Who looks into a phase's question before its own agent does.
    pub fn researcher_in_turn(
        &self,
        role: Role,
        place: Place<'_>,
        turn: usize,
    ) -> Result<Assigned, ConfigError> {
        self.worker(role, place, (place.phase.parallel_model.clone(), turn))
    }

    fn worker(
        &self,
        role: Role,
        place: Place<'_>,
        (first, turn): (Option<String>, usize),
    ) -> Result<Assigned, ConfigError> {
        // A gate's own agent and model are its reviewers', not its fixer's.
        let own = Some(place.phase).filter(|phase| phase.judge().is_none());
        let chosen = match own {
            Some(phase) => self.of_phase(place)?.or_else(|| self.preferred(phase)),
            None => None,
        };
        let (assigned, in_role) = match chosen {
            Some(agent) => (agent, None),
            None => self.in_role(role.word())?,
        };
        let kind = self.written.task_types.of(place.task.kind);
        let wanted = first.or_else(|| place.task.model.clone()).or_else(|| text(&kind.model));
        let wanted = wanted.or_else(|| own.and_then(|phase| phase.model.clone())).or(in_role);
        let agent = self.in_turn(assigned.clone(), turn);
        let model = model(wanted, &assigned, &agent);
        let (said, told) = self.writing_time(place);
        let timeout = self.timeout(said, told, &agent);
        Ok(Assigned { agent, model, timeout })
    }

    /// Who plays a reviewer of a gate.
    pub fn reviewer(&self, name: &ReviewerName, place: Place<'_>) -> Result<AssignedReviewer, ConfigError> {
        self.reviewer_in_turn(name, place, 0)
    }

    /// The same while others are refused: `turn` says who falls in.
    pub fn reviewer_in_turn(
        &self,
        name: &ReviewerName,
        place: Place<'_>,
        turn: usize,
    ) -> Result<AssignedReviewer, ConfigError> {
        if let Some(checks) = self.seated_checks(name, place) {
            return Ok(checks);
        }
        let settings = self.written.reviewers.0.get(name.as_str()).cloned().unwrap_or_default();
        let known = place.workflow.reviewers.get(name).ok_or_else(|| ConfigError::Nowhere {
            message: format!("workflow `{}` has no reviewer `{name}`", place.workflow.name),
        })?;
        let named = match (self.of_phase(place)?, &settings.agent) {
            (Some(agent), _) => Some(agent),
            (None, Some(named)) => Some(self.named(named, "agent")?),
            (None, None) => self.preferred(place.phase),
        };
        let (assigned, in_role) = match named {
            Some(agent) => (agent, None),
            None => self.in_role(REVIEW)?,
        };
        let wanted = place.phase.model.clone().or_else(|| text(&settings.model));
        let wanted = wanted.or_else(|| self.review_model(place.task)).or(in_role);
        let agent = self.in_turn(assigned.clone(), turn);
        let gate = place.phase.judge().map(|policy| &policy.gate);
        let (said, told) = self.reviewing_time(place);
        let own = settings.timeout.as_ref().map(|timeout| timeout.value);
        Ok(AssignedReviewer {
            name: name.clone(),
            kind: known.kind,
            contract: known.contract,
            require_nonce: settings
                .require_nonce
                .map(|set| set.value)
                .or_else(|| gate.and_then(|gate| gate.require_nonce))
                .unwrap_or_else(|| agent.kind.echoes_nonces() && known.contract != Contract::Tool),
            workspace: settings.review_workspace.map_or(self.review_workspace(), |set| Some(set.value)),
            prompt: text(&settings.prompt),
            model: model(wanted, &assigned, &agent),
            timeout: own.unwrap_or_else(|| self.timeout(said, told, &agent)),
            agent,
        })
    }

    /// The model of a task's reviewers. A review's own model is its reviewers'.
    fn review_model(&self, task: &TaskSpec) -> Option<String> {
        let kind = self.written.task_types.of(task.kind);
        match task.kind {
            TaskType::Review => {
                task.model.clone().or_else(|| text(&kind.review_model)).or_else(|| text(&kind.model))
            }
            TaskType::Implement | TaskType::Improve | TaskType::Plan => text(&kind.review_model),
        }
    }

    /// The agent of a role, of `implement`, or the only one there is; and the model it has in this role.
    fn in_role(&self, role: &'static str) -> Result<(Agent, Option<String>), ConfigError> {
        let model = self.model_in_role(role).map(|set| set.value.as_str().to_owned());
        for key in [role, Role::Implement.word()] {
            let Some(player) = self.written.roles.of(key) else { continue };
            if let Some(named) = &player.agent {
                return Ok((self.named(named, key)?, model));
            }
        }
        let mut models: Vec<_> = self.agents().into_iter().filter(|agent| agent.kind.is_a_model()).collect();
        match (models.len(), models.pop()) {
            (1, Some(agent)) => Ok((agent, model)),
            (_, None) => Err(ConfigError::NoAgent),
            (_, Some(_)) => Err(ConfigError::Unassigned { role, agents: self.models() }),
        }
    }

    /// The model that is said for a role, up to the first that names an agent.
    pub(super) fn model_in_role(&self, role: &str) -> Option<&Setting<Text>> {
        let players = [role, Role::Implement.word()].into_iter().filter_map(|key| self.written.roles.of(key));
        let mut over = false;
        let counts = players.take_while(|player| !std::mem::replace(&mut over, player.agent.is_some()));
        counts.filter_map(|player| player.model.as_ref()).next()
    }

    /// The agent that a phase has whatever the roles say.
    pub(super) fn chosen(&self, place: Place<'_>) -> Option<Agent> {
        self.of_phase(place).ok().flatten().or_else(|| self.preferred(place.phase))
    }

    fn models(&self) -> Vec<String> {
        self.agents().into_iter().filter(|agent| agent.kind.is_a_model()).map(|agent| agent.name).collect()
    }

    /// The agent that a setting names.
    pub(super) fn named(&self, setting: &Setting<Text>, key: &str) -> Result<Agent, ConfigError> {
        let name = setting.value.as_str();
        self.agent(name).ok_or_else(|| setting.origin.error(self.no_such_agent(key, name)))
    }

    /// The agent that a phase names for itself, or whose tool it names.
    fn of_phase(&self, place: Place<'_>) -> Result<Option<Agent>, ConfigError> {
        let Some(name) = place.phase.agent.as_deref() else {
            let tool = place.phase.tool.as_deref();
            return tool.map(|tool| self.of_tool(tool, place)).transpose();
        };
        let agent = self.agent(name).ok_or_else(|| {
            let message = self.no_such_agent("agent", name);
            let (phase, workflow) = (&place.phase.name, &place.workflow.name);
            ConfigError::Nowhere { message: format!("phase `{phase}` of workflow `{workflow}`: {message}") }
        });
        agent.map(Some)
    }

    /// The agent that stands for a tool of another program.
    fn of_tool(&self, tool: &str, place: Place<'_>) -> Result<Agent, ConfigError> {
        let preset = self.written.presets.0.get(&place.workflow.name);
        if let Some(named) = preset.and_then(|preset| preset.whole.tools.get(tool)) {
            return self.named(named, tool);
        }
        let codex = tool.starts_with(CODEX_TOOLS);
        self.of_kind(AgentKind::Codex).filter(|_| codex).ok_or_else(|| {
            let said = self.said_of_phase(place).tool;
            let origin = said.map(|said| said.origin).or_else(|| self.own_origin(&place.workflow.name));
            let also = if codex { "configure an agent of kind \"codex\", or " } else { "" };
            let (phase, workflow) = (&place.phase.name, &place.workflow.name);
            origin.unwrap_or(Origin::Default).error(format!(
                "phase `{phase}` names the tool `{tool}`, which no agent stands for: \
                 {also}write `\"{tool}\" = \"AGENT\"` in [presets.{workflow}.tools]"
            ))
        })
    }

    /// The tools of other programs that phases name and no agent stands for: whoever works these phases is refused.
    pub fn unknown_tools(&self) -> Vec<ConfigError> {
        let task = TaskSpec::default();
        let workflows = self.workflow_names().into_iter().filter_map(|name| self.workflow(name).ok());
        let of_phases = |workflow: Workflow| {
            let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
            let place = |phase| Place { workflow: &workflow, phase, task: &task };
            phases.filter_map(|phase| self.of_phase(place(phase)).err()).collect::<Vec<_>>()
        };
        workflows.flat_map(of_phases).collect()
    }

    /// The first agent of the kind that a phase would best be done by.
    fn preferred(&self, phase: &Phase) -> Option<Agent> {
        phase.prefers.and_then(|kind| self.of_kind(kind))
    }

    fn of_kind(&self, kind: AgentKind) -> Option<Agent> {
        self.agents().into_iter().find(|agent| agent.kind == kind)
    }

    /// What the configuration says about the phase of a place.
    pub(super) fn said_of_phase(&self, place: Place<'_>) -> PhaseSettings {
        let preset = self.written.presets.0.get(&place.workflow.name);
        let known = self.untouched(&place.workflow.name);
        let said =
            preset.zip(known.ok()).map(|(preset, known)| preset.whole.phase.about(&known, place.phase));
        said.unwrap_or_default()
    }

    fn no_such_agent(&self, key: &str, name: &str) -> String {
        let known: Vec<_> = self.written.agents.0.keys().map(String::as_str).collect();
        let expected = match nearest(name, &known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if known.is_empty() => format!("no agent is configured; write a table [agents.{name}]"),
            None => format!("expected {}, or write a table [agents.{name}]", either(&known)),
        };
        format!("`{key}` names the agent `{name}`, which is not configured: {expected}")
    }

    /// How long a writer may take here, and whether a person decided it.
    fn writing_time(&self, place: Place<'_>) -> (Option<Span>, bool) {
        match &place.phase.kind {
            PhaseKind::Agent { timeout, .. } => (*timeout, self.told(place, "timeout")),
            PhaseKind::Gate(policy) | PhaseKind::Check(policy) => {
                let now = self.said_now(place, "fix_timeout", |gate| gate.fix_timeout);
                (now.or(policy.gate.fix_timeout), self.told(place, "fix_timeout"))
            }
        }
    }

    /// The same of a review.
    pub(super) fn reviewing_time(&self, place: Place<'_>) -> (Option<Span>, bool) {
        let begun = place.phase.judge().and_then(|policy| policy.gate.review_timeout);
        let now = self.said_now(place, "review_timeout", |gate| gate.review_timeout);
        (now.or(begun), self.told(place, "review_timeout"))
    }

    /// How long the project's checks may take in a phase of their own, or at a gate.
    pub fn checking_time(&self, place: Place<'_>) -> Span {
        let (said, _) = self.reviewing_time(place);
        said.unwrap_or(self.limits().attempt)
    }

    /// The timeout that the current configuration sets for a gate. A started task has the timeout of its start on record;
    /// the current one replaces it, so that a person can give a running task more time.
    fn said_now(&self, place: Place<'_>, key: &str, time: fn(&Gate) -> Option<Span>) -> Option<Span> {
        let kind = self.written.task_types.of(place.task.kind);
        let of_type = match key {
            "review_timeout" => &kind.review_timeout_minutes,
            _ => &kind.improve_timeout_minutes,
        };
        if let Some(minutes) = of_type {
            return Some(Span::minutes(minutes.value.0));
        }
        let name = &place.workflow.name;
        self.gate_origin(name, place.phase.gate_name(), key)?;
        let now = self.workflow(name).ok()?;
        let phases = now.before.iter().chain(&now.phases).chain(&now.after);
        let phase =
            phases.filter(|phase| phase.judge().is_some()).find(|one| one.name == place.phase.name)?;
        phase.judge().and_then(|policy| time(&policy.gate))
    }

    /// Whether a person set a time of a phase, rather than the preset.
    fn told(&self, place: Place<'_>, key: &str) -> bool {
        let kind = self.written.task_types.of(place.task.kind);
        let by_type = match key {
            "timeout" => kind.timeout_minutes.is_some(),
            "review_timeout" => kind.review_timeout_minutes.is_some(),
            _ => kind.improve_timeout_minutes.is_some(),
        };
        let own = self.workflows.contains_key(&place.workflow.name);
        let by_gate = || self.gate_origin(&place.workflow.name, place.phase.gate_name(), key).is_some();
        let by_phase = || key == "timeout" && self.said_of_phase(place).timeout.is_some();
        by_type || own || by_gate() || by_phase() || self.told_of_improving(place, key)
    }

    /// An improvement without a time of its own has that of the gate's fixes.
    fn told_of_improving(&self, place: Place<'_>, key: &str) -> bool {
        let improves = key == "timeout" && place.task.kind == TaskType::Improve;
        let judges = || place.workflow.phases.iter().filter(|phase| phase.judge().is_some());
        improves && judges().any(|phase| self.told(Place { phase, ..place }, "fix_timeout"))
    }

    /// What a person said about the phase, the agent or all attempts, then what the preset says.
    pub(super) fn timeout(&self, said: Option<Span>, told: bool, agent: &Agent) -> Span {
        let attempt = &self.written.limits.attempt;
        let by_person = said.filter(|_| told).or(agent.timeout).or(attempt.written().copied());
        by_person.or(said).unwrap_or(attempt.value)
    }
}

fn text(setting: &Option<Setting<Text>>) -> Option<String> {
    setting.as_ref().map(|setting| setting.value.as_str().to_owned())
}

/// The model that is asked for, where the agent can know it: one that falls in for an agent of another kind has its
/// own.
fn model(wanted: Option<String>, assigned: &Agent, agent: &Agent) -> Option<String> {
    if assigned.name == agent.name {
        return wanted.or_else(|| agent.model.clone());
    }
    let same = |model: &String| (assigned.kind == agent.kind).then(|| model.clone());
    agent.model.clone().or_else(|| wanted.as_ref().and_then(same))
}

fn agent(name: &str, settings: &AgentSettings) -> Option<Agent> {
    let kind = settings.kind(name)?;
    let env = settings.env.0.iter().map(|(name, value)| (name.clone(), value.value.0.clone()));
    Some(Agent {
        name: name.to_owned(),
        kind,
        command: settings.command.as_ref().map(|command| command.value.0.clone()).unwrap_or_default(),
        args: settings.args.value.0.clone(),
        env: env.collect(),
        pass: settings.pass.value.0.clone(),
        model: text(&settings.model),
        timeout: settings.timeout.as_ref().map(|timeout| timeout.value),
        fallback: text(&settings.fallback),
        provider: text(&settings.provider).unwrap_or_else(|| kind.provider(name)),
        max_agents: settings.max_agents.as_ref().map(|bound| bound.value.small()),
    })
}

impl AgentSettings {
    /// Its kind, which may be its name.
    pub(super) fn kind(&self, name: &str) -> Option<AgentKind> {
        self.kind.as_ref().map(|kind| kind.value).or(AgentKind::from_word(name))
    }

    /// Where it is written.
    pub(super) fn place(&self) -> Origin {
        self.at.clone().unwrap_or(Origin::Default)
    }
}
