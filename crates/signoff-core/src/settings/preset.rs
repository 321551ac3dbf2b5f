//! `[presets.NAME]`: changes of a workflow, of its gates, and of single phases.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::assign::text;
use super::layer::ConfigNode;
use super::reader::{did_you_mean, nearest};
use super::rules::{NamedTable, key_name, parts};
use super::values::{NonBlankText, PassCount, PlainName, ResearcherCount};
use super::{ConfigError, PhaseContext, SettingOrigin, Settings, key};
use crate::policy::{Effort, TimeSpan};
use crate::workflow::keys::{BOUNDS, REVIEWER_KEYS, WorkflowKeys};
use crate::workflow::resolve::named_twice;
use crate::workflow::{self, GateKeys, Phase, PhaseKind, Workflow};

/// `[presets.NAME]`: its own keys, those of workflows, and those of gates, which apply to all gates of the workflow.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(extend("not" = { "required": BOUNDS }))]
pub(super) struct PresetTable {
    #[serde(flatten)]
    pub keys: PresetKeys,
    #[serde(flatten)]
    pub workflow: WorkflowKeys<PassCount, PassCount>,
    #[serde(flatten)]
    pub gate: GateKeys,
}

parts!(PresetTable { keys, workflow, gate });

/// The keys of `[presets.NAME]` that neither workflows nor gates have.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "a preset")]
pub(super) struct PresetKeys {
    /// Sets `max_fixes`, `depth` and `checkpoint_interval`.
    pub effort: Option<Effort>,
    /// A table for each gate or check that is to be changed.
    pub gates: NamedTable<PlainName, GateKeys>,
    /// A table for each phase that is to be changed, by its number or name.
    pub phase: NamedTable<PlainName, PhaseTable>,
    /// The agents for the tools of other programs, by the tool's name.
    pub tools: BTreeMap<String, NonBlankText>,
}

/// `[presets.NAME.phase.PHASE]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "a phase")]
pub(super) struct PhaseTable {
    /// Its agent; of a gate, that of its reviewers.
    pub agent: Option<NonBlankText>,
    /// The tool of another program that does it; `tools` maps it to an agent.
    pub tool: Option<NonBlankText>,
    /// The model of that agent; "inherit" is its own, "none" that of a check, which needs no model.
    pub model: Option<NonBlankText>,
    /// The model of the researchers that run before the agent; "inherit" is that of the agent.
    pub parallel_model: Option<NonBlankText>,
    /// `true`: three researchers run before the agent, in parallel; `false`: no researchers.
    pub parallel: Option<bool>,
    /// The number of researchers that run before the agent.
    pub researchers: Option<ResearcherCount>,
    /// Time limit of one start of its agent.
    pub timeout: Option<TimeSpan>,
}

/// The word for the agent's own model.
const INHERIT: &str = "inherit";

/// The word for no model: a check runs commands.
const NONE: &str = "none";

/// The number of researchers if `parallel` is true.
const RESEARCHERS: u32 = 3;

/// Keys of agent phases only.
const AGENT_PHASE_KEYS: [&str; 4] = key_name!(PhaseTable, [parallel_model, parallel, researchers, timeout]);

/// The pairs of keys of a phase that exclude each other.
pub(super) const EXCLUSIVE_PHASE_KEYS: [[&str; 2]; 2] =
    [key_name!(PhaseTable, [agent, tool]), key_name!(PhaseTable, [parallel, researchers])];

impl PhaseTable {
    fn apply(&self, phase: &mut Phase) {
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

    /// The error about a key that a phase does not have.
    fn refusal(&self, key: &str, phase: &Phase) -> Option<String> {
        let none = key == key::MODEL && self.model.as_ref().is_some_and(|model| model.as_str() == NONE);
        let name = &phase.name;
        match &phase.kind {
            PhaseKind::Agent { .. } | PhaseKind::Gate(_) if none => Some(format!(
                "`model` is \"none\", but `{name}` is not a check: expected the name of a model or \"inherit\""
            )),
            PhaseKind::Gate(_) if key == key::TIMEOUT => {
                Some(format!("`{name}` is a gate and has no `timeout`: write `review_timeout` in its gate's table"))
            }
            PhaseKind::Gate(_) if AGENT_PHASE_KEYS.contains(&key) => {
                Some(format!("`{name}` is a gate and has no `{key}`: expected it only in agent phases"))
            }
            PhaseKind::Check(_) if !none => Some(format!(
                "`{name}` is a check, which runs the project's commands, not an agent: expected no `{key}`"
            )),
            PhaseKind::Agent { .. } | PhaseKind::Gate(_) | PhaseKind::Check(_) => None,
        }
    }
}

impl Settings {
    /// The table of a phase, with the name or number it is configured under.
    pub(super) fn phase_table(&self, context: PhaseContext<'_>) -> Option<(&str, &PhaseTable)> {
        let preset = self.file.presets.get(context.workflow.name.as_str())?;
        let known = self.base_workflow(&context.workflow.name).ok()?;
        let mut tables = preset.keys.phase.iter().map(|(word, table)| (word.as_str(), table));
        tables.find(|(word, _)| known.names_phase(word, context.phase))
    }

