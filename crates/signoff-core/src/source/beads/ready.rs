//! Decides which issues are ready: open, not deferred, of a type that is work, and not blocked.

use std::collections::HashMap;

use super::super::{SourceInput, SourceState, TaskFile, order};
use super::{BeadsDependency, BeadsIssue};

/// Issue types that are internal to the tracker.
const NOT_WORK: [&str; 7] = ["merge-request", "gate", "molecule", "message", "agent", "role", "rig"];

/// Whether the issue waits while the other one is open. Other types only relate. A parent does not block its
/// children, but whatever blocks the parent blocks them.
pub fn blocks(dependency: &BeadsDependency) -> bool {
    is_blocker(dependency.kind.as_deref())
}

/// Whether a dependency of this type must be done first.
pub fn is_blocker(kind: Option<&str>) -> bool {
    matches!(kind, None | Some("blocks" | "conditional-blocks" | "waits-for"))
}

/// The state of each issue. If `whole` is set, the list is complete, and a blocker that is not in it blocks. A list
/// of ready issues omits blockers that are done.
pub fn states(source: &SourceInput<'_>, file: &mut TaskFile, issues: &[BeadsIssue], whole: bool) -> Vec<SourceState> {
    let places: HashMap<&str, usize> =
        issues.iter().enumerate().map(|(index, issue)| (issue.id.0.as_str(), index)).collect();
    let mut held: Vec<bool> = issues.iter().map(|issue| is_held(file, issues, &places, (issue, whole))).collect();
    spread_to_children(issues, &places, &mut held);
    warn_of_cycles(file, issues, &places);
    let mut states = Vec::with_capacity(issues.len());
    for (issue, held) in issues.iter().zip(held) {
        states.push(state(source, file, issue, held));
    }
    states
}

fn status(issue: &BeadsIssue) -> &str {
    issue.status.as_deref().map(str::trim).filter(|status| !status.is_empty()).unwrap_or("open")
}

fn is_closed(issue: &BeadsIssue) -> bool {
    matches!(status(issue), "closed" | "tombstone" | "pinned")
}

fn is_held(
    file: &mut TaskFile,
    issues: &[BeadsIssue],
    places: &HashMap<&str, usize>,
    (issue, whole): (&BeadsIssue, bool),
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

/// Blocks the children of blocked issues, recursively.
fn spread_to_children(issues: &[BeadsIssue], places: &HashMap<&str, usize>, held: &mut [bool]) {
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

fn parents(issue: &BeadsIssue) -> impl Iterator<Item = &str> {
    let links = issue.dependencies.iter().flatten();
    let links = links.filter(|link| link.kind.as_deref() == Some("parent-child"));
    links.filter_map(|link| link.depends_on_id.as_ref()).map(|id| id.0.as_str())
}

fn state(source: &SourceInput<'_>, file: &mut TaskFile, issue: &BeadsIssue, held: bool) -> SourceState {
    if is_closed(issue) {
        return match status(issue) {
            "tombstone" => SourceState::Cancelled,
            "pinned" => SourceState::NotWork,
            _ => SourceState::Done,
        };
    }
    if issue.issue_type.as_deref().is_some_and(|kind| NOT_WORK.contains(&kind)) {
        return SourceState::NotWork;
    }
    match status(issue) {
        "open" if is_deferred(source, file, issue) => SourceState::Deferred,
        "open" if held => SourceState::Blocked,
        "open" => SourceState::Open,
        "in_progress" | "hooked" => SourceState::InProgress,
        "deferred" => SourceState::Deferred,
        _ => SourceState::Blocked,
    }
}

fn is_deferred(source: &SourceInput<'_>, file: &mut TaskFile, issue: &BeadsIssue) -> bool {
    let Some(until) = issue.defer_until.as_deref().map(str::trim).filter(|until| !until.is_empty()) else {
        return false;
    };
    let Some(until) = parse_time(until) else {
        file.warn(issue.line, format!("{}: defer_until is not a date; it is taken as deferred", issue.id.0));
        return true;
    };
    source.now.is_none_or(|now| until > now)
}

/// Parses a timestamp, or a date as the start of that day in UTC.
fn parse_time(text: &str) -> Option<jiff::Timestamp> {
    text.parse().ok().or_else(|| format!("{text}T00:00:00Z").parse().ok())
}

/// Warns about open issues that block each other, which are never ready. beads does not allow this, so the file was
/// edited by hand. The other issues can be worked on.
fn warn_of_cycles(file: &mut TaskFile, issues: &[BeadsIssue], places: &HashMap<&str, usize>) {
    let open_blockers = |issue: &BeadsIssue| -> Vec<usize> {
        let known = blockers(issue).filter_map(|id| places.get(id).copied());
        known.filter(|other| !is_closed(issue) && !is_closed(&issues[*other])).collect()
    };
    let before: Vec<Vec<usize>> = issues.iter().map(open_blockers).collect();
    if let Some(cycle) = order::cycle(&before) {
        let names = order::format_cycle(cycle.iter().map(|index| issues[*index].id.0.as_str()).collect());
        let line = cycle.iter().map(|index| issues[*index].line).min().unwrap_or(1);
        file.warn(line, format!("issues block each other and can never be ready: {names}"));
    }
}

fn blockers(issue: &BeadsIssue) -> impl Iterator<Item = &str> {
    let links = issue.dependencies.iter().flatten().filter(|link| blocks(link));
    links.filter_map(|link| link.depends_on_id.as_ref()).map(|id| id.0.as_str())
}
