//! The tracker that supplies tasks: its program if there is one, otherwise its file, which is only read.
//!
//! The program gets ids and fixed arguments, with limits on time and output. A program that fails is an error, not an
//! empty list.

mod offer;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use signoff_core::group::TaskSource;
use signoff_core::source::{self, MAX_BYTES, SourceError, SourceState, SourceTask, TaskFile};
use signoff_core::task::{TaskSpec, TrackerRef};

use crate::atomic_file;
use crate::clock;
use crate::git::Repository;
use crate::process::{self, CommandError, CommandOutput, ShortCommand};

pub use offer::{ExcludedTask, TrackerOffer, add_dependencies, fetch_offer};

/// The name of the tracker in the store's claims.
pub const BEADS: &str = "beads";

/// The tracker's programs; the first installed one is used.
pub const PROGRAMS: [&str; 2] = ["bd", "br"];

/// The tracker's file, relative to the main checkout.
pub const FILE: &str = ".beads/issues.jsonl";

/// The account name to use if there is no other.
const NAME: &str = "signoff";

/// Default time limit of the tracker's program.
const LIMIT: Duration = Duration::from_secs(60);

/// Options for all calls to a tracker.
#[derive(Debug, Clone)]
pub struct TrackerOptions {
    /// The user's possible names in the tracker.
    pub names: Vec<String>,
    /// `USER` is not set, so it is set for the tracker: otherwise it might claim tasks without a name.
    pub lacks_user: bool,
    pub limit: Duration,
}

impl TrackerOptions {
    pub fn new(names: Vec<String>, nameless: bool, limit: Option<Duration>) -> Self {
        Self { names, lacks_user: nameless, limit: limit.unwrap_or(LIMIT) }
    }
}

/// A configured tracker.
#[derive(Debug, Clone)]
pub struct Tracker {
    pub source: TaskSource,
    /// The tracker runs in the main checkout, which linked worktrees share.
    pub repository: Repository,
    pub options: TrackerOptions,
}

/// The result of claiming a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimResult {
    /// The task is ours. Contains the tracker ids of the tasks that block it.
    Ours(Vec<String>),
    /// The task is closed or claimed by another user; contains the reason.
    Unavailable(String),
}

/// Why the tracker cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrackerError {
    #[error("`{command}` could not be run: {error}")]
    NotRun { command: String, error: CommandError },
    #[error("`{command}` failed ({status}){output}")]
    Failed { command: String, status: String, output: String },
    #[error("could not parse the output of `{command}`: {message}{output}")]
    Unparsable { command: String, message: String, output: String },
    #[error("cannot read {path}: {error}", path = path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error(transparent)]
    File(#[from] SourceError),
}

impl Tracker {
    /// The tasks of the tracker: from a program the ready ones, from a file all of them. `done` are tasks that are done
    /// although the file lists them as open.
    pub fn read(&self, done: &BTreeSet<String>) -> Result<TaskFile, TrackerError> {
        let now = Some(clock::now());
        match &self.source {
            TaskSource::File { path } => {
                let bytes = read_file(&self.repository.root().join(path))?;
                Ok(source::read_tracker(path, &bytes, now, done)?)
            }
            TaskSource::Program { .. } | TaskSource::Queue => {
                let arguments = ["ready", "--json"];
                let (stdout, command) = (self.run_checked(&arguments)?.stdout, self.command(&arguments));
                let unparsable = |message| TrackerError::Unparsable {
                    command: command.clone(),
                    message,
                    output: describe_output(&stdout),
                };
                // A file may be incomplete while it is being written; the output of a program must be complete.
                let value: Value = serde_json::from_slice(&stdout).map_err(|error| unparsable(error.to_string()))?;
                let list = listed(&value).ok_or_else(|| unparsable("expected a list of issues".to_owned()))?;
                let read = source::read_tracker(&command, list.to_string().as_bytes(), now, done);
                read.map_err(|error| unparsable(error.message))
            }
        }
    }

