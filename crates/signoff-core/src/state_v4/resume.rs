//! Continues a loop from the state of another program.

use super::{IterationState, passed_gates};
use crate::ids::FindingId;
use crate::machine::{Event, Head, ImportedProgress, Policy, Position};
use crate::policy::OnFailure;
use crate::review::Finding;

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
        earlier: passed_gates::earlier(state, workflow),
        gates: passed_gates::gates(state, workflow),
    };
    Event::Imported { head, at: Position { pass: state.current_iteration, phase, item: 0 }, left }
}

pub(super) fn finding(issue: &super::ReviewIssue) -> Finding {
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
