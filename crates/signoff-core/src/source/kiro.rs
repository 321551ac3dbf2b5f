//! Kiro's `tasks.md`: numbered boxes, two levels deep, optional ones marked `[ ]*`.

use std::collections::HashMap;

use super::lines::{Boxed, Line, Lines, begins_with_count, body, leading_number, visible};
use super::order;
use super::tick::Mark;
use super::{Format, Source, SourceError, SourceTask, State, TaskFile};

const EXPECTED: &str = "lines such as `- [ ] 1. Title`";

/// More than any task names in earnest.
const MAX_DEPENDENCIES: usize = 256;

pub fn read(source: &Source<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(Format::Kiro);
    let mut lines = Lines::of(source);
    let mut open: Option<(SourceTask, usize)> = None;
    for line in lines.by_ref() {
        let item = item(&line);
        if (item.is_some() || line.heading().is_some())
            && let Some((task, start)) = open.take()
        {
            push(source, &mut file, task, &source.text[start..line.offset])?;
        }
        if let Some((1, text)) = line.heading() {
            file.title.get_or_insert_with(|| text.to_owned());
        }
        if let Some(item) = item {
            let task = task(source, &mut file, &line, &item)?;
            open = Some((task, line.offset + line.text.len()));
        } else if line.is_prose() {
            warn_of_unnumbered_box(&mut file, &line);
            if let Some((task, _)) = &mut open {
                take_tags(source, task, &line)?;
            }
        }
    }
    if let Some((task, start)) = open {
        push(source, &mut file, task, &source.text[start..])?;
    }
    file.warnings.extend(lines.unclosed());
    order::refuse_empty(source, &file, EXPECTED)?;
    order::refuse_twins(source, &file)?;
    find_parents(&mut file);
    let phases = vec![0; file.tasks.len()];
    order::in_order(source, &mut file, &phases)?;
    Ok(file)
}

/// The open boxes of the parents whose last required child `task` is.
pub fn parents_closed_by(file: &TaskFile, task: &SourceTask) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut closed = task;
    while !closed.optional
        && let Some(parent) = closed.parent.as_deref().and_then(|id| file.task(id))
    {
        let is_sibling = |other: &&SourceTask| other.parent == closed.parent && other.id != closed.id;
        let mut siblings = file.tasks.iter().filter(is_sibling);
        if !siblings.all(|other| other.optional || other.state == State::Done) {
            break;
        }
        marks.extend(parent.mark.clone());
        closed = parent;
    }
    marks
}

pub struct Item<'a> {
    boxed: Boxed<'a>,
    pub optional: bool,
    pub id: &'a str,
    pub title: &'a str,
    /// The number has no point in or after it. Where the path says Kiro it is an id all the same.
    pub is_count: bool,
}

pub fn item<'a>(line: &Line<'a>) -> Option<Item<'a>> {
    let boxed = Boxed::read(line.text).filter(|boxed| line.is_prose() && boxed.spaced)?;
    // Formatters put a backslash before the star, lest it become emphasis.
    let starred = boxed.rest.strip_prefix('*').or_else(|| boxed.rest.strip_prefix("\\*"));
    let text = starred.unwrap_or(boxed.rest);
    let (id, title) = leading_number(text.trim_start()).filter(|_| text.starts_with([' ', '\t']))?;
    let is_count = begins_with_count(text.trim_start());
    Some(Item { boxed, optional: starred.is_some(), id, title, is_count })
}

fn task(
    source: &Source<'_>,
    file: &mut TaskFile,
    line: &Line<'_>,
    item: &Item<'_>,
) -> Result<SourceTask, SourceError> {
    let title = without_tags(&visible(item.title));
    let (title, parallel) = without_parallel_mark(title.trim());
    let mut task = SourceTask::new(item.id, title, line.number);
    task.parallel = parallel;
    task.optional = item.optional;
    task.state = match item.boxed.sign {
        'x' => State::Done,
        '-' => State::InProgress,
        ' ' => State::Open,
        sign => {
            file.warn(
                line.number,
                format!("[{sign}] is none of [ ], [x], [-]; {} is taken as open", item.id),
            );
            State::Open
        }
    };
    if task.state != State::Done {
        task.mark = Mark::new(line.text, line.number, source.start + line.offset, item.boxed.column);
    }
    take_tags(source, &mut task, line)?;
    Ok(task)
}

const TAGS: [&str; 3] = ["_Requirements:", "_Depends:", "_Depends on:"];

/// The title without what [`take_tags`] takes from it.
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

fn warn_of_unnumbered_box(file: &mut TaskFile, line: &Line<'_>) {
    if Boxed::task(line.text).is_some() {
        file.warn(line.number, "this box is not read as a task: it has no number such as 1.2");
    }
}

fn take_tags(source: &Source<'_>, task: &mut SourceTask, line: &Line<'_>) -> Result<(), SourceError> {
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

/// What stands between `tag` and the next underscore.
pub fn tagged<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(tag)?;
    Some(after.split('_').next().unwrap_or(after).trim())
}

fn push(
    source: &Source<'_>,
    file: &mut TaskFile,
    mut task: SourceTask,
    text: &str,
) -> Result<(), SourceError> {
    task.body = body(text);
    file.push(source, task)
}

/// The parent of `2.1.3` is `2.1`, or `2` if there is no `2.1`. What is part of something optional is
/// optional too.
fn find_parents(file: &mut TaskFile) {
    let optional: HashMap<String, bool> =
        file.tasks.iter().map(|task| (task.id.clone(), task.optional)).collect();
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
