//! Applies the configuration to a preset or to a workflow of `[workflows]`, with the project's checks as a reviewer.

use std::collections::BTreeSet;

use super::agents::agent;
use super::assign::AssignedReviewer;
use super::file::{AgentTable, ReviewerTable, SettingsFile};
use super::preset::PresetTable;
use super::reader::did_you_mean;
use super::values::Text;
use super::{AgentKind, ConfigError, PhaseContext, ReviewWorkspace, SettingOrigin, Settings};
use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::policy::Bound;
use crate::review::ReviewerKind;
use crate::workflow;
use crate::workflow::resolve::{Reviewers, nothing_to_restart, restart_key};
use crate::workflow::{GateKeys, GatePolicy, PRESETS, Phase, PhaseKind, Workflow, WorkflowReviewer};

/// The preset whose keys may be at the top of the file.
pub(super) const SLOTS: &str = "slots";

impl Settings {
    /// A preset, or a workflow of `[workflows]`, with the configuration applied.
    pub fn workflow(&self, name: &str) -> Result<Workflow, ConfigError> {
        let mut workflow = self.base_workflow(name)?;
        self.add_reviewers(&mut workflow);
        if name == self.preset() {
            self.apply_defaults(&mut workflow);
            workflow.all_phases_mut().for_each(|phase| apply_gate(&self.file.gate, phase));
        }
        if name == SLOTS {
            self.apply_slot_keys(&mut workflow);
        }
        if let Some(preset) = self.file.presets.get(name) {
            workflow = apply_preset(workflow, preset);
            self.apply_phases(&mut workflow);
        }
        self.seat_checks(&mut workflow);
        workflow.limits.max_rate_limits = self.file.limits.max_rate_limits.0;
        self.check_gates(&workflow)?;
        let named: BTreeSet<_> = workflow
            .all_phases()
            .filter_map(Phase::policy)
            .flat_map(|gate_policy| gate_policy.gate.reviewers.clone())
            .collect();
        workflow.reviewers.retain(|name, _| named.contains(name));
        Ok(workflow)
    }

    /// The names that [`Settings::workflow`] knows.
    pub fn workflow_names(&self) -> Vec<&str> {
        PRESETS.into_iter().chain(self.workflows.keys().map(String::as_str)).collect()
    }

