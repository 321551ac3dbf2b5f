//! Parses files of numbered checkboxes: Kiro's `tasks.md`, with two levels and optional ones marked `[ ]*`, and
//! OpenSpec's, with sections.

use std::collections::HashMap;

use super::lines::{
    Checkbox, LineKind, MarkdownLine, MarkdownLines, begins_with_count, leading_number, short, visible,
};
use super::order::{self, MAX_DEPENDENCIES};
use super::tick::CheckboxMark;
use super::{SourceError, SourceInput, SourceState, SourceTask, TaskFile, TaskFormat};

const EXPECTED_KIRO: &str = "lines such as `- [ ] 1. Title`";

pub fn read_kiro(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(TaskFormat::Kiro);
    let mut lines = MarkdownLines::new(source);
    for line in lines.by_ref() {
        let item = item(&line);
        if item.is_some() || line.heading().is_some() {
            file.close(source, line.offset);
        }
        if let Some((1, text)) = line.heading() {
            file.title.get_or_insert_with(|| text.to_owned());
        }
        if let Some(item) = item {
            let task = task(source, &mut file, &line, &item)?;
            file.open(source, task, &line)?;
        } else if line.is_prose() {
            if Checkbox::parse_task(line.text).is_some() {
                file.warn(line.number, "this box is not read as a task: it has no number such as 1.2");
            }
            if let Some(task) = file.open_task() {
                read_tags(source, task, &line)?;
            }
        }
    }
    file.finish(source, &lines, EXPECTED_KIRO)?;
    order::refuse_duplicate_ids(source, &file)?;
    find_parents(&mut file);
    let phases = vec![0; file.tasks.len()];
    order::in_order(source, &mut file, &phases)?;
    Ok(file)
}

/// The open checkboxes of the parents whose last required child is `task`.
pub fn parents_closed_by(file: &TaskFile, task: &SourceTask) -> Vec<CheckboxMark> {
    let mut marks = Vec::new();
    let mut closed = task;
    while !closed.optional
        && let Some(parent) = closed.parent.as_deref().and_then(|id| file.task(id))
    {
        let is_sibling = |other: &&SourceTask| other.parent == closed.parent && other.id != closed.id;
        let mut siblings = file.tasks.iter().filter(is_sibling);
        if !siblings.all(|other| other.optional || other.state == SourceState::Done) {
            break;
        }
        marks.extend(parent.mark.clone());
        closed = parent;
    }
    marks
}

pub struct KiroItem<'a> {
    checkbox: Checkbox<'a>,
    pub optional: bool,
    pub id: &'a str,
    pub title: &'a str,
    /// Whether the number has no dot in or after it. It is still an id if the path identifies Kiro.
    pub is_count: bool,
}

pub fn item<'a>(line: &MarkdownLine<'a>) -> Option<KiroItem<'a>> {
    let checkbox = Checkbox::parse(line.text).filter(|checkbox| line.is_prose() && checkbox.spaced)?;
    // Formatters escape the star, so that it is not emphasis.
    let starred = checkbox.rest.strip_prefix('*').or_else(|| checkbox.rest.strip_prefix("\\*"));
    let text = starred.unwrap_or(checkbox.rest);
    let (id, title) = leading_number(text.trim_start()).filter(|_| text.starts_with([' ', '\t']))?;
    let is_count = begins_with_count(text.trim_start());
    Some(KiroItem { checkbox, optional: starred.is_some(), id, title, is_count })
}

fn task(
    source: &SourceInput<'_>,
    file: &mut TaskFile,
    line: &MarkdownLine<'_>,
    item: &KiroItem<'_>,
) -> Result<SourceTask, SourceError> {
    let title = without_tags(&visible(item.title));
    let (title, parallel) = without_parallel_mark(title.trim());
    let mut task = SourceTask::new(item.id, title, line.number);
    task.parallel = parallel;
    task.optional = item.optional;
    task.state = match item.checkbox.sign {
        'x' => SourceState::Done,
        '-' => SourceState::InProgress,
        ' ' => SourceState::Open,
        sign => {
            file.warn(line.number, format!("[{sign}] is none of [ ], [x], [-]; {} is taken as open", item.id));
            SourceState::Open
        }
    };
    if task.state != SourceState::Done {
        task.mark = CheckboxMark::new(line.text, line.number, source.start + line.offset, item.checkbox.column);
    }
    read_tags(source, &mut task, line)?;
    Ok(task)
}

const TAGS: [&str; 3] = ["_Requirements:", "_Depends:", "_Depends on:"];

/// The title without the tags that [`read_tags`] reads.
fn without_tags(title: &str) -> String {
    let mut title = title.to_owned();
    for tag in TAGS {
        if let Some((before, after)) = title.split_once(tag) {
            let rest = after.split_once('_').map_or("", |(_, rest)| rest);
            title = format!("{} {}", before.trim_end(), rest.trim_start());
        }
    }
    title
}

/// The title without `(P)`, and whether it was there.
fn without_parallel_mark(title: &str) -> (&str, bool) {
    let start = title.strip_prefix("(P)").filter(|rest| rest.is_empty() || rest.starts_with(' '));
    match start.or_else(|| title.strip_suffix("(P)")) {
        Some(rest) => (rest.trim(), true),
        None => (title, false),
    }
}

