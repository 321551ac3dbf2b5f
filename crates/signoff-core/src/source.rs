//! Where tasks come from: plan files, trackers and planners, read into one shape.
//!
//! Readers are pure and total: bytes in, a [`TaskFile`] or an error that names file, line and what was
//! expected. A file is never written back from what was read: [`tick()`] changes single bytes of it.

mod beads;
mod bmad;
mod detect;
mod error;
pub(crate) mod json;
mod kiro;
mod lines;
mod open_spec;
mod order;
mod plan_markdown;
pub mod planner;
mod render;
mod spec_kit;
mod sprint;
mod task_master;
mod text;
mod tick;

use std::collections::BTreeSet;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde::{Deserialize, Serialize as DeriveSerialize};

pub use beads::is_blocker;
pub use error::SourceError;
pub(crate) use order::MAX_TASKS;
pub use render::render_text;
pub use sprint::{StoryFile, read_sprint};
pub use tick::{Mark, TickError, is_ticked, tick};

/// The largest file that is read. Plans are a few kilobytes; trackers a few megabytes.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The grammars a task file can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, DeriveSerialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    PlanMarkdown,
    SpecKit,
    OpenSpec,
    Kiro,
    TaskMaster,
    /// A story of BMAD, or its `sprint-status.yaml`.
    Bmad,
    Beads,
    /// Any other text: a specification, whose tasks a planner has yet to enumerate.
    Text,
}

impl Format {
    pub const ALL: [Self; 8] = [
        Self::PlanMarkdown,
        Self::SpecKit,
        Self::OpenSpec,
        Self::Kiro,
        Self::TaskMaster,
        Self::Bmad,
        Self::Beads,
        Self::Text,
    ];

    /// The word of the JSON interfaces.
    pub fn word(self) -> &'static str {
        match self {
            Self::PlanMarkdown => "plan_markdown",
            Self::SpecKit => "spec_kit",
            Self::OpenSpec => "open_spec",
            Self::Kiro => "kiro",
            Self::TaskMaster => "task_master",
            Self::Bmad => "bmad",
            Self::Beads => "beads",
            Self::Text => "text",
        }
    }

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::PlanMarkdown => "plan markdown",
            Self::SpecKit => "spec-kit",
            Self::OpenSpec => "OpenSpec",
            Self::Kiro => "Kiro",
            Self::TaskMaster => "Task Master",
            Self::Bmad => "BMAD",
            Self::Beads => "beads",
            Self::Text => "specification",
        }
    }
}

/// Where a task stands, according to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, DeriveSerialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Open,
    InProgress,
    /// It waits for something that is not done and will not be done by working this file.
    Blocked,
    /// Put off: not to be started now.
    Deferred,
    /// Written, and waiting for a review elsewhere.
    Review,
    Cancelled,
    /// An item the tracker keeps for itself, such as a gate or a message: nothing an agent can do.
    NotWork,
    Done,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::InProgress => "in_progress",
            Self::Blocked => "blocked",
            Self::Deferred => "deferred",
            Self::Review => "review",
            Self::Cancelled => "cancelled",
            Self::NotWork => "not_work",
            Self::Done => "done",
        }
    }
}

/// What a plan wants done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, DeriveSerialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileAction {
    Create,
    Modify,
    Test,
    Delete,
}

/// A line, or the lines from the first to the second, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, DeriveSerialize, Deserialize)]
pub struct LineRange {
    pub first: u32,
    pub last: u32,
}

/// A file that a task names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, DeriveSerialize, Deserialize)]
pub struct FileRef {
    pub action: FileAction,
    /// As written. Whether it stays inside the repository is for the one who opens it to check.
    pub path: String,
    pub range: Option<LineRange>,
}

/// A part of a task that has no loop of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, DeriveSerialize)]
pub struct Step {
    pub title: String,
    pub done: bool,
    pub line: u32,
    #[serde(skip)]
    pub mark: Option<Mark>,
}