    /// Where a key of a phase is configured.
    pub(super) fn phase_origin(&self, context: PhaseContext<'_>, key: &str) -> Option<&SettingOrigin> {
        let (word, _) = self.phase_table(context)?;
        self.origin_at(&[key::PRESETS, &context.workflow.name, key::PHASE, word, key])
    }

    /// Applies the configured phases of a workflow.
    pub(super) fn apply_phases(&self, workflow: &mut Workflow) {
        let Some(preset) = self.file.presets.get(workflow.name.as_str()) else { return };
        let known = workflow.clone();
        for phase in workflow.all_phases_mut() {
            let table = preset.keys.phase.iter().find(|(word, _)| known.names_phase(word.as_str(), phase));
            table.iter().for_each(|(_, table)| table.apply(phase));
        }
    }

    /// Checks that the configured phases exist and can have their keys.
    pub(super) fn check_phases(&self, workflow: &Workflow) -> Result<(), ConfigError> {
        let Some(preset) = self.file.presets.get(workflow.name.as_str()) else { return Ok(()) };
        for (word, table) in preset.keys.phase.iter() {
            let path = [key::PRESETS, &workflow.name, key::PHASE, word.as_str()];
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
        Err(self.error(&[key::PRESET], format!("`preset` is {preset:?}, which is not a workflow: {expected}")))
    }

    pub(super) fn check_presets(&self) -> Result<(), ConfigError> {
        for (name, preset) in self.file.presets.iter() {
            let name = name.as_str();
            if !self.workflow_names().contains(&name) {
                let expected = self.expected_workflow(name);
                let message = format!("unknown workflow in [presets.{name}]: {expected}");
                return Err(self.error(&[key::PRESETS, name], message));
            }
            check_gate_reviewers(&preset.gate, self.tree.get(&[key::PRESETS, name]))?;
            let workflow = self.base_workflow(name)?;
            for (gate, keys) in preset.keys.gates.iter() {
                self.check_gate(&workflow, gate.as_str())?;
                check_gate_reviewers(keys, self.tree.get(&[key::PRESETS, name, key::GATES, gate.as_str()]))?;
            }
            self.check_phases(&workflow)?;
            for (word, _) in preset.keys.phase.iter().filter(|(_, table)| table.agent.is_some()) {
                self.agent_at(&[key::PRESETS, name, key::PHASE, word.as_str(), key::AGENT], key::AGENT)?;
            }
            for tool in preset.keys.tools.keys() {
                self.agent_at(&[key::PRESETS, name, key::TOOLS, tool], key::TOOLS)?;
            }
        }
        Ok(())
    }

    fn check_gate(&self, workflow: &Workflow, name: &str) -> Result<(), ConfigError> {
        let path = [key::PRESETS, &workflow.name, key::GATES, name];
        let judges: Vec<_> = workflow.all_phases().filter(|phase| phase.policy().is_some()).collect();
        let names: Vec<_> = judges.iter().map(|phase| phase.gate_name()).collect();
        let Some(gate_policy) = judges.iter().find(|phase| phase.gate_name() == name) else {
            let expected = did_you_mean(name, &names, || match names.as_slice() {
                [] => "expected no gate, because the workflow has none".to_owned(),
                names => format!("expected one of {}", names.join(", ")),
            });
            return Err(self.error(&path, format!("workflow `{}` has no gate `{name}`: {expected}", workflow.name)));
        };
        let table = self.tree.get(&path).filter(|_| matches!(gate_policy.kind, PhaseKind::Check(_)));
        let set = REVIEWER_KEYS.iter().find(|key| table.is_some_and(|table| table.get(&[key]).is_some()));
        match (table, set) {
            (Some(table), Some(key)) => Err(table.error(
                key,
                format!("`{name}` is a check, which runs the project's commands, not reviewers: expected no `{key}`"),
            )),
            (_, None) | (None, Some(_)) => Ok(()),
        }
    }
}

pub(super) fn check_gate_reviewers(keys: &GateKeys, table: Option<&ConfigNode>) -> Result<(), ConfigError> {
    let (Some(reviewers), Some(table)) = (&keys.reviewers, table) else { return Ok(()) };
    let empty = || "a gate needs a reviewer: write `enabled = false` to switch it off".to_owned();
    let message = named_twice(reviewers).or_else(|| reviewers.is_empty().then(empty));
    message.map_or(Ok(()), |message| Err(table.error(key::REVIEWERS, message)))
}

/// Whether two words are the name or number of the same phase.
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
    let presets = trees.iter().filter_map(|tree| tree.get(&[key::PRESETS])?.table());
    let presets: Vec<_> = presets.flat_map(|table| table.keys().cloned()).collect();
    for name in presets {
        let own = workflows.get(&name).cloned();
        let Some(workflow) = own.or_else(|| workflow::preset(&name)) else { continue };
        let mut words: Vec<String> = Vec::new();
        for tree in trees.iter_mut().rev() {
            let Some(phases) = tree.get_mut(&[key::PRESETS, &name, key::PHASE]) else { continue };
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
