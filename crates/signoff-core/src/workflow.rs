//! A workflow is data: an ordered list of phases with the gates' policies.
//!
//! The presets are TOML files embedded in the program, in the format of custom workflows. The state machine does not
//! depend on preset names: presets differ only in these keys.

pub(crate) mod keys;
mod render;
pub(crate) mod resolve;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use keys::{FixBound, GateKeys};
pub use render::render;
pub use resolve::parse;

use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::policy::{Effort, EscalationPolicy, ExhaustedAs, FailureAction, Gate, LoopLimits, OnFailure, TimeSpan};
use crate::review::ReviewerKind;
use crate::settings::AgentKind;
use crate::settings::key;

macro_rules! presets {
    ($first_preset:ident = $first:literal $(, $preset:ident = $name:literal)*) => {
        /// The name of this preset.
        pub const $first_preset: &str = $first;
        $(
            /// The name of this preset.
            pub const $preset: &str = $name;
        )*

        /// The presets by name, in the order of the documentation.
        pub const PRESETS: [&str; PRESET_FILES.len()] = [$first $(, $name)*];

        const PRESET_FILES: &[&str] = &[
            include_str!(concat!("workflow/presets/", $first, ".toml"))
            $(, include_str!(concat!("workflow/presets/", $name, ".toml")))*
        ];

        /// What a setting expects that is the name of a workflow.
        pub(crate) const WORKFLOW_NAMES: &str =
            concat!("the name of a workflow, one of ", $first $(, ", ", $name)*, " or your own");
    };
}

presets!(
    TASK_PRESET = "task",
    SLOTS_PRESET = "slots",
    PLAN_PRESET = "plan",
    LOOPS_PRESET = "loops",
    PHASES_PRESET = "phases"
);

static SHIPPED: LazyLock<BTreeMap<&str, Workflow>> = LazyLock::new(|| {
    let presets = PRESETS.into_iter().zip(PRESET_FILES);
    presets.filter_map(|(name, text)| Some((name, shipped(text)?))).collect()
});

/// A preset by name.
pub fn preset(name: &str) -> Option<Workflow> {
    shipped_preset(name).cloned()
}

pub(crate) fn shipped_preset(name: &str) -> Option<&'static Workflow> {
    SHIPPED.get(name)
}

/// The workflow of a new project: the task workflow with two reviewers and limits on loops that do not converge.
pub fn new_project() -> Option<Workflow> {
    shipped(include_str!("workflow/presets/new_project.toml"))
}

/// Parses a shipped file; the tests parse all of them.
fn shipped(text: &str) -> Option<Workflow> {
    parse("preset.toml", text).ok()?.pop()
}

/// The sign that an attempt has completed its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Completion {
    /// The agent exited successfully.
    #[default]
    Exit,
    /// The last line of the agent's final message is the marker.
    Marker,
}

/// When signed-off work leaves its worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Landing {
    /// It stays on its branch until a person merges it.
    #[default]
    None,
    /// As soon as it is signed off.
    Each,
    /// When the whole group is.
    Group,
}

/// How the tasks of a run are scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheduling {
    /// Independent tasks, up to `jobs` in parallel.
    #[default]
    Queue,
    /// Agents pick tasks one by one while slots are free.
    Slots,
    /// In order, each task on top of the one before.
    Chain,
    /// All tasks of a group in parallel, group after group.
    Groups,
}

/// The role of the agent in an agent phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum Role {
    #[default]
    Implement,
    Fix,
    Enumerate,
    Plan,
    Brainstorm,
    Simplify,
}

/// A reviewer of a workflow. The configuration assigns its agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowReviewer {
    pub kind: ReviewerKind,
    pub contract: Contract,
}

/// One step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Phase {
    pub name: String,
    #[serde(flatten)]
    pub kind: PhaseKind,
    /// Runs once for each item of the plan, together with adjacent phases that are `per_item` too.
    pub per_item: bool,
    /// Runs at most once in a loop; restarts skip it.
    pub once: bool,
    /// The only mode of the workflow in which the phase runs.
    pub mode: Option<String>,
    /// Its number in the documentation of the workflow. None: that of the phase before, or its position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// The name of a gate in the configuration if it differs from the phase's. Configuring it switches the gate on.
    #[serde(rename = "called", default, skip_serializing_if = "Option::is_none")]
    pub config_name: Option<String>,
    /// Its agent, which overrides that of its role or its reviewers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// A tool of another program. The configuration maps it to an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The preferred kind of agent, used if such an agent is configured and no other is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefers: Option<AgentKind>,
    /// The model of the researchers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_model: Option<String>,
}