    /// Claims a task. With `again` an earlier process may have claimed it, so it may be in progress.
    pub fn claim(&self, id: &str, again: bool) -> Result<ClaimResult, TrackerError> {
        if !self.source.closes_tasks() {
            return Ok(ClaimResult::Ours(Vec::new()));
        }
        let arguments = ["update", id, "--claim", "--json"];
        let output = self.run(&arguments)?;
        let issue = self.show(id)?;
        if let Some(issue) = issue.as_ref().filter(|issue| issue.is_closed()) {
            return Ok(ClaimResult::Unavailable(format!("it is {}", issue.status)));
        }
        let claimed = TrackerIssue::read(&output.stdout, id).filter(|_| output.status.success());
        let other = issue.as_ref().and_then(|issue| self.other_assignee(issue, claimed.as_ref()));
        let ours = || ClaimResult::Ours(issue.as_ref().map(TrackerIssue::blockers).unwrap_or_default());
        let in_progress = issue.as_ref().is_some_and(TrackerIssue::is_in_progress);
        Ok(match (output.status.success(), other) {
            (true, None) => ours(),
            (true, Some(other)) => {
                ClaimResult::Unavailable(format!("claimed by {other}; if that is you, set BD_ACTOR and reopen {id}"))
            }
            (false, Some(other)) => ClaimResult::Unavailable(format!("claimed by {other}")),
            (false, None) if again && in_progress => ours(),
            (false, None) if in_progress => ClaimResult::Unavailable("it is in progress".to_owned()),
            (false, None) => return Err(self.command_error(&arguments, &output)),
        })
    }

    /// The assignee of a task, if it is another user. A tracker names the user by account name, by git author name, or
    /// by a configured name, which it prints when a claim succeeds.
    fn other_assignee<'a>(&self, issue: &'a TrackerIssue, claimed: Option<&TrackerIssue>) -> Option<&'a str> {
        let other = issue.assignee_other_than(&self.options.names)?;
        let ours = claimed.and_then(TrackerIssue::assignee) == Some(other)
            || self.account_name().as_deref() == Some(other)
            || self.repository.user_name().as_deref() == Some(other);
        (!ours).then_some(other)
    }

    /// The account name to pass to the tracker, if `USER` is not set.
    fn account_name(&self) -> Option<String> {
        let known = || self.options.names.first().cloned().or_else(|| self.repository.user_name());
        self.options.lacks_user.then(|| known().unwrap_or_else(|| NAME.to_owned()))
    }

    /// Gives a claimed task back. Does nothing if it is not in progress. Returns the reason if another user has it.
    pub fn give_back(&self, id: &str) -> Result<Option<String>, TrackerError> {
        if !self.source.closes_tasks() || !self.show(id)?.is_some_and(|issue| issue.is_in_progress()) {
            return Ok(None);
        }
        if let ClaimResult::Unavailable(reason) = self.claim(id, true)? {
            return Ok(Some(reason));
        }
        self.run_checked(&["update", id, "--status", "open", "--assignee", ""])?;
        Ok(None)
    }

    /// Closes a task. Does nothing if it is closed already.
    pub fn close(&self, id: &str, reason: &str) -> Result<(), TrackerError> {
        let arguments = ["close", id, "--reason", reason];
        let output = self.run(&arguments)?;
        let closed = || self.show(id).ok().flatten().is_some_and(|issue| issue.is_closed());
        if output.status.success() || closed() {
            return Ok(());
        }
        Err(self.command_error(&["close", id], &output))
    }

    /// Whether a task can be started now, and not only when it was listed.
    fn is_open(&self, id: &str) -> Result<bool, TrackerError> {
        Ok(self.show(id)?.is_some_and(|issue| !issue.is_closed() && !issue.is_in_progress()))
    }

    /// The current state of one task, if the tracker shows it.
    fn show(&self, id: &str) -> Result<Option<TrackerIssue>, TrackerError> {
        let output = self.run(&["show", id, "--json"])?;
        let issue = TrackerIssue::read(&output.stdout, id).filter(|_| output.status.success());
        if issue.is_some() {
            return Ok(issue);
        }
        let output = self.run_checked(&["ready", "--json"])?;
        Ok(TrackerIssue::read(&output.stdout, id))
    }

    fn run(&self, arguments: &[&str]) -> Result<CommandOutput, TrackerError> {
        let account_name = self.account_name();
        let environment: Vec<(&str, &str)> = account_name.iter().map(|name| ("USER", name.as_str())).collect();
        let command = ShortCommand {
            program: self.program(),
            arguments,
            directory: self.repository.root(),
            environment: &environment,
            input: &[],
            limit: self.options.limit,
            max_stdout: MAX_BYTES,
            cancelled: None,
            reaper: None,
        };
        process::run_command(&command).map_err(|error| TrackerError::NotRun { command: self.command(arguments), error })
    }

    fn run_checked(&self, arguments: &[&str]) -> Result<CommandOutput, TrackerError> {
        let output = self.run(arguments)?;
        if output.status.success() { Ok(output) } else { Err(self.command_error(arguments, &output)) }
    }

    fn command_error(&self, arguments: &[&str], output: &CommandOutput) -> TrackerError {
        let status = match output.status.code() {
            Some(code) => format!("exit {code}"),
            None => "killed by a signal".to_owned(),
        };
        let printed = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
        TrackerError::Failed { command: self.command(arguments), status, output: describe_output(printed) }
    }

    fn program(&self) -> &str {
        match &self.source {
            TaskSource::Program { name } => name,
            TaskSource::Queue | TaskSource::File { .. } => PROGRAMS[0],
        }
    }

    fn command(&self, arguments: &[&str]) -> String {
        format!("{} {}", self.program(), arguments.join(" "))
    }
}

