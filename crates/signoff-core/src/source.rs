//! Reads tasks from plan files, trackers and planners into one representation.
//!
//! Parsers are pure and total: they return a [`TaskFile`], or an error with file, line and what was expected. A
//! file is never written back as a whole; [`tick()`] changes single bytes.

mod beads;
mod bmad;
mod detect;
pub(crate) mod json;
mod lines;
mod numbered_boxes;
mod order;
mod plan_markdown;
pub mod planner;
mod render;
mod spec_kit;
mod task_master;
mod tick;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use beads::is_blocker;
pub(crate) use lines::line_at;
pub(crate) use order::MAX_TASKS;
pub use render::render_text;
pub use tick::{CheckboxMark, TickError, is_ticked, tick};

/// Maximum size of a task file in bytes. Plans are a few kilobytes, trackers a few megabytes.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The formats of task files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum TaskFormat {
    PlanMarkdown,
    SpecKit,
    OpenSpec,
    Kiro,
    TaskMaster,
    /// A BMAD story, or its `sprint-status.yaml`.
    Bmad,
    Beads,
    /// Any other text: a specification. A planner enumerates its tasks.
    #[default]
    Text,
}

impl TaskFormat {
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The name for people.
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

/// The state of a task according to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum SourceState {
    #[default]
    Open,
    InProgress,
    /// Waits for something that this file cannot complete.
    Blocked,
    /// Postponed: not to be started now.
    Deferred,
    /// Implemented, and waiting for a review elsewhere.
    Review,
    Cancelled,
    /// An internal item of the tracker, such as a gate or a message. Agents cannot work on it.
    NotWork,
    Done,
}

/// What a plan does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum FileAction {
    Create,
    Modify,
    Test,
    Delete,
}

/// A line, or a range of lines. Both ends are inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineRange {
    pub first: u32,
    pub last: u32,
}

/// A file that a task names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileRef {
    pub action: FileAction,
    /// As written. The caller must check that it stays inside the repository before opening it.
    pub path: String,
    pub range: Option<LineRange>,
}

/// A part of a task that has no loop of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct TaskStep {
    pub title: String,
    pub done: bool,
    pub line: u32,
    #[serde(skip)]
    pub mark: Option<CheckboxMark>,
}

/// One task of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub struct SourceTask {
    /// Unique within the file.
    pub id: String,
    pub title: String,
    pub body: String,
    pub state: SourceState,
    /// Where it begins, counted from 1.
    pub line: u32,
    /// The phase or group heading above it.
    pub section: Option<String>,
    /// Ids in this file, if they exist there. The order of a chain is not repeated here.
    pub depends_on: Vec<String>,
    /// Marked by its author as safe to run beside its neighbours.
    pub parallel: bool,
    /// Optional, and therefore in no group.
    pub optional: bool,
    pub files: Vec<FileRef>,
    pub steps: Vec<TaskStep>,
    pub acceptance: Vec<String>,
    /// References to requirements or acceptance criteria kept elsewhere, such as `1.2` or `AC 3`.
    pub requirements: Vec<String>,
    /// 0 is highest, 4 lowest.
    pub priority: Option<u8>,
    pub parent: Option<String>,
    /// The open checkbox of this task. `None` if it is ticked or there is none.
    #[serde(skip)]
    pub mark: Option<CheckboxMark>,
}

impl SourceTask {
    /// The description for the agent that works on the task.
    pub fn description(&self) -> String {
        let mut description = self.body.trim().to_owned();
        if !self.acceptance.is_empty() {
            description += "\n\nAcceptance criteria:\n";
            description += &self.acceptance.iter().map(|line| format!("- {line}\n")).collect::<String>();
        }
        description
    }

    pub(crate) fn new(id: impl Into<String>, title: impl Into<String>, line: u32) -> Self {
        Self { id: id.into(), title: title.into(), line, ..Self::default() }
    }
}

/// A part of the file that may have been parsed differently than its author meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Warning {
    pub line: u32,
    pub message: String,
}

/// A parsed task file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub struct TaskFile {
    /// The version of the JSON form.
    version: u8,
    pub format: TaskFormat,
    pub title: Option<String>,
    pub goal: Option<String>,
    /// Criteria for the whole file. Tasks refer to them in `requirements`.
    pub acceptance: Vec<String>,
    /// In file order.
    pub tasks: Vec<SourceTask>,
    /// The remaining work: groups of ids that may run in parallel, one group after the other. Every remaining task is
    /// in exactly one group, after its dependencies. Optional tasks, and parents that close with their children, are
    /// in none.
    pub groups: Vec<Vec<String>>,
    pub warnings: Vec<Warning>,
    /// The start of the last task's body while it is being read. The line ending is trimmed with the body.
    #[serde(skip)]
    body_start: Option<usize>,
}

impl TaskFile {
    pub(crate) fn new(format: TaskFormat) -> Self {
        Self { version: 1, format, ..Self::default() }
    }

    /// Adds a task that begins at a line. Its body is the text from there to [`TaskFile::close`].
    fn open(
        &mut self,
        source: &SourceInput<'_>,
        task: SourceTask,
        line: &lines::MarkdownLine<'_>,
    ) -> Result<(), SourceError> {
        self.push(source, task)?;
        self.body_start = Some(line.offset + line.text.len());
        Ok(())
    }

    /// The task whose body is being read.
    fn open_task(&mut self) -> Option<&mut SourceTask> {
        self.tasks.last_mut().filter(|_| self.body_start.is_some())
    }

    fn close(&mut self, source: &SourceInput<'_>, end: usize) {
        if let Some((start, task)) = self.body_start.take().zip(self.tasks.last_mut()) {
            task.body = lines::body(&source.text[start..end]);
        }
    }

