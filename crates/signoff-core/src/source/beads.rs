//! Parses the output of `bd ready --json`, or `.beads/issues.jsonl` with the rule for ready issues: open, not deferred, of
//! a type that is work, and not blocked.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{JsonId, JsonMembers, JsonSource, error_message};
use super::lines::MarkdownLines;
use super::{SourceError, SourceInput, SourceState, SourceTask, TaskFile, TaskFormat, lines, order};

const EXPECTED: &str = "an array of issues, {\"data\": […]}, {\"issues\": […]}, or one issue a line";

pub fn read(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(TaskFormat::Beads);
    let whole = is_lines(source.text);
    let issues = if whole { read_lines(source, &mut file)? } else { read_output(source, &mut file)? };
    let mut issues = last_of_each(&mut file, issues);
    for issue in issues.iter_mut().filter(|issue| source.done.contains(&issue.id.0)) {
        issue.status = Some("closed".to_owned());
    }
    let states = states(source, &mut file, &issues, whole);
    let mut ages = HashMap::new();
    for (issue, state) in issues.into_iter().zip(states) {
        let created: Option<jiff::Timestamp> = issue.created_at.as_deref().and_then(|text| text.parse().ok());
        ages.insert(issue.id.0.clone(), created);
        let task = task(&mut file, issue, state);
        file.push(source, task)?;
    }
    // An issue without a date counts as the newest.
    let age = |task: &SourceTask| ages.get(&task.id).copied().flatten().unwrap_or(jiff::Timestamp::MAX);
    order::all_parallel(&mut file, |task| (task.priority, age(task), task.id.clone()));
    Ok(file)
}

/// Whether an object looks like output of `bd`.
pub fn fits(members: &JsonMembers<'_>) -> bool {
    ["data", "issues"].iter().any(|key| members.get(key).is_some_and(|list| list.get().starts_with('[')))
        || is_issue(members)
}

fn is_issue(members: &JsonMembers<'_>) -> bool {
    let has = |key| members.get(key).is_some();
    has("id") && has("title") && (has("status") || has("issue_type")) || has("_type")
}

/// Whether the text has one object per line instead of one JSON value.
fn is_lines(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return true };
    match serde_json::from_str::<JsonMembers<'_>>(first) {
        Ok(members) => lines.next().is_some() || members.get("data").or(members.get("issues")).is_none(),
        Err(error) => {
            let is_alone = first.starts_with('{') && lines.next().is_none();
            is_alone && is_cut_off(first, &error) && !begins_envelope(first)
        }
    }
}

/// Whether an object begins like output of `bd`. Quotes inside strings are escaped, so a match is always a key.
fn begins_envelope(text: &str) -> bool {
    let is_list =
        |rest: &str| rest.trim_start().strip_prefix(':').is_some_and(|rest| rest.trim_start().starts_with('['));
    let has_list = |key| text.match_indices(key).any(|(at, key)| is_list(&text[at + key.len()..]));
    has_list("\"data\"") || has_list("\"issues\"") || text.contains("\"schema_version\"")
}

#[derive(Deserialize)]
struct BeadsIssue {
    id: JsonId,
    title: Option<String>,
    description: Option<String>,
    design: Option<String>,
    acceptance_criteria: Option<String>,
    notes: Option<String>,
    status: Option<String>,
    priority: Option<JsonId>,
    issue_type: Option<String>,
    dependencies: Option<Vec<BeadsDependency>>,
    created_at: Option<String>,
    defer_until: Option<String>,
    #[serde(skip)]
    line: u32,
}

