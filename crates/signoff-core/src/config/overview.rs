//! The phases of the preset, a line each: who does them, and what follows from a review.

use serde::Serialize;
use serde_json::Value;

use super::questions::{PHASES, Question, title};
use super::value::Text;
use super::{ConfigError, Origin, Place, Setting, Settings};
use crate::task::TaskSpec;
use crate::workflow::{Phase, PhaseKind, Workflow};

/// One phase with everything that is said about it.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PhaseRow {
    pub number: u32,
    /// As a heading has it: Code Review.
    pub name: String,
    pub settings: Vec<PhaseSetting>,
}

/// One thing that is said about a phase.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PhaseSetting {
    /// `agent`, `tool`, `model`, `parallel`, `researchers`, `parallelModel`, `commands`, `onFailure`, `failOnSeverity`,
    /// `maxRetries`, `onMaxRetries` or `parallelFixes`.
    pub name: &'static str,
    pub value: Value,
    pub origin: Origin,
}

impl PhaseSetting {
    /// As it stands in a line: where it comes from is said if somebody set it.
    fn words(&self) -> String {
        let value = match &self.value {
            Value::String(word) => word.clone(),
            Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            Value::Null => "no limit".to_owned(),
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => self.value.to_string(),
        };
        match &self.origin {
            Origin::Default | Origin::Preset { .. } => format!("{} {value}", self.name),
            Origin::Person { .. }
            | Origin::Foreign { .. }
            | Origin::Repository { .. }
            | Origin::Environment { .. }
            | Origin::Flag { .. }
            | Origin::Task => format!("{} {value} ({})", self.name, self.origin),
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

/// What follows from a review, in the order in which it is shown: when, how often, what then, how.
const ORDER: [Question; 5] = [
    Question::OnFailure,
    Question::FailOn,
    Question::Retries,
    Question::OnExhausted,
    Question::ParallelFixes,
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
        let task = TaskSpec::of("");
        let place = Place { workflow, phase, task: &task };
        let said = self.said_of_phase(place);
        let preset = || Origin::Preset { name: workflow.name.clone() };
        let by = |origin: Option<&Origin>| origin.cloned().unwrap_or_else(preset);
        let one = |name, value: Value, origin: Origin| PhaseSetting { name, value, origin };
        if let PhaseKind::Check(_) = phase.kind {
            let names: Vec<_> = self.checks().into_iter().map(|(name, _)| Value::from(name)).collect();
            let found = if names.is_empty() { Value::from("as found") } else { Value::Array(names) };
            return vec![one("commands", found, Origin::Default)];
        }
        let mut rows = Vec::new();
        if let Some((name, origin)) = self.doer(place) {
            rows.push(one("agent", name.into(), origin));
        }
        if let Some(tool) = &phase.tool {
            rows.push(one("tool", tool.as_str().into(), by(origin(&said.tool))));
        }
        let elsewhere = self.model_elsewhere(place).filter(|_| phase.model.is_none());
        rows.push(match elsewhere {
            Some(set) => one("model", set.value.as_str().into(), set.origin.clone()),
            None => {
                let model = phase.model.as_deref().unwrap_or("inherit");
                one("model", model.into(), by(origin(&said.model)))
            }
        });
        if let PhaseKind::Agent { researchers, .. } = phase.kind {
            let team = origin(&said.researchers).or(origin(&said.parallel));
            rows.push(one("parallel", (researchers > 0).into(), by(team)));
            if researchers > 0 {
                rows.push(one("researchers", researchers.into(), by(team)));
                let model = phase.parallel_model.as_deref().unwrap_or("inherit");
                rows.push(one("parallelModel", model.into(), by(origin(&said.parallel_model))));
            }
        }
        rows
    }

    /// The agent of a phase, and who named it. None: nobody is there, or nobody knows which.
    fn doer(&self, place: Place<'_>) -> Option<(String, Origin)> {
        let said = self.said_of_phase(place);
        let roles = &self.written.roles;
        let by_role = |role: &str| [role, "implement"].iter().find_map(|role| roles.of(role)?.agent.as_ref());
        let (name, by) = match &place.phase.kind {
            PhaseKind::Agent { role, .. } => {
                (self.writer(*role, place).ok()?.agent.name, by_role(role.word()))
            }
            PhaseKind::Gate(policy) => {
                let reviewer = policy.gate.reviewers.first()?;
                let own = self.written.reviewers.0.get(reviewer.as_str()).and_then(|set| set.agent.as_ref());
                (self.reviewer(reviewer, place).ok()?.agent.name, own.or_else(|| by_role("review")))
            }
            PhaseKind::Check(_) => return None,
        };
        let named = [said.agent.as_ref(), said.tool.as_ref()].into_iter().flatten().next();
        let by = named.or(by.filter(|by| by.value.as_str() == name));
        Some((name, by.map_or(Origin::Default, |set| set.origin.clone())))
    }

    /// The model that a reviewer or a role has, where the phase has none of its own.
    fn model_elsewhere(&self, place: Place<'_>) -> Option<&Setting<Text>> {
        let (role, reviewer) = match &place.phase.kind {
            PhaseKind::Agent { role, .. } => (role.word(), None),
            PhaseKind::Gate(policy) => {
                let first = policy.gate.reviewers.first()?;
                ("review", self.written.reviewers.0.get(first.as_str()))
            }
            PhaseKind::Check(_) => return None,
        };
        let named = self.chosen(place).is_some() || reviewer.is_some_and(|reviewer| reviewer.agent.is_some());
        let of_role = || if named { None } else { self.model_in_role(role) };
        reviewer.and_then(|reviewer| reviewer.model.as_ref()).or_else(of_role)
    }

    fn policy(&self, phase: &Phase) -> Vec<PhaseSetting> {
        let Some(policy) = phase.judge() else { return Vec::new() };
        let questions = ORDER.into_iter().filter(|question| question.concerns(phase));
        let one = |question: Question| {
            let origin = self.gate_origin(PHASES, phase.gate_name(), question.key());
            let value = question.now(&policy.gate).value().filter(|value| value != "unlimited");
            PhaseSetting {
                name: question.setting(),
                value: value.unwrap_or_default(),
                origin: origin.unwrap_or(Origin::Preset { name: PHASES.to_owned() }),
            }
        };
        questions.map(one).collect()
    }
}

fn origin<T>(setting: &Option<Setting<T>>) -> Option<&Origin> {
    setting.as_ref().map(|set| &set.origin)
}
