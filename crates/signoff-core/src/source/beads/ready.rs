//! Which issues are ready: open, not put off, of a kind that is work, and held by nothing.

use std::collections::HashMap;

use super::super::{Source, State, TaskFile, order};
use super::{Dependency, Issue};

/// Kinds of issues the tracker keeps for itself.
const NOT_WORK: [&str; 7] = ["merge-request", "gate", "molecule", "message", "agent", "role", "rig"];

/// Whether the issue waits while the one it names is open. Other kinds only relate; a parent is no blocker,
/// but what holds it holds its children.
pub fn blocks(dependency: &Dependency) -> bool {
    is_blocker(dependency.kind.as_deref())
}

/// Whether that is the kind of a dependency that has to be done first.
pub fn is_blocker(kind: Option<&str>) -> bool {
    matches!(kind, None | Some("blocks" | "conditional-blocks" | "waits-for"))
}

/// The state of each issue. `whole` says that the list is all there is: then a blocker that is not in it is
/// nowhere, and holds. In a list of what is ready, blockers that are done are simply not shown.
pub fn states(source: &Source<'_>, file: &mut TaskFile, issues: &[Issue], whole: bool) -> Vec<State> {
    let places: HashMap<&str, usize> =
        issues.iter().enumerate().map(|(index, issue)| (issue.id.0.as_str(), index)).collect();
    let mut held: Vec<bool> =
        issues.iter().map(|issue| is_held(file, issues, &places, (issue, whole))).collect();
    spread_to_children(issues, &places, &mut held);
    warn_of_cycles(file, issues, &places);
    let mut states = Vec::with_capacity(issues.len());
    for (issue, held) in issues.iter().zip(held) {
        states.push(state(source, file, issue, held));
    }
    states
}

fn status(issue: &Issue) -> &str {
    issue.status.as_deref().map(str::trim).filter(|status| !status.is_empty()).unwrap_or("open")
}

fn is_closed(issue: &Issue) -> bool {
    matches!(status(issue), "closed" | "tombstone" | "pinned")
}

fn is_held(
    file: &mut TaskFile,
    issues: &[Issue],
    places: &HashMap<&str, usize>,
    (issue, whole): (&Issue, bool),
) -> bool {
    let mut held = status(issue) == "blocked";
    for dependency in issue.dependencies.iter().flatten().filter(|dependency| blocks(dependency)) {
        let Some(id) = &dependency.depends_on_id else { continue };
        match places.get(id.0.as_str()) {
            Some(index) => held |= !is_closed(&issues[*index]),
            None if whole && !is_closed(issue) => {
                held = true;
                let message = format!("{} is blocked by {}, which is not in this file", issue.id.0, id.0);
                file.warn(issue.line, message);
            }
            None => {}
        }
    }
    held && !is_closed(issue)
}

/// A child waits while its parent is held, and so do the child's children.
fn spread_to_children(issues: &[Issue], places: &HashMap<&str, usize>, held: &mut [bool]) {
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, issue) in issues.iter().enumerate() {
        for parent in parents(issue).filter_map(|id| places.get(id)) {
            children.entry(*parent).or_default().push(index);
        }
    }
    let mut spreading: Vec<usize> = (0..issues.len()).filter(|index| held[*index]).collect();
    while let Some(parent) = spreading.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if !held[*child] && !is_closed(&issues[*child]) {
                held[*child] = true;
                spreading.push(*child);
            }
        }
    }
}

fn parents(issue: &Issue) -> impl Iterator<Item = &str> {
    let links = issue.dependencies.iter().flatten();
    let links = links.filter(|link| link.kind.as_deref() == Some("parent-child"));
    links.filter_map(|link| link.depends_on_id.as_ref()).map(|id| id.0.as_str())
}

fn state(source: &Source<'_>, file: &mut TaskFile, issue: &Issue, held: bool) -> State {
    if is_closed(issue) {
        return match status(issue) {
            "tombstone" => State::Cancelled,
            "pinned" => State::NotWork,
            _ => State::Done,
        };
    }
    if issue.issue_type.as_deref().is_some_and(|kind| NOT_WORK.contains(&kind)) {
        return State::NotWork;
    }
    match status(issue) {
        "open" if is_deferred(source, file, issue) => State::Deferred,
        "open" if held => State::Blocked,
        "open" => State::Open,
        "in_progress" | "hooked" => State::InProgress,
        "deferred" => State::Deferred,
        _ => State::Blocked,
    }
}

fn is_deferred(source: &Source<'_>, file: &mut TaskFile, issue: &Issue) -> bool {
    let Some(until) = issue.defer_until.as_deref().map(str::trim).filter(|until| !until.is_empty()) else {
        return false;
    };
    let Some(until) = moment(until) else {
        file.warn(issue.line, format!("{}: defer_until is not a date; it is taken as deferred", issue.id.0));
        return true;
    };
    source.now.is_none_or(|now| until > now)
}

/// A timestamp, or the start of a day in UTC.
fn moment(text: &str) -> Option<jiff::Timestamp> {
    text.parse().ok().or_else(|| format!("{text}T00:00:00Z").parse().ok())
}

/// Open issues that block each other will never be ready. The tracker refuses to make them, so someone
/// edited the file; the other issues can be worked all the same.
fn warn_of_cycles(file: &mut TaskFile, issues: &[Issue], places: &HashMap<&str, usize>) {
    let open_blockers = |issue: &Issue| -> Vec<usize> {
        let known = blockers(issue).filter_map(|id| places.get(id).copied());
        known.filter(|other| !is_closed(issue) && !is_closed(&issues[*other])).collect()
    };
    let before: Vec<Vec<usize>> = issues.iter().map(open_blockers).collect();
    if let Some(cycle) = order::cycle(&before) {
        let names = order::round(cycle.iter().map(|index| issues[*index].id.0.as_str()).collect());
        let line = cycle.iter().map(|index| issues[*index].line).min().unwrap_or(1);
        file.warn(line, format!("issues block each other and can never be ready: {names}"));
    }
}

fn blockers(issue: &Issue) -> impl Iterator<Item = &str> {
    let links = issue.dependencies.iter().flatten().filter(|link| blocks(link));
    links.filter_map(|link| link.depends_on_id.as_ref()).map(|id| id.0.as_str())
}