fn read_tags(source: &SourceInput<'_>, task: &mut SourceTask, line: &MarkdownLine<'_>) -> Result<(), SourceError> {
    if let Some(list) = tagged(line.text, "_Requirements:") {
        let names = list.split([',', ';']).map(str::trim).filter(|name| !name.is_empty());
        task.requirements.extend(names.map(str::to_owned));
    }
    let depends = tagged(line.text, "_Depends:").or_else(|| tagged(line.text, "_Depends on:"));
    let Some(list) = depends else { return Ok(()) };
    if matches!(list.to_ascii_lowercase().as_str(), "" | "-" | "none") {
        return Ok(());
    }
    for word in list.split([',', ';', ' ']).filter(|word| !matches!(*word, "" | "and" | "Task" | "task")) {
        let Some((id, "")) = leading_number(word) else {
            let message = format!("{} depends on `{word}`; expected task numbers such as 1.1", task.id);
            return Err(source.error(line.number, message));
        };
        if !task.depends_on.iter().any(|known| known == id) {
            task.depends_on.push(id.to_owned());
        }
        if task.depends_on.len() > MAX_DEPENDENCIES {
            let message = format!("{} depends on more than {MAX_DEPENDENCIES} tasks", task.id);
            return Err(source.error(line.number, message));
        }
    }
    Ok(())
}

/// The text between `tag` and the next underscore.
pub fn tagged<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(tag)?;
    Some(after.split('_').next().unwrap_or(after).trim())
}

/// Sets the parents. The parent of `2.1.3` is `2.1`, or `2` if there is no `2.1`. Children of an optional task are
/// optional too.
fn find_parents(file: &mut TaskFile) {
    let optional: HashMap<String, bool> = file.tasks.iter().map(|task| (task.id.clone(), task.optional)).collect();
    for task in &mut file.tasks {
        let mut id = task.id.as_str();
        while let Some((above, _)) = id.rsplit_once('.') {
            if let Some(optional) = optional.get(above) {
                task.parent.get_or_insert_with(|| above.to_owned());
                task.optional |= optional;
            }
            id = above;
        }
    }
}

const EXPECTED_OPEN_SPEC: &str = "lines such as `- [ ] 1.1 text`";

/// Parses OpenSpec, in which checkboxes inside fences count too.
pub fn read_open_spec(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(TaskFormat::OpenSpec);
    let mut lines = MarkdownLines::new(source);
    let mut nesting = CheckboxNesting::default();
    let mut section = None;
    for line in lines.by_ref() {
        let checkbox = open_spec_box(&line);
        if checkbox.is_some() || line.heading().is_some() {
            file.close(source, line.offset);
        }
        match line.heading() {
            Some((1, text)) => drop(file.title.get_or_insert_with(|| text.to_owned())),
            Some((_, text)) => section = Some(short(text)),
            None => {}
        }
        if let Some(checkbox) = checkbox {
            let mut task = open_spec_task(source, &line, &checkbox, file.tasks.len() + 1);
            task.section = section.clone();
            nesting.enter(checkbox.indent, file.tasks.len());
            file.open(source, task, &line)?;
        }
        if line.heading().is_some() {
            nesting.leave_all();
        }
    }
    nesting.leave_all();
    file.finish(source, &lines, EXPECTED_OPEN_SPEC)?;
    order::make_ids_unique(&mut file);
    for (child, parent) in nesting.parents {
        file.tasks[child].parent = Some(file.tasks[parent].id.clone());
    }
    order::chain(&mut file, nesting.finished);
    Ok(file)
}

/// Parses a checkbox of OpenSpec: any bullet, optional white space, and ` `, `x` or `X` in the box.
fn open_spec_box<'a>(line: &MarkdownLine<'a>) -> Option<Checkbox<'a>> {
    let counts = matches!(line.kind, LineKind::Prose | LineKind::Code);
    Checkbox::parse(line.text).filter(|checkbox| counts && (checkbox.is_ticked() || checkbox.is_blank()))
}

fn open_spec_task(
    source: &SourceInput<'_>,
    line: &MarkdownLine<'_>,
    checkbox: &Checkbox<'_>,
    ordinal: usize,
) -> SourceTask {
    let text = visible(checkbox.rest);
    let text = text.trim();
    let (id, title) = match leading_number(text).filter(|_| !begins_with_count(text)) {
        Some((id, title)) => (id.to_owned(), title),
        None => (ordinal.to_string(), text),
    };
    let mut task = SourceTask::new(id, title, line.number);
    checkbox.tick_task(&mut task, source, line);
    task
}

/// The nesting of items by indentation, and the order in which they end: nested before parent.
#[derive(Default)]
struct CheckboxNesting {
    open: Vec<(usize, usize)>,
    parents: Vec<(usize, usize)>,
    finished: Vec<usize>,
}

impl CheckboxNesting {
    fn enter(&mut self, indent: usize, index: usize) {
        while let Some((_, item)) = self.open.pop_if(|(above, _)| *above >= indent) {
            self.finished.push(item);
        }
        if let Some((_, parent)) = self.open.last() {
            self.parents.push((index, *parent));
        }
        self.open.push((indent, index));
    }

    fn leave_all(&mut self) {
        self.finished.extend(self.open.drain(..).rev().map(|(_, item)| item));
    }
}
