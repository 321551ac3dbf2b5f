//! Parses the answers of planners: the tasks of a specification, and the groups to work on them.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::order;
use crate::review::{Violation, ViolationCode};

/// The validated answer of a planner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlannerAnswer {
    Tasks(Vec<PlannedTask>),
    Groups(Vec<Vec<String>>),
}

impl PlannerAnswer {
    /// The text for reviewers: one object, with one task or group per line.
    pub fn to_review_text(&self) -> String {
        let (key, lines): (_, Vec<_>) = match self {
            Self::Tasks(tasks) => ("tasks", tasks.iter().map(serde_json::to_string).collect()),
            Self::Groups(groups) => ("groups", groups.iter().map(serde_json::to_string).collect()),
        };
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        format!("{{\"{key}\": [\n{}\n]}}\n", lines.join(",\n"))
    }
}

/// One task of an enumeration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlannedTask {
    pub id: String,
    pub title: String,
    pub description: String,
    pub depends_on: Vec<String>,
}

/// Parses `{"tasks": [{"id", "title", "description", "depends_on": []}]}` from a final message.
///
/// The object may be fenced and have text around it. Ids must be unique, and dependencies must exist and form no
/// cycle.
pub fn read_tasks(text: &[u8]) -> Result<Vec<PlannedTask>, Violation> {
    let (offset, answer) = answer(text, "tasks")?;
    let items = list(&answer, "tasks", offset)?;
    let mut tasks = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        tasks.push(task(item, index + 1).map_err(|(code, message)| Violation::new(code, offset, message))?);
    }
    check_tasks(&tasks).map_err(|message| Violation::new(ViolationCode::Malformed, offset, message))?;
    Ok(tasks)
}

/// Parses `{"groups": [["id", …], …]}` from a final message. Every task must be in exactly one group, which is
/// later than those of its dependencies.
pub fn read_groups(text: &[u8], tasks: &[PlannedTask]) -> Result<Vec<Vec<String>>, Violation> {
    let (offset, answer) = answer(text, "groups")?;
    let items = list(&answer, "groups", offset)?;
    let wrong = |message: String| Violation::new(ViolationCode::WrongType, offset, message);
    let mut groups = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let ids = item.as_array().and_then(|ids| ids.iter().map(id).collect::<Option<Vec<_>>>());
        groups.push(ids.ok_or_else(|| wrong(format!("group {} is not a list of task ids", index + 1)))?);
    }
    check_groups(&groups, tasks).map_err(|message| Violation::new(ViolationCode::Malformed, offset, message))?;
    Ok(groups)
}

/// The object with `key` in a message, and its offset. Several objects must be equal.
fn answer(bytes: &[u8], key: &str) -> Result<(usize, Value), Violation> {
    if bytes.len() > super::MAX_BYTES {
        let message = format!("the answer has {} bytes; at most {} are read", bytes.len(), super::MAX_BYTES);
        return Err(Violation::new(ViolationCode::TooLarge, 0, message));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Violation::new(ViolationCode::NotUtf8, error.valid_up_to(), "not UTF-8 text"))?;
    if text.trim().is_empty() {
        return Err(Violation::new(ViolationCode::Empty, 0, "the answer is empty"));
    }
    let mut found: Option<(usize, Value)> = None;
    let mut broken: Option<BrokenObject> = None;
    for AnswerObject { offset, json, read } in objects(text) {
        let value = match read {
            Ok(value) if value.get(key).is_some() => value,
            Ok(_) => continue,
            Err(error) if is_too_deep(&error) => {
                return Err(Violation::new(ViolationCode::TooDeep, offset, "an object that is nested too deep"));
            }
            Err(error) => {
                // Braces in prose fail immediately. A truncated answer fails at the end.
                if broken.is_none() || error.is_eof() {
                    broken = Some(BrokenObject { offset, error });
                }
                continue;
            }
        };
        if let Some(name) = crate::contract::duplicate_key(json) {
            let message = format!("duplicate key `{name}`");
            return Err(Violation::new(ViolationCode::DuplicateKey, offset, message));
        }
        match &found {
            Some((_, first)) if *first != value => {
                let message = format!("two objects with `{key}` that differ");
                return Err(Violation::new(ViolationCode::Disagreement, offset, message));
            }
            Some(_) => {}
            None => found = Some((offset, value)),
        }
    }
    found.ok_or_else(|| nothing(text, key, broken))
}