    pub(super) fn base_workflow(&self, name: &str) -> Result<Workflow, ConfigError> {
        let own = self.workflows.get(name).cloned();
        own.or_else(|| workflow::preset(name)).ok_or_else(|| ConfigError::UnknownWorkflow {
            name: name.to_owned(),
            expected: self.expected_workflow(name),
        })
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

    /// `auto_review = true` switches on a gate that is off; if it is not set a reviewer or a check does.
    fn apply_defaults(&self, workflow: &mut Workflow) {
        let defaults = &self.file.defaults;
        let set = Some(defaults.auto_review).filter(|_| self.is_set(&["defaults", "auto_review"]));
        let on = set.unwrap_or_else(|| self.reviews_by_default(&workflow.name));
        let Some(policy) = the_gate(workflow) else { return };
        policy.gate.enabled |= on;
        if self.is_set(&["defaults", "max_review_cycles"]) {
            policy.gate.bound = Bound::MaxCycles(defaults.max_review_cycles.0);
        }
    }

    /// The keys at the top of the file that concern one preset.
    fn apply_slot_keys(&self, workflow: &mut Workflow) {
        let file = &self.file;
        if let Some(policy) = the_gate(workflow) {
            policy.gate.enabled = file.reviewEnabled.unwrap_or(policy.gate.enabled);
            if let Some(fixes) = file.reviewMaxFixAttempts {
                policy.gate.bound = Bound::MaxFixes(fixes.0);
            }
        }
        let (developer, reviewer) = (&file.developerPromptPath, &file.reviewerPromptPath);
        workflow.set_prompts(developer.as_ref().map(Text::as_str), reviewer.as_ref().map(Text::as_str));
    }

    /// Where a key of a gate is configured, if not by the workflow itself. Both bounds count as one key.
    pub(super) fn gate_origin(&self, workflow: &str, gate: &str, key: &str) -> Option<SettingOrigin> {
        self.deciding_gate_key(workflow, gate, key).map(|(_, origin)| origin)
    }

    /// The dotted key that decides a key of a gate, with its origin.
    pub(super) fn deciding_gate_key(&self, workflow: &str, gate: &str, key: &str) -> Option<(String, SettingOrigin)> {
        let is_bound = other_bound(key).is_some();
        let in_use = workflow == self.preset();
        let slots = workflow == SLOTS;
        let one_gate = || in_use && self.has_one_gate(workflow);
        let auto_review = || self.file.defaults.auto_review && one_gate();
        let at = |path: &[&str]| {
            let keys = [Some(key), other_bound(key)];
            keys.into_iter().flatten().find_map(|key| self.dotted_origin(&[path, &[key]].concat()))
        };
        let only = |counts: bool, path: &[&str]| self.dotted_origin(path).filter(|_| counts);
        at(&["presets", workflow, "gates", gate])
            .or_else(|| at(&["presets", workflow]))
            .or_else(|| only(is_bound || key == "depth", &["presets", workflow, "effort"]))
            .or_else(|| only(slots && key == "enabled", &["reviewEnabled"]))
            .or_else(|| only(slots && is_bound, &["reviewMaxFixAttempts"]))
            .or_else(|| at(&["gate"]).filter(|_| in_use))
            .or_else(|| only(key == "enabled" && auto_review(), &["defaults", "auto_review"]))
            .or_else(|| only(is_bound && one_gate(), &["defaults", "max_review_cycles"]))
    }

    fn dotted_origin(&self, path: &[&str]) -> Option<(String, SettingOrigin)> {
        self.set_at(path).map(|origin| (path.join("."), origin.clone()))
    }

    /// Whether `[defaults]` applies to a workflow.
    pub(super) fn has_one_gate(&self, workflow: &str) -> bool {
        self.base_workflow(workflow).ok().is_some_and(|mut known| the_gate(&mut known).is_some())
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
                    return error("reviewers", unknown_reviewer(workflow, name));
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
    super::layer::excluded_by(&["gate"], key)
}

/// A reviewer of a workflow. None if its kind is not known.
fn reviewer(name: &ReviewerName, table: &ReviewerTable, known: Option<WorkflowReviewer>) -> Option<WorkflowReviewer> {
    let kind = table.kind.or(known.as_ref().map(|known| known.kind));
    let kind = kind.or(ReviewerKind::parse(name.as_str()))?;
    let contract = table.contract.or(known.map(|known| known.contract)).unwrap_or(Contract::Auto);
    Some(WorkflowReviewer { kind, contract })
}

fn apply_preset(mut workflow: Workflow, preset: &PresetTable) -> Workflow {
    let whole = &preset.whole;
    if let Some(effort) = whole.effort {
        workflow = workflow.with_effort(effort);
    }
    workflow.completion = whole.completion.unwrap_or(workflow.completion);
    workflow.landing = whole.landing.unwrap_or(workflow.landing);
    if let Some(interval) = whole.checkpoint_interval {
        workflow.checkpoint_interval = Some(interval.0).filter(|interval| *interval > 0);
    }
    let limits = &mut workflow.limits;
    limits.max_attempts = whole.max_attempts.map_or(limits.max_attempts, |count| count.0);
    limits.max_passes = whole.max_passes.map_or(limits.max_passes, |count| count.0);
    limits.max_recoveries = whole.max_recoveries.unwrap_or(limits.max_recoveries);
    limits.max_conflicts = whole.max_conflicts.unwrap_or(limits.max_conflicts);
    workflow.attempts_exhausted_as = whole.attempts_exhausted_as.unwrap_or(workflow.attempts_exhausted_as);
    for phase in workflow.all_phases_mut() {
        apply_gate(&preset.gate, phase);
        let Some(named) = whole.gates.get(phase.gate_name()) else { continue };
        // A gate with a name of its own for the configuration is off until it is configured.
        let only_if_configured = phase.called.is_some();
        if let Some(policy) = phase.policy_mut().filter(|_| only_if_configured) {
            policy.gate.enabled = true;
        }
        apply_gate(named, phase);
    }
    workflow
}

/// Applies keys to a gate, and to a check those that concern it.
fn apply_gate(keys: &GateKeys, phase: &mut Phase) {
    match &mut phase.kind {
        PhaseKind::Agent { .. } => {}
        PhaseKind::Gate(policy) => keys.apply_to(&mut policy.gate),
        PhaseKind::Check(policy) => keys.of_a_check().apply_to(&mut policy.gate),
    }
}

/// The gate of a workflow that has only one.
pub(super) fn the_gate(workflow: &mut Workflow) -> Option<&mut GatePolicy> {
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

/// The seat of the project's checks.
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
        workflow != SLOTS && (self.configures_reviewer(workflow) || !self.project_checks().is_empty())
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
        gates.any(|phase| self.gate_origin(workflow, phase.gate_name(), "reviewers").is_some())
    }

    /// Adds the project's checks to the reviewers of each gate that judges tasks and has no configured reviewers. Gates can
    /// also name the checks themselves. Custom workflows stay unchanged; workflows with a check phase get no extra reviewer.
    pub(super) fn seat_checks(&self, workflow: &mut Workflow) {
        let runs_checks = workflow.phases.iter().any(|phase| matches!(phase.kind, PhaseKind::Check(_)));
        if self.workflows.contains_key(&workflow.name) {
            return;
        }
        let (name, seat) = (workflow.name.clone(), ReviewerName::from(CHECKS));
        let joins = !runs_checks && !self.project_checks().is_empty();
        for phase in workflow.phases.iter_mut().filter(|_| joins) {
            let named = self.gate_origin(&name, phase.gate_name(), "reviewers").is_some();
            let PhaseKind::Gate(policy) = &mut phase.kind else { continue };
            let seats = &mut policy.gate.reviewers;
            if !named && !seats.iter().any(|seat| self.is_checks(seat)) {
                seats.push(seat.clone());
            }
        }
        let names_seat =
            |phase: &Phase| phase.policy().is_some_and(|gate_policy| gate_policy.gate.reviewers.contains(&seat));
        if workflow.all_phases().any(names_seat) {
            let reviewer = WorkflowReviewer { kind: ReviewerKind::Tests, contract: Contract::Auto };
            workflow.reviewers.entry(seat).or_insert(reviewer);
        }
    }

    /// Leaves the checks as the only reviewer of a gate that is on only because the project has checks.
    pub(super) fn leave_checks_alone(&self, workflow: &mut Workflow) {
        let is_off = |mut known: Workflow| the_gate(&mut known).is_some_and(|policy| !policy.gate.enabled);
        let by_default = !self.is_set(&["defaults", "auto_review"])
            && self.base_workflow(&workflow.name).is_ok_and(is_off)
            && self.gate_origin(&workflow.name, "review", "enabled").is_none();
        if !by_default || self.configures_reviewer(&workflow.name) {
            return;
        }
        if let Some(policy) = the_gate(workflow) {
            let seats = &mut policy.gate.reviewers;
            if seats.iter().any(|seat| seat.as_str() == CHECKS) {
                seats.retain(|seat| seat.as_str() == CHECKS);
            }
        }
    }

    /// Whether a reviewer runs the project's commands.
    fn is_checks(&self, name: &ReviewerName) -> bool {
        let Some(reviewer) = self.file.reviewers.get(name.as_str()) else { return false };
        let agent = reviewer.agent.as_ref().and_then(|agent| self.agent(agent.as_str()));
        agent.is_some_and(|agent| agent.kind == AgentKind::Checks)
    }

    /// The project's checks as a reviewer, where the seat is the one that [`Settings::seat_checks`] gives them: they work
    /// in a copy.
    pub(super) fn seated_checks(&self, name: &ReviewerName, place: PhaseContext<'_>) -> Option<AssignedReviewer> {
        let is_ours = name.as_str() == CHECKS
            && !self.file.reviewers.contains_key(CHECKS)
            && !self.workflows.contains_key(&place.workflow.name);
        let known = place.workflow.reviewers.get(name).filter(|_| is_ours)?;
        let (agent, limit) = (agent(CHECKS, &AgentTable::default())?, self.review_limit(place));
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
