//! Assigns agents to jobs: which agent, with which model, for how long.

use super::agents::AgentConfig;
use super::layer::ConfigNode;
use super::reader::{did_you_mean, either};
use super::rules::key_name;
use super::values::{Minutes, NonBlankText, ReviewWorkspace};
use super::{AgentKind, ConfigError, SettingOrigin, Settings, key};
use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::policy::{Gate, TimeSpan};
use crate::review::ReviewerKind;
use crate::task::{TaskSpec, TaskType};
use crate::workflow::{self, GateKeys, PRESETS, Phase, PhaseKind, Role, Workflow};

/// The agent of a writing job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedWriter {
    pub agent: AgentConfig,
    pub model: Option<String>,
    pub timeout: TimeSpan,
}

/// The agent of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedReviewer {
    pub name: ReviewerName,
    pub kind: ReviewerKind,
    pub contract: Contract,
    pub require_nonce: bool,
    /// `None` if the configuration sets none: the engine then chooses a copy if the prompt asks for tests.
    pub workspace: Option<ReviewWorkspace>,
    /// The file that replaces the built-in prompt.
    pub prompt: Option<String>,
    pub agent: AgentConfig,
    pub model: Option<String>,
    pub timeout: TimeSpan,
}

/// The context of a job: its workflow, phase and task.
#[derive(Debug, Clone, Copy)]
pub struct PhaseContext<'a> {
    pub workflow: &'a Workflow,
    pub phase: &'a Phase,
    pub task: &'a TaskSpec,
}

/// The prefix of tools that an agent of kind codex replaces by default.
const CODEX_TOOLS: &str = "mcp__codex";

const REVIEW_TIMEOUT: &str = key_name!(GateKeys, review_timeout);
const FIX_TIMEOUT: &str = key_name!(GateKeys, fix_timeout);

/// The time limit of a phase, and whether a person set it instead of the preset.
#[derive(Debug, Clone, Copy)]
pub(super) struct PhaseLimit {
    span: Option<TimeSpan>,
    by_person: bool,
}

impl Settings {
    /// The agent of a role, or its fallback number `fallback_index`.
    pub fn writer(
        &self,
        role: Role,
        context: PhaseContext<'_>,
        fallback_index: usize,
    ) -> Result<AssignedWriter, ConfigError> {
        self.assigned(role, context, fallback_index, None)
    }

    /// The researcher of a phase, or its fallback number `fallback_index`.
    pub fn researcher(
        &self,
        role: Role,
        context: PhaseContext<'_>,
        fallback_index: usize,
    ) -> Result<AssignedWriter, ConfigError> {
        self.assigned(role, context, fallback_index, context.phase.parallel_model.clone())
    }

    fn assigned(
        &self,
        role: Role,
        context: PhaseContext<'_>,
        fallback_index: usize,
        model: Option<String>,
    ) -> Result<AssignedWriter, ConfigError> {
        // The agent and model of a gate are those of its reviewers, not of its fixer.
        let own = Some(context.phase).filter(|phase| phase.policy().is_none());
        let agent = match own {
            Some(phase) => self.phase_agent(context)?.or_else(|| self.preferred_agent(phase)),
            None => None,
        };
        let (assigned, role_model) = match agent {
            Some(agent) => (agent, None),
            None => self.role_agent(role.into_str())?,
        };
        let kind = self.file.task_types.get(context.task.kind);
        let model = model.or_else(|| context.task.model.clone()).or_else(|| text(&kind.model));
        let model = model.or_else(|| own.and_then(|phase| phase.model.clone())).or(role_model);
        let agent = self.fallback(assigned.clone(), fallback_index);
        let model = known_model(model, &assigned, &agent);
        let timeout = self.timeout(self.writing_limit(context), &agent);
        Ok(AssignedWriter { agent, model, timeout })
    }

