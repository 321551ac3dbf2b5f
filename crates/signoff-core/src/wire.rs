//! Recorded facts, and their JSON. The log is the truth, so its form carries a version.
//!
//! One line: `{"version":1,"run_id":3,"seq":17,"at":"…","kind":"loop.review_arrived","loop_id":"A","body":{…}}`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::group::{RunEvent, RunPolicy};
use crate::hold::Hold;
use crate::ids::{AttemptId, Commit, LoopId, ReviewerName, RunId, TaskId};
use crate::machine::{Event, Policy};
use crate::review::{Review, Usage};
use crate::session::Resumed;
use crate::source::planner::Planned;
use crate::task::TaskSpec;

/// The version this program writes. It reads this one and every earlier one.
pub const VERSION: u32 = 1;

/// A fact in its place of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub run: RunId,
    pub seq: u64,
    pub at: Timestamp,
    pub fact: Fact,
}

/// Everything that is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// About a task, whatever run works it.
    Task(TaskId, TaskFact),
    /// About the run as a whole.
    Run(RunFact),
    /// About one loop.
    Loop(LoopId, LoopFact),
}

/// The log of the queue: facts about tasks that no run has taken up yet.
pub const QUEUE: RunId = RunId(0);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskFact {
    /// `auto_review` and `max_review_cycles` are what the configuration made of it at that time.
    Added { spec: Box<TaskSpec>, auto_review: bool, max_review_cycles: Option<u32> },
    /// A person called it off before any run took it up.
    Withdrawn { by: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunFact {
    /// What holds for the run, whatever the configuration says later.
    Opened {
        policy: RunPolicy,
        workflow: Box<Policy>,
    },
    /// What the run is to bring about: a specification under the name people know it by.
    Specified {
        name: String,
        text: String,
    },
    Moved(RunEvent),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopFact {
    /// A task and the branch it is worked on.
    Added {
        task: TaskId,
        title: String,
        branch: String,
    },
    /// The loop's own policy, where it is not the run's: another task type, another bound, a planning part.
    Governed {
        policy: Box<Policy>,
    },
    /// Where it is worked, and the commit its changes are counted from.
    Placed {
        base: Commit,
        worktree: String,
    },
    /// An attempt is about to be started.
    AttemptStarted {
        attempt: AttemptId,
        launch: Launch,
    },
    /// What a checkpoint review said, whole; the machine is told its findings.
    CheckpointReviewed {
        review: Box<Review>,
    },
    /// A planner's answer, which was in order; the machine is told that the work is done.
    Answered {
        attempt: AttemptId,
        answer: Planned,
    },
    /// What an attempt has used so far.
    Used {
        attempt: AttemptId,
        usage: Usage,
    },
    Said {
        attempt: AttemptId,
        line: String,
    },
    /// Under which name an attempt's agent can go on where it ended.
    Session {
        attempt: AttemptId,
        session: String,
    },
    /// Something about an attempt that people should know and that changes nothing.
    Noted {
        attempt: AttemptId,
        note: String,
    },
    Moved(Event),
}

/// Who is started for what.
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
    /// Who holds it to what it may write; none where that was not written down, and for what is no process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// What it goes on with; none where it begins anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumes: Option<Resumed>,
}

impl Launch {
    /// One of which only the agent is known.
    pub fn of(agent: &str) -> Self {
        Self { agent: agent.to_owned(), ..Self::default() }
    }
}

/// Why a line of the log cannot be read.
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

/// The JSON of a fact.
pub fn to_json(recorded: &Recorded) -> Value {
    let (scope, about, value) = match &recorded.fact {
        Fact::Task(task, fact) => ("task", Value::from(task.0), tagged(fact)),
        Fact::Run(fact) => ("run", Value::Null, tagged(fact)),
        Fact::Loop(loop_id, fact) => ("loop", Value::from(loop_id.as_str()), tagged(fact)),
    };
    // What moved is named after the event, so that a log can be searched by kind.
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
    // Moved, not copied: logs are long, and `json!` would write the body anew.
    if body.is_null() { Value::from(name) } else { Value::from_iter([(name, body)]) }
}

/// Reads a fact back.
pub fn from_json(value: &Value) -> Result<Recorded, WireError> {
    let number = |key: &'static str| value[key].as_u64().ok_or(WireError::Key { key });
    let version = number("version")?;
    if version > u64::from(VERSION) {
        return Err(WireError::Newer { found: version });
    }
    let at = value["at"].as_str().and_then(|text| text.parse().ok()).ok_or(WireError::Key { key: "at" })?;
    let kind = value["kind"].as_str().ok_or(WireError::Key { key: "kind" })?;
    Ok(Recorded { run: RunId(number("run_id")?), seq: number("seq")?, at, fact: fact(value, kind)? })
}

/// Facts of loops that are no events of their machine.
const OF_LOOPS: [&str; 10] = [
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

fn fact(value: &Value, kind: &str) -> Result<Fact, WireError> {
    let body = value.get("body").cloned().unwrap_or(Value::Null);
    match kind.split_once('.') {
        Some(("task", name)) => {
            let task = value["task_id"].as_u64().ok_or(WireError::Key { key: "task_id" })?;
            read(kind, name, body, &[name]).map(|fact| Fact::Task(TaskId(task), fact))
        }
        Some(("run", name)) => read(kind, name, body, &["opened", "specified"]).map(Fact::Run),
        Some(("loop", name)) => {
            let loop_id = value["loop_id"].as_str().ok_or(WireError::Key { key: "loop_id" })?;
            read(kind, name, body, &OF_LOOPS).map(|fact| Fact::Loop(loop_id.into(), fact))
        }
        Some(_) | None => Err(WireError::Kind { kind: kind.to_owned() }),
    }
}

fn read<T: for<'de> Deserialize<'de>>(
    kind: &str,
    name: &str,
    body: Value,
    own: &[&str],
) -> Result<T, WireError> {
    let value = join(name, body);
    let value = if own.contains(&name) { value } else { join("moved", value) };
    serde_json::from_value(value).map_err(|error| {
        let message = error.to_string();
        // Only the kind itself: a word inside the body can be unknown too.
        if message.starts_with(&format!("unknown variant `{name}`")) {
            WireError::Kind { kind: kind.to_owned() }
        } else {
            WireError::Body { kind: kind.to_owned(), message }
        }
    })
}
