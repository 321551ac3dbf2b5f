//! Applies the configuration to a preset or to a workflow of `[workflows]`, with the project's checks as a reviewer.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::agents::agent;
use super::assign::AssignedReviewer;
use super::file::{
    AUTO_REVIEW, AgentTable, MAX_REVIEW_CYCLES, REVIEW_ENABLED, REVIEW_MAX_FIX_ATTEMPTS, ReviewerTable, SettingsFile,
};
use super::reader::did_you_mean;
use super::rules::key_name;
use super::values::NonBlankText;
use super::{AgentKind, ConfigError, PhaseContext, ReviewWorkspace, SettingOrigin, Settings, key};
use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::policy::Count;
use crate::review::ReviewerKind;
use crate::workflow;
use crate::workflow::keys::CycleBound;
use crate::workflow::resolve::{Reviewers, nothing_to_restart, restart_key};
use crate::workflow::{
    FixBound, GateKeys, GatePolicy, PRESETS, Phase, PhaseKind, SLOTS_PRESET, Workflow, WorkflowReviewer,
};

const REVIEWERS: &str = key_name!(GateKeys, reviewers);

/// Keys of a gate that one place of the configuration sets.
struct GateLayer<'a> {
    /// The table that has the keys, or the one setting that they come from.
    path: Vec<&'a str>,
    is_table: bool,
    keys: Cow<'a, GateKeys>,
}