    /// The agent of a reviewer: in index 0 its own, later its fallbacks.
    pub fn reviewer(
        &self,
        name: &ReviewerName,
        context: PhaseContext<'_>,
        fallback_index: usize,
    ) -> Result<AssignedReviewer, ConfigError> {
        if let Some(checks) = self.checks_reviewer(name, context) {
            return Ok(checks);
        }
        let table = self.file.reviewers.get(name.as_str()).cloned().unwrap_or_default();
        let known = context.workflow.reviewers.get(name).ok_or_else(|| ConfigError::WithoutLocation {
            message: format!("workflow `{}` has no reviewer `{name}`", context.workflow.name),
        })?;
        let named = match (self.phase_agent(context)?, &table.agent) {
            (Some(agent), _) => Some(agent),
            (None, Some(_)) => Some(self.agent_at(&[key::REVIEWERS, name.as_str(), key::AGENT], key::AGENT)?),
            (None, None) => self.preferred_agent(context.phase),
        };
        let (assigned, role_model) = match named {
            Some(agent) => (agent, None),
            None => self.role_agent(key::REVIEW)?,
        };
        let model = context.phase.model.clone().or_else(|| text(&table.model));
        let model = model.or_else(|| self.review_model(context.task)).or(role_model);
        let agent = self.fallback(assigned.clone(), fallback_index);
        let gate = context.phase.policy().map(|policy| &policy.gate);
        let require_nonce = table.require_nonce.or_else(|| gate.and_then(|gate| gate.require_nonce));
        let limit = self.review_limit(context);
        Ok(AssignedReviewer {
            name: name.clone(),
            kind: known.kind,
            contract: known.contract,
            require_nonce: require_nonce
                .unwrap_or_else(|| agent.kind.echoes_nonces() && known.contract != Contract::Tool),
            workspace: table.review_workspace.or(self.review_workspace()),
            prompt: text(&table.prompt),
            model: known_model(model, &assigned, &agent),
            timeout: table.timeout.unwrap_or_else(|| self.timeout(limit, &agent)),
            agent,
        })
    }

    /// The model of a task's reviewers. The model of a review task is that of its reviewers.
    fn review_model(&self, task: &TaskSpec) -> Option<String> {
        let kind = self.file.task_types.get(task.kind);
        match task.kind {
            TaskType::Review => task.model.clone().or_else(|| text(&kind.review_model)).or_else(|| text(&kind.model)),
            TaskType::Implement | TaskType::Improve | TaskType::Plan => text(&kind.review_model),
        }
    }

    /// The agent of a role, of `implement`, or the only one; and its model in this role.
    fn role_agent(&self, role: &'static str) -> Result<(AgentConfig, Option<String>), ConfigError> {
        let model = self.role_model(role).map(|(model, _)| model.to_owned());
        for key in [role, Role::Implement.into_str()] {
            if self.is_set(&[key::ROLES, key, key::AGENT]) {
                return Ok((self.agent_at(&[key::ROLES, key, key::AGENT], key)?, model));
            }
        }
        let mut models: Vec<_> = self.agents().into_iter().filter(|agent| agent.kind.can_do_work()).collect();
        match (models.len(), models.pop()) {
            (1, Some(agent)) => Ok((agent, model)),
            (_, None) => Err(ConfigError::NoAgent),
            (_, Some(last)) => {
                let agents = models.into_iter().chain([last]).map(|agent| agent.name).collect();
                Err(ConfigError::Unassigned { role, agents })
            }
        }
    }

    /// The model of a role with its origin. `implement` counts if the role names neither an agent nor a model.
    pub(super) fn role_model(&self, role: &str) -> Option<(&str, &SettingOrigin)> {
        let role = if self.is_set(&[key::ROLES, role]) { role } else { Role::Implement.into_str() };
        let model = self.tree.get(&[key::ROLES, role, key::MODEL])?;
        Some((model.text()?, &model.origin))
    }