/// The list of issues in an answer, with or without a wrapper object. `null` counts as empty.
fn listed(answer: &Value) -> Option<Value> {
    let wrapped = || ["data", "issues"].iter().find_map(|key| answer.get(key));
    let list = if answer.is_object() { wrapped()? } else { answer };
    if list.is_null() { Some(json!([])) } else { list.is_array().then(|| list.clone()) }
}

/// Maximum number of output characters in an error message.
const MAX_OUTPUT_CHARS: usize = 400;

fn describe_output(printed: &[u8]) -> String {
    let text = String::from_utf8_lossy(printed);
    let text = text.trim();
    let shown: String = text.chars().take(MAX_OUTPUT_CHARS).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    if shown.is_empty() { "; it printed nothing".to_owned() } else { format!(": {shown}{more}") }
}

/// Reads a file up to the maximum size; the parser rejects longer ones.
fn read_file(path: &Path) -> Result<Vec<u8>, TrackerError> {
    let read = atomic_file::read_at_most(path, MAX_BYTES as u64 + 1);
    read.map_err(|error| TrackerError::Unreadable { path: path.to_owned(), error })
}

/// The ready tasks, most urgent first.
pub fn ready(file: &TaskFile) -> Vec<TaskSpec> {
    let open = file.groups.iter().flatten().filter_map(|id| file.task(id));
    open.filter(|task| is_ready(task)).map(spec).collect()
}

/// Whether a task can be started now and its id can be passed to the program.
pub fn is_ready(task: &SourceTask) -> bool {
    task.state == SourceState::Open && is_nameable(&task.id)
}

/// Whether an id is a single argument and no option.
pub fn is_nameable(id: &str) -> bool {
    !id.starts_with('-') && !id.chars().any(|char| char.is_whitespace() || char.is_control())
}

fn spec(task: &SourceTask) -> TaskSpec {
    TaskSpec {
        title: task.title.clone(),
        description: task.description(),
        tracker: Some(TrackerRef {
            tracker: BEADS.to_owned(),
            id: task.id.clone(),
            priority: task.priority,
            reopened: None,
        }),
        ..TaskSpec::default()
    }
}

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
                match ["data", "issues", "issue"].iter().find_map(|key| members.remove(*key)) {
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
