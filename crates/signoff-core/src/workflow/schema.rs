//! What can be written, as JSON Schema, so that editors can complete and check it.
//!
//! Made of the same tables as the readers. A schema knows one file alone: what has to hold between tables and
//! files is the reader's to say, so a schema may take what the reader refuses, and never the other way round.

use serde_json::{Map, Value, json};

use super::resolve::{MOST_PHASES, MOST_RESEARCHERS};
use super::words::{
    AgentWords, GateWords, KindWord, OF_REVIEWERS, PhaseWords, RestartWords, ReviewerWords, WhoWords,
    WorkflowWords,
};

/// The keys of a table, each with what can be written after it.
#[derive(Debug, Clone, Default)]
pub struct Properties {
    known: Map<String, Value>,
    required: Vec<&'static str>,
}

impl Properties {
    /// Adds a key: `about` says what it is for, `default` what holds without it.
    pub fn add(&mut self, key: &str, mut schema: Value, about: &str, default: Option<Value>) {
        schema["description"] = Value::from(about.trim());
        if let Some(default) = default {
            schema["default"] = default;
        }
        self.known.insert(key.to_owned(), schema);
    }

    /// These keys and those.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.known.extend(others.known);
        self.required.extend(others.required);
        self
    }

    #[must_use]
    fn without(mut self, keys: &[&str]) -> Self {
        self.known.retain(|key, _| !keys.contains(&key.as_str()));
        self
    }

    #[must_use]
    fn requiring(mut self, keys: &[&'static str]) -> Self {
        self.required.extend(keys);
        self
    }

    /// Says more about a key that is there.
    #[must_use]
    fn narrow(mut self, key: &str, word: &str, value: impl Into<Value>) -> Self {
        if let Some(schema) = self.known.get_mut(key) {
            schema[word] = value.into();
        }
        self
    }

    /// A table with these keys and no other.
    pub fn closed(self) -> Value {
        let mut table = json!({ "type": "object", "properties": self.known, "additionalProperties": false });
        if !self.required.is_empty() {
            table["required"] = self.required.into();
        }
        table
    }

    /// The same for a table that holds the words of a gate, which has one bound.
    pub fn closed_gate(self) -> Value {
        let mut table = self.closed();
        table["not"] = json!({ "required": ["max_cycles", "max_fixes"] });
        table
    }
}

/// `[workflows.NAME]`. Its phases are `#/definitions/phase`.
pub fn workflow() -> Value {
    let phases =
        json!({ "type": "array", "items": { "$ref": "#/definitions/phase" }, "maxItems": MOST_PHASES });
    let mut tables = Properties::default();
    let reviewers = json!({ "type": "object", "additionalProperties": ReviewerWords::properties().requiring(&["kind"]).closed() });
    tables.add("reviewers", reviewers, "A table for each reviewer of this workflow alone", None);
    tables.add("before", phases.clone(), "Phases of the run before its tasks", None);
    tables.add("phases", phases.clone(), "The phases of each task", None);
    tables.add("after", phases, "Phases of the run after its tasks", None);
    let tables = tables.narrow("phases", "minItems", 1).requiring(&["phases"]);
    WorkflowWords::properties().narrow("max_passes", "minimum", 1).and(tables).closed()
}

/// A phase of a workflow, of one of three kinds.
pub fn phase() -> Value {
    json!({ "oneOf": [
        phase_of(KindWord::Agent).closed(),
        phase_of(KindWord::Gate).requiring(&["reviewers"]).closed_gate(),
        phase_of(KindWord::Check).closed_gate(),
    ] })
}

fn phase_of(kind: KindWord) -> Properties {
    let every = PhaseWords::properties().narrow("kind", "enum", vec![kind.word()]);
    let every = every.narrow("name", "pattern", "\\S").requiring(&["name", "kind"]);
    let judging = || GateWords::properties().and(RestartWords::properties());
    every.and(match kind {
        KindWord::Agent => AgentWords::properties()
            .narrow("researchers", "maximum", MOST_RESEARCHERS)
            .and(WhoWords::properties()),
        KindWord::Gate => judging().and(WhoWords::properties()),
        KindWord::Check => judging().without(&OF_REVIEWERS),
    })
}
