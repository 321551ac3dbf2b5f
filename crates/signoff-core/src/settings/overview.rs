//! The phases of the preset `phases`, a line each: their agents, and what follows from a review.

use serde::Serialize;
use serde_json::Value;

use super::questions::{PHASES, PhaseQuestion, title};
use super::{ConfigError, JobPlace, SettingOrigin, Settings};
use crate::task::TaskSpec;
use crate::workflow::{Phase, PhaseKind, Workflow};

/// One phase with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PhaseRow {
    pub number: u32,
    /// As a heading has it: Code Review.
    pub name: String,
    pub settings: Vec<PhaseSetting>,
}

/// One setting of a phase.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PhaseSetting {
    /// `agent`, `tool`, `model`, `parallel`, `researchers`, `parallelModel`, `commands`, `onFailure`, `failOnSeverity`,
    /// `maxRetries`, `onMaxRetries` or `parallelFixes`.
    pub name: &'static str,
    pub value: Value,
    pub origin: SettingOrigin,
}

impl PhaseSetting {
    /// For a line: with its origin, unless it is built in.
    fn words(&self) -> String {
        let value = match &self.value {
            Value::String(word) => word.clone(),
            Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            Value::Null => "no limit".to_owned(),
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => self.value.to_string(),
        };
        match &self.origin {
            SettingOrigin::Default | SettingOrigin::Preset { .. } => format!("{} {value}", self.name),
            SettingOrigin::Person { .. }
            | SettingOrigin::Foreign { .. }
            | SettingOrigin::Repository { .. }
            | SettingOrigin::Environment { .. }
            | SettingOrigin::Flag { .. }
            | SettingOrigin::Task => format!("{} {value} ({})", self.name, self.origin),
        }
    }
}

impl PhaseRow {
    /// The phase in a line, its name as wide as the widest.
    pub fn line(&self, width: usize) -> String {
        let said: Vec<_> = self.settings.iter().map(PhaseSetting::words).collect();
        format!("{} {:<width$}  {}", self.number, self.name, said.join(", ")).trim_end().to_owned()
    }
}

/// The settings of a review, in the order in which they are shown.
const ORDER: [PhaseQuestion; 5] = [
    PhaseQuestion::OnFailure,
    PhaseQuestion::FailOn,
    PhaseQuestion::Retries,
    PhaseQuestion::OnExhausted,
    PhaseQuestion::ParallelFixes,
];

impl Settings {
    /// The phases of the preset `phases`, in their order. A gate that is off is left out.
    pub fn phase_rows(&self) -> Result<Vec<PhaseRow>, ConfigError> {
        let workflow = self.workflow(PHASES)?;
        let on = workflow.phases.iter().enumerate().filter(|(_, phase)| !phase.is_off());
        let row = |(index, phase): (usize, &Phase)| {
            let mut settings = self.who(&workflow, phase);
            settings.extend(self.policy(phase));
            PhaseRow { number: workflow.number(index), name: title(&phase.name), settings }
        };
        Ok(on.map(row).collect())
    }

    fn who(&self, workflow: &Workflow, phase: &Phase) -> Vec<PhaseSetting> {
        let task = TaskSpec::from_text("");
        let place = JobPlace { workflow, phase, task: &task };
        let by = |key: &str| {
            let origin = self.phase_origin(place, key).cloned();
            origin.unwrap_or_else(|| SettingOrigin::Preset { name: workflow.name.clone() })
        };
        let one = |name, value: Value, origin: SettingOrigin| PhaseSetting { name, value, origin };
        if let PhaseKind::Check(_) = phase.kind {
            let names: Vec<_> = self.checks().into_iter().map(|(name, _)| Value::from(name)).collect();
            let found = if names.is_empty() { Value::from("as found") } else { Value::Array(names) };
            return vec![one("commands", found, SettingOrigin::Default)];
        }
        let mut rows = Vec::new();
        if let Some((name, origin)) = self.doer(place) {
            rows.push(one("agent", name.into(), origin));
        }
        if let Some(tool) = &phase.tool {
            rows.push(one("tool", tool.as_str().into(), by("tool")));
        }
        let elsewhere = self.model_elsewhere(place).filter(|_| phase.model.is_none());
        rows.push(match elsewhere {
            Some((model, origin)) => one("model", model.into(), origin.clone()),
            None => {
                let model = phase.model.as_deref().unwrap_or("inherit");
                one("model", model.into(), by("model"))
            }
        });
        if let PhaseKind::Agent { researchers, .. } = phase.kind {
            let counted = self.phase_origin(place, "researchers").is_some();
            let team = if counted { "researchers" } else { "parallel" };
            rows.push(one("parallel", (researchers > 0).into(), by(team)));
            if researchers > 0 {
                rows.push(one("researchers", researchers.into(), by(team)));
                let model = phase.parallel_model.as_deref().unwrap_or("inherit");
                rows.push(one("parallelModel", model.into(), by("parallel_model")));
            }
        }
        rows
    }

    /// The agent of a phase, and where it is named. None: there is no agent, or several and none of them is chosen.
    fn doer(&self, place: JobPlace<'_>) -> Option<(String, SettingOrigin)> {
        let (name, own, role) = match &place.phase.kind {
            PhaseKind::Agent { role, .. } => (self.writer(*role, place).ok()?.agent.name, None, role.as_str()),
            PhaseKind::Gate(policy) => {
                let reviewer = policy.gate.reviewers.first()?;
                let own = self.tree.get(&["reviewers", reviewer.as_str(), "agent"]);
                (self.reviewer(reviewer, place).ok()?.agent.name, own, "review")
            }
            PhaseKind::Check(_) => return None,
        };
        let mut roles = [role, "implement"].into_iter();
        let named = own.or_else(|| roles.find_map(|role| self.tree.get(&["roles", role, "agent"])));
        let named = named.filter(|node| node.text() == Some(&name)).map(|node| &node.origin);
        let by_phase = self.phase_origin(place, "agent").or_else(|| self.phase_origin(place, "tool"));
        Some((name, by_phase.or(named).cloned().unwrap_or(SettingOrigin::Default)))
    }

    /// The model that a reviewer or a role has, if the phase has none of its own.
    fn model_elsewhere(&self, place: JobPlace<'_>) -> Option<(&str, &SettingOrigin)> {
        let (role, reviewer) = match &place.phase.kind {
            PhaseKind::Agent { role, .. } => (role.as_str(), None),
            PhaseKind::Gate(policy) => {
                ("review", self.tree.get(&["reviewers", policy.gate.reviewers.first()?.as_str()]))
            }
            PhaseKind::Check(_) => return None,
        };
        let set = |key: &str| reviewer.and_then(|reviewer| reviewer.get(&[key]));
        let own = set("model").and_then(|model| Some((model.text()?, &model.origin)));
        let named = self.chosen(place).is_some() || set("agent").is_some();
        own.or_else(|| if named { None } else { self.role_model(role) })
    }

    fn policy(&self, phase: &Phase) -> Vec<PhaseSetting> {
        let Some(policy) = phase.policy() else { return Vec::new() };
        let questions = ORDER.into_iter().filter(|question| question.applies_to(phase));
        let one = |question: PhaseQuestion| {
            let origin = self.gate_origin(PHASES, phase.gate_name(), question.key());
            let value = question.now(&policy.gate).value().filter(|value| value != "unlimited");
            PhaseSetting {
                name: question.setting(),
                value: value.unwrap_or_default(),
                origin: origin.unwrap_or(SettingOrigin::Preset { name: PHASES.to_owned() }),
            }
        };
        questions.map(one).collect()
    }
}
