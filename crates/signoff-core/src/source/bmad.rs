//! Parses BMAD stories: `# Story 1.2: Title`, acceptance criteria, and checkboxes under `## Tasks / Subtasks`.

use super::lines::{Checkbox, MarkdownLine, MarkdownLines, body, list_item, visible};
use super::order;
use super::{SourceError, SourceInput, SourceState, SourceTask, TaskFile, TaskFormat, TaskStep};

const EXPECTED: &str = "boxes such as `- [ ] Task 1: text` under `## Tasks / Subtasks`";

/// The statuses of a story that is ready to work on.
const READY: [&str; 3] = ["ready-for-dev", "in-progress", "approved"];

pub fn read(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(TaskFormat::Bmad);
    let mut lines = MarkdownLines::new(source);
    let mut story = StoryReader::default();
    for line in lines.by_ref() {
        if let Some((level, text)) = line.heading() {
            story.take_heading(source, &mut file, (&line, level, text))?;
        } else if line.is_prose() {
            story.take_line(source, &mut file, &line)?;
        }
    }
    story.close(source, &mut file, source.text.len())?;
    file.warnings.extend(lines.unclosed());
    file.goal = Some(story.goal.join(" ")).filter(|goal| !goal.is_empty());
    warn_of_status(&mut file, story.status);
    if file.title.is_none() {
        return Err(source.error(1, "no story; expected a heading such as `# Story 1.2: Title`"));
    }
    order::refuse_empty(source, &file, EXPECTED)?;
    order::make_ids_unique(&mut file);
    order::file_order(&mut file);
    Ok(file)
}

/// The number and the title of `# Story 1.2: Title`.
pub fn story_heading<'a>(line: &MarkdownLine<'a>) -> Option<(&'a str, &'a str)> {
    let (1, text) = line.heading()? else { return None };
    let rest = text.get(..6).filter(|word| word.eq_ignore_ascii_case("story ")).map(|word| &text[word.len()..])?;
    let (number, title) = rest.split_once([':', '-', '–', '—'])?;
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
    open: Option<OpenStoryTask>,
}

struct OpenStoryTask {
    task: SourceTask,
    indent: usize,
    start: usize,
}

impl StoryReader {
    fn take_heading(
        &mut self,
        source: &SourceInput<'_>,
        file: &mut TaskFile,
        (line, level, text): (&MarkdownLine<'_>, usize, &str),
    ) -> Result<(), SourceError> {
        self.close(source, file, line.offset)?;
        match level {
            1 if story_heading(line).is_some() => drop(file.title.get_or_insert_with(|| text.to_owned())),
            1 | 2 => self.section = Section::from_heading(text),
            _ => {}
        }
        Ok(())
    }

    fn take_line(
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
            Section::Acceptance => take_criterion(file, line),
            Section::Tasks => return self.take_task_line(source, file, line),
        }
        Ok(())
    }

    fn take_task_line(
        &mut self,
        source: &SourceInput<'_>,
        file: &mut TaskFile,
        line: &MarkdownLine<'_>,
    ) -> Result<(), SourceError> {
        let Some(boxed) = Checkbox::parse_task(line.text) else { return Ok(()) };
        if let Some(open) = self.open.as_mut().filter(|open| boxed.indent > open.indent) {
            open.task.steps.push(TaskStep {
                title: visible(boxed.rest).trim().to_owned(),
                done: boxed.is_ticked(),
                line: line.number,
                mark: boxed.mark(source, line),
            });
            return Ok(());
        }
        self.close(source, file, line.offset)?;
        let task = task(source, file, line, &boxed);
        self.open = Some(OpenStoryTask { task, indent: boxed.indent, start: line.offset + line.text.len() });
        Ok(())
    }

    fn close(&mut self, source: &SourceInput<'_>, file: &mut TaskFile, end: usize) -> Result<(), SourceError> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.task.body = body(&source.text[open.start..end]);
        file.push(source, open.task)
    }
}

/// Reads a numbered or bulleted criterion. Lines below it are added to it.
fn take_criterion(file: &mut TaskFile, line: &MarkdownLine<'_>) {
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

fn task(source: &SourceInput<'_>, file: &mut TaskFile, line: &MarkdownLine<'_>, boxed: &Checkbox<'_>) -> SourceTask {
    let text = visible(boxed.rest);
    let (id, text) = task_number(text.trim());
    let (title, criteria) = criteria(text);
    let id = id.map_or_else(|| (file.tasks.len() + 1).to_string(), str::to_owned);
    let mut task = SourceTask::new(id, title, line.number);
    task.requirements = criteria;
    task.mark = boxed.mark(source, line);
    if boxed.is_ticked() {
        task.state = SourceState::Done;
    } else if !boxed.is_blank() {
        file.warn(line.number, format!("[{}] is neither [ ] nor [x]; the task is taken as open", boxed.sign));
    }
    task
}

/// Splits `Task 3: ` off the start of a title.
fn task_number(text: &str) -> (Option<&str>, &str) {
    let bare = text.trim_start_matches('*');
    let after = bare.get(..5).filter(|word| word.eq_ignore_ascii_case("task ")).map(|word| &bare[word.len()..]);
    let Some(after) = after else { return (None, text) };
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

fn warn_of_status(file: &mut TaskFile, status: Option<(u32, String)>) {
    let Some((line, status)) = status else { return };
    if !READY.contains(&status.to_ascii_lowercase().as_str()) {
        let status = super::lines::short(&status);
        file.warn(line, format!("the story's status is {status}, not ready-for-dev"));
    }
}