    /// Ends a file of which all lines are read. Returns an error if it has no tasks.
    fn finish(
        &mut self,
        source: &SourceInput<'_>,
        lines: &lines::MarkdownLines<'_>,
        expected: &str,
    ) -> Result<(), SourceError> {
        self.close(source, source.text.len());
        self.warnings.extend(lines.unclosed());
        order::refuse_empty(source, self, expected)
    }

    pub fn task(&self, id: &str) -> Option<&SourceTask> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// The checkboxes to tick when a task is finished: its own, those of its steps, and those of the parents whose
    /// last required child it was. Parse the file again after each tick, because the next result depends on it.
    pub fn marks_to_tick(&self, id: &str) -> Vec<CheckboxMark> {
        let Some(task) = self.task(id) else { return Vec::new() };
        let mut marks: Vec<CheckboxMark> = task.mark.iter().cloned().collect();
        marks.extend(task.steps.iter().filter_map(|step| step.mark.clone()));
        if self.format == TaskFormat::Kiro {
            marks.extend(numbered_boxes::parents_closed_by(self, task));
        }
        marks
    }
}

/// A file that cannot be parsed as tasks, with the location and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct SourceError {
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    pub message: String,
}

impl SourceError {
    pub fn new(file: impl Into<String>, line: u32, message: impl Into<String>) -> Self {
        Self { file: file.into(), line, message: message.into() }
    }
}

/// No task is done besides those that the file marks as done.
static NONE_DONE: BTreeSet<String> = BTreeSet::new();

const NOT_UTF8: &str = "not UTF-8 text";

/// The input of a parser.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceInput<'a> {
    pub path: &'a str,
    /// Without the byte order mark.
    pub text: &'a str,
    /// The offset of `text` in the file.
    pub start: usize,
    pub now: Option<jiff::Timestamp>,
    /// Whether the file ends within a character, which `text` omits.
    pub cut: bool,
    /// The ids that are done although the file does not say so.
    pub done: &'a BTreeSet<String>,
}

impl SourceInput<'_> {
    pub fn error(&self, line: u32, message: impl Into<String>) -> SourceError {
        SourceError::new(self.path, line, message)
    }

    pub fn not_utf8(&self) -> SourceError {
        self.error(lines::line_at(self.text.as_bytes(), self.text.len()), NOT_UTF8)
    }
}

/// Parses a file, detecting its format from path and content. Text in no known format is a specification. `now`
/// resolves a tracker's deferrals; without it, deferred issues stay deferred.
pub fn read(path: &str, bytes: &[u8], now: Option<jiff::Timestamp>) -> Result<TaskFile, SourceError> {
    let source = open(path, bytes, now)?;
    let format = detect::format(&source)?;
    read_source(format, &source)
}

/// Parses a file that must contain tasks. Where [`read`] returns a specification, this is an error that names the
/// formats tried.
pub fn read_plan(path: &str, bytes: &[u8], now: Option<jiff::Timestamp>) -> Result<TaskFile, SourceError> {
    let source = open(path, bytes, now)?;
    let format = detect::format(&source)?;
    if format == TaskFormat::Text && !source.cut {
        return Err(detect::no_tasks_error(&source));
    }
    read_source(format, &source)
}

/// Parses a file in the given format.
pub fn read_as(
    format: TaskFormat,
    path: &str,
    bytes: &[u8],
    now: Option<jiff::Timestamp>,
) -> Result<TaskFile, SourceError> {
    read_source(format, &open(path, bytes, now)?)
}

/// Parses the output of a tracker. `done` are the issues that are done although the tracker does not say so yet.
/// They no longer block others.
pub fn read_tracker(
    path: &str,
    bytes: &[u8],
    now: Option<jiff::Timestamp>,
    done: &BTreeSet<String>,
) -> Result<TaskFile, SourceError> {
    read_source(TaskFormat::Beads, &SourceInput { done, ..open(path, bytes, now)? })
}

fn read_source(format: TaskFormat, source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    // A tracker may be in the middle of a write. Any other file must be complete.
    if source.cut && format != TaskFormat::Beads {
        return Err(source.not_utf8());
    }
    match format {
        TaskFormat::PlanMarkdown => plan_markdown::read(source),
        TaskFormat::SpecKit => spec_kit::read(source),
        TaskFormat::OpenSpec => numbered_boxes::read_open_spec(source),
        TaskFormat::Kiro => numbered_boxes::read_kiro(source),
        TaskFormat::TaskMaster => task_master::read(source),
        TaskFormat::Bmad if bmad::is_sprint(source.path) => bmad::read_sprint_file(source),
        TaskFormat::Bmad => bmad::read_story(source),
        TaskFormat::Beads => beads::read(source),
        TaskFormat::Text => Ok(detect::read_specification(source)),
    }
}

fn open<'a>(path: &'a str, bytes: &'a [u8], now: Option<jiff::Timestamp>) -> Result<SourceInput<'a>, SourceError> {
    if bytes.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; at most {MAX_BYTES} are read", bytes.len());
        return Err(SourceError::new(path, 1, message));
    }
    let (whole, cut) = match std::str::from_utf8(bytes) {
        Ok(whole) => (whole, false),
        Err(error) => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            if error.error_len().is_some() {
                return Err(SourceError::new(path, lines::line_at(bytes, valid.len()), NOT_UTF8));
            }
            (std::str::from_utf8(valid).unwrap_or_default(), true)
        }
    };
    if let Some(at) = whole.find('\0') {
        return Err(SourceError::new(path, lines::line_at(bytes, at), "a NUL byte: this is not a text file"));
    }
    let text = whole.strip_prefix('\u{feff}').unwrap_or(whole);
    Ok(SourceInput { path, text, start: whole.len() - text.len(), now, cut, done: &NONE_DONE })
}
