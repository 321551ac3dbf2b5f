//! The tracker that slots take their tasks from: its program where there is one, else its file, which is only read.
//!
//! What the program prints is data. It is given ids and fixed words, within bounds of time and output, and a program
//! that fails is an error, never an empty list.

mod offer;
mod told;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use signoff_core::group::Supply;
use signoff_core::source::{self, MAX_BYTES, SourceError, SourceTask, State, TaskFile};
use signoff_core::task::{TaskSpec, Tracked};

use crate::clock;
use crate::git::Repository;
use crate::process::{self, Answer, AskError, Question};
pub use offer::{Offer, Taken, come_after, offer};
use told::Told;

/// Under this name the store keeps the claims.
pub const BEADS: &str = "beads";

/// The programs of the tracker, the first that is there is used.
pub const PROGRAMS: [&str; 2] = ["bd", "br"];

/// The tracker's file, from the main checkout.
pub const FILE: &str = ".beads/issues.jsonl";

/// Who we are where nobody has a name.
const NAME: &str = "signoff";

/// How long its program may take, unless told otherwise.
const LIMIT: Duration = Duration::from_secs(60);

/// What holds for every question to a tracker.
#[derive(Debug, Clone)]
pub struct Manners {
    /// The names under which a tracker may know us.
    pub names: Vec<String>,
    /// The name of the account is not told to programs: a tracker might write down that nobody claimed a task.
    pub nameless: bool,
    pub limit: Duration,
}

impl Manners {
    pub fn new(names: Vec<String>, nameless: bool, limit: Option<Duration>) -> Self {
        Self { names, nameless, limit: limit.unwrap_or(LIMIT) }
    }
}

/// A tracker as one asks it.
#[derive(Debug, Clone)]
pub struct Tracker {
    pub supply: Supply,
    /// It is asked at the top of the main checkout, whose tracker linked worktrees share.
    pub repository: Repository,
    pub manners: Manners,
}

/// Whose a task is after it was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// And these of the tracker's had to be done first.
    Ours(Vec<String>),
    /// Somebody was faster, or it is done: in words.
    Gone(String),
}

/// Why the tracker says nothing useful.
#[derive(Debug, thiserror::Error)]
pub enum TrackerError {
    #[error("`{command}` could not be run: {error}")]
    Unasked { command: String, error: AskError },
    #[error("`{command}` failed ({how}){said}")]
    Failed { command: String, how: String, said: String },
    #[error("`{command}` printed what nobody can read: {message}{said}")]
    Nonsense { command: String, message: String, said: String },
    #[error("cannot read {path}: {error}", path = path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error(transparent)]
    File(#[from] SourceError),
}

impl TrackerError {
    /// What a person would type to see it.
    pub fn command(&self) -> Option<&str> {
        match self {
            Self::Unasked { command, .. } | Self::Failed { command, .. } | Self::Nonsense { command, .. } => {
                Some(command)
            }
            Self::Unreadable { .. } | Self::File(_) => None,
        }
    }
}

impl Tracker {
    /// What it knows: of a program what is ready, of a file all there is. `done` are the tasks that are done although
    /// the file does not say so.
    pub fn read(&self, done: &BTreeSet<String>) -> Result<TaskFile, TrackerError> {
        let now = Some(clock::now());
        match &self.supply {
            Supply::File { path } => {
                let bytes = read_file(&self.repository.root().join(path))?;
                Ok(source::read_tracker(path, &bytes, now, done)?)
            }
            Supply::Program { .. } | Supply::Queue => {
                let arguments = ["ready", "--json"];
                let Answer { stdout, .. } = self.succeed(&arguments)?;
                let command = self.command(&arguments);
                let nonsense = |message| TrackerError::Nonsense {
                    command: command.clone(),
                    message,
                    said: said(&stdout),
                };
                // A file may be caught while it is written; an answer is whole, or it is none.
                let answer: Value =
                    serde_json::from_slice(&stdout).map_err(|error| nonsense(error.to_string()))?;
                let list = listed(&answer).ok_or_else(|| nonsense("expected a list of issues".to_owned()))?;
                let read = source::read_tracker(&command, list.to_string().as_bytes(), now, done);
                read.map_err(|error| nonsense(error.message))
            }
        }
    }

