//! Every value in effect with its origin, which of several keys decides a setting, and one line for each phase of the
//! preset `phases`.

use serde::Serialize;
use serde_json::Value;

use super::file::{AUTO_REVIEW, MAX_REVIEW_CYCLES, REVIEW_ENABLED, REVIEW_MAX_FIX_ATTEMPTS};
use super::layer::{ConfigNode, excluded_by};
use super::preset::{PhaseTable, are_same};
use super::questions::{PhaseQuestion, title};
use super::rules::key_name;
use super::workflows::other_bound;
use super::{ConfigError, PhaseContext, SettingOrigin, Settings, key};
use crate::task::TaskSpec;
use crate::workflow::keys::{BOUNDS, REVIEWER_KEYS};
use crate::workflow::{GateKeys, PHASES_PRESET, Phase, PhaseKind, SLOTS_PRESET, Workflow};

/// One value under its dotted key.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SettingRow {
    pub key: String,
    pub value: Value,
    pub origin: SettingOrigin,
}

impl SettingRow {
    /// The value as it is written in a file.
    pub fn text(&self) -> String {
        let Some(list) = self.value.as_array() else { return self.value.to_string() };
        let list: Vec<_> = list.iter().map(Value::to_string).collect();
        format!("[{}]", list.join(", "))
    }
}

