//! What a state tells of the gates behind it: what they left open, and which of them nobody approved.

use super::resume::finding;
use super::{LAST, Phases, State, Status};
use crate::machine::{Earlier, GateEnd, GateRecord, Reason};
use crate::policy::{Gate, OnExhausted, OnFailure};
use crate::review::{Finding, Severity};
use crate::workflow::{Phase, PhaseKind, Workflow};

/// The name under which the project's checks stand among the reviewers.
const CHECKS: &str = "checks";

/// How a gate or check ended that is over, as far as a state tells.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Passed,
    Ended(GateEnd),
    /// Passed, or gone on from without approval: the file is the same.
    Unsure,
}

/// The gates of the current iteration that were passed without an approval.
pub(super) fn gates(state: &State, workflow: &Workflow) -> Vec<GateRecord> {
    let record = |(phase, told)| match told {
        Told::Ended(end) => Some(GateRecord { phase, item: 0, end }),
        Told::Passed | Told::Unsure => None,
    };
    behind(state, workflow).filter_map(record).collect()
}

/// The phases of the current iteration that are taken as passed although the state does not tell that they were.
pub fn unsure(state: &State, workflow: &Workflow) -> Vec<u32> {
    let unsure = behind(state, workflow).filter(|(_, told)| *told == Told::Unsure);
    unsure.map(|(phase, _)| workflow.number(phase)).collect()
}

fn behind<'a>(state: &'a State, workflow: &'a Workflow) -> impl Iterator<Item = (usize, Told)> + 'a {
    let phases = state.iterations.last().map(|iteration| &iteration.phases);
    let all = workflow.phases.iter().enumerate();
    all.filter(|(index, _)| workflow.number(*index) < state.current_phase)
        .filter_map(move |(index, phase)| Some((index, told(phases?, workflow.number(index), phase)?)))
}

/// None where nobody judges here, or the phase is not over.
fn told(phases: &Phases, number: u32, phase: &Phase) -> Option<Told> {
    let gate = phase.judge().map(|judge| &judge.gate).filter(|gate| gate.enabled)?;
    let is_check = matches!(phase.kind, PhaseKind::Check(_));
    let has_issues = phases.clone().reviewed_mut(number).is_some();
    match phases.status(number)? {
        Status::Skipped if is_check => Some(Told::Ended(GateEnd::Unchecked)),
        Status::Skipped => Some(Told::Ended(GateEnd::Unheard)),
        Status::Completed if has_issues => Some(reviewed(phases, number, gate)),
        Status::Completed if may_go_on(gate) => Some(Told::Unsure),
        Status::Completed => Some(Told::Passed),
        Status::Pending | Status::InProgress | Status::Failed => None,
    }
}

/// Whether a gate can be left with its findings open.
fn may_go_on(gate: &Gate) -> bool {
    let exhausted = match gate.on_exhausted {
        OnExhausted::Proceed | OnExhausted::Ask => true,
        OnExhausted::Stop | OnExhausted::Restart => false,
    };
    gate.on_failure == OnFailure::Proceed || (gate.on_failure == OnFailure::MiniLoop && exhausted)
}

/// A review that found something is followed by a fix, or by nothing that could have closed it. Issues stay in the file
/// when a fix is approved, so that after the first one only the bound tells.
fn reviewed(phases: &Phases, number: u32, gate: &Gate) -> Told {
    let blocks = |issue: &super::Issue| gate.fail_on.is_reached_by(issue.severity.into());
    if !phases.issues(number).iter().any(blocks) {
        return Told::Passed;
    }
    let fixes = phases.retries(number).unwrap_or(0);
    let in_place = gate.on_failure == OnFailure::MiniLoop;
    let used_up = in_place && !gate.bound.allows_another_fix(fixes, 0);
    if used_up && (fixes == 0 || may_go_on(gate)) {
        Told::Ended(GateEnd::Noted { reason: Reason::CyclesExhausted })
    } else if !in_place || fixes == 0 {
        Told::Ended(GateEnd::Noted { reason: Reason::FindingsNoted })
    } else {
        Told::Unsure
    }
}

/// What is open from before the current phase: what sent earlier iterations back and was not approved since, and what
/// the current one went on with.
pub(super) fn earlier(state: &State, workflow: &Workflow) -> Vec<Earlier> {
    let mut all: Vec<Earlier> = (1..LAST).flat_map(|number| left_open(state, workflow, number)).collect();
    all.sort_by_key(|earlier| (earlier.pass, earlier.phase));
    all
}

fn left_open(state: &State, workflow: &Workflow, number: u32) -> Vec<Earlier> {
    let judges =
        |(index, phase): &(usize, &Phase)| workflow.number(*index) == number && phase.judge().is_some();
    let Some((index, phase)) = workflow.phases.iter().enumerate().find(judges) else { return Vec::new() };
    let mut open = Vec::new();
    for iteration in state.iterations.iter().rev() {
        let (pass, phases) = (iteration.iteration, &iteration.phases);
        let findings = match (phases.status(number), told(phases, number, phase)) {
            (Some(Status::Failed), _) => failed(phases, (pass, number), phase),
            (_, Some(Told::Ended(GateEnd::Noted { .. }))) => {
                phases.issues(number).iter().map(finding).collect()
            }
            (Some(Status::Completed), _) => break,
            (Some(Status::Pending | Status::InProgress | Status::Skipped) | None, _) => Vec::new(),
        };
        if !findings.is_empty() {
            open.push(Earlier { pass, phase: index, findings });
        }
    }
    open
}

/// What a phase found that failed. Of checks a state only tells that they did.
fn failed(phases: &Phases, (pass, number): (u32, u32), phase: &Phase) -> Vec<Finding> {
    if let PhaseKind::Check(_) = phase.kind {
        let what =
            format!("the project's checks failed in iteration {pass}; what they reported is not known");
        return vec![Finding::of(&CHECKS.into(), "check", Severity::Critical, what)];
    }
    phases.issues(number).iter().map(finding).collect()
}
