//! Parses BMAD: stories (`# Story 1.2: Title`, acceptance criteria, checkboxes under `## Tasks / Subtasks`), and the
//! stories of a sprint in `sprint-status.yaml`.

use saphyr_parser::{Event, Parser};

use super::lines::{Checkbox, MarkdownLine, MarkdownLines, list_item, short, strip_word, visible};
use super::{SourceError, SourceInput, SourceState, SourceTask, TaskFile, TaskFormat, TaskStep, Warning, order};

const EXPECTED_BOXES: &str = "boxes such as `- [ ] Task 1: text` under `## Tasks / Subtasks`";

/// The statuses of a story that is ready to work on.
const READY: [&str; 3] = ["ready-for-dev", "in-progress", "approved"];

pub fn read_story(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(TaskFormat::Bmad);
    let mut lines = MarkdownLines::new(source);
    let mut story = StoryReader::default();
    for line in lines.by_ref() {
        if line.heading().is_some() {
            story.read_heading(source, &mut file, &line);
        } else if line.is_prose() {
            story.read_line(source, &mut file, &line)?;
        }
    }
    file.close(source, source.text.len());
    file.warnings.extend(lines.unclosed());
    file.goal = Some(story.goal.join(" ")).filter(|goal| !goal.is_empty());
    if let Some((line, status)) = &story.status {
        warn_of_status(&mut file, *line, status);
    }
    if file.title.is_none() {
        return Err(source.error(1, "no story; expected a heading such as `# Story 1.2: Title`"));
    }
    order::refuse_empty(source, &file, EXPECTED_BOXES)?;
    order::make_ids_unique(&mut file);
    order::file_order(&mut file);
    Ok(file)
}

