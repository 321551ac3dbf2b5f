//! Every value that holds, with its origin.

use serde::Serialize;
use serde_json::Value;

use super::gate::other_bound;
use super::phase::are_same;
use super::slot::row;
use super::{Origin, Own, Settings};
use crate::workflow::words::OF_REVIEWERS;
use crate::workflow::{GateWords, Phase, PhaseKind, Workflow};

/// One value under its dotted key.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Row {
    pub key: String,
    pub value: Value,
    pub origin: Origin,
}

impl Row {
    /// The value as it would stand in a file.
    pub fn text(&self) -> String {
        match &self.value {
            Value::Array(list) => {
                let list: Vec<_> = list.iter().map(Value::to_string).collect();
                format!("[{}]", list.join(", "))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                self.value.to_string()
            }
        }
    }
}

impl Settings {
    /// Every value that holds, with its origin: first as the file has them, then the gates of the preset in use.
    pub fn origins(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut written = self.written.clone();
        for (name, preset) in &mut written.presets.0 {
            if let Ok(workflow) = self.untouched(name) {
                preset.whole.phase.call_alike(&workflow);
            }
        }
        written.list("", &mut rows);
        for (name, own) in &self.workflows {
            rows.push(row(&format!("workflows.{name}"), &own.shown(), &own.origin));
        }
        if let Ok(workflow) = self.workflow(self.preset()) {
            let gates = self.gate_rows(&workflow);
            let new = |gate: &Row| !rows.iter().any(|known| known.key == gate.key);
            let gates: Vec<_> = gates.into_iter().filter(new).collect();
            rows.extend(gates);
        }
        rows
    }

    fn gate_rows(&self, workflow: &Workflow) -> Vec<Row> {
        let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
        phases.flat_map(|phase| self.rows_of(workflow, phase)).collect()
    }

    fn rows_of(&self, workflow: &Workflow, phase: &Phase) -> Vec<Row> {
        let gate = phase.judge().and_then(|policy| serde_json::to_value(&policy.gate).ok());
        let is_check = matches!(phase.kind, PhaseKind::Check(_));
        let keys = GateWords::KEYS.iter().filter(|key| !(is_check && OF_REVIEWERS.contains(key)));
        let one = |key: &&str| {
            let value = Some(gate.as_ref()?.get(key)?.clone()).filter(|value| !value.is_null());
            // A guard that is off is written as 0.
            let value = value.or_else(|| key.starts_with("max_").then(|| Value::from(0)))?;
            let origin = self.gate_origin(&workflow.name, phase.gate_name(), key);
            let origin = origin.or_else(|| Some(self.workflows.get(&workflow.name)?.gate_origin(phase, key)));
            let origin = origin.unwrap_or(Origin::Preset { name: workflow.name.clone() });
            Some(row(
                &format!("presets.{}.gates.{}.{key}", workflow.name, phase.gate_name()),
                &value,
                &origin,
            ))
        };
        keys.filter_map(one).collect()
    }

    /// Where a key's value comes from, whatever the key calls a phase.
    pub fn origin_of(&self, key: &str) -> Option<Origin> {
        self.origins().into_iter().find(|row| self.are_same(&row.key, key)).map(|row| row.origin)
    }

    fn are_same(&self, key: &str, other: &str) -> bool {
        let of_phase = |key: &str| -> Option<[String; 3]> {
            let mut names = key.strip_prefix("presets.")?.splitn(4, '.');
            let preset = names.next()?.to_owned();
            let word = names.nth(1).filter(|_| key.contains(".phase."))?.to_owned();
            Some([preset, word, names.next()?.to_owned()])
        };
        let same = || {
            let ([preset, word, end], [others, theirs, rest]) = (of_phase(key)?, of_phase(other)?);
            let workflow = self.untouched(&preset).ok().filter(|_| preset == others && end == rest)?;
            Some(are_same(&workflow, &word, &theirs))
        };
        key == other || same().unwrap_or(false)
    }

    pub(super) fn own_origin(&self, workflow: &str) -> Option<Origin> {
        self.workflows.get(workflow).map(|own| own.origin.clone())
    }
}

impl Own {
    /// What it is for; the names of its phases where nobody says that.
    fn shown(&self) -> Value {
        let workflow = &self.workflow;
        let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
        match workflow.description.as_str() {
            "" => phases.map(|phase| phase.name.as_str()).collect(),
            description => description.into(),
        }
    }

    /// Where a key of a gate is written; what is not is built in.
    fn gate_origin(&self, phase: &Phase, key: &str) -> Origin {
        let written = |key: &str| self.written.get(&(phase.name.clone(), key.to_owned()));
        let origin = written(key).or_else(|| written(other_bound(key)?));
        origin.cloned().unwrap_or(Origin::Default)
    }
}
