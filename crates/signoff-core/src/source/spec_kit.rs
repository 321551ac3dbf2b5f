//! spec-kit's `tasks.md`: `- [ ] T001 [P] [US1] text` under `## Phase N: title`.

mod depends;

use std::collections::BTreeMap;

use super::lines::{Boxed, Line, Lines, body, short, visible};
use super::order;
use super::{Format, Source, SourceError, SourceTask, State, TaskFile};

const EXPECTED: &str = "lines such as `- [ ] T001 [P] text`";

pub fn read(source: &Source<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(Format::SpecKit);
    let mut lines = Lines::of(source);
    let mut phases = Phases::default();
    let mut open: Option<(SourceTask, usize)> = None;
    for line in lines.by_ref() {
        let item = item(&line);
        let ends = item.is_some() || line.heading().is_some() || ends_item(&line);
        if ends && let Some((task, start)) = open.take() {
            push(source, &mut file, &mut phases, (task, &source.text[start..line.offset]))?;
        }
        if let Some((level, text)) = line.heading() {
            take_heading(&mut file, &mut phases, level, text);
        }
        match item {
            Some(Item::Task { boxed, words }) => {
                let task = task(source, &mut file, &line, (boxed, words));
                open = Some((task, line.offset + line.text.len()));
            }
            Some(Item::Other) => {
                file.warn(line.number, "this box is not read as a task: it has no id such as T001");
            }
            None => {}
        }
    }
    if let Some((task, start)) = open {
        push(source, &mut file, &mut phases, (task, &source.text[start..]))?;
    }
    file.warnings.extend(lines.unclosed());
    order::refuse_empty(source, &file, EXPECTED)?;
    order::refuse_twins(source, &file)?;
    depends::resolve(source, &mut file)?;
    order::in_order(source, &mut file, &phases.of_tasks)?;
    Ok(file)
}

/// Whether this line is a task: what tells spec-kit from other text.
pub fn is_task(line: &Line<'_>) -> bool {
    matches!(item(line), Some(Item::Task { .. }))
}

#[derive(Default)]
struct Phases {
    now: usize,
    title: Option<String>,
    of_tasks: Vec<usize>,
}

enum Item<'a> {
    Task {
        boxed: Boxed<'a>,
        words: Words<'a>,
    },
    /// A box without an id.
    Other,
}

struct Words<'a> {
    id: &'a str,
    parallel: bool,
    labels: Vec<&'a str>,
    text: &'a str,
}

fn item<'a>(line: &Line<'a>) -> Option<Item<'a>> {
    let boxed = Boxed::task(line.text).filter(|_| line.is_prose())?;
    match words(boxed.rest) {
        Some(words) => Some(Item::Task { boxed, words }),
        None => Some(Item::Other),
    }
}

/// A line at the margin that is not blank ends the item before it.
fn ends_item(line: &Line<'_>) -> bool {
    !line.text.is_empty() && !line.text.starts_with([' ', '\t'])
}

/// Reads id and marks in any order; the text begins at the first word that is neither.
fn words(rest: &str) -> Option<Words<'_>> {
    let mut words = Words { id: "", parallel: false, labels: Vec::new(), text: rest.trim() };
    loop {
        let text = words.text;
        if let Some((label, after)) = label(text) {
            match label {
                "P" | "p" => words.parallel = true,
                _ => words.labels.push(label),
            }
            words.text = after.trim_start();
        } else if let Some((id, after)) = id(text).filter(|_| words.id.is_empty()) {
            words.id = id;
            words.text = after.trim_start();
        } else {
            return (!words.id.is_empty()).then_some(words);
        }
    }
}

/// `[label]` at the start of `text`, which is not a link.
fn label(text: &str) -> Option<(&str, &str)> {
    let (label, after) = text.strip_prefix('[')?.split_once(']')?;
    let plain = label.len() <= 40 && !label.is_empty() && !label.contains('[');
    (plain && !after.starts_with(['(', '['])).then_some((label, after))
}

/// `T001`, plain or bold, with what follows it.
fn id(text: &str) -> Option<(&str, &str)> {
    let bare = text.strip_prefix("**").unwrap_or(text);
    let length = depends::id_length(bare);
    let (id, after) = bare.split_at(length);
    let after = after.strip_prefix("**").unwrap_or(after);
    let after = after.strip_prefix(':').unwrap_or(after);
    let ends = after.is_empty() || after.starts_with([' ', '\t', '[']);
    (length > 0 && ends).then_some((id, after))
}

fn task(
    source: &Source<'_>,
    file: &mut TaskFile,
    line: &Line<'_>,
    (boxed, words): (Boxed<'_>, Words<'_>),
) -> SourceTask {
    let mut task = SourceTask::new(words.id, visible(words.text).trim(), line.number);
    task.parallel = words.parallel;
    task.requirements = words.labels.iter().map(|label| (*label).to_owned()).collect();
    task.mark = boxed.mark(source, line);
    if boxed.is_ticked() {
        task.state = State::Done;
    } else if !boxed.is_blank() {
        file.warn(
            line.number,
            format!("[{}] is neither [ ] nor [x]; {} is taken as open", boxed.sign, words.id),
        );
    }
    task
}

fn push(
    source: &Source<'_>,
    file: &mut TaskFile,
    phases: &mut Phases,
    (mut task, text): (SourceTask, &str),
) -> Result<(), SourceError> {
    task.body = body(text);
    task.section = phases.title.clone();
    phases.of_tasks.push(phases.now);
    file.push(source, task)
}

fn take_heading(file: &mut TaskFile, phases: &mut Phases, level: usize, text: &str) {
    if is_phase(level, text) {
        phases.now += 1;
        phases.title = Some(short(text));
    } else if level == 1 {
        file.title.get_or_insert_with(|| text.to_owned());
    }
}

/// `Phase 3`, or a phase called by any word with a title: templates end with a literal `Phase N: Polish`.
fn is_phase(level: usize, text: &str) -> bool {
    let after =
        text.get(..5).filter(|word| word.eq_ignore_ascii_case("phase")).map(|word| &text[word.len()..]);
    let Some(after) = after.filter(|_| (1..=3).contains(&level)) else { return false };
    let name = after.trim_start();
    name.starts_with(|c: char| c.is_ascii_digit()) || name.len() < after.len() && is_titled_word(name)
}

/// `N: title`, `N - title` or `N – title`.
fn is_titled_word(text: &str) -> bool {
    let length = text.find(|c: char| c == ':' || c.is_whitespace()).unwrap_or(text.len());
    let (word, rest) = text.split_at(length);
    let title = rest.trim_start().strip_prefix([':', '-', '–', '—']);
    !word.is_empty() && title.is_some_and(|title| !title.trim().is_empty())
}

/// Ids by number, so that `T12` finds `T012`.
type Places = BTreeMap<(u64, String), String>;