/// Adds a row for each value below a path. The keys of `path` lead to `value` in `tree`.
fn add_rows(tree: &ConfigNode, path: &mut Vec<String>, value: Value, rows: &mut Vec<SettingRow>) {
    match value {
        Value::Null => {}
        Value::Object(table) => {
            for (key, value) in table {
                path.push(key);
                add_rows(tree, path, value, rows);
                path.pop();
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let keys: Vec<_> = path.iter().map(String::as_str).collect();
            let node = tree.get(&keys);
            // A role that has an agent and no model is shown under its own key.
            let node = node.and_then(|node| node.get(&[key::AGENT])).or(node);
            let origin = node.map_or(SettingOrigin::Default, |node| node.origin.clone());
            rows.push(SettingRow { key: keys.join("."), value, origin });
        }
    }
}

impl Settings {
    fn rows(&self, path: &[&str], value: &impl Serialize) -> Vec<SettingRow> {
        let mut rows = Vec::new();
        let mut path = path.iter().map(|key| (*key).to_owned()).collect();
        add_rows(&self.tree, &mut path, serde_json::to_value(value).unwrap_or_default(), &mut rows);
        rows
    }

    /// Every value in effect with its origin: first as the file has them, then the gates of the preset in use.
    pub fn origins(&self) -> Vec<SettingRow> {
        let mut rows = self.rows(&[], &self.file);
        for (name, own) in &self.workflows {
            let origin = self.own_origin(name).cloned().unwrap_or(SettingOrigin::Default);
            rows.push(SettingRow { key: format!("workflows.{name}"), value: summary(own), origin });
        }
        if let Ok(workflow) = self.workflow(self.preset()) {
            let gates = workflow.all_phases().flat_map(|phase| self.gate_rows(&workflow, phase));
            let new = |gate: &SettingRow| !rows.iter().any(|known| known.key == gate.key);
            let gates: Vec<_> = gates.filter(new).collect();
            rows.extend(gates);
        }
        rows
    }

    fn gate_rows(&self, workflow: &Workflow, phase: &Phase) -> Vec<SettingRow> {
        let gate = phase.policy().and_then(|policy| serde_json::to_value(&policy.gate).ok());
        let is_check = matches!(phase.kind, PhaseKind::Check(_));
        let keys = GateKeys::keys().into_iter().filter(|key| !(is_check && REVIEWER_KEYS.contains(key)));
        let row = |key: &str| {
            let value = Some(gate.as_ref()?.get(key)?.clone()).filter(|value| !value.is_null());
            // A limit that is off is written as 0.
            let value = value.or_else(|| key.starts_with("max_").then(|| Value::from(0)))?;
            let origin = self.gate_origin(&workflow.name, phase.gate_name(), key);
            let origin = origin.or_else(|| self.own_gate_origin(workflow, phase, key));
            let origin = origin.unwrap_or(SettingOrigin::Preset { name: workflow.name.clone() });
            let key = format!("presets.{}.gates.{}.{key}", workflow.name, phase.gate_name());
            Some(SettingRow { key, value, origin })
        };
        keys.filter_map(row).collect()
    }

    /// Where a key's value comes from. The key may call a phase by its name or its number.
    pub fn origin_of(&self, key: &str) -> Option<SettingOrigin> {
        self.origins().into_iter().find(|row| self.is_same_key(&row.key, key)).map(|row| row.origin)
    }

    fn is_same_key(&self, key: &str, other: &str) -> bool {
        let split = |key: &str| -> Option<[String; 3]> {
            let (preset, rest) = key.strip_prefix("presets.")?.split_once(".phase.")?;
            let (word, rest) = rest.split_once('.')?;
            Some([preset, word, rest].map(str::to_owned))
        };
        let same = || {
            let ([preset, word, end], [others, theirs, rest]) = (split(key)?, split(other)?);
            let workflow = self.base_workflow(&preset).ok().filter(|_| preset == others && end == rest)?;
            Some(are_same(&workflow, &word, &theirs))
        };
        key == other || same().unwrap_or(false)
    }

    pub(super) fn own_origin(&self, workflow: &str) -> Option<&SettingOrigin> {
        self.origin_at(&[key::WORKFLOWS, workflow])
    }

    /// Where a workflow of `[workflows]` sets a key of a gate, or built in.
    fn own_gate_origin(&self, workflow: &Workflow, phase: &Phase, key: &str) -> Option<SettingOrigin> {
        self.own_origin(&workflow.name)?;
        let set = |key| self.own_phase_origin(&workflow.name, &phase.name, key);
        let origin = set(key).or_else(|| set(other_bound(key)?));
        Some(origin.cloned().unwrap_or(SettingOrigin::Default))
    }

    /// The keys that decide what a key sets, with their origins. A key that concerns several gates has several.
    pub fn deciding_keys(&self, key: &str) -> Vec<(String, SettingOrigin)> {
        let names: Vec<&str> = key.split('.').collect();
        let enabled = key_name!(GateKeys, enabled);
        let [max_cycles, max_fixes] = BOUNDS;
        match names.as_slice() {
            [key::GATE, key] => self.deciding_keys_for_gates(self.preset(), key),
            [key::DEFAULTS, AUTO_REVIEW | MAX_REVIEW_CYCLES] if !self.defaults_apply() => Vec::new(),
            [key::DEFAULTS, AUTO_REVIEW] => self.deciding_keys_for_gates(self.preset(), enabled),
            [key::DEFAULTS, MAX_REVIEW_CYCLES] => self.deciding_keys_for_gates(self.preset(), max_cycles),
            [REVIEW_ENABLED] => self.deciding_keys_for_gates(SLOTS_PRESET, enabled),
            [REVIEW_MAX_FIX_ATTEMPTS] => self.deciding_keys_for_gates(SLOTS_PRESET, max_fixes),
            [key::PRESETS, name, key::GATES, gate, key] => {
                self.deciding_gate_key(name, gate, key).into_iter().collect()
            }
            [key::PRESETS, name, key::PHASE, phase, key] => {
                self.deciding_phase_key(name, phase, key).into_iter().collect()
            }
            [key::PRESETS, name, key] if GateKeys::keys().contains(key) => self.deciding_keys_for_gates(name, key),
            _ => self.origin_of(key).map(|origin| (key.to_owned(), origin)).into_iter().collect(),
        }
    }

    /// Whether `[defaults]` applies to the workflow in use: it applies to those with one gate.
    pub fn defaults_apply(&self) -> bool {
        self.only_gate(self.preset()).is_some()
    }

    fn deciding_keys_for_gates(&self, name: &str, key: &str) -> Vec<(String, SettingOrigin)> {
        let Ok(workflow) = self.base_workflow(name) else { return Vec::new() };
        let has_key = |phase: &&Phase| match phase.kind {
            PhaseKind::Agent { .. } => false,
            PhaseKind::Gate(_) => true,
            PhaseKind::Check(_) => !REVIEWER_KEYS.contains(&key),
        };
        let phases = workflow.all_phases().filter(has_key);
        let mut deciding = Vec::new();
        for found in phases.filter_map(|phase| self.deciding_gate_key(name, phase.gate_name(), key)) {
            if !deciding.contains(&found) {
                deciding.push(found);
            }
        }
        deciding
    }

    fn deciding_phase_key(&self, preset: &str, phase: &str, key: &str) -> Option<(String, SettingOrigin)> {
        let workflow = self.base_workflow(preset).ok()?;
        let tables = self.tree.get(&[key::PRESETS, preset, key::PHASE])?;
        let (name, table) = tables.entries().into_iter().find(|(name, _)| are_same(&workflow, name, phase))?;
        let keys = [Some(key), excluded_by(&[key::PRESETS, preset, key::PHASE, name], key)];
        let set = |key| Some((key, &table.get(&[key])?.origin));
        let (key, origin) = keys.into_iter().flatten().find_map(set)?;
        Some((format!("presets.{preset}.phase.{phase}.{key}"), origin.clone()))
    }

    /// The values that are configured for a workflow.
    pub fn workflow_rows(&self, workflow: &str) -> Vec<SettingRow> {
        let preset = self.file.presets.get(workflow);
        let mut rows = preset.map_or_else(Vec::new, |preset| self.rows(&[key::PRESETS, workflow], preset));
        if workflow == self.preset() {
            rows.extend(self.rows(&[key::GATE], &self.file.gate));
        }
        rows
    }
}

/// The description of a workflow, or the names of its phases.
fn summary(workflow: &Workflow) -> Value {
    match workflow.description.as_str() {
        "" => workflow.all_phases().map(|phase| phase.name.as_str()).collect(),
        description => description.into(),
    }
}

/// One phase with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PhaseRow {
    pub number: u32,
    /// The name as a heading: Code Review.
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
    /// The setting for a line: with its origin, unless it is built in.
    fn line(&self) -> String {
        let value = match &self.value {
            Value::String(word) => word.clone(),
            Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            Value::Null => "no limit".to_owned(),
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => self.value.to_string(),
        };
        if matches!(self.origin, SettingOrigin::Default | SettingOrigin::Preset { .. }) {
            return format!("{} {value}", self.name);
        }
        format!("{} {value} ({})", self.name, self.origin)
    }
}