    /// The agent of a phase that the phase itself determines, without roles.
    pub(super) fn explicit_agent(&self, context: PhaseContext<'_>) -> Option<AgentConfig> {
        self.phase_agent(context).ok().flatten().or_else(|| self.preferred_agent(context.phase))
    }

    /// The agent that the setting at a path names. `key` is its name in messages.
    pub(super) fn agent_at(&self, path: &[&str], key: &str) -> Result<AgentConfig, ConfigError> {
        let name = self.tree.get(path).and_then(|node| node.text()).unwrap_or_default();
        self.agent(name).ok_or_else(|| self.error(path, self.no_such_agent(key, name)))
    }

    /// The agent that a phase names itself, or by its tool.
    fn phase_agent(&self, context: PhaseContext<'_>) -> Result<Option<AgentConfig>, ConfigError> {
        let Some(name) = context.phase.agent.as_deref() else {
            let tool = context.phase.tool.as_deref();
            return tool.map(|tool| self.tool_agent(tool, context)).transpose();
        };
        let agent = self.agent(name).ok_or_else(|| {
            let message = self.no_such_agent(key::AGENT, name);
            let (phase, workflow) = (&context.phase.name, &context.workflow.name);
            ConfigError::WithoutLocation { message: format!("phase `{phase}` of workflow `{workflow}`: {message}") }
        });
        agent.map(Some)
    }

    /// The agent that replaces a tool of another program.
    fn tool_agent(&self, tool: &str, context: PhaseContext<'_>) -> Result<AgentConfig, ConfigError> {
        let path = [key::PRESETS, &context.workflow.name, key::TOOLS, tool];
        if self.is_set(&path) {
            return self.agent_at(&path, tool);
        }
        let codex = tool.starts_with(CODEX_TOOLS);
        self.agent_of_kind(AgentKind::Codex).filter(|_| codex).ok_or_else(|| {
            let origin = self.phase_origin(context, key::TOOL).or_else(|| self.own_origin(&context.workflow.name));
            let also = if codex { "configure an agent of kind \"codex\", or " } else { "" };
            let (phase, workflow) = (&context.phase.name, &context.workflow.name);
            origin.unwrap_or(&SettingOrigin::Default).error(format!(
                "phase `{phase}` names the tool `{tool}`, which is mapped to no agent: \
                 {also}write `\"{tool}\" = \"AGENT\"` in [presets.{workflow}.tools]"
            ))
        })
    }

    /// An error for each phase that names a tool of another program which no agent replaces.
    pub fn unknown_tools(&self) -> Vec<ConfigError> {
        let task = TaskSpec::default();
        let workflows = self.workflow_names().into_iter().filter_map(|name| self.workflow(name).ok());
        let of_phases = |workflow: Workflow| {
            let context = |phase| PhaseContext { workflow: &workflow, phase, task: &task };
            let phases = workflow.all_phases();
            phases.filter_map(|phase| self.phase_agent(context(phase)).err()).collect::<Vec<_>>()
        };
        workflows.flat_map(of_phases).collect()
    }

    /// The first agent of the kind that a phase prefers.
    fn preferred_agent(&self, phase: &Phase) -> Option<AgentConfig> {
        phase.prefers.and_then(|kind| self.agent_of_kind(kind))
    }

    fn agent_of_kind(&self, kind: AgentKind) -> Option<AgentConfig> {
        self.agents().into_iter().find(|agent| agent.kind == kind)
    }

    pub(super) fn no_such_agent(&self, key: &str, name: &str) -> String {
        let known: Vec<_> = self.file.agents.keys().map(|name| name.as_str()).collect();
        let expected = did_you_mean(name, &known, || match known.as_slice() {
            [] => format!("no agent is configured; write a table [agents.{name}]"),
            known => format!("expected {}, or write a table [agents.{name}]", either(known)),
        });
        format!("`{key}` names the agent `{name}`, which is not configured: {expected}")
    }

