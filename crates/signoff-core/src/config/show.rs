//! Every value that holds, with its origin.

use serde::Serialize;
use serde_json::Value;

use super::gate::other_bound;
use super::slot::row;
use super::{Origin, Settings};
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
        self.written.list("", &mut rows);
        for (name, own) in &self.workflows {
            rows.push(row(&format!("workflows.{name}"), &own.workflow.description, &own.origin));
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
            let by = |key: &str| self.gate_origin(&workflow.name, phase.gate_name(), key);
            // "unlimited" is the same under both keys of the bound.
            let origin = by(key).or_else(|| by(other_bound(key)?));
            let origin = origin.or_else(|| self.own_origin(&workflow.name));
            let origin = origin.unwrap_or(Origin::Preset { name: workflow.name.clone() });
            Some(row(
                &format!("presets.{}.gates.{}.{key}", workflow.name, phase.gate_name()),
                &value,
                &origin,
            ))
        };
        keys.filter_map(one).collect()
    }

    pub(super) fn own_origin(&self, workflow: &str) -> Option<Origin> {
        self.workflows.get(workflow).map(|own| own.origin.clone())
    }
}
