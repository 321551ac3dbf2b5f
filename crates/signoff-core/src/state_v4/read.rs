//! Reads a state file. Whatever does not fit is named by its place, with what belongs there.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::{
    Checked, Issue, Iteration, LAST, Level, MOST_ITERATIONS, MOST_RETRIES, Mode, Phases, Plain, Reviewed,
    State, Status, VERSION, seconds,
};
use crate::source::json::{LineIndex, Members, explained};

/// No state file is longer: a thousand findings for each of ten iterations stay below it.
const LIMIT: usize = 1_000_000;

/// Why a state cannot be taken over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("{path}: {message}")]
    Invalid { line: u32, path: String, message: String },
    #[error("this iteration is finished: every phase is completed or skipped")]
    Finished,
}

/// The state in a file, brought into the form in which it is written: times in UTC to the second, counters and places
/// that were left out, and the phase at which it goes on is `in_progress`.
pub fn read(bytes: &[u8]) -> Result<State, StateError> {
    let whole = |line, message: String| StateError::Invalid { line, path: "the file".to_owned(), message };
    if bytes.len() > LIMIT {
        return Err(whole(1, format!("is longer than {LIMIT} bytes: it is no state file")));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count();
        whole(number(before + 1), "is not UTF-8 text: save it as UTF-8".to_owned())
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(whole(1, "is empty: a state, version 4, is expected".to_owned()));
    }
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
        let cut = if error.is_eof() { "breaks off" } else { "is not JSON" };
        whole(number(error.line()), format!("{cut}: {}", explained(&error)))
    })?;
    let lines = LineIndex::of(text);
    let mut state = state(&Node { text, lines: &lines, path: String::new(), raw })?;
    settle(&mut state)?;
    Ok(state)
}

fn number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX).max(1)
}

/// A value in its place.
struct Node<'a> {
    text: &'a str,
    lines: &'a LineIndex,
    path: String,
    raw: &'a RawValue,
}

/// An object, and where it is.
struct Object<'a, 'n> {
    node: &'n Node<'a>,
    members: Members<'a>,
}

impl<'a> Node<'a> {
    fn error(&self, message: impl Into<String>) -> StateError {
        self.error_at(0, message)
    }

    fn error_at(&self, lines_below: usize, message: impl Into<String>) -> StateError {
        let line = self.lines.line_of(self.text, self.raw.get()).saturating_add(number(lines_below + 1) - 1);
        let path = if self.path.is_empty() { "the file".to_owned() } else { self.path.clone() };
        StateError::Invalid { line, path, message: message.into() }
    }

    fn expected(&self, what: &str) -> StateError {
        self.error(format!("{what} is expected, not {}", shown(self.raw.get())))
    }

    fn object<'n>(&'n self, keys: &[&str]) -> Result<Object<'a, 'n>, StateError> {
        if !self.raw.get().starts_with('{') {
            return Err(self.expected(&format!("an object with {}", keys.join(", "))));
        }
        let members: Members<'a> = serde_json::from_str(self.raw.get())
            .map_err(|error| self.error_at(error.line().saturating_sub(1), explained(&error)))?;
        let object = Object { node: self, members };
        match object.members.0.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            Some((key, value)) => {
                let message = format!("is not known here; known are {}", keys.join(", "));
                Err(object.at(key, value).error(message))
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

    /// A whole number from `least` on.
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
        let time = said.and_then(|said| said.parse().ok()).map(seconds);
        time.ok_or_else(|| self.expected("a time like 2026-01-23T10:00:00Z"))
    }
}

impl<'a> Object<'a, '_> {
    fn at(&self, key: &str, raw: &'a RawValue) -> Node<'a> {
        let Node { text, lines, path, .. } = self.node;
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        Node { text, lines, path, raw }
    }

    fn get(&self, key: &str) -> Option<Node<'a>> {
        self.members.get(key).map(|raw| self.at(key, raw))
    }

    fn need(&self, key: &str) -> Result<Node<'a>, StateError> {
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

fn state(node: &Node<'_>) -> Result<State, StateError> {
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
    let task = object.need("task")?;
    if task.text()?.trim().is_empty() {
        return Err(task.error("says nothing: the text of the task is expected"));
    }
    let phase = object.need("currentPhase")?;
    let current_phase = phase.count(1)?;
    if current_phase > LAST {
        return Err(phase.expected("a phase from 1 to 9"));
    }
    let state = State {
        version: VERSION,
        task: task.text()?,
        mode: object.need("mode")?.word(&Mode::ALL, Mode::word)?,
        max_iterations: object.need("maxIterations")?.bounded(1..=MOST_ITERATIONS)?,
        current_iteration: object.need("currentIteration")?.count(1)?,
        current_phase,
        started_at: object.need("startedAt")?.time()?,
        iterations: iterations(&object.need("iterations")?)?,
        phase9: plain(&object.need("phase9")?)?,
    };
    fits(&object, &state)?;
    Ok(state)
}

/// The version decides whether anything else means what it seems to.
fn version(node: &Node<'_>) -> Result<(), StateError> {
    let members: Members<'_> = if node.raw.get().starts_with('{') {
        serde_json::from_str(node.raw.get())
            .map_err(|error| node.error_at(error.line().saturating_sub(1), explained(&error)))?
    } else {
        return Err(node.expected("a state, version 4,"));
    };
    let object = Object { node, members };
    let version = object.need("version")?;
    match version.count(0)? {
        VERSION => Ok(()),
        found if found < VERSION => {
            Err(version
                .error(format!("version {found} is too old: only version {VERSION} can be taken over")))
        }
        found => Err(version.error(format!("version {found} is not known: version {VERSION} is expected"))),
    }
}

