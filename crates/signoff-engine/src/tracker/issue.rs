//! The state of one issue, as printed by a tracker.

use serde::Deserialize;
use serde_json::Value;
use signoff_core::source;

/// The fields that matter for claiming it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct TrackerIssue {
    id: String,
    pub status: String,
    assignee: Option<String>,
    /// In one of several formats.
    dependencies: Value,
}

impl TrackerIssue {
    /// Finds an issue in an answer of any supported format.
    pub fn read(stdout: &[u8], id: &str) -> Option<Self> {
        let answer: Value = serde_json::from_slice(stdout).ok()?;
        let list = match answer {
            Value::Array(list) => list,
            Value::Object(mut members) => {
                let inner = ["data", "issues", "issue"].iter().find_map(|key| members.remove(*key));
                match inner {
                    Some(Value::Array(list)) => list,
                    Some(other) => vec![other],
                    None => vec![Value::Object(members)],
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
        let read = |value| serde_json::from_value(value).ok();
        list.into_iter().filter_map(read).find(|issue: &Self| issue.id == id)
    }

    /// The ids of the issues that block this one.
    pub fn blockers(&self) -> Vec<String> {
        let word =
            |needed: &Value, keys: [&str; 2]| keys.iter().find_map(|key| needed.get(key)?.as_str().map(str::to_owned));
        let blocker = |needed: &Value| {
            let kind = word(needed, ["dependency_type", "type"]);
            word(needed, ["depends_on_id", "id"]).filter(|_| source::is_blocker(kind.as_deref()))
        };
        self.dependencies.as_array().into_iter().flatten().filter_map(blocker).collect()
    }

    pub fn is_closed(&self) -> bool {
        matches!(self.status.as_str(), "closed" | "tombstone")
    }

    /// Whether it is in progress.
    pub fn is_in_progress(&self) -> bool {
        matches!(self.status.as_str(), "in_progress" | "hooked")
    }

    /// The assignee. Placeholders such as `unknown` do not count.
    pub fn assignee(&self) -> Option<&str> {
        self.assignee.as_deref().map(str::trim).filter(|name| !matches!(*name, "" | "unknown"))
    }

    /// The assignee, if it is none of these names.
    pub fn assignee_other_than(&self, names: &[String]) -> Option<&str> {
        let assignee = self.assignee()?;
        (!names.iter().any(|name| name == assignee)).then_some(assignee)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_found_in_every_output_format() {
        let one = r#"{"id": "b-1", "status": "in_progress", "assignee": "ann", "priority": 0}"#;
        for answer in [
            one.to_owned(),
            format!("[{one}]"),
            format!(r#"{{"schema_version": 1, "data": [{{"id": "b-0"}}, {one}]}}"#),
            format!(r#"{{"schema_version": 1, "data": {one}}}"#),
            format!(r#"{{"issues": [{one}]}}"#),
        ] {
            let issue = TrackerIssue::read(answer.as_bytes(), "b-1").expect("a task");
            assert!(issue.is_in_progress() && !issue.is_closed(), "{answer}");
            assert_eq!(issue.assignee_other_than(&["ann".to_owned()]), None);
            assert_eq!(issue.assignee_other_than(&["bob".to_owned()]), Some("ann"));
        }
        for answer in ["", "null", "[]", "{}", "no", r#"[{"id": "b-2"}]"#, r#"[{"id": 1}]"#] {
            assert_eq!(TrackerIssue::read(answer.as_bytes(), "b-1"), None, "{answer}");
        }
    }

    #[test]
    fn blockers_are_found_in_both_formats() {
        let listed = r#"{"issue_id": "b-1", "depends_on_id": "b-2", "type": "blocks"}"#;
        let shown = r#"{"id": "b-3", "title": "Third", "dependency_type": "blocks"}"#;
        let parent = r#"{"id": "b-4", "dependency_type": "parent-child"}"#;
        let answer = format!(r#"[{{"id": "b-1", "dependencies": [{listed}, {shown}, {parent}]}}]"#);
        assert_eq!(TrackerIssue::read(answer.as_bytes(), "b-1").expect("a task").blockers(), ["b-2", "b-3"]);
    }

    #[test]
    fn placeholders_are_no_assignee() {
        for assignee in ["null", "\"\"", "\" \"", "\"unknown\""] {
            let answer = format!(r#"{{"id": "b-1", "status": "open", "assignee": {assignee}}}"#);
            let issue = TrackerIssue::read(answer.as_bytes(), "b-1").expect("a task");
            assert_eq!(issue.assignee_other_than(&[]), None);
        }
    }
}