/// What a phase does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum PhaseKind {
    /// An agent changes the worktree.
    Agent {
        role: Role,
        timeout: Option<TimeSpan>,
        /// The number of researchers, which run in parallel before the phase's agent.
        researchers: u32,
    },
    /// Reviewers review the work.
    Gate(GatePolicy),
    /// The project's commands check the work by their exit code.
    Check(GatePolicy),
}

impl Default for PhaseKind {
    fn default() -> Self {
        Self::Agent { role: Role::default(), timeout: None, researchers: 0 }
    }
}

/// The policy of a gate, its fixer and the target of its restarts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GatePolicy {
    #[serde(flatten)]
    pub gate: Gate,
    /// The phase index at which the next pass begins.
    pub restart_to: usize,
    pub fixer: Role,
}

impl Phase {
    /// A phase with the default for every other field.
    pub fn new(name: &str, kind: PhaseKind) -> Self {
        Self { name: name.to_owned(), kind, ..Self::default() }
    }

    /// The policy of a gate or check.
    pub fn policy(&self) -> Option<&GatePolicy> {
        match &self.kind {
            PhaseKind::Agent { .. } => None,
            PhaseKind::Gate(policy) | PhaseKind::Check(policy) => Some(policy),
        }
    }

    /// The policy of a gate or check, mutable.
    pub fn policy_mut(&mut self) -> Option<&mut GatePolicy> {
        match &mut self.kind {
            PhaseKind::Agent { .. } => None,
            PhaseKind::Gate(policy) | PhaseKind::Check(policy) => Some(policy),
        }
    }

    /// Whether reviewers review the work in this phase. A check has no reviewers.
    pub fn is_gate(&self) -> bool {
        matches!(self.kind, PhaseKind::Gate(_))
    }

    /// Whether it is an agent phase.
    pub fn is_work(&self) -> bool {
        matches!(self.kind, PhaseKind::Agent { .. })
    }

    /// The name of its gate in the configuration.
    pub fn gate_name(&self) -> &str {
        self.config_name.as_deref().unwrap_or(&self.name)
    }

    /// Whether it is a gate or check that is switched off. The machine skips it.
    pub fn is_off(&self) -> bool {
        self.policy().is_some_and(|policy| !policy.gate.enabled)
    }
}

/// An ordered list of phases, and the settings of the whole workflow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Workflow {
    pub name: String,
    pub description: String,
    pub completion: Completion,
    pub landing: Landing,
    pub arrangement: Scheduling,
    /// All active loops are reviewed after this number of attempts without completion.
    pub checkpoint_interval: Option<u32>,
    #[serde(flatten)]
    pub limits: LoopLimits,
    pub attempts_exhausted_as: ExhaustedAs,
    pub modes: Vec<String>,
    /// The mode in which phases use the tools they name; in other modes the tools are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_in: Option<String>,
    pub reviewers: BTreeMap<ReviewerName, WorkflowReviewer>,
    /// Files with custom prompts, by role: `implement`, `fix`, `review`, ….
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, String>,
    /// The phases of a run before its tasks, which find and order them.
    pub before: Vec<Phase>,
    pub phases: Vec<Phase>,
    /// The phases of a run after its tasks, which review the whole run.
    pub after: Vec<Phase>,
}

impl Workflow {
    /// Sets custom prompts for writers or reviewers.
    pub fn set_prompts(&mut self, developer: Option<&str>, reviewer: Option<&str>) {
        for (role, path) in [(key::IMPLEMENT, developer), ("fix", developer), (key::REVIEW, reviewer)] {
            self.prompts.extend(path.map(|path| (role.to_owned(), path.to_owned())));
        }
    }

    /// Sets the bound, depth and checkpoint interval that belong to an effort.
    #[must_use]
    pub fn with_effort(mut self, effort: Effort) -> Self {
        self.checkpoint_interval = effort.checkpoint_interval();
        for policy in self.all_phases_mut().filter_map(Phase::policy_mut) {
            GateKeys::from_effort(effort).apply_to(&mut policy.gate);
        }
        self
    }

