//! Parses Kiro's `tasks.md`: numbered checkboxes on two levels, optional ones marked `[ ]*`.

use std::collections::HashMap;

use super::lines::{Checkbox, MarkdownLine, MarkdownLines, begins_with_count, leading_number, visible};
use super::order;
use super::tick::CheckboxMark;
use super::{SourceError, SourceInput, SourceState, SourceTask, TaskFile, TaskFormat};

const EXPECTED: &str = "lines such as `- [ ] 1. Title`";

/// Maximum dependencies per task.
const MAX_DEPENDENCIES: usize = 256;

pub fn read(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
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
                take_tags(source, task, &line)?;
            }
        }
    }
    file.finish(source, &lines, EXPECTED)?;
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
    boxed: Checkbox<'a>,
    pub optional: bool,
    pub id: &'a str,
    pub title: &'a str,
    /// Whether the number has no dot in or after it. It is still an id if the path identifies Kiro.
    pub is_count: bool,
}

pub fn item<'a>(line: &MarkdownLine<'a>) -> Option<KiroItem<'a>> {
    let boxed = Checkbox::parse(line.text).filter(|boxed| line.is_prose() && boxed.spaced)?;
    // Formatters escape the star, so that it is not emphasis.
    let starred = boxed.rest.strip_prefix('*').or_else(|| boxed.rest.strip_prefix("\\*"));
    let text = starred.unwrap_or(boxed.rest);
    let (id, title) = leading_number(text.trim_start()).filter(|_| text.starts_with([' ', '\t']))?;
    let is_count = begins_with_count(text.trim_start());
    Some(KiroItem { boxed, optional: starred.is_some(), id, title, is_count })
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
    task.state = match item.boxed.sign {
        'x' => SourceState::Done,
        '-' => SourceState::InProgress,
        ' ' => SourceState::Open,
        sign => {
            file.warn(line.number, format!("[{sign}] is none of [ ], [x], [-]; {} is taken as open", item.id));
            SourceState::Open
        }
    };
    if task.state != SourceState::Done {
        task.mark = CheckboxMark::new(line.text, line.number, source.start + line.offset, item.boxed.column);
    }
    take_tags(source, &mut task, line)?;
    Ok(task)
}

const TAGS: [&str; 3] = ["_Requirements:", "_Depends:", "_Depends on:"];

/// The title without the tags that [`take_tags`] reads.
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

fn take_tags(source: &SourceInput<'_>, task: &mut SourceTask, line: &MarkdownLine<'_>) -> Result<(), SourceError> {
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
