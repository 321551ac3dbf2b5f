//! Recorded facts, and their JSON. The log is the truth, so its form carries a version.
//!
//! One line: `{"version":1,"run_id":3,"seq":17,"at":"…","kind":"loop.review_arrived","loop_id":"A","body":{…}}`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::group::{RunEvent, RunPolicy};
use crate::ids::{AttemptId, LoopId, RunId, TaskId};
use crate::machine::{Event, Policy};
use crate::review::{Review, Usage};

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
    /// About the run as a whole.
    Run(RunFact),
    /// About one loop.
    Loop(LoopId, LoopFact),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunFact {
    /// What holds for the run, whatever the configuration says later.
    Opened {
        policy: RunPolicy,
        workflow: Box<Policy>,
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
    AttemptStarted {
        attempt: AttemptId,
        agent: String,
    },
    /// What a checkpoint review said, whole; the machine is told its findings.
    CheckpointReviewed {
        review: Box<Review>,
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
    Moved(Event),
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
    let (scope, loop_id, value) = match &recorded.fact {
        Fact::Run(fact) => ("run", Value::Null, tagged(fact)),
        Fact::Loop(loop_id, fact) => ("loop", Value::from(loop_id.as_str()), tagged(fact)),
    };
    // What moved is named after the event, so that a log can be searched by kind.
    let (name, body) = split(value);
    let (name, body) = if name == "moved" { split(body) } else { (name, body) };
    serde_json::json!({
        "version": VERSION,
        "run_id": recorded.run.0,
        "seq": recorded.seq,
        "at": recorded.at.to_string(),
        "kind": format!("{scope}.{name}"),
        "loop_id": loop_id,
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
    if body.is_null() { Value::from(name) } else { serde_json::json!({ name: body }) }
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

fn fact(value: &Value, kind: &str) -> Result<Fact, WireError> {
    let body = value.get("body").cloned().unwrap_or(Value::Null);
    match kind.split_once('.') {
        Some(("run", name)) => read(kind, name, body, &["opened"]).map(Fact::Run),
        Some(("loop", name)) => {
            let loop_id = value["loop_id"].as_str().ok_or(WireError::Key { key: "loop_id" })?;
            let own = ["added", "governed", "attempt_started", "checkpoint_reviewed", "used", "said"];
            read(kind, name, body, &own).map(|fact| Fact::Loop(loop_id.into(), fact))
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