    /// The time limit of a writer.
    fn writing_limit(&self, context: PhaseContext<'_>) -> PhaseLimit {
        match &context.phase.kind {
            PhaseKind::Agent { timeout, .. } => {
                PhaseLimit { span: *timeout, by_person: self.sets_timeout(context, key::TIMEOUT) }
            }
            PhaseKind::Gate(policy) | PhaseKind::Check(policy) => {
                let now = self.configured_timeout(context, FIX_TIMEOUT, |gate| gate.fix_timeout);
                let by_person = self.sets_timeout(context, FIX_TIMEOUT);
                PhaseLimit { span: now.or(policy.gate.fix_timeout), by_person }
            }
        }
    }

    /// The time limit of a review.
    pub(super) fn review_limit(&self, context: PhaseContext<'_>) -> PhaseLimit {
        let at_start = context.phase.policy().and_then(|policy| policy.gate.review_timeout);
        let now = self.configured_timeout(context, REVIEW_TIMEOUT, |gate| gate.review_timeout);
        PhaseLimit { span: now.or(at_start), by_person: self.sets_timeout(context, REVIEW_TIMEOUT) }
    }

    /// The time limit of the project's checks in a phase of their own, or at a gate.
    pub fn check_timeout(&self, context: PhaseContext<'_>) -> TimeSpan {
        self.review_limit(context).span.unwrap_or(self.limits().attempt)
    }

    /// The timeout that the current configuration sets for a gate. A started task has the timeout of its start on record;
    /// the current one replaces it, so that a person can give a running task more time.
    fn configured_timeout(
        &self,
        context: PhaseContext<'_>,
        key: &str,
        time: fn(&Gate) -> Option<TimeSpan>,
    ) -> Option<TimeSpan> {
        if let Some(minutes) = self.type_minutes(context.task.kind, key) {
            return Some(minutes);
        }
        let name = &context.workflow.name;
        self.gate_origin(name, context.phase.gate_name(), key)?;
        let now = self.workflow(name).ok()?;
        let mut judges = now.all_phases().filter(|phase| phase.policy().is_some());
        let phase = judges.find(|phase| phase.name == context.phase.name)?;
        phase.policy().and_then(|policy| time(&policy.gate))
    }

    /// The time limit that a task type sets for a key of a phase.
    fn type_minutes(&self, kind: TaskType, key: &str) -> Option<TimeSpan> {
        let kind = self.file.task_types.get(kind);
        let minutes = match key {
            key::TIMEOUT => kind.timeout_minutes,
            REVIEW_TIMEOUT => kind.review_timeout_minutes,
            _ => kind.improve_timeout_minutes,
        };
        minutes.map(Minutes::span)
    }

    /// Whether a person, not the preset, set a timeout of a phase.
    fn sets_timeout(&self, context: PhaseContext<'_>, key: &str) -> bool {
        let by_type = self.type_minutes(context.task.kind, key).is_some();
        let own = self.workflows.contains_key(&context.workflow.name);
        let by_gate = || self.gate_origin(&context.workflow.name, context.phase.gate_name(), key).is_some();
        let by_phase = || key == key::TIMEOUT && self.phase_origin(context, key).is_some();
        // An improvement without a time of its own has that of the gate's fixes.
        let improves = key == key::TIMEOUT && context.task.kind == TaskType::Improve;
        let mut judges = context.workflow.phases.iter().filter(|phase| improves && phase.policy().is_some());
        let mut by_fix = || judges.any(|phase| self.sets_timeout(PhaseContext { phase, ..context }, FIX_TIMEOUT));
        by_type || own || by_gate() || by_phase() || by_fix()
    }