impl<'a> GateLayer<'a> {
    fn table(path: &[&'a str], keys: &'a GateKeys) -> Self {
        Self { path: path.to_vec(), is_table: true, keys: Cow::Borrowed(keys) }
    }

    fn setting(path: &[&'a str], keys: GateKeys) -> Self {
        Self { path: path.to_vec(), is_table: false, keys: Cow::Owned(keys) }
    }

    /// The paths of the settings that may set one of these keys.
    fn paths(&self, keys: &[&'a str]) -> Vec<Vec<&'a str>> {
        if self.is_table {
            return keys.iter().map(|key| [self.path.as_slice(), &[*key]].concat()).collect();
        }
        let sets_one = keys.iter().any(|key| self.keys.sets(key));
        sets_one.then(|| self.path.clone()).into_iter().collect()
    }
}

impl Settings {
    /// A preset, or a workflow of `[workflows]`, with the configuration applied.
    pub fn workflow(&self, name: &str) -> Result<Workflow, ConfigError> {
        let mut workflow = self.base_workflow(name)?;
        self.add_reviewers(&mut workflow);
        if name == self.preset() && !self.is_set(&[key::DEFAULTS, AUTO_REVIEW]) && self.reviews_by_default(name) {
            only_gate_mut(&mut workflow).into_iter().for_each(|policy| policy.gate.enabled = true);
        }
        for phase in workflow.all_phases_mut().filter(|phase| phase.policy().is_some()) {
            let gate = phase.gate_name().to_owned();
            self.gate_layers(name, &gate).iter().for_each(|layer| apply_gate(&layer.keys, phase));
        }
        if name == SLOTS_PRESET {
            let (developer, reviewer) = (&self.file.developerPromptPath, &self.file.reviewerPromptPath);
            workflow
                .set_prompts(developer.as_ref().map(NonBlankText::as_str), reviewer.as_ref().map(NonBlankText::as_str));
        }
        if let Some(preset) = self.file.presets.get(name) {
            if let Some(effort) = preset.keys.effort {
                workflow.checkpoint_interval = effort.checkpoint_interval();
            }
            preset.workflow.apply_to(&mut workflow);
            self.apply_phases(&mut workflow);
        }
        self.add_checks_reviewer(&mut workflow);
        workflow.limits.max_rate_limits = self.file.limits.keys.max_rate_limits.0;
        self.check_gates(&workflow)?;
        let named: BTreeSet<_> = workflow
            .all_phases()
            .filter_map(Phase::policy)
            .flat_map(|gate_policy| gate_policy.gate.reviewers.clone())
            .collect();
        workflow.reviewers.retain(|name, _| named.contains(name));
        Ok(workflow)
    }

    /// What the configuration sets for a gate; later layers win.
    fn gate_layers<'a>(&'a self, workflow: &'a str, gate: &'a str) -> Vec<GateLayer<'a>> {
        let (file, mut layers) = (&self.file, Vec::new());
        if workflow == self.preset() {
            if self.only_gate(workflow) == Some(gate) {
                layers.extend(self.default_layers());
            }
            layers.push(GateLayer::table(&[key::GATE], &file.gate));
        }
        if workflow == SLOTS_PRESET {
            let max_fixes = file.reviewMaxFixAttempts.map(|fixes| FixBound(Count::Number(fixes.0)));
            let keys = GateKeys { max_fixes, ..GateKeys::default() };
            layers.push(GateLayer::setting(&[REVIEW_MAX_FIX_ATTEMPTS], keys));
            let keys = GateKeys { enabled: file.reviewEnabled, ..GateKeys::default() };
            layers.push(GateLayer::setting(&[REVIEW_ENABLED], keys));
        }
        if let Some(preset) = file.presets.get(workflow) {
            let effort = preset.keys.effort.map(GateKeys::from_effort).unwrap_or_default();
            layers.push(GateLayer::setting(&[key::PRESETS, workflow, key::EFFORT], effort));
            layers.push(GateLayer::table(&[key::PRESETS, workflow], &preset.gate));
            if let Some(keys) = preset.keys.gates.get(gate) {
                let table = [key::PRESETS, workflow, key::GATES, gate];
                // A gate with a name of its own for the configuration is off until it is configured.
                let mut phases = self.known_workflow(workflow).into_iter().flat_map(Workflow::all_phases);
                let enabled = phases.any(|phase| phase.config_name.as_deref() == Some(gate)).then_some(true);
                layers.push(GateLayer::setting(&table, GateKeys { enabled, ..GateKeys::default() }));
                layers.push(GateLayer::table(&table, keys));
            }
        }
        layers
    }

    /// The layers of `[defaults]`. `auto_review = false` does not switch off a gate that the workflow has on.
    fn default_layers(&self) -> [GateLayer<'_>; 2] {
        let defaults = &self.file.defaults;
        let (cycles, on) = ([key::DEFAULTS, MAX_REVIEW_CYCLES], [key::DEFAULTS, AUTO_REVIEW]);
        let max_cycles = CycleBound(Count::Number(defaults.max_review_cycles.0));
        let max_cycles = Some(max_cycles).filter(|_| self.is_set(&cycles));
        let enabled = Some(true).filter(|_| self.is_set(&on) && defaults.auto_review);
        [
            GateLayer::setting(&cycles, GateKeys { max_cycles, ..GateKeys::default() }),
            GateLayer::setting(&on, GateKeys { enabled, ..GateKeys::default() }),
        ]
    }

    /// The names that [`Settings::workflow`] accepts.
    pub fn workflow_names(&self) -> Vec<&str> {
        PRESETS.into_iter().chain(self.workflows.keys().map(String::as_str)).collect()
    }

    pub(super) fn base_workflow(&self, name: &str) -> Result<Workflow, ConfigError> {
        self.known_workflow(name).cloned().ok_or_else(|| ConfigError::UnknownWorkflow {
            name: name.to_owned(),
            expected: self.expected_workflow(name),
        })
    }

    fn known_workflow(&self, name: &str) -> Option<&Workflow> {
        self.workflows.get(name).or_else(|| workflow::shipped_preset(name))
    }

    pub(super) fn expected_workflow(&self, name: &str) -> String {
        let known = self.workflow_names();
        did_you_mean(name, &known, || format!("expected one of {}", known.join(", ")))
    }

    /// A preset's reviewer is changed key by key. A workflow of `[workflows]` has its reviewers already.
    fn add_reviewers(&self, workflow: &mut Workflow) {
        let own = self.workflows.contains_key(&workflow.name);
        for (name, table) in self.file.reviewers.iter() {
            let name = ReviewerName::from(name.as_str());
            let known = workflow.reviewers.get(&name).cloned();
            if known.is_some() && own {
                continue;
            }
            if let Some(reviewer) = reviewer(&name, table, known) {
                workflow.reviewers.insert(name, reviewer);
            }
        }
    }

    /// The origin of a key of a gate, unless the workflow itself sets it. Both limits count as one key.
    pub(super) fn gate_origin(&self, workflow: &str, gate: &str, key: &str) -> Option<SettingOrigin> {
        self.deciding_gate_key(workflow, gate, key).map(|(_, origin)| origin)
    }

    /// The dotted key that decides a key of a gate, with its origin.
    pub(super) fn deciding_gate_key(&self, workflow: &str, gate: &str, key: &str) -> Option<(String, SettingOrigin)> {
        let keys: Vec<_> = std::iter::once(key).chain(other_bound(key)).collect();
        let layers = self.gate_layers(workflow, gate);
        layers.iter().rev().flat_map(|layer| layer.paths(&keys)).find_map(|path| self.dotted_origin(&path))
    }

    fn dotted_origin(&self, path: &[&str]) -> Option<(String, SettingOrigin)> {
        self.origin_at(path).map(|origin| (path.join("."), origin.clone()))
    }

    /// The name of the gate of a workflow that has only one. `[defaults]` applies to it.
    pub(super) fn only_gate(&self, workflow: &str) -> Option<&str> {
        let mut gates = self.known_workflow(workflow)?.phases.iter().filter(|phase| phase.is_gate());
        gates.next().filter(|_| gates.next().is_none()).map(Phase::gate_name)
    }

    /// Checks the gates of a workflow after the configuration was applied.
    pub(super) fn check_gates(&self, workflow: &Workflow) -> Result<(), ConfigError> {
        for phases in [&workflow.before, &workflow.phases, &workflow.after] {
            for (index, phase) in phases.iter().enumerate() {
                let Some(policy) = phase.policy() else { continue };
                let error = |key: &str, message: String| {
                    let origin = self.gate_origin(&workflow.name, phase.gate_name(), key);
                    Err(origin.unwrap_or(SettingOrigin::Default).error(message))
                };
                if let Some(key) = restart_key(&policy.gate).filter(|_| index == 0) {
                    return error(key, nothing_to_restart(key, &phase.name));
                }
                let mut reviewers = policy.gate.reviewers.iter();
                if let Some(name) = reviewers.find(|name| !workflow.reviewers.contains_key(*name)) {
                    return error(REVIEWERS, unknown_reviewer(workflow, name));
                }
            }
        }
        Ok(())
    }
}

impl SettingsFile {
    /// The reviewers that every workflow may name.
    pub(super) fn shared_reviewers(&self) -> Reviewers {
        let one = |name: &str, table: &ReviewerTable| {
            let name = ReviewerName::from(name);
            reviewer(&name, table, None).map(|reviewer| (name, reviewer))
        };
        self.reviewers.iter().filter_map(|(name, table)| one(name.as_str(), table)).collect()
    }
}

/// The key that a bound of a gate excludes.
pub(super) fn other_bound(key: &str) -> Option<&'static str> {
    super::layer::excluded_by(&[key::GATE], key)
}

/// A reviewer of a workflow. None if its kind is not known.
fn reviewer(name: &ReviewerName, table: &ReviewerTable, known: Option<WorkflowReviewer>) -> Option<WorkflowReviewer> {
    let kind = table.kind.or(known.as_ref().map(|known| known.kind));
    let kind = kind.or(name.as_str().parse::<ReviewerKind>().ok())?;
    let contract = table.contract.or(known.map(|known| known.contract)).unwrap_or(Contract::Auto);
    Some(WorkflowReviewer { kind, contract })
}

/// Applies keys to a gate, and to a check those that it has.
fn apply_gate(keys: &GateKeys, phase: &mut Phase) {
    match &mut phase.kind {
        PhaseKind::Agent { .. } => {}
        PhaseKind::Gate(policy) => keys.apply_to(&mut policy.gate),
        PhaseKind::Check(policy) => keys.for_check().apply_to(&mut policy.gate),
    }
}

/// The gate of a workflow that has only one.
pub(super) fn only_gate_mut(workflow: &mut Workflow) -> Option<&mut GatePolicy> {
    let mut gates = workflow.gates_mut();
    gates.next().filter(|_| gates.next().is_none())
}

fn unknown_reviewer(workflow: &Workflow, reviewer: &ReviewerName) -> String {
    let known: Vec<_> = workflow.reviewers.keys().map(ReviewerName::as_str).collect();
    let expected = did_you_mean(reviewer.as_str(), &known, || {
        let known = known.join(", ");
        format!("the reviewers here are {known}; write a [reviewers.{reviewer}] table for another")
    });
    format!("unknown reviewer `{reviewer}`: {expected}")
}

/// The reviewer name of the project's checks.
pub const CHECKS: &str = "checks";

impl Settings {
    /// Adds the checks that were found in the project. They count if none are configured.
    #[must_use]
    pub fn with_found_checks(self, found: Vec<(String, String)>) -> Self {
        Self { found, ..self }
    }

