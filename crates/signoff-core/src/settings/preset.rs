//! `[presets.NAME]`: changes of a workflow, of its gates, and of single phases.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::layer::ConfigNode;
use super::reader::{did_you_mean, nearest};
use super::rules::Named;
use super::values::{Guard, PassCount, PlainName, ResearcherCount, Text};
use super::{ConfigError, PhaseContext, SettingOrigin, Settings};
use crate::policy::{Effort, ExhaustedAs, TimeSpan};
use crate::workflow::keys::OF_REVIEWERS;
use crate::workflow::resolve::named_twice;
use crate::workflow::{self, Completion, GateKeys, Landing, Phase, PhaseKind, Workflow};

/// `[presets.NAME]`: the whole workflow, all of its gates, and gates by name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(extend("not" = { "required": ["max_cycles", "max_fixes"] }))]
pub(super) struct PresetTable {
    #[serde(flatten)]
    pub whole: PresetKeys,
    #[serde(flatten)]
    pub gate: GateKeys,
}

impl<'de> Deserialize<'de> for PresetTable {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Deserialize::deserialize(deserializer).map(|(whole, gate)| Self { whole, gate })
    }
}

/// The keys of `[presets.NAME]` that concern the whole workflow.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "a preset")]
pub(super) struct PresetKeys {
    /// Sets `max_fixes`, `depth` and `checkpoint_interval`.
    pub effort: Option<Effort>,
    /// When a task is done: when its agent ends well, or when its last line says so.
    pub completion: Option<Completion>,
    /// When signed-off work lands: never by itself, each alone, or a whole group.
    pub landing: Option<Landing>,
    /// The number of attempts after which all active loops are reviewed; 0 is never.
    pub checkpoint_interval: Option<Guard>,
    /// Maximum number of implement and fix attempts of a loop.
    pub max_attempts: Option<PassCount>,
    /// Maximum number of passes through the workflow.
    pub max_passes: Option<PassCount>,
    /// Maximum number of attempts lost in a row to crashes of the program.
    pub max_recoveries: Option<u32>,
    /// Maximum number of landings that fail with a conflict or failing checks.
    pub max_conflicts: Option<u32>,
    /// The outcome of a loop that is out of attempts.
    pub attempts_exhausted_as: Option<ExhaustedAs>,
    /// A table for each gate or check that is to be changed.
    pub gates: Named<PlainName, GateKeys>,
    /// A table for each phase that is to be changed, by its number or name.
    pub phase: Named<PlainName, PhaseTable>,
    /// The agents for the tools of other programs, by the tool's name.
    pub tools: BTreeMap<String, Text>,
}

/// `[presets.NAME.phase.PHASE]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "a phase")]
pub(super) struct PhaseTable {
    /// Its agent; of a gate, that of its reviewers.
    pub agent: Option<Text>,
    /// The tool of another program that does it; `tools` maps it to an agent.
    pub tool: Option<Text>,
    /// The model of that agent; "inherit" is its own, "none" that of a check, which needs no model.
    pub model: Option<Text>,
    /// The model of the helpers that look into it first; "inherit" is that of the agent.
    pub parallel_model: Option<Text>,
    /// `true`: three helpers look into it first, in parallel; `false`: no helpers.
    pub parallel: Option<bool>,
    /// The number of helpers that look into it first.
    pub researchers: Option<ResearcherCount>,
    /// Time limit of one start of its agent.
    pub timeout: Option<TimeSpan>,
}

/// The model that the agent uses by itself.
const INHERIT: &str = "inherit";

/// No model: the project's commands.
const NONE: &str = "none";

/// The number of helpers if `parallel` is true.
const RESEARCHERS: u32 = 3;

/// Keys of agent phases only.
const OF_WORK: [&str; 4] = ["parallel_model", "parallel", "researchers", "timeout"];

