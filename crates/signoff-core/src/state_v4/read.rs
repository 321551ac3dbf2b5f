//! Parses a state file. Errors name the place and what is expected there.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::{
    AgentPhase, CheckPhase, FINAL_PHASE, IssueSeverity, Iteration, IterationMode, IterationState, MAX_ITERATIONS,
    MAX_RETRIES, PhaseStates, PhaseStatus, ReviewIssue, ReviewPhase, VERSION, truncate_to_seconds,
};
use crate::source::json::{JsonMembers, LineIndex, error_message};

/// Maximum size of a state file in bytes: a thousand findings for each of ten iterations fit.
const LIMIT: usize = 1_000_000;

/// Why a state cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("{path}: {message}")]
    Invalid { line: u32, path: String, message: String },
    #[error("this iteration is finished: every phase is completed or skipped")]
    Finished,
}

/// Parses a state file and normalizes it: times in UTC to the second, missing counters and locations filled in, and
/// the next phase set to `in_progress`.
pub fn read(bytes: &[u8]) -> Result<IterationState, StateError> {
    let whole = |line, message: String| StateError::Invalid { line, path: "the file".to_owned(), message };
    if bytes.len() > LIMIT {
        return Err(whole(1, format!("is longer than {LIMIT} bytes: it is no state file")));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count();
        whole(line_number(before + 1), "is not UTF-8 text: save it as UTF-8".to_owned())
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(whole(1, "is empty: a state, version 4, is expected".to_owned()));
    }
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
        let cut = if error.is_eof() { "breaks off" } else { "is not JSON" };
        whole(line_number(error.line()), format!("{cut}: {}", error_message(&error)))
    })?;
    let lines = LineIndex::new(text);
    let mut state = state(&StateNode { text, lines: &lines, path: String::new(), raw })?;
    resume_at_open_phase(&mut state)?;
    Ok(state)
}

fn line_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX).max(1)
}

/// A JSON value and its place.
struct StateNode<'a> {
    text: &'a str,
    lines: &'a LineIndex,
    path: String,
    raw: &'a RawValue,
}

/// A JSON object and its place.
struct StateObject<'a, 'n> {
    node: &'n StateNode<'a>,
    members: JsonMembers<'a>,
}

impl<'a> StateNode<'a> {
    fn error(&self, message: impl Into<String>) -> StateError {
        self.error_at(0, message)
    }

    fn error_at(&self, lines_below: usize, message: impl Into<String>) -> StateError {
        let line = self.lines.line_of(self.text, self.raw.get()).saturating_add(line_number(lines_below + 1) - 1);
        let path = if self.path.is_empty() { "the file".to_owned() } else { self.path.clone() };
        StateError::Invalid { line, path, message: message.into() }
    }

    fn expected(&self, what: &str) -> StateError {
        self.error(format!("{what} is expected, not {}", shown(self.raw.get())))
    }

    fn object<'n>(&'n self, keys: &[&str]) -> Result<StateObject<'a, 'n>, StateError> {
        if !self.raw.get().starts_with('{') {
            return Err(self.expected(&format!("an object with {}", keys.join(", "))));
        }
        let members: JsonMembers<'a> = serde_json::from_str(self.raw.get())
            .map_err(|error| self.error_at(error.line().saturating_sub(1), error_message(&error)))?;
        let object = StateObject { node: self, members };
        match object.members.0.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            Some((key, value)) => {
                let message = format!("is not known here; known are {}", keys.join(", "));
                Err(object.child(key, value).error(message))
            }
            None => Ok(object),
        }
    }

    fn list(&self, what: &str) -> Result<Vec<Self>, StateError> {
        let values: Vec<&RawValue> = serde_json::from_str(self.raw.get()).map_err(|_| self.expected(what))?;
        let one = |(index, raw)| Self { path: format!("{}[{index}]", self.path), raw, ..*self };
        Ok(values.into_iter().enumerate().map(one).collect())
    }

    fn text(&self) -> Result<String, StateError> {
        serde_json::from_str(self.raw.get()).map_err(|_| self.expected("text"))
    }

    /// A whole number of at least `least`.
    fn count(&self, least: u32) -> Result<u32, StateError> {
        let count = serde_json::from_str(self.raw.get()).ok().filter(|count| *count >= least);
        count.ok_or_else(|| self.expected(&format!("a whole number from {least} on")))
    }

    fn bounded(&self, within: RangeInclusive<u32>) -> Result<u32, StateError> {
        let count = serde_json::from_str(self.raw.get()).ok().filter(|count| within.contains(count));
        let (least, most) = within.into_inner();
        count.ok_or_else(|| self.expected(&format!("a whole number from {least} to {most}")))
    }

    fn word<T: Copy>(&self, all: &[T], word: fn(T) -> &'static str) -> Result<T, StateError> {
        let said: Option<String> = serde_json::from_str(self.raw.get()).ok();
        let known = said.and_then(|said| all.iter().copied().find(|one| word(*one) == said));
        let words: Vec<&str> = all.iter().copied().map(word).collect();
        known.ok_or_else(|| self.expected(&format!("one of {}", words.join(", "))))
    }

    fn time(&self) -> Result<Timestamp, StateError> {
        let said: Option<String> = serde_json::from_str(self.raw.get()).ok();
        let time = said.and_then(|said| said.parse().ok()).map(truncate_to_seconds);
        time.ok_or_else(|| self.expected("a time like 2026-01-23T10:00:00Z"))
    }
}