/// serde_json has no error category for this.
fn is_too_deep(error: &serde_json::Error) -> bool {
    error.is_syntax() && super::json::error_message(error) == "recursion limit exceeded"
}

/// An opening brace that begins no object.
struct BrokenObject {
    offset: usize,
    error: serde_json::Error,
}

fn nothing(text: &str, key: &str, broken: Option<BrokenObject>) -> Violation {
    match broken.filter(|broken| text[broken.offset..].contains(&format!("\"{key}\""))) {
        Some(BrokenObject { offset, error }) => {
            let code = if error.is_eof() { ViolationCode::Truncated } else { ViolationCode::Malformed };
            Violation::new(code, offset, format!("an object that is not JSON: {}", super::json::error_message(&error)))
        }
        None => Violation::new(ViolationCode::NoVerdict, 0, format!("no JSON object with `{key}`")),
    }
}

/// What an opening brace in a text begins.
struct AnswerObject<'a> {
    offset: usize,
    /// The object's text.
    json: &'a str,
    read: Result<Value, serde_json::Error>,
}

/// Every outermost object in a text, and the error of every opening brace that begins none.
///
/// The parser goes at most 128 levels deep, so each byte is read at most that often.
fn objects(text: &str) -> impl Iterator<Item = AnswerObject<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + next_object(text.get(at..)?)?;
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let read = values.next()?;
        at = if read.is_ok() { start + values.byte_offset() } else { start + 1 };
        Some(AnswerObject { offset: start, json: &text[start..at], read })
    })
}

/// The next brace that can begin an object.
fn next_object(text: &str) -> Option<usize> {
    let begins = |at: &usize| text[at + 1..].starts_with(['"', '}', ' ', '\t', '\r', '\n']);
    text.match_indices('{').map(|(at, _)| at).find(begins)
}

fn list<'a>(answer: &'a Value, key: &str, offset: usize) -> Result<&'a [Value], Violation> {
    let wrong = |code, message: &str| Violation::new(code, offset, format!("`{key}` {message}"));
    let items = answer.get(key).and_then(Value::as_array);
    let items = items.ok_or_else(|| wrong(ViolationCode::WrongType, "is not a list"))?;
    match items.len() {
        0 => Err(wrong(ViolationCode::Empty, "is empty")),
        1..=order::MAX_TASKS => Ok(items),
        _ => Err(wrong(ViolationCode::TooLarge, "is too long")),
    }
}

fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|id| !id.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn task(value: &Value, number: usize) -> Result<PlannedTask, (ViolationCode, String)> {
    let missing = |key: &str| (ViolationCode::MissingKey, format!("task {number} has no `{key}`"));
    let wrong = |key: &str| (ViolationCode::WrongType, format!("`{key}` of task {number} is of the wrong type"));
    let object = value.as_object().ok_or((ViolationCode::WrongType, format!("task {number} is not an object")))?;
    let id = self::id(object.get("id").ok_or_else(|| missing("id"))?).ok_or_else(|| wrong("id"))?;
    let title = object.get("title").ok_or_else(|| missing("title"))?.as_str().ok_or_else(|| wrong("title"))?;
    if title.trim().is_empty() {
        return Err(missing("title"));
    }
    let description = match object.get("description") {
        None | Some(Value::Null) => "",
        Some(text) => text.as_str().ok_or_else(|| wrong("description"))?,
    };
    let depends_on = match object.get("depends_on") {
        None | Some(Value::Null) => Vec::new(),
        Some(ids) => ids
            .as_array()
            .and_then(|ids| ids.iter().map(self::id).collect::<Option<Vec<_>>>())
            .ok_or_else(|| wrong("depends_on"))?,
    };
    Ok(PlannedTask { id, title: title.trim().to_owned(), description: description.to_owned(), depends_on })
}