/// The number and the title of `# Story 1.2: Title`.
pub fn story_heading<'a>(line: &MarkdownLine<'a>) -> Option<(&'a str, &'a str)> {
    let (1, text) = line.heading()? else { return None };
    let (number, title) = strip_word(text, "story ")?.split_once([':', '-', '–', '—'])?;
    let number = number.trim();
    let (epic, story) = number.split_once('.')?;
    let starts_with_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    (starts_with_digit(epic) && starts_with_digit(story)).then(|| (number, title.trim()))
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Section {
    #[default]
    Other,
    Status,
    Goal,
    Acceptance,
    Tasks,
}

impl Section {
    fn from_heading(heading: &str) -> Self {
        let heading = heading.trim_end_matches(':').to_ascii_lowercase();
        match heading.as_str() {
            "status" => Self::Status,
            "story" => Self::Goal,
            "acceptance criteria" => Self::Acceptance,
            text if text.starts_with("tasks") => Self::Tasks,
            _ => Self::Other,
        }
    }
}

#[derive(Default)]
struct StoryReader {
    section: Section,
    status: Option<(u32, String)>,
    goal: Vec<String>,
    /// The indentation of the open task.
    indent: usize,
}

impl StoryReader {
    fn read_heading(&mut self, source: &SourceInput<'_>, file: &mut TaskFile, line: &MarkdownLine<'_>) {
        let Some((level, text)) = line.heading() else { return };
        file.close(source, line.offset);
        match level {
            1 if story_heading(line).is_some() => drop(file.title.get_or_insert_with(|| text.to_owned())),
            1 | 2 => self.section = Section::from_heading(text),
            _ => {}
        }
    }

    fn read_line(
        &mut self,
        source: &SourceInput<'_>,
        file: &mut TaskFile,
        line: &MarkdownLine<'_>,
    ) -> Result<(), SourceError> {
        let text = visible(line.text);
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        let labelled = text.trim_start_matches('*').strip_prefix("Status:").map(|rest| rest.trim_matches(['*', ' ']));
        let named = (self.section == Section::Status).then_some(text);
        if let Some(status) = labelled.or(named).filter(|_| self.section != Section::Tasks) {
            self.status.get_or_insert_with(|| (line.number, status.to_owned()));
            return Ok(());
        }
        match self.section {
            Section::Other | Section::Status => {}
            Section::Goal => self.goal.push(text.trim_end_matches("<br>").replace("**", "")),
            Section::Acceptance => read_criterion(file, line),
            Section::Tasks => return self.read_task_line(source, file, line),
        }
        Ok(())
    }

    fn read_task_line(
        &mut self,
        source: &SourceInput<'_>,
        file: &mut TaskFile,
        line: &MarkdownLine<'_>,
    ) -> Result<(), SourceError> {
        let Some(checkbox) = Checkbox::parse_task(line.text) else { return Ok(()) };
        if let Some(task) = file.open_task().filter(|_| checkbox.indent > self.indent) {
            task.steps.push(TaskStep {
                title: visible(checkbox.rest).trim().to_owned(),
                done: checkbox.is_ticked(),
                line: line.number,
                mark: checkbox.mark(source, line),
            });
            return Ok(());
        }
        file.close(source, line.offset);
        self.indent = checkbox.indent;
        let task = story_task(source, file, line, &checkbox);
        file.open(source, task, line)
    }
}

/// Reads a numbered or bulleted criterion. Lines below it are added to it.
fn read_criterion(file: &mut TaskFile, line: &MarkdownLine<'_>) {
    let text = visible(line.text);
    let nested = line.text.starts_with([' ', '\t']);
    match (list_item(&text), file.acceptance.last_mut()) {
        (Some(item), None) => file.acceptance.push(item.to_owned()),
        (Some(item), Some(_)) if !nested => file.acceptance.push(item.to_owned()),
        (_, Some(criterion)) => {
            criterion.push('\n');
            criterion.push_str(text.trim());
        }
        (None, None) => file.acceptance.push(text.trim().to_owned()),
    }
}

fn story_task(
    source: &SourceInput<'_>,
    file: &mut TaskFile,
    line: &MarkdownLine<'_>,
    checkbox: &Checkbox<'_>,
) -> SourceTask {
    let text = visible(checkbox.rest);
    let (id, text) = task_number(text.trim());
    let (title, criteria) = criteria(text);
    let id = id.map_or_else(|| (file.tasks.len() + 1).to_string(), str::to_owned);
    let mut task = SourceTask::new(id, title, line.number);
    task.requirements = criteria;
    if let Some(sign) = checkbox.tick_task(&mut task, source, line) {
        file.warn(line.number, format!("[{sign}] is neither [ ] nor [x]; the task is taken as open"));
    }
    task
}

/// Splits `Task 3: ` off the start of a title.
fn task_number(text: &str) -> (Option<&str>, &str) {
    let bare = text.trim_start_matches('*');
    let Some(after) = strip_word(bare, "task ") else { return (None, text) };
    let length = after.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let id = after[..length].trim_matches('.');
    let title = after[length..].trim_start_matches([':', '-', '–', ' ', '*']);
    if id.is_empty() || title.is_empty() { (None, text) } else { (Some(id), title) }
}

/// Removes `(AC: 1, #3)` from a title.
fn criteria(text: &str) -> (String, Vec<String>) {
    let found = text.find("(AC").and_then(|start| Some((start, start + text[start..].find(')')?)));
    let Some((start, end)) = found else { return (text.to_owned(), Vec::new()) };
    let numbers = text[start + 3..end].split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
    let names: Vec<String> = numbers.map(|number| format!("AC {number}")).collect();
    if names.is_empty() {
        return (text.to_owned(), names);
    }
    let title = format!("{} {}", text[..start].trim_end(), text[end + 1..].trim_start());
    (title.trim().trim_end_matches("**").to_owned(), names)
}

fn warn_of_status(file: &mut TaskFile, line: u32, status: &str) {
    if !READY.contains(&status.to_ascii_lowercase().as_str()) {
        let status = short(status);
        file.warn(line, format!("the story's status is {status}, not ready-for-dev"));
    }
}

const EXPECTED_STORIES: &str = "stories such as `1-2-user-login: ready-for-dev` under `development_status:`";

/// The mapping with the stories.
const STATUSES: &str = "development_status";

/// Maximum nesting depth.
const MAX_DEPTH: usize = 16;

/// Whether a path names a sprint file.
pub fn is_sprint(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    [".yaml", ".yml"].iter().any(|ending| path.ends_with(ending))
}

/// Parses a sprint. Each story is one task, in file order.
pub fn read_sprint_file(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(TaskFormat::Bmad);
    for (key, status, line) in statuses(source, &mut file)? {
        if is_story(&key) {
            let mut task = SourceTask::new(key.as_str(), title_of_key(&key), line);
            task.state = story_state(&key, &status, line, &mut file.warnings);
            task.section = key.split('-').next().map(|epic| format!("epic-{epic}"));
            file.push(source, task)?;
        }
    }
    order::refuse_empty(source, &file, EXPECTED_STORIES)?;
    order::refuse_duplicate_ids(source, &file)?;
    order::file_order(&mut file);
    Ok(file)
}

/// Whether a key is a story, such as `1-2-user-login`: epic, story, words. Agents do not work on epics and
/// retrospectives.
fn is_story(key: &str) -> bool {
    let mut parts = key.split('-');
    let number = |part: Option<&str>| part.is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    number(parts.next()) && number(parts.next())
}

fn title_of_key(key: &str) -> String {
    let mut parts = key.splitn(3, '-');
    let (epic, story) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let words = parts.next().unwrap_or_default().replace('-', " ");
    format!("Story {epic}.{story}: {words}").trim_end_matches([':', ' ']).to_owned()
}

fn story_state(key: &str, status: &str, line: u32, warnings: &mut Vec<Warning>) -> SourceState {
    match status {
        "ready-for-dev" => SourceState::Open,
        "in-progress" => SourceState::InProgress,
        "review" => SourceState::Review,
        "done" => SourceState::Done,
        // The story is not written yet, so there is nothing to work from.
        "backlog" | "drafted" => SourceState::Deferred,
        other => {
            let other = short(other);
            let message = format!("{key} has the unknown status {other}: it is left alone");
            warnings.push(Warning { line, message });
            SourceState::Deferred
        }
    }
}

/// The members of `development_status`, with their lines.
///
/// Reads the events one by one and rejects aliases, so that nothing expands beyond the size of the file.
fn statuses(source: &SourceInput<'_>, file: &mut TaskFile) -> Result<Vec<(String, String, u32)>, SourceError> {
    let mut found = Vec::new();
    let mut walk = YamlWalk::default();
    for event in Parser::new_from_str(source.text) {
        let (event, span) = event
            .map_err(|error| source.error(line_number(error.marker().line()), format!("not YAML: {}", error.info())))?;
        let line = line_number(span.start.line());
        match event {
            Event::Alias(_) => return Err(source.error(line, "an alias; expected plain names and statuses")),
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                let status = walk.enter(matches!(event, Event::MappingStart(..)));
                if let Some(key) = status.filter(|key| is_story(key)) {
                    let message = "has no plain status and was left out; expected a word such as ready-for-dev";
                    file.warn(line, format!("{} {message}", short(&key)));
                }
            }
            Event::MappingEnd | Event::SequenceEnd => drop(walk.levels.pop()),
            Event::Scalar(text, ..) => walk.scalar(&text),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {}
        }
        if walk.levels.len() > MAX_DEPTH {
            return Err(source.error(line, format!("nested more than {MAX_DEPTH} deep")));
        }
        match walk.member.take() {
            Some((path, key, value)) if path == STATUSES => found.push((key, value, line)),
            Some((path, key, value)) if path.is_empty() && key == "project" => file.title = Some(value),
            Some(_) | None => {}
        }
    }
    Ok(found)
}