impl<'a> StateObject<'a, '_> {
    fn child(&self, key: &str, raw: &'a RawValue) -> StateNode<'a> {
        let StateNode { text, lines, path, .. } = self.node;
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        StateNode { text, lines, path, raw }
    }

    fn get(&self, key: &str) -> Option<StateNode<'a>> {
        self.members.get(key).map(|raw| self.child(key, raw))
    }

    fn required(&self, key: &str) -> Result<StateNode<'a>, StateError> {
        self.get(key).ok_or_else(|| self.node.error(format!("`{key}` is missing")))
    }
}

/// The start of a value, for a message.
fn shown(raw: &str) -> String {
    let mut line: String = raw.chars().take_while(|c| *c != '\n').take(40).collect();
    if line.len() < raw.len() {
        line.push('…');
    }
    line
}

fn state(node: &StateNode<'_>) -> Result<IterationState, StateError> {
    version(node)?;
    let keys = [
        "version",
        "task",
        "mode",
        "maxIterations",
        "currentIteration",
        "currentPhase",
        "startedAt",
        "iterations",
        "phase9",
    ];
    let object = node.object(&keys)?;
    let task = object.required("task")?;
    if task.text()?.trim().is_empty() {
        return Err(task.error("says nothing: the text of the task is expected"));
    }
    let phase = object.required("currentPhase")?;
    let current_phase = phase.count(1)?;
    if current_phase > FINAL_PHASE {
        return Err(phase.expected("a phase from 1 to 9"));
    }
    let state = IterationState {
        version: VERSION,
        task: task.text()?,
        mode: object.required("mode")?.word(&IterationMode::ALL, IterationMode::as_str)?,
        max_iterations: object.required("maxIterations")?.bounded(1..=MAX_ITERATIONS)?,
        current_iteration: object.required("currentIteration")?.count(1)?,
        current_phase,
        started_at: object.required("startedAt")?.time()?,
        iterations: iterations(&object.required("iterations")?)?,
        phase9: plain(&object.required("phase9")?)?,
    };
    check_consistency(&object, &state)?;
    Ok(state)
}

/// Checks the version first, as it decides how to interpret the rest.
fn version(node: &StateNode<'_>) -> Result<(), StateError> {
    let members: JsonMembers<'_> = if node.raw.get().starts_with('{') {
        serde_json::from_str(node.raw.get())
            .map_err(|error| node.error_at(error.line().saturating_sub(1), error_message(&error)))?
    } else {
        return Err(node.expected("a state, version 4,"));
    };
    let object = StateObject { node, members };
    let version = object.required("version")?;
    match version.count(0)? {
        VERSION => Ok(()),
        found if found < VERSION => {
            Err(version.error(format!("version {found} is too old: only version {VERSION} can be taken over")))
        }
        found => Err(version.error(format!("version {found} is not known: version {VERSION} is expected"))),
    }
}

fn iterations(node: &StateNode<'_>) -> Result<Vec<Iteration>, StateError> {
    let iterations = node.list("a list of iterations")?;
    if iterations.is_empty() {
        return Err(node.error("is empty: at least the current iteration is expected"));
    }
    (1..).zip(&iterations).map(|(number, node)| iteration(node, number)).collect()
}

fn iteration(node: &StateNode<'_>, expected: u32) -> Result<Iteration, StateError> {
    let object = node.object(&["iteration", "startedAt", "phases"])?;
    let number = object.required("iteration")?;
    let iteration = number.count(1)?;
    if iteration != expected {
        return Err(number.expected(&format!("{expected} (iterations are numbered from 1 on, in order)")));
    }
    let started_at = object.required("startedAt")?.time()?;
    Ok(Iteration { iteration, started_at, phases: phases(&object.required("phases")?)? })
}