impl PhaseTable {
    fn apply(&self, phase: &mut Phase) {
        let text = |text: &Option<Text>| text.as_ref().map(|text| text.as_str().to_owned());
        if self.agent.is_some() || self.tool.is_some() {
            (phase.agent, phase.tool) = (text(&self.agent), text(&self.tool));
        }
        if self.model.is_some() {
            phase.model = text(&self.model).filter(|model| model != INHERIT && model != NONE);
        }
        if self.parallel_model.is_some() {
            phase.parallel_model = text(&self.parallel_model).filter(|model| model != INHERIT);
        }
        if let PhaseKind::Agent { timeout, researchers, .. } = &mut phase.kind {
            let parallel = self.parallel.map(|parallel| if parallel { RESEARCHERS } else { 0 });
            *researchers = self.researchers.map(|count| count.0).or(parallel).unwrap_or(*researchers);
            *timeout = self.timeout.or(*timeout);
        }
    }

    /// Why a phase cannot have a key.
    fn refusal(&self, key: &str, phase: &Phase) -> Option<String> {
        let none = key == "model" && self.model.as_ref().is_some_and(|model| model.as_str() == NONE);
        let name = &phase.name;
        match &phase.kind {
            PhaseKind::Agent { .. } | PhaseKind::Gate(_) if none => Some(format!(
                "`model` is \"none\", but `{name}` is no check: expected the name of a model or \"inherit\""
            )),
            PhaseKind::Gate(_) if key == "timeout" => {
                Some(format!("`{name}` is a gate and has no `timeout`: write `review_timeout` in its gate's table"))
            }
            PhaseKind::Gate(_) if OF_WORK.contains(&key) => {
                Some(format!("`{name}` is a gate and has no `{key}`: expected it only in agent phases"))
            }
            PhaseKind::Check(_) if !none => Some(format!(
                "`{name}` is a check, which the project's commands judge, no agent: expected no such `{key}`"
            )),
            PhaseKind::Agent { .. } | PhaseKind::Gate(_) | PhaseKind::Check(_) => None,
        }
    }
}

impl Settings {
    /// The table of a phase, with the name or number it is configured under.
    pub(super) fn phase_table(&self, place: PhaseContext<'_>) -> Option<(&str, &PhaseTable)> {
        let preset = self.file.presets.get(place.workflow.name.as_str())?;
        let known = self.base_workflow(&place.workflow.name).ok()?;
        let mut tables = preset.whole.phase.iter().map(|(word, table)| (word.as_str(), table));
        tables.find(|(word, _)| known.names_phase(word, place.phase))
    }

    /// Where a key of a phase is configured.
    pub(super) fn phase_origin(&self, place: PhaseContext<'_>, key: &str) -> Option<&SettingOrigin> {
        let (word, _) = self.phase_table(place)?;
        self.set_at(&["presets", &place.workflow.name, "phase", word, key])
    }

    /// Applies the configured phases of a workflow.
    pub(super) fn apply_phases(&self, workflow: &mut Workflow) {
        let Some(preset) = self.file.presets.get(workflow.name.as_str()) else { return };
        let known = workflow.clone();
        for phase in workflow.all_phases_mut() {
            let table = preset.whole.phase.iter().find(|(word, _)| known.names_phase(word.as_str(), phase));
            table.iter().for_each(|(_, table)| table.apply(phase));
        }
    }

    /// Checks that the configured phases exist and can have their keys.
    pub(super) fn check_phases(&self, workflow: &Workflow) -> Result<(), ConfigError> {
        let Some(preset) = self.file.presets.get(workflow.name.as_str()) else { return Ok(()) };
        for (word, table) in preset.whole.phase.iter() {
            let path = ["presets", &workflow.name, "phase", word.as_str()];
            let phases: Vec<_> =
                workflow.all_phases().filter(|phase| workflow.names_phase(word.as_str(), phase)).collect();
            if phases.is_empty() {
                return Err(self.error(&path, no_such_phase(workflow, word.as_str())));
            }
            for (key, node) in self.tree.get(&path).map(ConfigNode::entries).unwrap_or_default() {
                if let Some(message) = phases.iter().find_map(|phase| table.refusal(key, phase)) {
                    return Err(node.origin.error(message));
                }
            }
        }
        Ok(())
    }

    pub(super) fn check_preset(&self) -> Result<(), ConfigError> {
        let preset = self.preset();
        if self.workflow_names().contains(&preset) {
            return Ok(());
        }
        let expected = self.expected_workflow(preset);
        Err(self.error(&["preset"], format!("`preset` is {preset:?}, which is no workflow: {expected}")))
    }