fn check_tasks(tasks: &[PlannedTask]) -> Result<(), String> {
    let mut indexes = HashMap::new();
    for (index, task) in tasks.iter().enumerate() {
        if indexes.insert(task.id.as_str(), index).is_some() {
            return Err(format!("duplicate task id {}", task.id));
        }
    }
    let mut before = Vec::with_capacity(tasks.len());
    for task in tasks {
        let mut needed = Vec::with_capacity(task.depends_on.len());
        for id in &task.depends_on {
            let index = indexes.get(id.as_str());
            needed.push(*index.ok_or_else(|| format!("task {} depends on {id}, which is not a task", task.id))?);
        }
        before.push(needed);
    }
    match order::cycle(&before) {
        Some(cycle) => {
            let names = cycle.iter().map(|index| tasks[*index].id.as_str()).collect();
            Err(format!("dependency cycle: {}", order::format_cycle(names)))
        }
        None => Ok(()),
    }
}

fn check_groups(groups: &[Vec<String>], tasks: &[PlannedTask]) -> Result<(), String> {
    let known: HashMap<&str, &PlannedTask> = tasks.iter().map(|task| (task.id.as_str(), task)).collect();
    let mut placed: HashSet<&str> = HashSet::new();
    for (index, group) in groups.iter().enumerate() {
        if group.is_empty() {
            return Err(format!("group {} is empty", index + 1));
        }
        for id in group {
            let task = known.get(id.as_str()).ok_or_else(|| format!("{id} is not a task"))?;
            // Only complete groups are added, so a dependency must be in an earlier one.
            if let Some(need) = task.depends_on.iter().find(|need| !placed.contains(need.as_str())) {
                return Err(format!("task {id} depends on {need}, which is not in an earlier group"));
            }
        }
        for id in group {
            if !placed.insert(id) {
                return Err(format!("task {id} is listed twice in the groups"));
            }
        }
    }
    match tasks.iter().find(|task| !placed.contains(task.id.as_str())) {
        Some(task) => Err(format!("task {} is in no group", task.id)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(text: &str) -> String {
        match read_tasks(text.as_bytes()) {
            Ok(tasks) => {
                let line = |task: &PlannedTask| format!("{} {} after {:?}", task.id, task.title, task.depends_on);
                tasks.iter().map(line).collect::<Vec<_>>().join("\n")
            }
            Err(violation) => format!("{}: {violation}", violation.code),
        }
    }

    fn groups(text: &str) -> String {
        let planned = [("a", vec![]), ("b", vec!["a"]), ("c", vec![])].map(|(id, needs)| PlannedTask {
            id: id.to_owned(),
            title: id.to_owned(),
            description: String::new(),
            depends_on: needs.into_iter().map(str::to_owned).collect(),
        });
        match read_groups(text.as_bytes(), &planned) {
            Ok(groups) => format!("{groups:?}"),
            Err(violation) => format!("{}: {violation}", violation.code),
        }
    }

    #[test]
    fn tasks_are_read_from_prose_and_fences() {
        let answer = "Here is { what } I found:\n```json\n{\"tasks\":[{\"id\":1,\"title\":\"One\"},\
                      {\"id\":\"b\",\"title\":\"Two\",\"description\":\"d\",\"depends_on\":[1]}]}\n```\nDone.";
        insta::assert_snapshot!(tasks(answer), @r#"
        1 One after []
        b Two after ["1"]
        "#);
        insta::assert_snapshot!(tasks(&format!("{answer}\n{answer}")), @r#"
        1 One after []
        b Two after ["1"]
        "#);
    }

    #[test]
    fn a_broken_enumeration_is_named() {
        insta::assert_snapshot!(tasks(" \n"), @"empty: the answer is empty (at byte 0)");
        insta::assert_snapshot!(tasks("I could not."), @"no_verdict: no JSON object with `tasks` (at byte 0)");
        insta::assert_snapshot!(tasks(&"{\"tasks\":".repeat(200)), @"too_deep: an object that is nested too deep (at byte 0)");
        insta::assert_snapshot!(tasks("{\"tasks\":[]}"), @"empty: `tasks` is empty (at byte 0)");
        insta::assert_snapshot!(tasks("{\"tasks\":{}}"), @"wrong_type: `tasks` is not a list (at byte 0)");
        insta::assert_snapshot!(tasks("{\"tasks\":[{\"id\":\"a\"}]}"), @"missing_key: task 1 has no `title` (at byte 0)");
        insta::assert_snapshot!(tasks("{\"tasks\":[{\"id\":\"a\",\"title\":\"A\"}"), @"truncated: an object that is not JSON: EOF while parsing a list (at byte 0)");
        insta::assert_snapshot!(tasks("{\"tasks\":[{\"id\":\"a\" \"title\":\"A\"}]}"), @"malformed: an object that is not JSON: expected `,` or `}` (at byte 0)");
        insta::assert_snapshot!(tasks("{\"tasks\":[{\"id\":\"a\",\"id\":\"b\",\"title\":\"A\"}]}"), @"duplicate_key: duplicate key `id` (at byte 0)");
        insta::assert_snapshot!(tasks("{\"tasks\":[{\"id\":1,\"title\":\"A\"},{\"id\":\"1\",\"title\":\"B\"}]}"), @"malformed: duplicate task id 1 (at byte 0)");
        insta::assert_snapshot!(tasks("{\"tasks\":[{\"id\":1,\"title\":\"A\",\"depends_on\":[7]}]}"), @"malformed: task 1 depends on 7, which is not a task (at byte 0)");
        insta::assert_snapshot!(tasks("{\"tasks\":[{\"id\":1,\"title\":\"A\",\"depends_on\":[2]},{\"id\":2,\"title\":\"B\",\"depends_on\":[1]}]}"), @"malformed: dependency cycle: 1 → 2 → 1 (at byte 0)");
        insta::assert_snapshot!(tasks("{\"tasks\":[{\"id\":1,\"title\":\"A\"}]} or {\"tasks\":[{\"id\":2,\"title\":\"A\"}]}"), @"disagreement: two objects with `tasks` that differ (at byte 36)");
    }

    #[test]
    fn groups_hold_every_task_once_and_after_what_it_needs() {
        insta::assert_snapshot!(groups("{\"groups\":[[\"a\",\"c\"],[\"b\"]]}"), @r#"[["a", "c"], ["b"]]"#);
        insta::assert_snapshot!(groups("{\"groups\":[[\"a\",\"b\"],[\"c\"]]}"), @"malformed: task b depends on a, which is not in an earlier group (at byte 0)");
        insta::assert_snapshot!(groups("{\"groups\":[[\"b\"],[\"a\"],[\"c\"]]}"), @"malformed: task b depends on a, which is not in an earlier group (at byte 0)");
        insta::assert_snapshot!(groups("{\"groups\":[[\"a\"],[\"b\"]]}"), @"malformed: task c is in no group (at byte 0)");
        insta::assert_snapshot!(groups("{\"groups\":[[\"a\",\"c\"],[\"b\",\"c\"]]}"), @"malformed: task c is listed twice in the groups (at byte 0)");
        insta::assert_snapshot!(groups("{\"groups\":[[\"a\",\"c\"],[],[\"b\"]]}"), @"malformed: group 2 is empty (at byte 0)");
        insta::assert_snapshot!(groups("{\"groups\":[[\"a\",\"x\"]]}"), @"malformed: x is not a task (at byte 0)");
        insta::assert_snapshot!(groups("{\"groups\":[\"a\"]}"), @"wrong_type: group 1 is not a list of task ids (at byte 0)");
    }
}