#[derive(Deserialize)]
struct BeadsDependency {
    depends_on_id: Option<JsonId>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

fn read_lines(source: &SourceInput<'_>, file: &mut TaskFile) -> Result<Vec<BeadsIssue>, SourceError> {
    let mut issues = Vec::new();
    let last = source.text.trim_end().len();
    let mut offset = 0;
    for (index, line) in source.text.split_inclusive('\n').enumerate() {
        offset += line.len();
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        if source.cut && offset == source.text.len() && !line.ends_with('\n') {
            break;
        }
        match issue(text) {
            Ok(BeadsEntry::Issue(issue)) => issues.push(BeadsIssue { line: number, ..*issue }),
            Ok(BeadsEntry::WithoutId) => file.warn(number, "this issue has no id and was left out"),
            Ok(BeadsEntry::Empty | BeadsEntry::OfAnotherType) => {}
            Err(error) if offset >= last && is_cut_off(text, &error) => {
                file.warn(number, CUT_OFF);
            }
            Err(error) => {
                let message = format!("{}; expected one issue a line", error_message(&error));
                return Err(source.error(number, message));
            }
        }
        if issues.len() > order::MAX_TASKS {
            return Err(source.error(number, format!("more than {} issues", order::MAX_TASKS)));
        }
    }
    if source.cut {
        file.warn(lines::line_at(source.text.as_bytes(), source.text.len()), CUT_OFF);
    }
    Ok(issues)
}

const CUT_OFF: &str = "the last line is cut off and was left out";

/// Whether the JSON is invalid only because it is truncated.
fn is_cut_off(text: &str, error: &serde_json::Error) -> bool {
    // A number that ends with its sign, dot or exponent would continue with a digit.
    let number = || text.ends_with(['-', '+', '.', 'e', 'E']).then(|| format!("{text}0"));
    let is_cut_off = |text: String| serde_json::from_str::<JsonMembers<'_>>(&text).is_err_and(|e| e.is_eof());
    error.is_eof() || number().is_some_and(is_cut_off)
}

/// An object in the list of issues.
enum BeadsEntry {
    Issue(Box<BeadsIssue>),
    /// `{}`.
    Empty,
    WithoutId,
    OfAnotherType,
}

fn issue(text: &str) -> Result<BeadsEntry, serde_json::Error> {
    #[derive(Deserialize)]
    struct BeadsHeader {
        _type: Option<String>,
        id: Option<JsonId>,
    }
    let kind: BeadsHeader = serde_json::from_str(text)?;
    if kind._type.is_some_and(|kind| kind != "issue") {
        return Ok(BeadsEntry::OfAnotherType);
    }
    if kind.id.is_none_or(|id| id.0.is_empty()) {
        let empty = serde_json::from_str::<JsonMembers<'_>>(text).is_ok_and(|members| members.0.is_empty());
        return Ok(if empty { BeadsEntry::Empty } else { BeadsEntry::WithoutId });
    }
    serde_json::from_str(text).map(|issue| BeadsEntry::Issue(Box::new(issue)))
}

fn read_output(source: &SourceInput<'_>, file: &mut TaskFile) -> Result<Vec<BeadsIssue>, SourceError> {
    if source.cut {
        return Err(source.not_utf8());
    }
    let json = JsonSource::new(source, TaskFormat::Beads);
    let text = source.text.trim();
    let list: &str = if text.starts_with('[') {
        text
    } else if !text.starts_with('{') {
        return Err(source.error(1, format!("not JSON; expected {EXPECTED}")));
    } else {
        let members = json.members(text, EXPECTED)?;
        let list = members.get("data").or_else(|| members.get("issues"));
        list.ok_or_else(|| source.error(1, format!("no issues; expected {EXPECTED}")))?.get()
    };
    let items: Option<Vec<&RawValue>> = json.read(list, EXPECTED)?;
    let mut issues = Vec::new();
    for raw in items.unwrap_or_default() {
        let line = json.line(raw);
        let read = issue(raw.get())
            .map_err(|error| source.error(line, format!("{}; expected an issue of beads", error_message(&error))))?;
        match read {
            BeadsEntry::Issue(issue) => issues.push(BeadsIssue { line, ..*issue }),
            BeadsEntry::WithoutId => file.warn(line, "this issue has no id and was left out"),
            BeadsEntry::Empty | BeadsEntry::OfAnotherType => file.warn(line, "this is not an issue and was left out"),
        }
    }
    Ok(issues)
}

/// Keeps the last issue of each id, which is the newest.
fn last_of_each(file: &mut TaskFile, issues: Vec<BeadsIssue>) -> Vec<BeadsIssue> {
    let seen: HashMap<String, usize> = (0..).zip(&issues).map(|(index, issue)| (issue.id.0.clone(), index)).collect();
    let mut kept = Vec::with_capacity(seen.len());
    for (index, issue) in issues.into_iter().enumerate() {
        if seen.get(&issue.id.0) == Some(&index) {
            kept.push(issue);
        } else {
            file.warn(issue.line, format!("duplicate issue id {}; the last one is used", issue.id.0));
        }
    }
    kept
}

fn task(file: &mut TaskFile, issue: BeadsIssue, state: SourceState) -> SourceTask {
    let title = issue.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    let mut task = SourceTask::new(issue.id.0.as_str(), title.unwrap_or(&issue.id.0), issue.line);
    task.state = state;
    task.priority = Some(priority(file, &issue));
    task.parent = parents(&issue).last().map(str::to_owned);
    task.depends_on = blockers(&issue).map(str::to_owned).collect();
    let criteria = issue.acceptance_criteria.as_deref().unwrap_or_default().lines().map(str::trim);
    task.acceptance = criteria.filter(|line| !line.is_empty()).map(str::to_owned).collect();
    task.section = issue.issue_type.as_deref().map(lines::short);
    task.body = lines::paragraphs(&[&issue.description, &issue.design, &issue.notes]);
    task
}

/// The priority: 0 is highest, 4 lowest, 2 the default.
fn priority(file: &mut TaskFile, issue: &BeadsIssue) -> u8 {
    let Some(JsonId(word)) = &issue.priority else { return 2 };
    match word.trim_start_matches(['P', 'p']).parse() {
        Ok(priority @ 0..=4) => priority,
        Ok(_) | Err(_) => {
            let word = lines::short(word);
            file.warn(issue.line, format!("{} has the priority {word}, not 0 to 4: taken as 2", issue.id.0));
            2
        }
    }
}

/// Whether the content of a file consists of issues.
pub fn looks_like_lines(source: &SourceInput<'_>) -> bool {
    let first = MarkdownLines::new(source).map(|line| line.text.trim()).find(|line| !line.is_empty());
    first.and_then(|line| serde_json::from_str::<JsonMembers<'_>>(line).ok()).is_some_and(|members| is_issue(&members))
}

/// Issue types that are internal to the tracker.
const NOT_WORK: [&str; 7] = ["merge-request", "gate", "molecule", "message", "agent", "role", "rig"];

/// Whether the issue waits while the other one is open. Other types only relate. A parent does not block its
/// children, but whatever blocks the parent blocks them.
fn blocks(dependency: &BeadsDependency) -> bool {
    is_blocker(dependency.kind.as_deref())
}

/// Whether a dependency of this type must be done first.
pub fn is_blocker(kind: Option<&str>) -> bool {
    matches!(kind, None | Some("blocks" | "conditional-blocks" | "waits-for"))
}

/// The issues of a file.
struct IssueList<'a> {
    issues: &'a [BeadsIssue],
    places: HashMap<&'a str, usize>,
    /// Whether the list is complete. A list of ready issues omits blockers that are done.
    whole: bool,
}

/// The state of each issue. If `whole` is set, a blocker that is not in the list blocks.
fn states(source: &SourceInput<'_>, file: &mut TaskFile, issues: &[BeadsIssue], whole: bool) -> Vec<SourceState> {
    let places = issues.iter().enumerate().map(|(index, issue)| (issue.id.0.as_str(), index)).collect();
    let list = IssueList { issues, places, whole };
    let mut blocked: Vec<bool> = issues.iter().map(|issue| list.is_blocked(file, issue)).collect();
    list.spread_to_children(&mut blocked);
    list.warn_of_cycles(file);
    issues.iter().zip(blocked).map(|(issue, blocked)| state(source, file, issue, blocked)).collect()
}

impl IssueList<'_> {
    fn is_blocked(&self, file: &mut TaskFile, issue: &BeadsIssue) -> bool {
        let mut blocked = status(issue) == "blocked";
        for id in blockers(issue) {
            match self.places.get(id) {
                Some(index) => blocked |= !is_closed(&self.issues[*index]),
                None if self.whole && !is_closed(issue) => {
                    blocked = true;
                    file.warn(issue.line, format!("{} is blocked by {id}, which is not in this file", issue.id.0));
                }
                None => {}
            }
        }
        blocked && !is_closed(issue)
    }

