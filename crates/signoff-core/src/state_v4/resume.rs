//! Continues a loop from the state of another program: the event, and how the earlier gates ended as far as the state
//! shows.

use super::{FINAL_PHASE, Iteration, IterationState, PhaseStates, PhaseStatus, ReviewIssue};
use crate::ids::FindingId;
use crate::machine::{EarlierFindings, Event, GateEnd, GateRecord, Head, ImportedProgress, Policy, Position, Reason};
use crate::policy::{Gate, OnFailure};
use crate::review::{Finding, Severity};
use crate::workflow::{Phase, PhaseKind, Workflow};

/// The kind of imported findings, as the state names none.
const KIND: &str = "issue";

/// Returns the event that continues a loop at the state's current phase. A fix that was under way is reviewed again,
/// as its progress is unknown.
pub fn resume(state: &IterationState, head: Head, policy: &Policy) -> Event {
    let workflow = &policy.workflow;
    let at_or_after = |index: &usize| workflow.number(*index) >= state.current_phase;
    let phase = (0..workflow.phases.len()).find(at_or_after).unwrap_or(workflow.phases.len());
    let judge = workflow.phases.get(phase).and_then(|phase| phase.policy());
    let here = workflow.number(phase) == state.current_phase;
    let left = state.iterations.last().map(|iteration| &iteration.phases).filter(|_| here);
    let fixes = match judge {
        Some(judge) if judge.gate.on_failure != OnFailure::Restart => {
            left.and_then(|phases| phases.retries(state.current_phase)).unwrap_or(0)
        }
        Some(_) | None => 0,
    };
    let issues = left.map(|phases| phases.issues(state.current_phase)).unwrap_or_default();
    let left = ImportedProgress {
        fixes,
        findings: issues.iter().map(finding).collect(),
        earlier: earlier(state, workflow),
        gates: gates(state, workflow),
    };
    Event::Imported { head, at: Position { pass: state.current_iteration, phase, item: 0 }, left }
}

pub(super) fn finding(issue: &ReviewIssue) -> Finding {
    let (file, line) = parse_location(&issue.location);
    Finding {
        // Computed from the description and place when the finding is recorded.
        id: FindingId::new(""),
        sources: Vec::new(),
        kind: KIND.to_owned(),
        severity: issue.severity.into(),
        file,
        line,
        description: issue.message.clone(),
        requirement: None,
        suggestion: None,
    }
}

/// Parses `file:line`, `file:line:column` or `file`.
fn parse_location(location: &str) -> (Option<String>, Option<u32>) {
    let numbered = |text: &str| -> Option<(String, u32)> {
        let (file, number) = text.rsplit_once(':')?;
        Some((file.to_owned(), number.parse().ok()?))
    };
    match numbered(location) {
        None => ((!location.is_empty()).then(|| location.to_owned()), None),
        Some((before, last)) => match numbered(&before) {
            Some((file, line)) => (Some(file), Some(line)),
            None => ((!before.is_empty()).then_some(before), Some(last)),
        },
    }
}

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
fn gates(state: &IterationState, workflow: &Workflow) -> Vec<GateRecord> {
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
    let blocks = |issue: &ReviewIssue| gate.fail_on.is_reached_by(issue.severity.into());
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
fn earlier(state: &IterationState, workflow: &Workflow) -> Vec<EarlierFindings> {
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
            (Some(PhaseStatus::Failed), _) => failed(iteration, number, phase),
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
fn failed(iteration: &Iteration, number: u32, phase: &Phase) -> Vec<Finding> {
    if let PhaseKind::Check(_) = phase.kind {
        let pass = iteration.iteration;
        let what = format!("the project's checks failed in iteration {pass}; what they reported is not known");
        return vec![Finding::new(&CHECKS.into(), "check", Severity::Critical, what)];
    }
    iteration.phases.issues(number).iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_people_write_them() {
        let shown = |location| format!("{:?}", parse_location(location));
        assert_eq!(shown("src/a.rs:12"), r#"(Some("src/a.rs"), Some(12))"#);
        assert_eq!(shown("src/a.rs:12:5"), r#"(Some("src/a.rs"), Some(12))"#);
        assert_eq!(shown("docs/plan.md"), r#"(Some("docs/plan.md"), None)"#);
        assert_eq!(shown("C:\\a.rs"), r#"(Some("C:\\a.rs"), None)"#);
        assert_eq!(shown(""), "(None, None)");
    }
}