    /// Makes a task ours. `again` says that we may have done so before: then it may be in progress already.
    pub fn claim(&self, id: &str, again: bool) -> Result<Claim, TrackerError> {
        if !self.supply.is_told() {
            return Ok(Claim::Ours(Vec::new()));
        }
        let arguments = ["update", id, "--claim", "--json"];
        let answer = self.ask(&arguments)?;
        let told = self.show(id)?;
        if let Some(told) = told.as_ref().filter(|told| told.is_closed()) {
            return Ok(Claim::Gone(format!("it is {}", told.status)));
        }
        let claimed = Told::read(&answer.stdout, id).filter(|_| answer.status.success());
        let other = told.as_ref().and_then(|told| self.other(told, claimed.as_ref()));
        let ours = || Claim::Ours(told.as_ref().map(Told::after).unwrap_or_default());
        match (answer.status.success(), other) {
            (true, None) => Ok(ours()),
            (true, Some(other)) => Ok(Claim::Gone(format!(
                "{other} has it; if that is you, say so in BD_ACTOR and open {id} again"
            ))),
            (false, Some(other)) => Ok(Claim::Gone(format!("{other} has it"))),
            (false, None) if again && told.as_ref().is_some_and(Told::is_begun) => Ok(ours()),
            (false, None) if told.as_ref().is_some_and(Told::is_begun) => {
                Ok(Claim::Gone("it is in progress".to_owned()))
            }
            (false, None) => Err(self.failed(&arguments, &answer)),
        }
    }

    /// Who has a task, if it is not us. A tracker knows people by the name of their account or of their commits, or by
    /// one that it was configured with: that one it says when a claim of ours succeeds.
    fn other<'a>(&self, told: &'a Told, claimed: Option<&Told>) -> Option<&'a str> {
        let other = told.other_than(&self.manners.names)?;
        let ours = claimed.and_then(Told::assignee) == Some(other)
            || self.given().as_deref() == Some(other)
            || self.repository.person().as_deref() == Some(other);
        (!ours).then_some(other)
    }

    /// The account's name for a tracker that would find none.
    fn given(&self) -> Option<String> {
        let known = || self.manners.names.first().cloned().or_else(|| self.repository.person());
        self.manners.nameless.then(|| known().unwrap_or_else(|| NAME.to_owned()))
    }

    /// Gives up a claim of ours, so that others can have the task. What is not in progress is nobody's; what others
    /// have stays theirs: who, in words.
    pub fn give_back(&self, id: &str) -> Result<Option<String>, TrackerError> {
        if !self.supply.is_told() || !self.show(id)?.is_some_and(|told| told.is_begun()) {
            return Ok(None);
        }
        match self.claim(id, true)? {
            Claim::Gone(why) => Ok(Some(why)),
            Claim::Ours(_) => {
                self.succeed(&["update", id, "--status", "open", "--assignee", ""])?;
                Ok(None)
            }
        }
    }

    /// Says that a task is done. One that is closed already is closed.
    pub fn close(&self, id: &str, reason: &str) -> Result<(), TrackerError> {
        let arguments = ["close", id, "--reason", reason];
        let answer = self.ask(&arguments)?;
        let closed = || self.show(id).ok().flatten().is_some_and(|told| told.is_closed());
        if answer.status.success() || closed() {
            return Ok(());
        }
        Err(self.failed(&["close", id], &answer))
    }

    /// Whether a task can be begun now, not only when it was listed.
    fn is_open(&self, id: &str) -> Result<bool, TrackerError> {
        Ok(self.show(id)?.is_some_and(|told| !told.is_closed() && !told.is_begun()))
    }

    /// What it says of one task now: none if it does not say.
    fn show(&self, id: &str) -> Result<Option<Told>, TrackerError> {
        let answer = self.ask(&["show", id, "--json"])?;
        let told = Told::read(&answer.stdout, id).filter(|_| answer.status.success());
        if told.is_some() {
            return Ok(told);
        }
        let answer = self.succeed(&["ready", "--json"])?;
        Ok(Told::read(&answer.stdout, id))
    }

    fn ask(&self, arguments: &[&str]) -> Result<Answer, TrackerError> {
        let given = self.given();
        let environment: Vec<(&str, &str)> = given.iter().map(|name| ("USER", name.as_str())).collect();
        let question = Question {
            program: self.program(),
            arguments,
            directory: self.repository.root(),
            environment: &environment,
            input: &[],
            limit: self.manners.limit,
            most: MAX_BYTES,
            recalled: None,
            escort: None,
        };
        process::ask(&question)
            .map_err(|error| TrackerError::Unasked { command: self.command(arguments), error })
    }

    fn succeed(&self, arguments: &[&str]) -> Result<Answer, TrackerError> {
        let answer = self.ask(arguments)?;
        if answer.status.success() { Ok(answer) } else { Err(self.failed(arguments, &answer)) }
    }

    fn failed(&self, arguments: &[&str], answer: &Answer) -> TrackerError {
        let how = match answer.status.code() {
            Some(code) => format!("exit {code}"),
            None => "killed by a signal".to_owned(),
        };
        let printed = if answer.stderr.is_empty() { &answer.stdout } else { &answer.stderr };
        TrackerError::Failed { command: self.command(arguments), how, said: said(printed) }
    }

    fn program(&self) -> &str {
        match &self.supply {
            Supply::Program { name } => name,
            Supply::Queue | Supply::File { .. } => PROGRAMS[0],
        }
    }

    fn command(&self, arguments: &[&str]) -> String {
        format!("{} {}", self.program(), arguments.join(" "))
    }
}

