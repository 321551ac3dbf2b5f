//! What has to hold between tables, once all layers are laid.

use super::value::{AgentKind, Store, Text};
use super::{ConfigError, Origin, Place, Setting, Settings};
use crate::review::ReviewerKind;
use crate::task::TaskSpec;
use crate::workflow::problem::{either, nearest};
use crate::workflow::{self, PRESETS, PhaseKind, Workflow};

impl Settings {
    /// Every mistake is said before anything starts, not when a phase is reached at night.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.check_agents()?;
        self.check_roles()?;
        self.check_reviewers()?;
        self.check_preset()?;
        self.check_presets()?;
        self.check_prices()?;
        self.check_notify()?;
        self.workflow_names().into_iter().try_for_each(|name| self.check_workers(&self.workflow(name)?))
    }

    /// Whether facts can be kept where the configuration wants them.
    pub fn check_store(&self) -> Result<(), ConfigError> {
        let store = &self.written.store;
        match store.value {
            Store::Sqlite => Ok(()),
            Store::Postgres(_) => Err(store.origin.error(
                "`store` names a PostgreSQL database, which is not supported yet: expected \"sqlite\"",
            )),
        }
    }

    fn check_agents(&self) -> Result<(), ConfigError> {
        for (name, settings) in &self.written.agents.0 {
            let Some(kind) = settings.kind(name) else {
                let kinds = either(&AgentKind::ALL.map(AgentKind::word));
                return Err(settings
                    .place()
                    .error(format!("agent `{name}` has no `kind`: expected {kinds}")));
            };
            if kind.needs_command() && settings.command.is_none() {
                let message =
                    format!("agent `{name}` is of kind \"{}\": write `command = [\"./agent\"]`", kind.word());
                return Err(settings.place().error(message));
            }
            self.check_fallback(name)?;
        }
        Ok(())
    }

    /// Who takes over must exist and be able to, and nobody may take over from himself in the end.
    fn check_fallback(&self, name: &str) -> Result<(), ConfigError> {
        let mut seen = vec![name.to_owned()];
        while let Some(settings) = seen.last().and_then(|last| self.written.agents.0.get(last)) {
            let Some(fallback) = &settings.fallback else { return Ok(()) };
            self.check_worker("fallback", fallback)?;
            let next = fallback.value.as_str().to_owned();
            if seen.contains(&next) {
                let circle = seen.join(" → ");
                let message = format!(
                    "`fallback` leads in a circle: {circle} → {next}; write another agent, or leave it out"
                );
                return Err(fallback.origin.error(message));
            }
            seen.push(next);
        }
        Ok(())
    }

    fn check_roles(&self) -> Result<(), ConfigError> {
        for (role, player) in self.written.roles.all() {
            let Some(setting) = &player.agent else { continue };
            self.check_worker(role, setting)?;
        }
        Ok(())
    }

    /// Whoever does a phase that is no review must be able to, also where he stands for a tool of another program.
    fn check_workers(&self, workflow: &Workflow) -> Result<(), ConfigError> {
        let task = TaskSpec::default();
        let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
        for phase in phases.filter(|phase| phase.judge().is_none()) {
            let Some((key, named)) = self.named_in(Place { workflow, phase, task: &task }) else { continue };
            // Who names nobody is told by those who would start him.
            if self.agent(named.value.as_str()).is_some() {
                self.check_worker(&key, &named)?;
            }
        }
        Ok(())
    }

    /// The agent that a phase names, or the one that stands for its tool, and the key that says so.
    fn named_in(&self, place: Place<'_>) -> Option<(String, Setting<Text>)> {
        let (workflow, phase) = (place.workflow, place.phase);
        if let Some(name) = phase.agent.as_deref() {
            let said = self.said_of_phase(place).agent.map(|said| said.origin);
            let own = || {
                let own = self.workflows.get(&workflow.name)?;
                own.written.get(&(phase.name.clone(), "agent".to_owned())).cloned()
            };
            let origin = said.or_else(own).or_else(|| self.own_origin(&workflow.name));
            let origin = origin.unwrap_or(Origin::Default);
            return Some(("agent".to_owned(), Setting { value: Text::from(name), origin }));
        }
        let tool = phase.tool.as_deref()?;
        let named = self.written.presets.0.get(&workflow.name)?.whole.tools.get(tool)?;
        Some((tool.to_owned(), named.clone()))
    }

    /// Who is to do work must be able to.
    fn check_worker(&self, key: &str, setting: &Setting<Text>) -> Result<(), ConfigError> {
        let agent = self.named(setting, key)?;
        if agent.kind.is_a_model() {
            return Ok(());
        }
        Err(setting.origin.error(format!(
            "`{key}` names `{}`, which only runs checks and can be a reviewer's `agent`: expected one of another kind",
            agent.name
        )))
    }

    fn check_reviewers(&self) -> Result<(), ConfigError> {
        for (name, settings) in &self.written.reviewers.0 {
            if let Some(agent) = &settings.agent {
                self.named(agent, "agent")?;
            }
            let known = settings.kind.is_some() || ReviewerKind::from_word(name).is_some();
            if !known && !self.has_reviewer(name) {
                let kinds = either(&ReviewerKind::ALL.map(ReviewerKind::word));
                let place = settings.at.clone().unwrap_or(Origin::Default);
                return Err(place.error(format!("reviewer `{name}` has no `kind`: expected {kinds}")));
            }
        }
        Ok(())
    }

    /// Whether some workflow has a reviewer of its own by this name.
    fn has_reviewer(&self, name: &str) -> bool {
        let has = |workflow: &Workflow| workflow.reviewers.contains_key(&name.into());
        let presets = || PRESETS.into_iter().filter_map(workflow::preset).any(|preset| has(&preset));
        self.workflows.values().any(|own| has(&own.workflow)) || presets()
    }

    fn check_preset(&self) -> Result<(), ConfigError> {
        let (preset, known) = (&self.written.preset, self.workflow_names());
        if known.contains(&self.preset()) {
            return Ok(());
        }
        let expected = self.expected_workflow(self.preset());
        Err(preset.origin.error(format!("`preset` is {:?}, which is no workflow: {expected}", self.preset())))
    }

    fn check_presets(&self) -> Result<(), ConfigError> {
        for (name, settings) in &self.written.presets.0 {
            let place = settings.whole.at.clone().unwrap_or(Origin::Default);
            if !self.workflow_names().contains(&name.as_str()) {
                let expected = self.expected_workflow(name);
                return Err(place.error(format!("[presets.{name}] is about no workflow: {expected}")));
            }
            let workflow = self.untouched(name)?;
            for (gate, words) in &settings.whole.gates.0 {
                check_gate(&workflow, gate, words)?;
            }
            settings.whole.phase.check(&workflow)?;
            settings.whole.phase.agents().try_for_each(|agent| self.named(agent, "agent").map(drop))?;
            settings.whole.tools.agents().try_for_each(|agent| self.named(agent, "tools").map(drop))?;
        }
        Ok(())
    }
}

fn check_gate(workflow: &Workflow, name: &str, words: &super::gate::GateSettings) -> Result<(), ConfigError> {
    let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
    let judges: Vec<_> = phases.filter(|phase| phase.judge().is_some()).collect();
    let names: Vec<_> = judges.iter().map(|phase| phase.gate_name()).collect();
    let Some(judge) = judges.iter().find(|phase| phase.gate_name() == name) else {
        let expected = match nearest(name, &names) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if names.is_empty() => "expected nothing, for it has no gates".to_owned(),
            None => format!("expected one of {}", names.join(", ")),
        };
        return Err(words
            .place()
            .error(format!("workflow `{}` has no gate `{name}`: {expected}", workflow.name)));
    };
    let is_check = matches!(judge.kind, PhaseKind::Check(_));
    match words.of_reviewers().filter(|_| is_check) {
        Some((key, origin)) => Err(origin.error(format!(
            "`{name}` is a check, which the project's commands judge, not reviewers: expected no `{key}`"
        ))),
        None => Ok(()),
    }
}