fn line_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX).max(1)
}

/// The current position in the tree of mappings.
#[derive(Default)]
struct YamlWalk {
    levels: Vec<YamlLevel>,
    /// A key and value just completed, with the key of the mapping that contains them.
    member: Option<(String, String, String)>,
}

struct YamlLevel {
    is_mapping: bool,
    name: String,
    key: Option<String>,
}

impl YamlWalk {
    /// Enters a mapping or list. Returns the key whose status it replaces.
    fn enter(&mut self, is_mapping: bool) -> Option<String> {
        let of_status = self.levels.len() == 2 && self.levels.last().is_some_and(|level| level.name == STATUSES);
        let key = self.levels.last_mut().and_then(|level| level.key.take());
        let name = key.as_deref().map(short).unwrap_or_default();
        self.levels.push(YamlLevel { is_mapping, name, key: None });
        key.filter(|_| of_status)
    }

    fn scalar(&mut self, text: &str) {
        let depth = self.levels.len();
        let Some(level) = self.levels.last_mut().filter(|level| level.is_mapping) else { return };
        match level.key.take() {
            None => level.key = Some(text.to_owned()),
            // Only the top level and the one below it are read.
            Some(key) if depth <= 2 => self.member = Some((level.name.clone(), key, text.to_owned())),
            Some(_) => {}
        }
    }
}