fn iterations(node: &Node<'_>) -> Result<Vec<Iteration>, StateError> {
    let iterations = node.list("a list of iterations")?;
    if iterations.is_empty() {
        return Err(node.error("is empty: at least the current iteration is expected"));
    }
    (1..).zip(&iterations).map(|(number, node)| iteration(node, number)).collect()
}

fn iteration(node: &Node<'_>, expected: u32) -> Result<Iteration, StateError> {
    let object = node.object(&["iteration", "startedAt", "phases"])?;
    let number = object.need("iteration")?;
    let iteration = number.count(1)?;
    if iteration != expected {
        return Err(number.expected(&format!("{expected} (iterations are numbered from 1 on, in order)")));
    }
    let started_at = object.need("startedAt")?.time()?;
    Ok(Iteration { iteration, started_at, phases: phases(&object.need("phases")?)? })
}

fn phases(node: &Node<'_>) -> Result<Phases, StateError> {
    let object = node.object(&["1", "2", "3", "4", "5", "6", "7", "8"])?;
    Ok(Phases {
        brainstorm: plain(&object.need("1")?)?,
        plan: plain(&object.need("2")?)?,
        plan_review: reviewed(&object.need("3")?)?,
        implement: plain(&object.need("4")?)?,
        code_review: reviewed(&object.need("5")?)?,
        test: checked(&object.need("6")?)?,
        simplify: plain(&object.need("7")?)?,
        final_review: reviewed(&object.need("8")?)?,
    })
}

fn plain(node: &Node<'_>) -> Result<Plain, StateError> {
    let object = node.object(&["status"])?;
    Ok(Plain { status: status(&object)? })
}

fn checked(node: &Node<'_>) -> Result<Checked, StateError> {
    let object = node.object(&["status", "retryCount"])?;
    Ok(Checked { status: status(&object)?, retry_count: retries(&object)? })
}

fn reviewed(node: &Node<'_>) -> Result<Reviewed, StateError> {
    let object = node.object(&["status", "retryCount", "lastIssues"])?;
    let issues = object.get("lastIssues").map(|node| node.list("a list of issues")).transpose()?;
    let last_issues = issues.unwrap_or_default().iter().map(issue).collect::<Result<_, _>>()?;
    Ok(Reviewed { status: status(&object)?, retry_count: retries(&object)?, last_issues })
}

fn status(object: &Object<'_, '_>) -> Result<Status, StateError> {
    object.need("status")?.word(&Status::ALL, Status::word)
}

fn retries(object: &Object<'_, '_>) -> Result<u32, StateError> {
    object.get("retryCount").map_or(Ok(0), |node| node.bounded(0..=MOST_RETRIES))
}

fn issue(node: &Node<'_>) -> Result<Issue, StateError> {
    let object = node.object(&["severity", "message", "location"])?;
    Ok(Issue {
        severity: object.need("severity")?.word(&Level::ALL, Level::word)?,
        message: object.need("message")?.text()?,
        location: object.get("location").map_or(Ok(String::new()), |node| node.text())?,
    })
}

/// Whether what stands in one place goes with what stands in another.
fn fits(object: &Object<'_, '_>, state: &State) -> Result<(), StateError> {
    let current = object.need("currentIteration")?;
    let (now, most) = (state.current_iteration, state.max_iterations);
    if now > most {
        return Err(current.error(format!("is {now}, and maxIterations is {most}")));
    }
    let listed = state.iterations.len();
    if usize::try_from(now).ok() != Some(listed) {
        return Err(
            current.error(format!("is {now}, and iterations has {listed}: it must be the last of them"))
        );
    }
    if state.mode == Mode::Lite {
        lite(object, state)?;
    }
    let phase = object.need("currentPhase")?;
    for number in (1..=LAST).filter(|number| *number != state.current_phase) {
        let Some(status) = state.status(number) else { continue };
        let (fitting, place, expected) = if number < state.current_phase {
            (status.is_over(), "before", "completed or skipped")
        } else {
            (matches!(status, Status::Pending | Status::Skipped), "after", "pending or skipped")
        };
        if !fitting {
            let (current, word) = (state.current_phase, status.word());
            return Err(phase.error(format!(
                "is {current}, and phase {number}, which comes {place} it, is {word}: {expected} is expected"
            )));
        }
    }
    Ok(())
}

fn lite(object: &Object<'_, '_>, state: &State) -> Result<(), StateError> {
    let fits = match state.phase9.status {
        Status::Pending | Status::Skipped => state.current_phase != LAST,
        Status::InProgress | Status::Completed | Status::Failed => false,
    };
    if fits {
        return Ok(());
    }
    Err(object
        .need("mode")?
        .error("is lite, which has no phase 9: phase9 must be skipped, and currentPhase below 9"))
}

/// Brings the state to where it goes on.
fn settle(state: &mut State) -> Result<(), StateError> {
    if state.mode == Mode::Lite {
        state.phase9.status = Status::Skipped;
    }
    let open = |number: &u32| state.status(*number).is_some_and(|status| !status.is_over());
    let Some(next) = (state.current_phase..=LAST).find(open) else { return Err(StateError::Finished) };
    state.current_phase = next;
    if let Some(status) = state.status_mut(next) {
        *status = Status::InProgress;
    }
    Ok(())
}
