//! Parses a state file, and continues a loop from it: the event, and how the earlier gates ended as far as the state
//! shows. Errors name the location and the expected value.

use jiff::Timestamp;
use serde::Deserializer;

use super::{
    FINAL_PHASE, Iteration, IterationMode, IterationState, PhaseStates, PhaseStatus, ReviewIssue, VERSION,
    truncate_to_seconds,
};
use crate::ids::FindingId;
use crate::machine::{EarlierFindings, Event, GateEnd, GateRecord, Head, ImportedProgress, Policy, Position, Reason};
use crate::policy::Gate;
use crate::review::{Finding, Severity};
use crate::settings::formats::{self, JsonProblem, PositionedText};
use crate::settings::layer::{ConfigData, ConfigNode};
use crate::settings::reader::{Expected, ProblemKind, ReadProblem, checked};
use crate::settings::{CHECKS, SettingOrigin};
use crate::source::json::JsonErrorKind;
use crate::workflow::{Phase, PhaseKind, Workflow};

/// Maximum size of a state file in bytes: a thousand findings for each of ten iterations fit.
const MAX_BYTES: usize = 1_000_000;

/// Why a state cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("{path}: {message}")]
    Invalid { line: u32, path: String, message: String },
    #[error("this iteration is finished: every phase is completed or skipped")]
    Finished,
}

/// The path of a problem with the whole file.
const WHOLE: &str = "the file";

/// Parses a state file and normalizes it: times in UTC to the second, missing counters and locations filled in, and
/// the next phase set to `in_progress`.
pub fn read(bytes: &[u8]) -> Result<IterationState, StateError> {
    if bytes.len() > MAX_BYTES {
        return Err(StateError::new(1, WHOLE, format!("is longer than {MAX_BYTES} bytes: it is not a state file")));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = crate::source::line_at(bytes, error.valid_up_to());
        StateError::new(line as usize, WHOLE, "is not UTF-8 text: save it as UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(StateError::new(1, WHOLE, "is empty: expected a state of version 4"));
    }
    let origin = |line| SettingOrigin::Foreign { file: String::new(), line };
    let root = formats::json(PositionedText { text, origin: &origin })?;
    check_version(&root)?;
    let mut state: IterationState = root.read_or_problem()?;
    check_consistency(&root, &state)?;
    resume_at_open_phase(&mut state)?;
    Ok(state)
}

impl StateError {
    fn new(line: usize, path: &str, message: impl Into<String>) -> Self {
        let (line, path) = (u32::try_from(line).unwrap_or(u32::MAX).max(1), if path.is_empty() { WHOLE } else { path });
        Self::Invalid { line, path: path.to_owned(), message: message.into() }
    }

    fn at(origin: &SettingOrigin, path: &str, message: impl Into<String>) -> Self {
        let line = if let SettingOrigin::Foreign { line, .. } = origin { *line } else { 1 };
        Self::new(line, path, message)
    }
}

impl From<JsonProblem> for StateError {
    fn from(JsonProblem { path, error }: JsonProblem) -> Self {
        let message = match error.kind {
            JsonErrorKind::DuplicateKey => error.message,
            JsonErrorKind::Truncated => format!("breaks off: {}", error.message),
            JsonErrorKind::Malformed => format!("is not JSON: {}", error.message),
        };
        Self::new(error.line as usize, &path, message)
    }
}

impl From<Box<ReadProblem>> for StateError {
    fn from(problem: Box<ReadProblem>) -> Self {
        let message = match &problem.kind {
            ProblemKind::Value { data, expected } => {
                let expected = match expected {
                    Expected::Table(keys) => format!("an object with {}", keys.join(", ")),
                    Expected::List if problem.path == "iterations" => "a list of iterations".to_owned(),
                    Expected::List => "a list of issues".to_owned(),
                    Expected::Text => "text".to_owned(),
                    Expected::OneOf(words) => format!("one of {}", words.join(", ")),
                    Expected::Other(_) => expected.to_string(),
                };
                unexpected_value(&expected, data)
            }
            ProblemKind::UnknownKey { known, .. } => format!("is unknown: expected one of {}", known.join(", ")),
            ProblemKind::MissingKey(key) => format!("`{key}` is missing"),
            ProblemKind::Key(problem) => problem.clone(),
        };
        Self::at(&problem.origin, &problem.path, message)
    }
}

/// The message about a value, with its start as JSON.
fn unexpected_value(expected: &str, data: &ConfigData) -> String {
    let value = match data {
        ConfigData::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        ConfigData::List(list) => if list.is_empty() { "[]" } else { "[…" }.to_owned(),
        ConfigData::Table(table) => if table.is_empty() { "{}" } else { "{…" }.to_owned(),
        ConfigData::Flag(_) | ConfigData::Whole(..) | ConfigData::Float(..) | ConfigData::Date | ConfigData::Null => {
            data.describe()
        }
    };
    let mut excerpt: String = value.chars().take(40).collect();
    if excerpt.len() < value.len() {
        excerpt.push('…');
    }
    format!("expected {expected}, not {excerpt}")
}

/// Checks the version first, as it decides how to interpret the rest.
fn check_version(root: &ConfigNode) -> Result<(), StateError> {
    let missing = || match root.table() {
        Some(_) => "`version` is missing".to_owned(),
        None => unexpected_value("a state of version 4", &root.data),
    };
    let version = root.get(&["version"]).ok_or_else(|| StateError::at(&root.origin, WHOLE, missing()))?;
    let wanted = u64::from(VERSION);
    let message = if let ConfigData::Whole(_, Some(found)) = version.data {
        if found == wanted {
            return Ok(());
        } else if found < wanted {
            format!("version {found} is too old: only version {VERSION} can be imported")
        } else {
            format!("version {found} is unknown: expected version {VERSION}")
        }
    } else {
        unexpected_value("a whole number from 0 on", &version.data)
    };
    Err(StateError::at(&version.origin, "version", message))
}

/// Reads a time, to the second.
pub(super) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let convert = |text: String| text.parse().ok().map(truncate_to_seconds);
    checked(deserializer, "a time like 2026-01-23T10:00:00Z", convert)
}