impl PhaseRow {
    /// The phase on one line, its name padded to `width`.
    pub fn line(&self, width: usize) -> String {
        let settings: Vec<_> = self.settings.iter().map(PhaseSetting::line).collect();
        format!("{} {:<width$}  {}", self.number, self.name, settings.join(", ")).trim_end().to_owned()
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
        let workflow = self.workflow(PHASES_PRESET)?;
        let on = workflow.phases.iter().enumerate().filter(|(_, phase)| !phase.is_off());
        let row = |(index, phase): (usize, &Phase)| {
            let mut settings = self.agent_settings(&workflow, phase);
            settings.extend(self.policy_settings(phase));
            PhaseRow { number: workflow.number(index), name: title(&phase.name), settings }
        };
        Ok(on.map(row).collect())
    }

    fn agent_settings(&self, workflow: &Workflow, phase: &Phase) -> Vec<PhaseSetting> {
        let task = TaskSpec::from_text("");
        let context = PhaseContext { workflow, phase, task: &task };
        let by = |key: &str| {
            let origin = self.phase_origin(context, key).cloned();
            origin.unwrap_or_else(|| SettingOrigin::Preset { name: workflow.name.clone() })
        };
        let one = |name, value: Value, origin: SettingOrigin| PhaseSetting { name, value, origin };
        if let PhaseKind::Check(_) = phase.kind {
            let names: Vec<_> = self.checks().into_iter().map(|(name, _)| Value::from(name)).collect();
            let found = if names.is_empty() { Value::from("as found") } else { Value::Array(names) };
            return vec![one("commands", found, SettingOrigin::Default)];
        }
        let mut rows = Vec::new();
        if let Some((name, origin)) = self.phase_agent_and_origin(context) {
            rows.push(one(key::AGENT, name.into(), origin));
        }
        if let Some(tool) = &phase.tool {
            rows.push(one(key::TOOL, tool.as_str().into(), by(key::TOOL)));
        }
        let elsewhere = self.model_elsewhere(context).filter(|_| phase.model.is_none());
        rows.push(match elsewhere {
            Some((model, origin)) => one(key::MODEL, model.into(), origin.clone()),
            None => {
                let model = phase.model.as_deref().unwrap_or("inherit");
                one(key::MODEL, model.into(), by(key::MODEL))
            }
        });
        if let PhaseKind::Agent { researchers, .. } = phase.kind {
            let counted = self.phase_origin(context, key::RESEARCHERS).is_some();
            let team = if counted { key::RESEARCHERS } else { key::PARALLEL };
            rows.push(one(key::PARALLEL, (researchers > 0).into(), by(team)));
            if researchers > 0 {
                rows.push(one(key::RESEARCHERS, researchers.into(), by(team)));
                let model = phase.parallel_model.as_deref().unwrap_or("inherit");
                rows.push(one("parallelModel", model.into(), by(key_name!(PhaseTable, parallel_model))));
            }
        }
        rows
    }

