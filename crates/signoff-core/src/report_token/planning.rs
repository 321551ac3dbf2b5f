//! Reports of planners, which arrive in pieces.
//!
//! The planner's answer is validated as a whole after the planner has ended. Errors that are visible in one piece are
//! refused at once.

use serde_json::{Value, json};

use super::{AcceptedCall, ReportArguments, ReportRefusal, ReportScope, ReportTool, clip};
use crate::source::MAX_TASKS;
use crate::source::planner::PlannedTask;

/// Writes a task. A task with the same id is replaced, so that a planner can correct itself.
pub(super) fn write_task(written: &[PlannedTask], arguments: &ReportArguments) -> Result<AcceptedCall, ReportRefusal> {
    let wrong = |message| ReportRefusal::Malformed { tool: ReportTool::WriteTask, message };
    let task = task(arguments).map_err(wrong)?;
    let mut tasks = written.to_vec();
    let shown = clip(&task.id);
    let reply = match tasks.iter().position(|one| one.id == task.id) {
        Some(at) => {
            tasks[at] = task;
            format!("Task {shown} is replaced.")
        }
        None if tasks.len() == MAX_TASKS => {
            return Err(wrong(format!("there are {MAX_TASKS} tasks already, and there can be no more")));
        }
        None => {
            tasks.push(task);
            format!("Task {shown} is written; there are {} now.", tasks.len())
        }
    };
    let report = json!({ "tasks": tasks });
    Ok(AcceptedCall { scope: ReportScope::Tasks { written: tasks }, report, reply: Ok(reply) })
}

/// Adds a group. An existing group is not added twice: a client may repeat a call whose reply it missed.
pub(super) fn add_group(
    known: &[String],
    added: &[Vec<String>],
    arguments: &ReportArguments,
) -> Result<AcceptedCall, ReportRefusal> {
    let wrong = |message| ReportRefusal::Malformed { tool: ReportTool::AddPlanGroup, message };
    let group = ids(arguments, "tasks").and_then(|ids| ids.ok_or_else(|| missing("tasks", LIST))).map_err(wrong)?;
    let mut groups = added.to_vec();
    let reply = match groups.iter().position(|one| *one == group) {
        Some(at) => format!("That is group {} already.", at + 1),
        None => {
            check_group(&group, known, added).map_err(wrong)?;
            groups.push(group);
            format!("It is group {}.", groups.len())
        }
    };
    let report = json!({ "groups": groups });
    Ok(AcceptedCall { scope: ReportScope::Groups { known: known.to_vec(), added: groups }, report, reply: Ok(reply) })
}

const LIST: &str = "a list of task ids";

fn check_group(group: &[String], known: &[String], added: &[Vec<String>]) -> Result<(), String> {
    if group.is_empty() {
        return Err("`tasks` is empty: at least one task id is required".to_owned());
    }
    let count: usize = added.iter().map(Vec::len).sum();
    if count + group.len() > MAX_TASKS {
        return Err(format!("there can be no more than {MAX_TASKS} tasks"));
    }
    for (at, id) in group.iter().enumerate() {
        if let Some(other) = added.iter().position(|one| one.contains(id)) {
            let id = clip(id);
            return Err(format!("`tasks[{at}]`: task {id} is in group {} already, and stays there", other + 1));
        }
        if !known.contains(id) {
            return Err(format!("`tasks[{at}]`: there is no task {}; {}", clip(id), listed(known)));
        }
        if group[..at].contains(id) {
            return Err(format!("`tasks[{at}]`: task {} is named twice", clip(id)));
        }
    }
    Ok(())
}

/// Lists the known ids, as far as they fit on one line.
fn listed(known: &[String]) -> String {
    const SHOWN: usize = 20;
    let ids: Vec<String> = known.iter().take(SHOWN).map(|id| clip(id)).collect();
    let more = if known.len() > SHOWN { format!(" and {} more", known.len() - SHOWN) } else { String::new() };
    format!("the tasks are {}{more}", ids.join(", "))
}

fn task(arguments: &ReportArguments) -> Result<PlannedTask, String> {
    let title = text(arguments, "title")?.ok_or_else(|| missing("title", "a string"))?;
    Ok(PlannedTask {
        id: match arguments.get("id") {
            None | Some(Value::Null) => return Err(missing("id", "a string")),
            Some(value) => id("id", value)?,
        },
        title: Some(title.trim().to_owned())
            .filter(|title| !title.is_empty())
            .ok_or_else(|| "`title` is empty: one line is required".to_owned())?,
        description: text(arguments, "description")?.unwrap_or_default(),
        depends_on: ids(arguments, "depends_on")?.unwrap_or_default(),
    })
}

fn text(arguments: &ReportArguments, key: &str) -> Result<Option<String>, String> {
    match arguments.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(wrong_type(key, "a string", other)),
    }
}

fn ids(arguments: &ReportArguments, key: &str) -> Result<Option<Vec<String>>, String> {
    match arguments.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => {
            let each = items.iter().enumerate().map(|(at, item)| id(&format!("{key}[{at}]"), item));
            each.collect::<Result<_, _>>().map(Some)
        }
        Some(other) => Err(wrong_type(key, LIST, other)),
    }
}

/// Parses an id: a string, or a number whose digits are the id.
fn id(path: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Value::Number(number) => Ok(number.to_string()),
        Value::String(_) => Err(format!("`{path}` is empty: a task id is required")),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(wrong_type(path, "a string", value)),
    }
}

fn missing(key: &str, expected: &str) -> String {
    format!("`{key}` is missing: {expected} is required")
}

fn wrong_type(path: &str, expected: &str, value: &Value) -> String {
    let what = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    format!("`{path}` must be {expected}, not {what}")
}