/// One task as its file tells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, DeriveSerialize)]
pub struct SourceTask {
    /// Unique within the file.
    pub id: String,
    pub title: String,
    pub body: String,
    pub state: State,
    /// Where it begins, counted from 1.
    pub line: u32,
    /// The phase or group heading it stands under.
    pub section: Option<String>,
    /// Ids in this file, as far as they exist there. The order of a chain is not repeated here.
    pub depends_on: Vec<String>,
    /// Marked by its author as safe to run beside its neighbours.
    pub parallel: bool,
    /// Its author can do without it, so it is in no group.
    pub optional: bool,
    pub files: Vec<FileRef>,
    pub steps: Vec<Step>,
    pub acceptance: Vec<String>,
    /// References to requirements or acceptance criteria kept elsewhere, such as `1.2` or `AC 3`.
    pub requirements: Vec<String>,
    /// 0 is highest, 4 lowest.
    pub priority: Option<u8>,
    pub parent: Option<String>,
    /// The open box that stands for this task. None where it is ticked or where there is no box.
    #[serde(skip)]
    pub mark: Option<Mark>,
}

impl SourceTask {
    /// What whoever works on it is told.
    pub fn description(&self) -> String {
        let mut description = self.body.trim().to_owned();
        if !self.acceptance.is_empty() {
            description += "\n\nAcceptance criteria:\n";
            description += &self.acceptance.iter().map(|line| format!("- {line}\n")).collect::<String>();
        }
        description
    }

    pub(crate) fn new(id: impl Into<String>, title: impl Into<String>, line: u32) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            body: String::new(),
            state: State::Open,
            line,
            section: None,
            depends_on: Vec::new(),
            parallel: false,
            optional: false,
            files: Vec::new(),
            steps: Vec::new(),
            acceptance: Vec::new(),
            requirements: Vec::new(),
            priority: None,
            parent: None,
            mark: None,
        }
    }
}

/// Something in the file that was understood otherwise than its author may have meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, DeriveSerialize)]
pub struct Warning {
    pub line: u32,
    pub message: String,
}

impl Warning {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// What one file says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskFile {
    pub format: Format,
    pub title: Option<String>,
    pub goal: Option<String>,
    /// Criteria for the whole file; a task points at them in its `requirements`.
    pub acceptance: Vec<String>,
    /// In the order of the file.
    pub tasks: Vec<SourceTask>,
    /// What is left to do: ids that may be worked at once, group after group.
    pub groups: Vec<Vec<String>>,
    pub warnings: Vec<Warning>,
}

impl TaskFile {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            title: None,
            goal: None,
            acceptance: Vec::new(),
            tasks: Vec::new(),
            groups: Vec::new(),
            warnings: Vec::new(),
        }
    }

    pub fn task(&self, id: &str) -> Option<&SourceTask> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// Ids that may be worked at once, group after group. Every task that is left to do is in exactly
    /// one of them, after all it depends on; optional tasks, and parents that close with their
    /// children, are in none.
    pub fn groups(&self) -> &[Vec<String>] {
        &self.groups
    }

    /// The boxes to tick when a task is finished: its own, those of its steps, and those of the parents
    /// it was the last required child of. Read the file anew after each tick: what the next one closes
    /// depends on it.
    pub fn marks_to_tick(&self, id: &str) -> Vec<Mark> {
        let Some(task) = self.task(id) else { return Vec::new() };
        let mut marks: Vec<Mark> = task.mark.iter().cloned().collect();
        marks.extend(task.steps.iter().filter_map(|step| step.mark.clone()));
        if self.format == Format::Kiro {
            marks.extend(kiro::parents_closed_by(self, task));
        }
        marks
    }
}

impl Serialize for TaskFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("TaskFile", 8)?;
        fields.serialize_field("version", &1)?;
        fields.serialize_field("format", &self.format)?;
        fields.serialize_field("title", &self.title)?;
        fields.serialize_field("goal", &self.goal)?;
        fields.serialize_field("acceptance", &self.acceptance)?;
        fields.serialize_field("tasks", &self.tasks)?;
        fields.serialize_field("groups", &self.groups)?;
        fields.serialize_field("warnings", &self.warnings)?;
        fields.end()
    }
}

/// No file says less than is true of it, unless somebody tells.
static NOTHING: BTreeSet<String> = BTreeSet::new();

const NOT_UTF8: &str = "not UTF-8 text";