    /// The checks of the project: those that are configured, or else those that were found.
    pub fn project_checks(&self) -> Vec<(&str, &str)> {
        match self.checks() {
            checks if checks.is_empty() => {
                self.found.iter().map(|(name, command)| (name.as_str(), command.as_str())).collect()
            }
            checks => checks,
        }
    }

    /// Whether tasks of a workflow are reviewed if no key decides it: a reviewer or a check exists. `slots` must ask for it.
    pub(super) fn reviews_by_default(&self, workflow: &str) -> bool {
        workflow != SLOTS_PRESET && (self.configures_reviewer(workflow) || !self.project_checks().is_empty())
    }

    /// Whether the configuration names a reviewer.
    fn configures_reviewer(&self, workflow: &str) -> bool {
        let in_role = self.file.roles.review.0.agent.is_some();
        in_role || !self.file.reviewers.is_empty() || self.names_reviewers(workflow)
    }

    /// Whether the reviewers of any gate of a workflow are written in the configuration.
    fn names_reviewers(&self, workflow: &str) -> bool {
        let Ok(known) = self.base_workflow(workflow) else { return false };
        let mut gates = known.phases.iter().filter(|phase| phase.is_gate());
        gates.any(|phase| self.gate_origin(workflow, phase.gate_name(), REVIEWERS).is_some())
    }