    /// The phases of the run and of its tasks.
    pub fn all_phases(&self) -> impl Iterator<Item = &Phase> {
        self.before.iter().chain(&self.phases).chain(&self.after)
    }

    /// The policies of a task's gates.
    pub(crate) fn gates_mut(&mut self) -> impl Iterator<Item = &mut GatePolicy> {
        self.phases.iter_mut().filter(|phase| phase.is_gate()).filter_map(Phase::policy_mut)
    }

    pub(crate) fn all_phases_mut(&mut self) -> impl Iterator<Item = &mut Phase> {
        self.before.iter_mut().chain(&mut self.phases).chain(&mut self.after)
    }

    /// The number of a phase in messages.
    pub fn number(&self, index: usize) -> u32 {
        let known = self.phases.iter().take(index + 1).rev().find_map(|phase| phase.number);
        known.unwrap_or_else(|| u32::try_from(index + 1).unwrap_or(u32::MAX))
    }

    /// The number of the last phase, if the workflow numbers its phases.
    pub fn last_number(&self) -> Option<u32> {
        let last = || self.phases.iter().rev().find_map(|phase| phase.number);
        self.phases.first().filter(|first| first.number == Some(1)).and_then(|_| last())
    }

    /// Whether a word is the name or the number of a phase.
    pub fn names_phase(&self, word: &str, phase: &Phase) -> bool {
        let numbered = || {
            let number: u32 = word.parse().ok()?;
            let index = (0..self.phases.len()).find(|index| self.number(*index) == number)?;
            self.phases.get(index)
        };
        phase.name == word || numbered().is_some_and(|known| known.name == phase.name)
    }

    /// Leaves only the phases of a mode. None if the workflow has no such mode.
    pub fn in_mode(mut self, mode: &str) -> Option<Self> {
        if !self.modes.iter().any(|known| known == mode) {
            return None;
        }
        for phases in [&mut self.before, &mut self.phases, &mut self.after] {
            keep_mode(phases, mode);
            if self.tools_in.as_deref().is_some_and(|only| only != mode) {
                phases.iter_mut().for_each(|phase| phase.tool = None);
            }
        }
        Some(self)
    }

    /// A workflow of only these phases, for the loops before and after the tasks of a run.
    pub fn run_level_workflow(&self, phases: &[Phase]) -> Self {
        Self {
            phases: phases.to_vec(),
            before: Vec::new(),
            after: Vec::new(),
            completion: Completion::Exit,
            landing: Landing::None,
            checkpoint_interval: None,
            ..self.clone()
        }
    }

    /// The first gate of a task that is switched on. None: the task is not reviewed.
    pub fn first_gate(&self) -> Option<&Phase> {
        self.first_gate_index().and_then(|index| self.phases.get(index))
    }

    /// The index of the first gate that is switched on.
    pub fn first_gate_index(&self) -> Option<usize> {
        self.phases.iter().position(|phase| phase.is_gate() && !phase.is_off())
    }

    /// The workflow of a checkpoint review: the first gate, which records its findings and never fails.
    #[must_use]
    pub fn checkpoint(&self) -> Self {
        let mut gates: Vec<Phase> = self.first_gate().cloned().into_iter().collect();
        for policy in gates.iter_mut().filter_map(Phase::policy_mut) {
            let noted = || EscalationPolicy::new(&[FailureAction::Retry, FailureAction::NotPassed]);
            policy.restart_to = 0;
            policy.gate.on_failure = OnFailure::Proceed;
            policy.gate.on_unclear = noted();
            policy.gate.on_reviewer_failure = noted();
            policy.gate.on_discussion = EscalationPolicy::new(&[FailureAction::NotPassed]);
        }
        self.run_level_workflow(&gates)
    }
}

/// Removes the phases of other modes. A restart goes to the same phase, or to the next one that remains.
fn keep_mode(phases: &mut Vec<Phase>, mode: &str) {
    let stays = |phase: &Phase| phase.mode.as_deref().is_none_or(|only| only == mode);
    let kept: Vec<bool> = phases.iter().map(stays).collect();
    phases.retain(stays);
    for policy in phases.iter_mut().filter_map(Phase::policy_mut) {
        policy.restart_to = kept.iter().take(policy.restart_to).filter(|kept| **kept).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_readable_and_carries_its_name() {
        for name in PRESETS {
            assert_eq!(preset(name).map(|workflow| workflow.name).as_deref(), Some(name));
        }
        assert!(new_project().is_some());
    }
}
