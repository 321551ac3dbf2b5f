//! Infers from a state file how the earlier gates ended: what they left open, and which ended without an approval.

use super::resume::finding;
use super::{FINAL_PHASE, IterationState, PhaseStates, PhaseStatus};
use crate::machine::{EarlierFindings, GateEnd, GateRecord, Reason};
use crate::policy::{Gate, OnFailure};
use crate::review::{Finding, Severity};
use crate::workflow::{Phase, PhaseKind, Workflow};

/// The name of the project's checks among the reviewers.
const CHECKS: &str = "checks";

/// How a finished gate or check ended, as far as the state shows.
#[derive(Debug, PartialEq, Eq)]
enum InferredEnd {
    Passed,
    Ended(GateEnd),
    /// Passed, or left without an approval: the state does not distinguish them.
    Uncertain,
}

/// The gates of the current iteration that ended without an approval.
pub(super) fn gates(state: &IterationState, workflow: &Workflow) -> Vec<GateRecord> {
    let record = |(phase, told)| match told {
        InferredEnd::Ended(end) => Some(GateRecord { phase, item: 0, end }),
        InferredEnd::Passed | InferredEnd::Uncertain => None,
    };
    passed_phases(state, workflow).filter_map(record).collect()
}

/// The phases of the current iteration that count as passed although the state does not prove it.
pub fn uncertain_phases(state: &IterationState, workflow: &Workflow) -> Vec<u32> {
    let unsure = passed_phases(state, workflow).filter(|(_, told)| *told == InferredEnd::Uncertain);
    unsure.map(|(phase, _)| workflow.number(phase)).collect()
}

fn passed_phases<'a>(
    state: &'a IterationState,
    workflow: &'a Workflow,
) -> impl Iterator<Item = (usize, InferredEnd)> + 'a {
    let phases = state.iterations.last().map(|iteration| &iteration.phases);
    let all = workflow.phases.iter().enumerate();
    all.filter(|(index, _)| workflow.number(*index) < state.current_phase)
        .filter_map(move |(index, phase)| Some((index, inferred_end(phases?, workflow.number(index), phase)?)))
}

/// None if the phase has no gate or is not done.
fn inferred_end(phases: &PhaseStates, number: u32, phase: &Phase) -> Option<InferredEnd> {
    let gate = phase.policy().map(|judge| &judge.gate).filter(|gate| gate.enabled)?;
    let is_check = matches!(phase.kind, PhaseKind::Check(_));
    let has_issues = phases.clone().reviewed_mut(number).is_some();
    match phases.status(number)? {
        PhaseStatus::Skipped if is_check => Some(InferredEnd::Ended(GateEnd::Unchecked)),
        PhaseStatus::Skipped => Some(InferredEnd::Ended(GateEnd::ReviewersMissing)),
        PhaseStatus::Completed if has_issues => Some(reviewed(phases, number, gate)),
        PhaseStatus::Completed if may_go_on(gate) => Some(InferredEnd::Uncertain),
        PhaseStatus::Completed => Some(InferredEnd::Passed),
        PhaseStatus::Pending | PhaseStatus::InProgress | PhaseStatus::Failed => None,
    }
}

/// Whether a gate can be left with open findings.
fn may_go_on(gate: &Gate) -> bool {
    let exhausted = gate.on_exhausted.may_leave_findings();
    gate.on_failure == OnFailure::Proceed || (gate.on_failure == OnFailure::MiniLoop && exhausted)
}

/// A review with findings is followed by a fix, or by nothing that could have closed them. Issues stay in the file
/// when a fix is approved, so after the first fix only the limit shows how the gate ended.
fn reviewed(phases: &PhaseStates, number: u32, gate: &Gate) -> InferredEnd {
    let blocks = |issue: &super::ReviewIssue| gate.fail_on.is_reached_by(issue.severity.into());
    if !phases.issues(number).iter().any(blocks) {
        return InferredEnd::Passed;
    }
    let fixes = phases.retries(number).unwrap_or(0);
    let in_place = gate.on_failure == OnFailure::MiniLoop;
    let used_up = in_place && !gate.bound.allows_another_fix(fixes, 0);
    if used_up && (fixes == 0 || may_go_on(gate)) {
        InferredEnd::Ended(GateEnd::Noted { reason: Reason::CyclesExhausted })
    } else if !in_place || fixes == 0 {
        InferredEnd::Ended(GateEnd::Noted { reason: Reason::FindingsNoted })
    } else {
        InferredEnd::Uncertain
    }
}

/// Open findings from before the current phase: those that restarted earlier iterations and were not approved since,
/// and those that the current iteration went on with.
pub(super) fn earlier(state: &IterationState, workflow: &Workflow) -> Vec<EarlierFindings> {
    let mut all: Vec<EarlierFindings> =
        (1..FINAL_PHASE).flat_map(|number| left_open(state, workflow, number)).collect();
    all.sort_by_key(|earlier| (earlier.pass, earlier.phase));
    all
}

fn left_open(state: &IterationState, workflow: &Workflow, number: u32) -> Vec<EarlierFindings> {
    let judges = |(index, phase): &(usize, &Phase)| workflow.number(*index) == number && phase.policy().is_some();
    let Some((index, phase)) = workflow.phases.iter().enumerate().find(judges) else { return Vec::new() };
    let mut open = Vec::new();
    for iteration in state.iterations.iter().rev() {
        let (pass, phases) = (iteration.iteration, &iteration.phases);
        let findings = match (phases.status(number), inferred_end(phases, number, phase)) {
            (Some(PhaseStatus::Failed), _) => failed(phases, (pass, number), phase),
            (_, Some(InferredEnd::Ended(GateEnd::Noted { .. }))) => phases.issues(number).iter().map(finding).collect(),
            (Some(PhaseStatus::Completed), _) => break,
            (Some(PhaseStatus::Pending | PhaseStatus::InProgress | PhaseStatus::Skipped) | None, _) => Vec::new(),
        };
        if !findings.is_empty() {
            open.push(EarlierFindings { pass, phase: index, findings });
        }
    }
    open
}

/// The findings of a failed phase. For checks the state only shows that they failed.
fn failed(phases: &PhaseStates, (pass, number): (u32, u32), phase: &Phase) -> Vec<Finding> {
    if let PhaseKind::Check(_) = phase.kind {
        let what = format!("the project's checks failed in iteration {pass}; what they reported is not known");
        return vec![Finding::new(&CHECKS.into(), "check", Severity::Critical, what)];
    }
    phases.issues(number).iter().map(finding).collect()
}