    /// Blocks the children of blocked issues, recursively.
    fn spread_to_children(&self, blocked: &mut [bool]) {
        let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, issue) in self.issues.iter().enumerate() {
            for parent in parents(issue).filter_map(|id| self.places.get(id)) {
                children.entry(*parent).or_default().push(index);
            }
        }
        let mut spreading: Vec<usize> = (0..self.issues.len()).filter(|index| blocked[*index]).collect();
        while let Some(parent) = spreading.pop() {
            for child in children.get(&parent).into_iter().flatten() {
                if !blocked[*child] && !is_closed(&self.issues[*child]) {
                    blocked[*child] = true;
                    spreading.push(*child);
                }
            }
        }
    }

    /// Warns about open issues that block each other, which are never ready. beads does not allow this, so the file
    /// was edited by hand. The other issues can be worked on.
    fn warn_of_cycles(&self, file: &mut TaskFile) {
        let issues = self.issues;
        let open_blockers = |issue: &BeadsIssue| -> Vec<usize> {
            let known = blockers(issue).filter_map(|id| self.places.get(id).copied());
            known.filter(|other| !is_closed(issue) && !is_closed(&issues[*other])).collect()
        };
        let before: Vec<Vec<usize>> = issues.iter().map(open_blockers).collect();
        if let Some(cycle) = order::cycle(&before) {
            let names = order::format_cycle(cycle.iter().map(|index| issues[*index].id.0.as_str()).collect());
            let line = cycle.iter().map(|index| issues[*index].line).min().unwrap_or(1);
            file.warn(line, format!("issues block each other and can never be ready: {names}"));
        }
    }
}

fn status(issue: &BeadsIssue) -> &str {
    issue.status.as_deref().map(str::trim).filter(|status| !status.is_empty()).unwrap_or("open")
}

fn is_closed(issue: &BeadsIssue) -> bool {
    matches!(status(issue), "closed" | "tombstone" | "pinned")
}

fn parents(issue: &BeadsIssue) -> impl Iterator<Item = &str> {
    linked(issue, |link| link.kind.as_deref() == Some("parent-child"))
}

fn blockers(issue: &BeadsIssue) -> impl Iterator<Item = &str> {
    linked(issue, blocks)
}

/// The ids in the dependencies of one type.
fn linked(issue: &BeadsIssue, is_of_type: fn(&BeadsDependency) -> bool) -> impl Iterator<Item = &str> {
    let links = issue.dependencies.iter().flatten().filter(move |link| is_of_type(link));
    links.filter_map(|link| link.depends_on_id.as_ref()).map(|id| id.0.as_str())
}

fn state(source: &SourceInput<'_>, file: &mut TaskFile, issue: &BeadsIssue, blocked: bool) -> SourceState {
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
        "open" if blocked => SourceState::Blocked,
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
