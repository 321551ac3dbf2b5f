//! Parses Task Master's `tasks.json`: tasks by tag, with dependencies, priorities and one level of subtasks.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{JsonId, JsonMembers, JsonSource};
use super::order;
use super::{SourceError, SourceInput, SourceState, SourceTask, TaskFile, TaskFormat, lines};

const EXPECTED: &str = "{\"tasks\": […]} or {\"TAG\": {\"tasks\": […]}} with at least one task";

const EXPECTED_TASK: &str = "a task such as {\"id\": 1, \"title\": \"…\", \"status\": \"pending\"}";

/// The tag that is read if the file has it, as in Task Master itself.
const DEFAULT_TAG: &str = "master";

pub fn read(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(TaskFormat::TaskMaster);
    let json = JsonSource::new(source, TaskFormat::TaskMaster);
    for raw in task_list(&json, &mut file)? {
        read_task(&json, &mut file, RawTask::read(&json, raw)?)?;
    }
    order::refuse_empty(source, &file, EXPECTED)?;
    order::refuse_duplicate_ids(source, &file)?;
    name_dependencies(&mut file);
    order::layers(source, &mut file, next_key)?;
    Ok(file)
}

/// Whether an object looks like a Task Master file.
pub fn fits(members: &JsonMembers<'_>) -> bool {
    let has_tasks = |raw: &RawValue| {
        serde_json::from_str::<JsonMembers<'_>>(raw.get()).is_ok_and(|tag| tag.get("tasks").is_some_and(is_array))
    };
    members.get("tasks").is_some_and(is_array) || members.0.iter().any(|(_, value)| has_tasks(value))
}

fn is_array(raw: &RawValue) -> bool {
    raw.get().starts_with('[')
}

fn task_list<'a>(json: &JsonSource<'_, 'a>, file: &mut TaskFile) -> Result<Vec<&'a RawValue>, SourceError> {
    let members = json.members(json.source.text, EXPECTED)?;
    if let Some(tasks) = members.get("tasks").filter(|tasks| is_array(tasks)) {
        return json.read(tasks.get(), EXPECTED);
    }
    let mut tags = Vec::new();
    for (name, value) in &members.0 {
        if !value.get().starts_with('{') {
            continue;
        }
        let tag = json.members(value.get(), EXPECTED)?;
        if let Some(tasks) = tag.get("tasks").filter(|tasks| is_array(tasks)) {
            tags.push((name, tasks));
        }
    }
    let chosen = tags.iter().find(|(name, _)| *name == DEFAULT_TAG).or(tags.first());
    let Some((name, tasks)) = chosen else {
        return Err(json.source.error(1, format!("no list of tasks; expected {EXPECTED}")));
    };
    file.title = Some((*name).clone());
    let others: Vec<String> = tags.iter().map(|(other, _)| *other).filter(|other| other != name).cloned().collect();
    if !others.is_empty() {
        file.warn(1, lines::short(&format!("tag {name} is read; not read: {}", others.join(", "))));
    }
    json.read(tasks.get(), EXPECTED)
}

#[derive(Deserialize)]
struct RawTask<'a> {
    id: JsonId,
    title: Option<String>,
    description: Option<String>,
    details: Option<String>,
    #[serde(rename = "testStrategy")]
    test_strategy: Option<String>,
    status: Option<String>,
    priority: Option<String>,
    dependencies: Option<Vec<JsonId>>,
    #[serde(borrow)]
    subtasks: Option<Vec<&'a RawValue>>,
    #[serde(skip)]
    line: u32,
}

impl<'a> RawTask<'a> {
    fn read(json: &JsonSource<'_, 'a>, raw: &'a RawValue) -> Result<Self, SourceError> {
        Ok(Self { line: json.line(raw), ..json.read(raw.get(), EXPECTED_TASK)? })
    }
}

