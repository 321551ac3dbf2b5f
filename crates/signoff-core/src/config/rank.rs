//! Which of several keys that are about one thing has the last word.

use super::phase::other_key;
use super::slot::Slot as _;
use super::workflows::SLOTS;
use super::{Origin, Place, Row, Settings};
use crate::task::TaskSpec;
use crate::workflow::words::OF_REVIEWERS;
use crate::workflow::{GateWords, Phase, PhaseKind};

impl Settings {
    /// Who has the last word about what a key sets: the key that counts there, and where it stands. There are several
    /// where it speaks of several gates.
    pub fn last_words(&self, key: &str) -> Vec<(String, Origin)> {
        let names: Vec<&str> = key.split('.').collect();
        match names.as_slice() {
            ["gate", word] => self.words_of_gates(self.preset(), word),
            ["defaults", "auto_review"] => self.words_of_the_gate("enabled"),
            ["defaults", "max_review_cycles"] => self.words_of_the_gate("max_cycles"),
            ["reviewEnabled"] => self.words_of_gates(SLOTS, "enabled"),
            ["reviewMaxFixAttempts"] => self.words_of_gates(SLOTS, "max_fixes"),
            ["presets", name, "gates", gate, word] => self.gate_word(name, gate, word).into_iter().collect(),
            ["presets", name, "phase", phase, word] => {
                self.word_of_phase((name, phase), word).into_iter().collect()
            }
            ["presets", name, word] if GateWords::KEYS.contains(word) => self.words_of_gates(name, word),
            _ => self.origin_of(key).map(|origin| (key.to_owned(), origin)).into_iter().collect(),
        }
    }

    /// Whether `[defaults]` says anything to the workflow in use: it speaks of those with one gate.
    pub fn defaults_count(&self) -> bool {
        self.has_one_gate(self.preset())
    }

    fn words_of_the_gate(&self, word: &str) -> Vec<(String, Origin)> {
        if self.defaults_count() { self.words_of_gates(self.preset(), word) } else { Vec::new() }
    }

    fn words_of_gates(&self, name: &str, word: &str) -> Vec<(String, Origin)> {
        let Ok(workflow) = self.untouched(name) else { return Vec::new() };
        let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
        let concerned = |phase: &&Phase| match phase.kind {
            PhaseKind::Agent { .. } => false,
            PhaseKind::Gate(_) => true,
            PhaseKind::Check(_) => !OF_REVIEWERS.contains(&word),
        };
        let said = phases.filter(concerned).filter_map(|phase| self.gate_word(name, phase.gate_name(), word));
        let mut words = Vec::new();
        for word in said {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words
    }

    fn word_of_phase(&self, (name, called): (&str, &str), word: &str) -> Option<(String, Origin)> {
        let workflow = self.untouched(name).ok()?;
        let mut phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
        let phase = phases.find(|phase| workflow.means(called, phase))?;
        let task = TaskSpec::default();
        let said = self.said_of_phase(Place { workflow: &workflow, phase, task: &task });
        let counts = |key: &str| key == word || Some(key) == other_key(word);
        let (key, origin) = said.written().into_iter().find(|(key, _)| counts(key))?;
        Some((format!("presets.{name}.phase.{called}.{key}"), origin.clone()))
    }

    /// What is written about a workflow.
    pub fn written_about(&self, workflow: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        if let Some(preset) = self.written.presets.0.get(workflow) {
            preset.rows(&format!("presets.{workflow}"), &mut rows);
        }
        if workflow == self.preset() {
            self.written.gate.rows("gate", &mut rows);
        }
        rows
    }
}
