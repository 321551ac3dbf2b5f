//! The gate where the configuration names no reviewers: whether it is on, and the project's checks as one of its seats.

use std::collections::BTreeMap;

use super::assign::{AgentConfig, AssignedReviewer};
use super::workflows::{SLOTS, the_gate};
use super::{AgentKind, ReviewWorkspace};
use super::{JobPlace, Settings};
use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::review::ReviewerKind;
use crate::workflow::{Phase, PhaseKind, Workflow, WorkflowReviewer};

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
        let in_role = self.file.roles.review.agent.is_some();
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
        let names_seat = |phase: &Phase| phase.policy().is_some_and(|judge| judge.gate.reviewers.contains(&seat));
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
    pub(super) fn seated_checks(&self, name: &ReviewerName, place: JobPlace<'_>) -> Option<AssignedReviewer> {
        let is_ours = name.as_str() == CHECKS
            && !self.file.reviewers.contains_key(CHECKS)
            && !self.workflows.contains_key(&place.workflow.name);
        let known = place.workflow.reviewers.get(name).filter(|_| is_ours)?;
        let (agent, limit) = (checks_agent(), self.review_limit(place));
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

fn checks_agent() -> AgentConfig {
    AgentConfig {
        name: CHECKS.to_owned(),
        kind: AgentKind::Checks,
        command: Vec::new(),
        args: Vec::new(),
        env: BTreeMap::new(),
        pass: Vec::new(),
        model: None,
        timeout: None,
        fallback: None,
        provider: AgentKind::Checks.provider(CHECKS),
        max_agents: None,
    }
}
