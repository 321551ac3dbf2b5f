//! Rules between tables, checked after all layers are merged.

use strum::VariantNames;

use super::reader::{did_you_mean, either};
use super::tree::ConfigNode;
use super::values::StoreLocation;
use super::{AgentKind, ConfigError, JobPlace, SettingOrigin, Settings};
use crate::review::ReviewerKind;
use crate::task::TaskSpec;
use crate::workflow::keys::OF_REVIEWERS;
use crate::workflow::resolve::named_twice;
use crate::workflow::{self, GateKeys, PRESETS, PhaseKind, Workflow};

impl Settings {
    /// Every mistake is reported before anything starts, not when a phase is reached at night.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.check_agents()?;
        for (role, choice) in self.tree.get(&["roles"]).map(ConfigNode::entries).unwrap_or_default() {
            if choice.get(&["agent"]).is_some() {
                self.check_worker(&["roles", role, "agent"], role)?;
            }
        }
        self.check_reviewers()?;
        self.check_preset()?;
        check_gate_reviewers(&self.file.gate, self.tree.get(&["gate"]))?;
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
                &["store"],
                "`store` names a PostgreSQL database, which is not supported yet: expected \"sqlite\"",
            )),
        }
    }

    fn check_agents(&self) -> Result<(), ConfigError> {
        for (name, table) in self.file.agents.iter() {
            let name = name.as_str();
            let message = match table.kind(name) {
                None => {
                    let kinds = either(AgentKind::VARIANTS);
                    format!("agent `{name}` has no `kind`: expected {kinds}")
                }
                Some(kind) if kind.needs_command() && table.command.is_none() => {
                    format!("agent `{name}` is of kind \"{}\": write `command = [\"./agent\"]`", kind.as_str())
                }
                Some(_) => {
                    self.check_fallback(name)?;
                    continue;
                }
            };
            return Err(self.error(&["agents", name], message));
        }
        Ok(())
    }

    /// Fallbacks must exist, be able to do work and form no cycle.
    fn check_fallback(&self, name: &str) -> Result<(), ConfigError> {
        let mut seen = vec![name];
        while let Some(table) = seen.last().and_then(|last| self.file.agents.get(*last)) {
            let (Some(last), Some(fallback)) = (seen.last(), &table.fallback) else { return Ok(()) };
            let path = ["agents", *last, "fallback"];
            self.check_worker(&path, "fallback")?;
            let next = fallback.as_str();
            if seen.contains(&next) {
                let circle = seen.join(" → ");
                let message =
                    format!("`fallback` leads in a circle: {circle} → {next}; write another agent, or leave it out");
                return Err(self.error(&path, message));
            }
            seen.push(next);
        }
        Ok(())
    }

    /// The agents of phases that are no reviews must be able to do work, also those that replace a tool.
    fn check_workers(&self, workflow: &Workflow) -> Result<(), ConfigError> {
        let task = TaskSpec::default();
        for phase in workflow.all_phases().filter(|phase| phase.policy().is_none()) {
            let tool = phase.tool.as_deref().filter(|_| phase.agent.is_none()).unwrap_or_default();
            let tool_path = ["presets", &workflow.name, "tools", tool];
            let (key, name, origin) = match &phase.agent {
                Some(name) => {
                    let own = || self.workflows.get(&workflow.name)?.origin(&phase.name, "agent");
                    let origin = self.phase_origin(JobPlace { workflow, phase, task: &task }, "agent");
                    let origin = origin.or_else(own).or_else(|| self.own_origin(&workflow.name));
                    ("agent", name.as_str(), origin)
                }
                None => {
                    let named = self.tree.get(&tool_path).and_then(ConfigNode::text);
                    (tool, named.unwrap_or_default(), self.set_at(&tool_path))
                }
            };
            // An unknown agent is reported when the phase is assigned.
            if self.agent(name).is_some_and(|agent| !agent.kind.is_a_model()) {
                return Err(origin.unwrap_or(&SettingOrigin::Default).error(only_checks(key, name)));
            }
        }
        Ok(())
    }

    /// The agent that a setting names must exist and be able to do work.
    fn check_worker(&self, path: &[&str], key: &str) -> Result<(), ConfigError> {
        let agent = self.agent_at(path, key)?;
        if agent.kind.is_a_model() { Ok(()) } else { Err(self.error(path, only_checks(key, &agent.name))) }
    }

    fn check_reviewers(&self) -> Result<(), ConfigError> {
        for (name, table) in self.file.reviewers.iter() {
            let name = name.as_str();
            if table.agent.is_some() {
                self.agent_at(&["reviewers", name, "agent"], "agent")?;
            }
            let known = table.kind.is_some() || ReviewerKind::parse(name).is_some();
            if !known && !self.has_reviewer(name) {
                let kinds = either(&ReviewerKind::ALL.map(ReviewerKind::as_str));
                let message = format!("reviewer `{name}` has no `kind`: expected {kinds}");
                return Err(self.error(&["reviewers", name], message));
            }
        }
        Ok(())
    }

    /// Whether some workflow has a reviewer of this name.
    fn has_reviewer(&self, name: &str) -> bool {
        let has = |workflow: &Workflow| workflow.reviewers.contains_key(&name.into());
        let presets = || PRESETS.into_iter().filter_map(workflow::preset).any(|preset| has(&preset));
        self.workflows.values().any(|own| has(&own.workflow)) || presets()
    }

    fn check_preset(&self) -> Result<(), ConfigError> {
        let preset = self.preset();
        if self.workflow_names().contains(&preset) {
            return Ok(());
        }
        let expected = self.expected_workflow(preset);
        Err(self.error(&["preset"], format!("`preset` is {preset:?}, which is no workflow: {expected}")))
    }

    fn check_presets(&self) -> Result<(), ConfigError> {
        for (name, preset) in self.file.presets.iter() {
            let name = name.as_str();
            if !self.workflow_names().contains(&name) {
                let expected = self.expected_workflow(name);
                let message = format!("[presets.{name}] is about no workflow: {expected}");
                return Err(self.error(&["presets", name], message));
            }
            check_gate_reviewers(&preset.gate, self.tree.get(&["presets", name]))?;
            let workflow = self.base_workflow(name)?;
            for (gate, keys) in preset.whole.gates.iter() {
                self.check_gate(&workflow, gate.as_str())?;
                check_gate_reviewers(keys, self.tree.get(&["presets", name, "gates", gate.as_str()]))?;
            }
            self.check_phases(&workflow)?;
            for (word, _) in preset.whole.phase.iter().filter(|(_, table)| table.agent.is_some()) {
                self.agent_at(&["presets", name, "phase", word.as_str(), "agent"], "agent")?;
            }
            for tool in preset.whole.tools.keys() {
                self.agent_at(&["presets", name, "tools", tool], "tools")?;
            }
        }
        Ok(())
    }

    fn check_gate(&self, workflow: &Workflow, name: &str) -> Result<(), ConfigError> {
        let path = ["presets", &workflow.name, "gates", name];
        let judges: Vec<_> = workflow.all_phases().filter(|phase| phase.policy().is_some()).collect();
        let names: Vec<_> = judges.iter().map(|phase| phase.gate_name()).collect();
        let Some(judge) = judges.iter().find(|phase| phase.gate_name() == name) else {
            let expected = did_you_mean(name, &names, || match names.as_slice() {
                [] => "expected nothing, for it has no gates".to_owned(),
                names => format!("expected one of {}", names.join(", ")),
            });
            return Err(self.error(&path, format!("workflow `{}` has no gate `{name}`: {expected}", workflow.name)));
        };
        let table = self.tree.get(&path).filter(|_| matches!(judge.kind, PhaseKind::Check(_)));
        let set = OF_REVIEWERS.iter().find(|key| table.is_some_and(|table| table.get(&[key]).is_some()));
        match (table, set) {
            (Some(table), Some(key)) => Err(table.error(
                key,
                format!("`{name}` is a check, which the project's commands judge, not reviewers: expected no `{key}`"),
            )),
            (_, None) | (None, Some(_)) => Ok(()),
        }
    }
}

fn only_checks(key: &str, agent: &str) -> String {
    format!(
        "`{key}` names `{agent}`, which only runs checks and can be a reviewer's `agent`: expected one of another kind"
    )
}

fn check_gate_reviewers(keys: &GateKeys, table: Option<&ConfigNode>) -> Result<(), ConfigError> {
    let (Some(reviewers), Some(table)) = (&keys.reviewers, table) else { return Ok(()) };
    let empty = || "a gate needs a reviewer: write `enabled = false` to switch it off".to_owned();
    let message = named_twice(reviewers).or_else(|| reviewers.is_empty().then(empty));
    message.map_or(Ok(()), |message| Err(table.error("reviewers", message)))
}