    /// The timeout that the person set for the phase, the agent or all attempts, or else that of the preset.
    pub(super) fn timeout(&self, limit: PhaseLimit, agent: &AgentConfig) -> TimeSpan {
        let attempt = self.file.limits.keys.attempt;
        let by_person = limit.span.filter(|_| limit.by_person).or(agent.timeout);
        let by_person = by_person.or(Some(attempt).filter(|_| self.is_set(&[key::LIMITS, key::ATTEMPT])));
        by_person.or(limit.span).unwrap_or(attempt)
    }

    /// Checks that the agents of agent phases, including those that replace tools, can do work.
    pub(super) fn check_workers(&self, workflow: &Workflow) -> Result<(), ConfigError> {
        let task = TaskSpec::default();
        for phase in workflow.all_phases().filter(|phase| phase.policy().is_none()) {
            let tool = phase.tool.as_deref().filter(|_| phase.agent.is_none()).unwrap_or_default();
            let tool_path = [key::PRESETS, &workflow.name, key::TOOLS, tool];
            let (key, name, origin) = match &phase.agent {
                Some(name) => {
                    let own = || self.own_phase_origin(&workflow.name, &phase.name, key::AGENT);
                    let origin = self.phase_origin(PhaseContext { workflow, phase, task: &task }, key::AGENT);
                    let origin = origin.or_else(own).or_else(|| self.own_origin(&workflow.name));
                    (key::AGENT, name.as_str(), origin)
                }
                None => {
                    let named = self.tree.get(&tool_path).and_then(ConfigNode::text);
                    (tool, named.unwrap_or_default(), self.origin_at(&tool_path))
                }
            };
            // An unknown agent is reported when the phase is assigned.
            if self.agent(name).is_some_and(|agent| !agent.kind.can_do_work()) {
                return Err(origin.unwrap_or(&SettingOrigin::Default).error(only_checks(key, name)));
            }
        }
        Ok(())
    }

    /// Checks that the agent of a setting exists and can do work.
    pub(super) fn check_worker(&self, path: &[&str], key: &str) -> Result<(), ConfigError> {
        let agent = self.agent_at(path, key)?;
        if agent.kind.can_do_work() { Ok(()) } else { Err(self.error(path, only_checks(key, &agent.name))) }
    }

    pub(super) fn check_reviewers(&self) -> Result<(), ConfigError> {
        for (name, table) in self.file.reviewers.iter() {
            let name = name.as_str();
            if table.agent.is_some() {
                self.agent_at(&[key::REVIEWERS, name, key::AGENT], key::AGENT)?;
            }
            let known = table.kind.is_some() || name.parse::<ReviewerKind>().is_ok();
            if !known && !self.has_reviewer(name) {
                let kinds = either(<ReviewerKind as strum::VariantNames>::VARIANTS);
                let message = format!("reviewer `{name}` has no `kind`: expected {kinds}");
                return Err(self.error(&[key::REVIEWERS, name], message));
            }
        }
        Ok(())
    }

    /// Whether some workflow has a reviewer of this name.
    fn has_reviewer(&self, name: &str) -> bool {
        let has = |workflow: &Workflow| workflow.reviewers.contains_key(&name.into());
        let presets = || PRESETS.into_iter().filter_map(workflow::preset).any(|preset| has(&preset));
        self.workflows.values().any(has) || presets()
    }
}

fn only_checks(key: &str, agent: &str) -> String {
    format!(
        "`{key}` names `{agent}`, which only runs checks and can be a reviewer's `agent`: expected one of another kind"
    )
}

pub(super) fn text(text: &Option<NonBlankText>) -> Option<String> {
    text.as_ref().map(|text| text.as_str().to_owned())
}

/// The model of an agent: the requested one for the assigned agent and for a fallback of its kind without a model.
fn known_model(model: Option<String>, assigned: &AgentConfig, agent: &AgentConfig) -> Option<String> {
    if assigned.name == agent.name {
        return model.or_else(|| agent.model.clone());
    }
    agent.model.clone().or(model.filter(|_| assigned.kind == agent.kind))
}