    /// The agent of a phase, and where it is named. None: there is no agent, or several and none of them is chosen.
    fn phase_agent_and_origin(&self, context: PhaseContext<'_>) -> Option<(String, SettingOrigin)> {
        let (name, own, role) = match &context.phase.kind {
            PhaseKind::Agent { role, .. } => (self.writer(*role, context, 0).ok()?.agent.name, None, role.into_str()),
            PhaseKind::Gate(policy) => {
                let reviewer = policy.gate.reviewers.first()?;
                let own = self.tree.get(&[key::REVIEWERS, reviewer.as_str(), key::AGENT]);
                (self.reviewer(reviewer, context, 0).ok()?.agent.name, own, key::REVIEW)
            }
            PhaseKind::Check(_) => return None,
        };
        let mut roles = [role, key::IMPLEMENT].into_iter();
        let named = own.or_else(|| roles.find_map(|role| self.tree.get(&[key::ROLES, role, key::AGENT])));
        let named = named.filter(|node| node.text() == Some(&name)).map(|node| &node.origin);
        let by_phase = self.phase_origin(context, key::AGENT).or_else(|| self.phase_origin(context, key::TOOL));
        Some((name, by_phase.or(named).cloned().unwrap_or(SettingOrigin::Default)))
    }

    /// The model that a reviewer or a role has, if the phase has none of its own.
    fn model_elsewhere(&self, context: PhaseContext<'_>) -> Option<(&str, &SettingOrigin)> {
        let (role, reviewer) = match &context.phase.kind {
            PhaseKind::Agent { role, .. } => (role.into_str(), None),
            PhaseKind::Gate(policy) => {
                (key::REVIEW, self.tree.get(&[key::REVIEWERS, policy.gate.reviewers.first()?.as_str()]))
            }
            PhaseKind::Check(_) => return None,
        };
        let set = |key: &str| reviewer.and_then(|reviewer| reviewer.get(&[key]));
        let own = set(key::MODEL).and_then(|model| Some((model.text()?, &model.origin)));
        let named = self.explicit_agent(context).is_some() || set(key::AGENT).is_some();
        own.or_else(|| if named { None } else { self.role_model(role) })
    }

    fn policy_settings(&self, phase: &Phase) -> Vec<PhaseSetting> {
        let Some(policy) = phase.policy() else { return Vec::new() };
        let questions = ORDER.into_iter().filter(|question| question.applies_to(phase));
        let one = |question: PhaseQuestion| {
            let origin = self.gate_origin(PHASES_PRESET, phase.gate_name(), question.key());
            let value = question.now(&policy.gate).value().filter(|value| value != "unlimited");
            PhaseSetting {
                name: question.setting(),
                value: value.unwrap_or_default(),
                origin: origin.unwrap_or(SettingOrigin::Preset { name: PHASES_PRESET.to_owned() }),
            }
        };
        questions.map(one).collect()
    }
}