    /// Adds the project's checks to the reviewers of each gate that judges tasks and has no configured reviewers. Gates can
    /// also name the checks themselves. Custom workflows stay unchanged; workflows with a check phase get no extra reviewer.
    fn add_checks_reviewer(&self, workflow: &mut Workflow) {
        let runs_checks = workflow.phases.iter().any(|phase| matches!(phase.kind, PhaseKind::Check(_)));
        if self.workflows.contains_key(&workflow.name) {
            return;
        }
        let (name, checks) = (workflow.name.clone(), ReviewerName::from(CHECKS));
        let joins = !runs_checks && !self.project_checks().is_empty();
        for phase in workflow.phases.iter_mut().filter(|_| joins) {
            let is_configured = self.gate_origin(&name, phase.gate_name(), REVIEWERS).is_some();
            let PhaseKind::Gate(policy) = &mut phase.kind else { continue };
            let reviewers = &mut policy.gate.reviewers;
            if !is_configured && !reviewers.iter().any(|reviewer| self.is_checks(reviewer)) {
                reviewers.push(checks.clone());
            }
        }
        let names_checks =
            |phase: &Phase| phase.policy().is_some_and(|gate_policy| gate_policy.gate.reviewers.contains(&checks));
        if workflow.all_phases().any(names_checks) {
            let reviewer = WorkflowReviewer { kind: ReviewerKind::Tests, contract: Contract::Auto };
            workflow.reviewers.entry(checks).or_insert(reviewer);
        }
    }

    /// Leaves the checks as the only reviewer of a gate that is on only because the project has checks.
    pub(super) fn keep_only_checks_reviewer(&self, workflow: &mut Workflow) {
        let name = workflow.name.clone();
        let Some((gate, policy)) = self.only_gate(&name).zip(only_gate_mut(workflow)) else { return };
        let is_off = self.known_workflow(&name).is_some_and(|known| known.first_gate().is_none());
        let by_default = is_off
            && !self.is_set(&[key::DEFAULTS, AUTO_REVIEW])
            && self.gate_origin(&name, gate, key_name!(GateKeys, enabled)).is_none();
        let reviewers = &mut policy.gate.reviewers;
        let is_checks = |reviewer: &ReviewerName| reviewer.as_str() == CHECKS;
        if by_default && !self.configures_reviewer(&name) && reviewers.iter().any(is_checks) {
            reviewers.retain(is_checks);
        }
    }

    /// Whether a reviewer runs the project's commands.
    fn is_checks(&self, name: &ReviewerName) -> bool {
        let Some(reviewer) = self.file.reviewers.get(name.as_str()) else { return false };
        let agent = reviewer.agent.as_ref().and_then(|agent| self.agent(agent.as_str()));
        agent.is_some_and(|agent| agent.kind == AgentKind::Checks)
    }

    /// The project's checks as the reviewer that [`Settings::add_checks_reviewer`] adds: they work in a copy. None: the
    /// reviewer is another one.
    pub(super) fn checks_reviewer(&self, name: &ReviewerName, context: PhaseContext<'_>) -> Option<AssignedReviewer> {
        let is_ours = name.as_str() == CHECKS
            && !self.file.reviewers.contains_key(CHECKS)
            && !self.workflows.contains_key(&context.workflow.name);
        let known = context.workflow.reviewers.get(name).filter(|_| is_ours)?;
        let (agent, limit) = (agent(CHECKS, &AgentTable::default())?, self.review_limit(context));
        Some(AssignedReviewer {
            name: name.clone(),
            kind: known.kind,
            contract: known.contract,
            require_nonce: false,
            workspace: Some(ReviewWorkspace::Copy),
            prompt: None,
            model: None,
            timeout: self.timeout(limit, &agent),
            agent,
        })
    }
}
