//! `[gate]` and `[presets.NAME]`: words that are laid over the gates of a workflow.

use std::collections::{BTreeMap, HashSet};

use super::layer::Source;
use super::phase::{PhaseTables, Tools};
use super::slot::{Named, Slot, row, table};
use super::value::Whole;
use super::{Origin, Row, Setting};
use crate::policy::{Effort, ExhaustedAs};
use crate::workflow::resolve::{check_bound, twice};
use crate::workflow::table::Checked;
use crate::workflow::words::OF_REVIEWERS;
use crate::workflow::{Completion, GateWords, Landing, Phase, PhaseKind};

/// What the layers say about gates, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct GateSettings(Vec<Laid>);

/// The words of one layer, with the place of each.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Laid {
    at: Origin,
    words: GateWords,
    origins: BTreeMap<&'static str, Origin>,
}

impl GateSettings {
    /// Takes the gate's keys of a table, and does not look at others.
    fn take(&mut self, source: &Source<'_>) -> Checked<()> {
        let words = GateWords::read(&source.table)?;
        check_bound(&source.table, &words)?;
        check_reviewers(source, &words)?;
        let written = |key: &&&str| source.table.offset(key).is_some();
        let origins = GateWords::KEYS.iter().filter(written).map(|key| (*key, source.origin(key)));
        self.0.push(Laid { at: source.start(), words, origins: origins.collect() });
        Ok(())
    }

    /// Lays the words over a gate, and over a check those that concern it.
    pub fn lay_over(&self, phase: &mut Phase) {
        for laid in &self.0 {
            match &mut phase.kind {
                PhaseKind::Agent { .. } => {}
                PhaseKind::Gate(policy) => laid.words.lay_over(&mut policy.gate),
                PhaseKind::Check(policy) => laid.words.of_a_check().lay_over(&mut policy.gate),
            }
        }
    }

    /// Whoever says anything about a gate that is only there where it is configured wants it.
    pub fn switch_on(&self, phase: &mut Phase) {
        let only_if_configured = phase.called.is_some();
        if let Some(policy) = phase.judge_mut().filter(|_| only_if_configured) {
            policy.gate.enabled = true;
        }
    }

    /// Who said the last word about a key. One bound takes the place of the other.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        let sets = |laid: &&Laid| {
            laid.origins.contains_key(key)
                || other_bound(key).is_some_and(|other| laid.origins.contains_key(other))
        };
        self.0.iter().rev().find(sets).and_then(|laid| laid.origins.get(key))
    }

    /// The same where both bounds are one thing, with the key that says it.
    pub fn last_word<'k>(&self, key: &'k str) -> Option<(&'k str, &Origin)> {
        let keys = [Some(key), other_bound(key)];
        keys.into_iter().flatten().find_map(|key| Some((key, self.origin(key)?)))
    }

    /// Where the table was last written.
    pub fn place(&self) -> Origin {
        self.0.last().map_or(Origin::Default, |laid| laid.at.clone())
    }

    /// The first key that means nothing to a check.
    pub fn of_reviewers(&self) -> Option<(&'static str, &Origin)> {
        OF_REVIEWERS.into_iter().find_map(|key| self.origin(key).map(|origin| (key, origin)))
    }

    fn value(&self, key: &str) -> Option<serde_json::Value> {
        let laid = self.0.iter().rev().find(|laid| laid.origins.contains_key(key))?;
        serde_json::to_value(&laid.words).ok()?.get(key).cloned()
    }
}

/// The key that says the same in another way.
pub(super) fn other_bound(key: &str) -> Option<&'static str> {
    match key {
        "max_cycles" => Some("max_fixes"),
        "max_fixes" => Some("max_cycles"),
        _ => None,
    }
}

fn check_reviewers(source: &Source<'_>, words: &GateWords) -> Checked<()> {
    let Some(reviewers) = &words.reviewers else { return Ok(()) };
    let mut seen = HashSet::new();
    let again = reviewers.iter().find(|name| !seen.insert(*name));
    let message = match again {
        Some(name) => twice(name),
        None if reviewers.is_empty() => {
            "a gate needs a reviewer: write `enabled = false` to switch it off".to_owned()
        }
        None => return Ok(()),
    };
    Err(source.table.error("reviewers", message))
}

impl Slot for GateSettings {
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        let Some(table) = source.inside(key)? else { return Ok(()) };
        table.table.only("a gate", GateWords::KEYS)?;
        self.take(&table)
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        for word in GateWords::KEYS {
            if let (Some(origin), Some(value)) = (self.origin(word), self.value(word)) {
                rows.push(row(&format!("{key}.{word}"), &value, origin));
            }
        }
    }

    fn schema(_: &str) -> serde_json::Value {
        GateWords::properties().closed_gate()
    }
}

table! {
    /// What a preset may be told about all of its phases.
    WholeWorkflow, "a preset" {
        /// Sets `max_fixes`, `depth` and `checkpoint_interval`.
        effort: Option<Setting<Effort>> = None,
        /// When a task is done: when its agent ends well, or when its last line says so.
        completion: Option<Setting<Completion>> = None,
        /// When signed-off work lands: never by itself, each alone, or a whole group.
        landing: Option<Setting<Landing>> = None,
        /// After how many attempts all active loops are reviewed; 0 is never.
        checkpoint_interval: Option<Setting<u32>> = None,
        /// Implement and fix attempts of a loop, all in all.
        max_attempts: Option<Setting<Whole<1, 10_000>>> = None,
        /// How often the workflow may be gone through.
        max_passes: Option<Setting<Whole<1, 10_000>>> = None,
        /// Attempts lost in a row to crashes of the program.
        max_recoveries: Option<Setting<u32>> = None,
        /// Landings that came back with a conflict or failing checks.
        max_conflicts: Option<Setting<u32>> = None,
        /// What a loop out of attempts is called.
        attempts_exhausted_as: Option<Setting<ExhaustedAs>> = None,
        /// A table for each gate or check that is to be changed.
        gates: Named<GateSettings> = Named::default(),
        /// A table for each phase that is to be changed, by its number or name.
        phase: PhaseTables = PhaseTables::default(),
        /// The agents that stand for the tools of other programs, by the tool's name.
        tools: Tools = Tools::default(),
    }
}

/// `[presets.NAME]`: about the whole, about all of its gates, and about gates by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PresetSettings {
    pub whole: WholeWorkflow,
    pub gate: GateSettings,
}

impl PresetSettings {
    pub fn own_keys() -> Vec<&'static str> {
        WholeWorkflow::KEYS.to_vec()
    }

    /// What is said about one gate alone.
    pub fn named(&self, gate: &str) -> Option<&GateSettings> {
        self.whole.gates.0.get(gate)
    }
}

impl Slot for PresetSettings {
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        let Some(table) = source.inside(key)? else { return Ok(()) };
        table.table.only("a preset", &[WholeWorkflow::KEYS, GateWords::KEYS].concat())?;
        self.whole.take(&table)?;
        self.gate.take(&table)
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        self.whole.list(&format!("{key}."), rows);
        self.gate.rows(key, rows);
    }

    fn schema(_: &str) -> serde_json::Value {
        WholeWorkflow::properties().and(GateWords::properties()).closed_gate()
    }
}