macro_rules! bounded {
    ($name:ident, $expected:literal, $range:expr) => {
        pub(super) fn $name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
            checked(deserializer, $expected, |number: u32| $range.contains(&number).then_some(number))
        }
    };
}

bounded!(iteration_number, "a whole number from 1 on", (1..));
bounded!(iteration_bound, "a whole number from 1 to 1000", (1..=1000));
bounded!(phase_number, "a phase from 1 to 9", (1..=FINAL_PHASE));
bounded!(retry_count, "a whole number from 0 to 1000000", (0..=1_000_000));

/// Checks that the fields are consistent with each other.
fn check_consistency(root: &ConfigNode, state: &IterationState) -> Result<(), StateError> {
    let error = |key: &str, message: String| {
        let node = root.get(&[key]).unwrap_or(root);
        Err(StateError::at(&node.origin, key, message))
    };
    if state.task.trim().is_empty() {
        return error("task", "is empty: expected the text of the task".to_owned());
    }
    check_numbers(root, state)?;
    let (now, most, listed) = (state.current_iteration, state.max_iterations, state.iterations.len());
    if now > most {
        return error("currentIteration", format!("is {now}, more than maxIterations ({most})"));
    }
    if usize::try_from(now).ok() != Some(listed) {
        let message = format!("is {now}, but `iterations` has length {listed}: expected the number of the last entry");
        return error("currentIteration", message);
    }
    if state.mode == IterationMode::Lite && !fits_lite(state) {
        let message = "is lite, which has no phase 9: phase9 must be skipped, and currentPhase below 9";
        return error("mode", message.to_owned());
    }
    for number in (1..=FINAL_PHASE).filter(|number| *number != state.current_phase) {
        let Some(status) = state.status(number) else { continue };
        let (fitting, relation, expected) = if number < state.current_phase {
            (status.is_over(), "before", "completed or skipped")
        } else {
            (matches!(status, PhaseStatus::Pending | PhaseStatus::Skipped), "after", "pending or skipped")
        };
        if !fitting {
            let (current, word) = (state.current_phase, status.into_str());
            let which = format!("phase {number}, which comes {relation} it, is {word}");
            return error("currentPhase", format!("is {current}, and {which}: expected {expected}"));
        }
    }
    Ok(())
}

/// Iterations are numbered from 1.
fn check_numbers(root: &ConfigNode, state: &IterationState) -> Result<(), StateError> {
    let list = root.get(&["iterations"]).unwrap_or(root);
    if state.iterations.is_empty() {
        let message = "is empty: expected at least the current iteration";
        return Err(StateError::at(&list.origin, "iterations", message));
    }
    let numbers = list.list().iter().filter_map(|node| node.get(&["iteration"]));
    for ((index, number), iteration) in numbers.enumerate().zip(&state.iterations) {
        if usize::try_from(iteration.iteration).ok() != Some(index + 1) {
            let expected = format!("{} (iterations are numbered from 1 on, in order)", index + 1);
            let path = format!("iterations[{index}].iteration");
            return Err(StateError::at(&number.origin, &path, unexpected_value(&expected, &number.data)));
        }
    }
    Ok(())
}

fn fits_lite(state: &IterationState) -> bool {
    match state.phase9.status {
        PhaseStatus::Pending | PhaseStatus::Skipped => state.current_phase != FINAL_PHASE,
        PhaseStatus::InProgress | PhaseStatus::Completed | PhaseStatus::Failed => false,
    }
}