/// What a reader gets to see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub path: &'a str,
    /// Without the byte order mark.
    pub text: &'a str,
    /// Where `text` begins in the file.
    pub start: usize,
    pub now: Option<jiff::Timestamp>,
    /// The file ends within a character, which `text` leaves out.
    pub cut: bool,
    /// What is done although the file does not say so.
    pub done: &'a BTreeSet<String>,
}

impl Source<'_> {
    pub fn error(&self, line: u32, message: impl Into<String>) -> SourceError {
        SourceError::new(self.path, line, message)
    }

    pub fn not_utf8(&self) -> SourceError {
        self.error(lines::line_at(self.text.as_bytes(), self.text.len()), NOT_UTF8)
    }
}

/// Reads a file whose format its path or its content tells. Text that fits no grammar is a
/// specification. `now` decides what a tracker's deferral means; without it, deferred is deferred.
pub fn read(path: &str, bytes: &[u8], now: Option<jiff::Timestamp>) -> Result<TaskFile, SourceError> {
    let source = open(path, bytes, now)?;
    let format = detect::format(&source)?;
    read_source(format, &source)
}

/// Reads a file that must hold tasks: where [`read`] sees a specification, this is an error that names
/// the formats tried.
pub fn read_plan(path: &str, bytes: &[u8], now: Option<jiff::Timestamp>) -> Result<TaskFile, SourceError> {
    let source = open(path, bytes, now)?;
    let format = detect::format(&source)?;
    if format == Format::Text && !source.cut {
        return Err(detect::nothing_fits(&source));
    }
    read_source(format, &source)
}

/// Reads a file in a named format.
pub fn read_as(
    format: Format,
    path: &str,
    bytes: &[u8],
    now: Option<jiff::Timestamp>,
) -> Result<TaskFile, SourceError> {
    read_source(format, &open(path, bytes, now)?)
}

/// Reads what a tracker says. `done` are the issues that are done although it does not say so yet: what they
/// held up is ready.
pub fn read_tracker(
    path: &str,
    bytes: &[u8],
    now: Option<jiff::Timestamp>,
    done: &BTreeSet<String>,
) -> Result<TaskFile, SourceError> {
    read_source(Format::Beads, &Source { done, ..open(path, bytes, now)? })
}

fn read_source(format: Format, source: &Source<'_>) -> Result<TaskFile, SourceError> {
    // A tracker may be caught while it writes; any other file should be whole.
    if source.cut && format != Format::Beads {
        return Err(source.not_utf8());
    }
    match format {
        Format::PlanMarkdown => plan_markdown::read(source),
        Format::SpecKit => spec_kit::read(source),
        Format::OpenSpec => open_spec::read(source),
        Format::Kiro => kiro::read(source),
        Format::TaskMaster => task_master::read(source),
        Format::Bmad if sprint::is_sprint(source.path) => sprint::read(source),
        Format::Bmad => bmad::read(source),
        Format::Beads => beads::read(source),
        Format::Text => Ok(text::read(source)),
    }
}

fn open<'a>(path: &'a str, bytes: &'a [u8], now: Option<jiff::Timestamp>) -> Result<Source<'a>, SourceError> {
    if bytes.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; at most {MAX_BYTES} are read", bytes.len());
        return Err(SourceError::new(path, 1, message));
    }
    let (whole, cut) = match std::str::from_utf8(bytes) {
        Ok(whole) => (whole, false),
        Err(error) if error.error_len().is_none() => (valid_start(bytes, error), true),
        Err(error) => {
            let line = lines::line_at(bytes, error.valid_up_to());
            return Err(SourceError::new(path, line, NOT_UTF8));
        }
    };
    if let Some(at) = whole.find('\0') {
        return Err(SourceError::new(path, lines::line_at(bytes, at), "a NUL byte: this is not a text file"));
    }
    let text = whole.strip_prefix('\u{feff}').unwrap_or(whole);
    Ok(Source { path, text, start: whole.len() - text.len(), now, cut, done: &NOTHING })
}

fn valid_start(bytes: &[u8], error: std::str::Utf8Error) -> &str {
    let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
    std::str::from_utf8(valid).unwrap_or_default()
}