    pub(super) fn check_presets(&self) -> Result<(), ConfigError> {
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
        let Some(gate_policy) = judges.iter().find(|phase| phase.gate_name() == name) else {
            let expected = did_you_mean(name, &names, || match names.as_slice() {
                [] => "expected nothing, for it has no gates".to_owned(),
                names => format!("expected one of {}", names.join(", ")),
            });
            return Err(self.error(&path, format!("workflow `{}` has no gate `{name}`: {expected}", workflow.name)));
        };
        let table = self.tree.get(&path).filter(|_| matches!(gate_policy.kind, PhaseKind::Check(_)));
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

pub(super) fn check_gate_reviewers(keys: &GateKeys, table: Option<&ConfigNode>) -> Result<(), ConfigError> {
    let (Some(reviewers), Some(table)) = (&keys.reviewers, table) else { return Ok(()) };
    let empty = || "a gate needs a reviewer: write `enabled = false` to switch it off".to_owned();
    let message = named_twice(reviewers).or_else(|| reviewers.is_empty().then(empty));
    message.map_or(Ok(()), |message| Err(table.error("reviewers", message)))
}

/// Whether two words mean the same phase.
pub(super) fn are_same(workflow: &Workflow, word: &str, other: &str) -> bool {
    let mut phases = workflow.all_phases();
    word == other || phases.any(|phase| workflow.names_phase(word, phase) && workflow.names_phase(other, phase))
}

/// Renames phases that are configured by number in one layer and by name in another to the word of the last layer, so
/// that they are merged. One layer must use one word for a phase.
pub(super) fn unify_phase_names(
    trees: &mut [ConfigNode],
    workflows: &BTreeMap<String, Workflow>,
) -> Result<(), ConfigError> {
    let presets = trees.iter().filter_map(|tree| tree.get(&["presets"])?.table());
    let presets: Vec<_> = presets.flat_map(|table| table.keys().cloned()).collect();
    for name in presets {
        let own = workflows.get(&name).cloned();
        let Some(workflow) = own.or_else(|| workflow::preset(&name)) else { continue };
        let mut words: Vec<String> = Vec::new();
        for tree in trees.iter_mut().rev() {
            let Some(phases) = tree.get_mut(&["presets", &name, "phase"]) else { continue };
            check_words(phases, &workflow)?;
            let Some(table) = phases.table_mut() else { continue };
            for (word, node) in std::mem::take(table) {
                let known = words.iter().find(|known| are_same(&workflow, known, &word)).cloned();
                if known.is_none() {
                    words.push(word.clone());
                }
                table.insert(known.unwrap_or(word), node);
            }
        }
    }
    Ok(())
}

fn check_words(phases: &ConfigNode, workflow: &Workflow) -> Result<(), ConfigError> {
    let entries = phases.entries();
    for (index, (word, node)) in entries.iter().enumerate() {
        let other = entries.iter().take(index).rev().find(|(other, _)| are_same(workflow, other, word));
        if let Some((other, _)) = other {
            return Err(node.origin.error(format!(
                "`{other}` and `{word}` are the same phase: write all of it in [presets.{}.phase.{other}]",
                workflow.name
            )));
        }
    }
    Ok(())
}

fn no_such_phase(workflow: &Workflow, word: &str) -> String {
    let known: Vec<_> = workflow.phases.iter().map(|phase| phase.name.as_str()).collect();
    let numbered = |(index, phase): (usize, &Phase)| match phase.number {
        Some(number) => format!("{number} {}", phase.name),
        None if workflow.phases.iter().any(|other| other.number.is_some()) => phase.name.clone(),
        None => format!("{} {}", index + 1, phase.name),
    };
    let is_number = word.parse::<u32>().is_ok();
    let expected = match nearest(word, &known).filter(|_| !is_number) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => {
            let all: Vec<_> = workflow.phases.iter().enumerate().map(numbered).collect();
            format!("expected one of {}", all.join(", "))
        }
    };
    format!("workflow `{}` has no phase `{word}`: {expected}", workflow.name)
}
