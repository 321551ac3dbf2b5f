//! Parses spec-kit's `tasks.md`: `- [ ] T001 [P] [US1] text` under `## Phase N: title`.

mod depends;

use std::collections::BTreeMap;

use super::lines::{Checkbox, MarkdownLine, MarkdownLines, body, short, visible};
use super::order;
use super::{SourceError, SourceInput, SourceState, SourceTask, TaskFile, TaskFormat};

const EXPECTED: &str = "lines such as `- [ ] T001 [P] text`";

pub fn read(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(TaskFormat::SpecKit);
    let mut lines = MarkdownLines::new(source);
    let mut phases = SpecKitPhases::default();
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
            Some(SpecKitItem::Task { boxed, words }) => {
                let task = task(source, &mut file, &line, (boxed, words));
                open = Some((task, line.offset + line.text.len()));
            }
            Some(SpecKitItem::Other) => {
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
    order::refuse_duplicate_ids(source, &file)?;
    depends::resolve(source, &mut file)?;
    order::in_order(source, &mut file, &phases.by_task)?;
    Ok(file)
}

/// Whether this line is a task, which identifies spec-kit.
pub fn is_task(line: &MarkdownLine<'_>) -> bool {
    matches!(item(line), Some(SpecKitItem::Task { .. }))
}

#[derive(Default)]
struct SpecKitPhases {
    current: usize,
    title: Option<String>,
    by_task: Vec<usize>,
}

enum SpecKitItem<'a> {
    Task {
        boxed: Checkbox<'a>,
        words: SpecKitWords<'a>,
    },
    /// A checkbox without an id.
    Other,
}

struct SpecKitWords<'a> {
    id: &'a str,
    parallel: bool,
    labels: Vec<&'a str>,
    text: &'a str,
}

fn item<'a>(line: &MarkdownLine<'a>) -> Option<SpecKitItem<'a>> {
    let boxed = Checkbox::parse_task(line.text).filter(|_| line.is_prose())?;
    match words(boxed.rest) {
        Some(words) => Some(SpecKitItem::Task { boxed, words }),
        None => Some(SpecKitItem::Other),
    }
}

/// A non-blank line at the margin ends the item before it.
fn ends_item(line: &MarkdownLine<'_>) -> bool {
    !line.text.is_empty() && !line.text.starts_with([' ', '\t'])
}

/// Parses id and marks in any order. The text begins at the first word that is neither.
fn words(rest: &str) -> Option<SpecKitWords<'_>> {
    let mut words = SpecKitWords { id: "", parallel: false, labels: Vec::new(), text: rest.trim() };
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

/// Parses `[label]` at the start of `text`, unless it is a link.
fn label(text: &str) -> Option<(&str, &str)> {
    let (label, after) = text.strip_prefix('[')?.split_once(']')?;
    let plain = label.len() <= 40 && !label.is_empty() && !label.contains('[');
    (plain && !after.starts_with(['(', '['])).then_some((label, after))
}

/// Parses `T001`, plain or bold. Also returns the text after it.
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
    source: &SourceInput<'_>,
    file: &mut TaskFile,
    line: &MarkdownLine<'_>,
    (boxed, words): (Checkbox<'_>, SpecKitWords<'_>),
) -> SourceTask {
    let mut task = SourceTask::new(words.id, visible(words.text).trim(), line.number);
    task.parallel = words.parallel;
    task.requirements = words.labels.iter().map(|label| (*label).to_owned()).collect();
    task.mark = boxed.mark(source, line);
    if boxed.is_ticked() {
        task.state = SourceState::Done;
    } else if !boxed.is_blank() {
        file.warn(line.number, format!("[{}] is neither [ ] nor [x]; {} is taken as open", boxed.sign, words.id));
    }
    task
}

fn push(
    source: &SourceInput<'_>,
    file: &mut TaskFile,
    phases: &mut SpecKitPhases,
    (mut task, text): (SourceTask, &str),
) -> Result<(), SourceError> {
    task.body = body(text);
    task.section = phases.title.clone();
    phases.by_task.push(phases.current);
    file.push(source, task)
}

fn take_heading(file: &mut TaskFile, phases: &mut SpecKitPhases, level: usize, text: &str) {
    if is_phase(level, text) {
        phases.current += 1;
        phases.title = Some(short(text));
    } else if level == 1 {
        file.title.get_or_insert_with(|| text.to_owned());
    }
}

/// Whether a heading is a phase: `Phase 3`, or any word with a title, because templates end with a literal `Phase
/// N: Polish`.
fn is_phase(level: usize, text: &str) -> bool {
    let after = text.get(..5).filter(|word| word.eq_ignore_ascii_case("phase")).map(|word| &text[word.len()..]);
    let Some(after) = after.filter(|_| (1..=3).contains(&level)) else { return false };
    let name = after.trim_start();
    name.starts_with(|c: char| c.is_ascii_digit()) || name.len() < after.len() && is_titled_word(name)
}

/// Whether the text is `N: title`, `N - title` or `N – title`.
fn is_titled_word(text: &str) -> bool {
    let length = text.find(|c: char| c == ':' || c.is_whitespace()).unwrap_or(text.len());
    let (word, rest) = text.split_at(length);
    let title = rest.trim_start().strip_prefix([':', '-', '–', '—']);
    !word.is_empty() && title.is_some_and(|title| !title.trim().is_empty())
}

/// Ids by number, so that `T12` matches `T012`.
type Places = BTreeMap<(u64, String), String>;
