//! Recorded events and their versioned JSON form. The event log is the source of truth.
//!
//! One line: `{"version":1,"run_id":3,"seq":17,"at":"…","kind":"loop.review_arrived","loop_id":"A","body":{…}}`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::group::{RunEvent, RunPolicy};
use crate::ids::{AttemptId, Commit, LoopId, ReviewerName, RunId, TaskId};
use crate::machine::{AttemptRole, Event, Policy};
use crate::review::{Review, Usage};
use crate::sandbox::SandboxBackend;
use crate::session::ResumedSession;
use crate::source::planner::PlannerAnswer;
use crate::task::TaskSpec;

/// The version this program writes. It reads this and all earlier versions.
pub const VERSION: u32 = 1;

/// An event at its position in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFact {
    pub run: RunId,
    pub seq: u64,
    pub at: Timestamp,
    pub fact: Fact,
}

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// About a task, independent of runs.
    Task(TaskId, TaskFact),
    /// About a run.
    Run(RunFact),
    /// About a loop.
    Loop(LoopId, LoopFact),
}

/// The log of the queue: events of tasks that no run has started yet.
pub const QUEUE: RunId = RunId(0);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskFact {
    /// `auto_review` and `max_review_cycles` are the values that the configuration resolved to at that time.
    Added { spec: Box<TaskSpec>, auto_review: bool, max_review_cycles: Option<u32> },
    /// A person cancelled the task before a run started it.
    Withdrawn { by: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunFact {
    /// The policies of the run. Later configuration changes do not affect it.
    Opened { policy: RunPolicy, workflow: Box<Policy> },
    /// The specification that the run implements, and its display name.
    Specified { name: String, text: String },
    /// An event of the run's state machine.
    #[serde(rename = "moved")]
    Transitioned(RunEvent),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopFact {
    /// The task of this loop and its branch.
    Added { task: TaskId, title: String, branch: String },
    /// The loop's own policy if it differs from the run's: another task type, another limit, a planning loop.
    #[serde(rename = "governed")]
    PolicySet { policy: Box<Policy> },
    /// The worktree of the loop, and the base commit of its changes.
    #[serde(rename = "placed")]
    WorkspaceCreated { base: Commit, worktree: String },
    /// An attempt is about to start.
    AttemptStarted { attempt: AttemptId, launch: Launch },
    /// The full checkpoint review. The state machine gets only its findings, in a separate event.
    CheckpointReviewed { review: Box<Review> },
    /// A planner's valid answer. The state machine gets only the end of the work, in a separate event.
    Answered { attempt: AttemptId, answer: PlannerAnswer },
    /// The usage of an attempt so far.
    Used { attempt: AttemptId, usage: Usage },
    /// A line of an agent's output.
    #[serde(rename = "said")]
    AgentOutput { attempt: AttemptId, line: String },
    /// The session id with which an attempt's agent can be resumed.
    Session { attempt: AttemptId, session: String },
    /// A note about an attempt for people. It changes no state.
    Noted { attempt: AttemptId, note: String },
    /// An event of the loop's state machine.
    #[serde(rename = "moved")]
    Transitioned(Event),
}

/// How an attempt was started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Launch {
    pub agent: String,
    pub model: Option<String>,
    /// `implement`, `fix`, `review`, `check`, …
    pub role: String,
    pub reviewer: Option<ReviewerName>,
    pub phase: String,
    pub cycle: u32,
    /// The sandbox; none for logs that did not record it and for attempts without a process.
    #[serde(rename = "hold", skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxBackend>,
    /// The session that is resumed; none for a new session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumes: Option<ResumedSession>,
}

impl Launch {
    /// The role, if this version supports it.
    pub fn role(&self) -> Option<AttemptRole> {
        AttemptRole::parse(&self.role)
    }
}

/// Why a line of the log could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("version {found} is newer than this program, which reads up to {VERSION}: update signoff")]
    Newer { found: u64 },
    #[error("`{key}` is missing or has the wrong type")]
    Key { key: &'static str },
    #[error("unknown kind `{kind}`")]
    Kind { kind: String },
    #[error("{kind}: {message}")]
    Body { kind: String, message: String },
}

/// Serializes an event.
pub fn to_json(recorded: &RecordedFact) -> Value {
    let (scope, about, value) = match &recorded.fact {
        Fact::Task(task, fact) => ("task", Value::from(task.0), tagged(fact)),
        Fact::Run(fact) => ("run", Value::Null, tagged(fact)),
        Fact::Loop(loop_id, fact) => ("loop", Value::from(loop_id.as_str()), tagged(fact)),
    };
    // Transitions are named after the inner event, so that a log can be searched by kind.
    let (name, body) = split(value);
    let (name, body) = if name == "moved" { split(body) } else { (name, body) };
    let key = if scope == "task" { "task_id" } else { "loop_id" };
    serde_json::json!({
        "version": VERSION,
        "run_id": recorded.run.0,
        "seq": recorded.seq,
        "at": recorded.at.to_string(),
        "kind": format!("{scope}.{name}"),
        key: about,
        "body": body,
    })
}

fn tagged(fact: &impl Serialize) -> Value {
    serde_json::to_value(fact).unwrap_or(Value::Null)
}

/// Splits `{"name": body}` or `"name"`.
fn split(value: Value) -> (String, Value) {
    match value {
        Value::String(name) => (name, Value::Null),
        Value::Object(map) => map.into_iter().next().unwrap_or((String::new(), Value::Null)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => (String::new(), Value::Null),
    }
}

fn join(name: &str, body: Value) -> Value {
    // Moves the body instead of copying it: logs are long, and `json!` would serialize it again.
    if body.is_null() { Value::from(name) } else { Value::from_iter([(name, body)]) }
}

/// Parses an event.
pub fn from_json(value: &Value) -> Result<RecordedFact, WireError> {
    let number = |key: &'static str| value[key].as_u64().ok_or(WireError::Key { key });
    let version = number("version")?;
    if version > u64::from(VERSION) {
        return Err(WireError::Newer { found: version });
    }
    let at = value["at"].as_str().and_then(|text| text.parse().ok()).ok_or(WireError::Key { key: "at" })?;
    let kind = value["kind"].as_str().ok_or(WireError::Key { key: "kind" })?;
    Ok(RecordedFact { run: RunId(number("run_id")?), seq: number("seq")?, at, fact: read_fact(value, kind)? })
}

/// The kinds of loop facts that are not events of the state machine.
const LOOP_FACT_KINDS: [&str; 10] = [
    "added",
    "governed",
    "placed",
    "attempt_started",
    "checkpoint_reviewed",
    "answered",
    "used",
    "session",
    "said",
    "noted",
];

fn read_fact(value: &Value, kind: &str) -> Result<Fact, WireError> {
    let body = value.get("body").cloned().unwrap_or(Value::Null);
    match kind.split_once('.') {
        Some(("task", name)) => {
            let task = value["task_id"].as_u64().ok_or(WireError::Key { key: "task_id" })?;
            read_body(kind, name, body, &[name]).map(|fact| Fact::Task(TaskId(task), fact))
        }
        Some(("run", name)) => read_body(kind, name, body, &["opened", "specified"]).map(Fact::Run),
        Some(("loop", name)) => {
            let loop_id = value["loop_id"].as_str().ok_or(WireError::Key { key: "loop_id" })?;
            read_body(kind, name, body, &LOOP_FACT_KINDS).map(|fact| Fact::Loop(loop_id.into(), fact))
        }
        Some(_) | None => Err(WireError::Kind { kind: kind.to_owned() }),
    }
}

fn read_body<T: for<'de> Deserialize<'de>>(kind: &str, name: &str, body: Value, own: &[&str]) -> Result<T, WireError> {
    let value = join(name, body);
    let value = if own.contains(&name) { value } else { join("moved", value) };
    serde_json::from_value(value).map_err(|error| {
        let message = error.to_string();
        // Check the kind itself only: a word inside the body can be unknown too.
        if message.starts_with(&format!("unknown variant `{name}`")) {
            WireError::Kind { kind: kind.to_owned() }
        } else {
            WireError::Body { kind: kind.to_owned(), message }
        }
    })
}