fn phases(node: &StateNode<'_>) -> Result<PhaseStates, StateError> {
    let object = node.object(&["1", "2", "3", "4", "5", "6", "7", "8"])?;
    Ok(PhaseStates {
        brainstorm: plain(&object.required("1")?)?,
        plan: plain(&object.required("2")?)?,
        plan_review: reviewed(&object.required("3")?)?,
        implement: plain(&object.required("4")?)?,
        code_review: reviewed(&object.required("5")?)?,
        test: checked(&object.required("6")?)?,
        simplify: plain(&object.required("7")?)?,
        final_review: reviewed(&object.required("8")?)?,
    })
}

fn plain(node: &StateNode<'_>) -> Result<AgentPhase, StateError> {
    let object = node.object(&["status"])?;
    Ok(AgentPhase { status: status(&object)? })
}

fn checked(node: &StateNode<'_>) -> Result<CheckPhase, StateError> {
    let object = node.object(&["status", "retryCount"])?;
    Ok(CheckPhase { status: status(&object)?, retry_count: retries(&object)? })
}

fn reviewed(node: &StateNode<'_>) -> Result<ReviewPhase, StateError> {
    let object = node.object(&["status", "retryCount", "lastIssues"])?;
    let issues = object.get("lastIssues").map(|node| node.list("a list of issues")).transpose()?;
    let last_issues = issues.unwrap_or_default().iter().map(issue).collect::<Result<_, _>>()?;
    Ok(ReviewPhase { status: status(&object)?, retry_count: retries(&object)?, last_issues })
}

fn status(object: &StateObject<'_, '_>) -> Result<PhaseStatus, StateError> {
    object.required("status")?.word(&PhaseStatus::ALL, PhaseStatus::as_str)
}

fn retries(object: &StateObject<'_, '_>) -> Result<u32, StateError> {
    object.get("retryCount").map_or(Ok(0), |node| node.bounded(0..=MAX_RETRIES))
}

fn issue(node: &StateNode<'_>) -> Result<ReviewIssue, StateError> {
    let object = node.object(&["severity", "message", "location"])?;
    Ok(ReviewIssue {
        severity: object.required("severity")?.word(&IssueSeverity::ALL, IssueSeverity::as_str)?,
        message: object.required("message")?.text()?,
        location: object.get("location").map_or(Ok(String::new()), |node| node.text())?,
    })
}

/// Checks that the fields are consistent with each other.
fn check_consistency(object: &StateObject<'_, '_>, state: &IterationState) -> Result<(), StateError> {
    let current = object.required("currentIteration")?;
    let (now, most) = (state.current_iteration, state.max_iterations);
    if now > most {
        return Err(current.error(format!("is {now}, and maxIterations is {most}")));
    }
    let listed = state.iterations.len();
    if usize::try_from(now).ok() != Some(listed) {
        return Err(current.error(format!("is {now}, and iterations has {listed}: it must be the last of them")));
    }
    if state.mode == IterationMode::Lite {
        check_lite(object, state)?;
    }
    let phase = object.required("currentPhase")?;
    for number in (1..=FINAL_PHASE).filter(|number| *number != state.current_phase) {
        let Some(status) = state.status(number) else { continue };
        let (fitting, place, expected) = if number < state.current_phase {
            (status.is_over(), "before", "completed or skipped")
        } else {
            (matches!(status, PhaseStatus::Pending | PhaseStatus::Skipped), "after", "pending or skipped")
        };
        if !fitting {
            let (current, word) = (state.current_phase, status.as_str());
            return Err(phase.error(format!(
                "is {current}, and phase {number}, which comes {place} it, is {word}: {expected} is expected"
            )));
        }
    }
    Ok(())
}

fn check_lite(object: &StateObject<'_, '_>, state: &IterationState) -> Result<(), StateError> {
    let fits = match state.phase9.status {
        PhaseStatus::Pending | PhaseStatus::Skipped => state.current_phase != FINAL_PHASE,
        PhaseStatus::InProgress | PhaseStatus::Completed | PhaseStatus::Failed => false,
    };
    if fits {
        return Ok(());
    }
    Err(object
        .required("mode")?
        .error("is lite, which has no phase 9: phase9 must be skipped, and currentPhase below 9"))
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