/// The list in an answer, whatever it is wrapped in. Nothing at all is an empty one.
fn listed(answer: &Value) -> Option<Value> {
    let list = match answer {
        Value::Object(members) => members.get("data").or_else(|| members.get("issues"))?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => answer,
    };
    match list {
        Value::Null => Some(json!([])),
        Value::Array(_) => Some(list.clone()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
    }
}

/// So many characters of what a program printed are shown.
const SHOWN: usize = 400;

fn said(printed: &[u8]) -> String {
    let text = String::from_utf8_lossy(printed);
    let text = text.trim();
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    if shown.is_empty() { "; it said nothing".to_owned() } else { format!(": {shown}{more}") }
}

/// A file within bounds; what is longer is refused by its reader.
fn read_file(path: &Path) -> Result<Vec<u8>, TrackerError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| TrackerError::Unreadable { path: path.to_owned(), error })?;
    Ok(bytes)
}

/// What is ready, the most urgent first, as tasks of ours.
pub fn ready(file: &TaskFile) -> Vec<TaskSpec> {
    let open = file.groups().iter().flatten().filter_map(|id| file.task(id));
    open.filter(|task| is_ready(task)).map(spec).collect()
}

/// Whether a task can be begun now, and named to a program.
pub fn is_ready(task: &SourceTask) -> bool {
    task.state == State::Open && is_nameable(&task.id)
}

/// Whether an id can be a word of a command line, and not an option of it.
pub fn is_nameable(id: &str) -> bool {
    !id.starts_with('-') && !id.chars().any(|char| char.is_whitespace() || char.is_control())
}

fn spec(task: &SourceTask) -> TaskSpec {
    TaskSpec {
        title: task.title.clone(),
        description: task.description(),
        tracked: Some(Tracked {
            tracker: BEADS.to_owned(),
            id: task.id.clone(),
            priority: task.priority,
            reopened: None,
        }),
        ..TaskSpec::default()
    }
}