/// Sets the phase at which the iteration continues.
fn resume_at_open_phase(state: &mut IterationState) -> Result<(), StateError> {
    if state.mode == IterationMode::Lite {
        state.phase9.status = PhaseStatus::Skipped;
    }
    let open = |number: &u32| state.status(*number).is_some_and(|status| !status.is_over());
    let Some(next) = (state.current_phase..=FINAL_PHASE).find(open) else { return Err(StateError::Finished) };
    state.current_phase = next;
    if let Some(status) = state.status_mut(next) {
        *status = PhaseStatus::InProgress;
    }
    Ok(())
}

/// The kind of imported findings, as the state names none.
const KIND: &str = "issue";

/// Returns the event that continues a loop at the state's current phase. A fix that was under way is reviewed again,
/// as its progress is unknown.
pub fn resume(state: &IterationState, head: Head, policy: &Policy) -> Event {
    let workflow = &policy.workflow;
    let at_or_after = |index: &usize| workflow.number(*index) >= state.current_phase;
    let phase = (0..workflow.phases.len()).find(at_or_after).unwrap_or(workflow.phases.len());
    let gate_policy = workflow.phases.get(phase).and_then(|phase| phase.policy());
    let here = workflow.number(phase) == state.current_phase;
    let left = state.iterations.last().map(|iteration| &iteration.phases).filter(|_| here);
    let fixes = match gate_policy {
        Some(gate_policy) if !gate_policy.gate.on_failure.restarts() => {
            left.and_then(|phases| phases.retries(state.current_phase)).unwrap_or(0)
        }
        Some(_) | None => 0,
    };
    let issues = left.map(|phases| phases.issues(state.current_phase)).unwrap_or_default();
    let progress = ImportedProgress {
        fixes,
        findings: issues.iter().map(finding).collect(),
        earlier: earlier(state, workflow),
        gates: gates(state, workflow),
    };
    Event::Imported { head, position: Position { pass: state.current_iteration, phase, item: 0 }, progress }
}

fn finding(issue: &ReviewIssue) -> Finding {
    let (file, line) = parse_location(&issue.location);
    Finding {
        // Computed from the description and location when the finding is recorded.
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
    let record = |(phase, inferred_end)| match inferred_end {
        InferredEnd::Ended(end) => Some(GateRecord { phase, item: 0, end }),
        InferredEnd::Passed | InferredEnd::Uncertain => None,
    };
    passed_phases(state, workflow).filter_map(record).collect()
}

/// The phases of the current iteration that count as passed although the state does not prove it.
pub fn uncertain_phases(state: &IterationState, workflow: &Workflow) -> Vec<u32> {
    let unsure = passed_phases(state, workflow).filter(|(_, inferred_end)| *inferred_end == InferredEnd::Uncertain);
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
    let gate = phase.policy().map(|gate_policy| &gate_policy.gate).filter(|gate| gate.enabled)?;
    let is_check = matches!(phase.kind, PhaseKind::Check(_));
    let has_issues = phases.clone().reviewed_mut(number).is_some();
    match phases.status(number)? {
        PhaseStatus::Skipped if is_check => Some(InferredEnd::Ended(GateEnd::Unchecked)),
        PhaseStatus::Skipped => Some(InferredEnd::Ended(GateEnd::ReviewersMissing)),
        PhaseStatus::Completed if has_issues => Some(reviewed(phases, number, gate)),
        PhaseStatus::Completed if may_leave_findings(gate) => Some(InferredEnd::Uncertain),
        PhaseStatus::Completed => Some(InferredEnd::Passed),
        PhaseStatus::Pending | PhaseStatus::InProgress | PhaseStatus::Failed => None,
    }
}

/// Whether a gate can be left with open findings.
fn may_leave_findings(gate: &Gate) -> bool {
    let exhausted = gate.on_exhausted.may_leave_findings();
    gate.on_failure.leaves_findings() || (gate.on_failure.fixes_in_place() && exhausted)
}

/// A review with findings is followed by a fix, or by nothing that could have closed them. Issues stay in the file
/// when a fix is approved, so after the first fix only the limit shows how the gate ended.
fn reviewed(phases: &PhaseStates, number: u32, gate: &Gate) -> InferredEnd {
    let blocks = |issue: &ReviewIssue| gate.fail_on.is_reached_by(issue.severity.into());
    if !phases.issues(number).iter().any(blocks) {
        return InferredEnd::Passed;
    }
    let fixes = phases.retries(number).unwrap_or(0);
    let in_place = gate.on_failure.fixes_in_place();
    let used_up = in_place && !gate.bound.allows_another_fix(fixes, 0);
    if used_up && (fixes == 0 || may_leave_findings(gate)) {
        InferredEnd::Ended(GateEnd::LeftFindings { reason: Reason::CyclesExhausted })
    } else if !in_place || fixes == 0 {
        InferredEnd::Ended(GateEnd::LeftFindings { reason: Reason::FindingsNoted })
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
            (_, Some(InferredEnd::Ended(GateEnd::LeftFindings { .. }))) => {
                phases.issues(number).iter().map(finding).collect()
            }
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