fn read_task<'a>(json: &JsonSource<'_, 'a>, file: &mut TaskFile, raw: RawTask<'a>) -> Result<(), SourceError> {
    let source = json.source;
    let parent = task(source, file, &raw)?;
    file.push(source, parent.clone())?;
    for raw in raw.subtasks.unwrap_or_default() {
        let sub = RawTask::read(json, raw)?;
        let mut child = task(source, file, &sub)?;
        let prefix = format!("{}.", parent.id);
        if !child.id.starts_with(&prefix) {
            child.id = format!("{prefix}{}", child.id);
        }
        child.parent = Some(parent.id.clone());
        child.priority = sub.priority.as_ref().and(child.priority).or(parent.priority);
        // A deferred or cancelled parent applies to its subtasks too.
        let follows = matches!(child.state, SourceState::Open | SourceState::InProgress);
        if follows && matches!(parent.state, SourceState::Deferred | SourceState::Cancelled | SourceState::Blocked) {
            child.state = parent.state;
        }
        if sub.subtasks.is_some_and(|deeper| !deeper.is_empty()) {
            file.warn(sub.line, format!("the subtasks of subtask {} are not read", child.id));
        }
        file.push(source, child)?;
    }
    Ok(())
}

fn task(source: &SourceInput<'_>, file: &mut TaskFile, raw: &RawTask<'_>) -> Result<SourceTask, SourceError> {
    let id = raw.id.0.as_str();
    let title = raw.title.as_deref().map(str::trim).unwrap_or_default();
    if id.is_empty() || title.is_empty() {
        return Err(source.error(raw.line, "a task without id or title; expected both"));
    }
    let mut task = SourceTask::new(id, title, raw.line);
    task.body = lines::paragraphs(&[&raw.description, &raw.details]);
    task.state = state(file, raw);
    task.priority = Some(priority(file, raw));
    task.depends_on = raw.dependencies.iter().flatten().map(|id| id.0.clone()).collect();
    let check = raw.test_strategy.as_deref().map(str::trim).filter(|text| !text.is_empty());
    task.acceptance = check.map(str::to_owned).into_iter().collect();
    Ok(task)
}

fn state(file: &mut TaskFile, raw: &RawTask<'_>) -> SourceState {
    match raw.status.as_deref().map(str::trim).unwrap_or("pending") {
        "pending" | "" => SourceState::Open,
        "in-progress" => SourceState::InProgress,
        "done" | "completed" => SourceState::Done,
        "review" => SourceState::Review,
        "deferred" => SourceState::Deferred,
        "cancelled" => SourceState::Cancelled,
        "blocked" => SourceState::Blocked,
        other => {
            let other = lines::short(other);
            file.warn(raw.line, format!("task {} has the unknown status {other}: taken as pending", raw.id.0));
            SourceState::Open
        }
    }
}

/// The priority on the scale of trackers: `high` is 1, `medium` (the default) 2.
fn priority(file: &mut TaskFile, raw: &RawTask<'_>) -> u8 {
    match raw.priority.as_deref().map(str::trim).unwrap_or("medium") {
        "critical" => 0,
        "high" => 1,
        "medium" | "" => 2,
        "low" => 3,
        other => {
            let other = lines::short(other);
            file.warn(raw.line, format!("task {} has the unknown priority {other}: taken as medium", raw.id.0));
            2
        }
    }
}

/// Resolves dependencies. In a subtask a plain number is a sibling, or else a task.
fn name_dependencies(file: &mut TaskFile) {
    let ids: HashSet<String> = file.tasks.iter().map(|task| task.id.clone()).collect();
    for task in &mut file.tasks {
        let Some(parent) = &task.parent else { continue };
        for dependency in task.depends_on.iter_mut().filter(|dependency| !dependency.contains('.')) {
            let sibling = format!("{parent}.{dependency}");
            let is_sibling = ids.contains(&sibling) && sibling != task.id;
            if is_sibling || !ids.contains(dependency.as_str()) {
                *dependency = sibling;
            }
        }
    }
}

/// The order in which Task Master picks ready tasks: priority, then fewest dependencies, then id.
fn next_key(task: &SourceTask) -> (u8, usize, Vec<u64>, String) {
    let parts = task.id.split('.').map(|part| part.parse().unwrap_or(u64::MAX)).collect();
    (task.priority.unwrap_or(2), task.depends_on.len(), parts, task.id.clone())
}
