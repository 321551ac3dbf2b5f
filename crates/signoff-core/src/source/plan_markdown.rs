//! Parses plans of superpowers and similar tools: `### Task 3: Title`, with files, steps and criteria.

use super::lines::{Checkbox, LineKind, MarkdownLine, MarkdownLines, list_item, strip_word, visible};
use super::order;
use super::{
    FileAction, FileRef, LineRange, SourceError, SourceInput, SourceState, SourceTask, TaskFile, TaskFormat, TaskStep,
};

const EXPECTED: &str = "a heading such as `### Task 1: Title`";

pub fn read(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(TaskFormat::PlanMarkdown);
    let mut lines = MarkdownLines::new(source);
    let mut open = OpenPlanTask::default();
    for line in lines.by_ref() {
        if let Some(heading) = TaskHeading::read(&line) {
            open.close(source, &mut file, line.offset);
            open = OpenPlanTask::new(&heading);
            let mut task = SourceTask::new(heading.id, heading.title, line.number);
            task.mark = heading.checkbox.and_then(|checkbox| checkbox.mark(source, &line));
            file.open(source, task, &line)?;
        } else if let Some(task) = file.open_task() {
            open.read_line(source, task, &line);
        } else {
            header_line(&mut file, &line);
        }
        warn_of_near_miss(&mut file, &line);
    }
    open.close(source, &mut file, source.text.len());
    file.finish(source, &lines, EXPECTED)?;
    order::make_ids_unique(&mut file);
    order::file_order(&mut file);
    Ok(file)
}

/// Whether this line begins a task, which identifies a plan.
pub fn is_task(line: &MarkdownLine<'_>) -> bool {
    TaskHeading::read(line).is_some()
}

struct TaskHeading<'a> {
    checkbox: Option<Checkbox<'a>>,
    id: &'a str,
    title: String,
}

impl<'a> TaskHeading<'a> {
    /// Parses a heading of two to four `#`, with an optional checkbox before or after them.
    fn read(line: &MarkdownLine<'a>) -> Option<Self> {
        if line.kind != LineKind::Prose {
            return None;
        }
        let text = line.text.trim_start();
        let outer = Checkbox::parse_task(line.text);
        let after_box = outer.map_or(text, |checkbox| checkbox.rest.trim_start());
        let after_hashes = after_box.trim_start_matches('#');
        let level = after_box.len() - after_hashes.len();
        if !(2..=4).contains(&level) || !after_hashes.starts_with([' ', '\t']) {
            return None;
        }
        let inner = if outer.is_none() { box_within(line.text, after_hashes) } else { None };
        let words = inner.map_or(after_hashes, |checkbox| checkbox.rest);
        let (id, title) = numbered_title(words.trim_start())?;
        let title = visible(title).trim().trim_end_matches('#').trim_end().to_owned();
        (!title.is_empty()).then_some(Self { checkbox: outer.or(inner), id, title })
    }
}

/// A checkbox after the `#` of a heading, with its column in the whole line.
fn box_within<'a>(line: &str, after_hashes: &'a str) -> Option<Checkbox<'a>> {
    let mut checkbox = Checkbox::parse_task(after_hashes)?;
    checkbox.column += line.len() - after_hashes.len();
    Some(checkbox)
}

/// Parses `Task 1.2: title`.
fn numbered_title(text: &str) -> Option<(&str, &str)> {
    let after = strip_word(text, "task")?;
    let number = after.trim_start();
    let length = number_length(number);
    if after.len() == number.len() || length == 0 {
        return None;
    }
    let (id, rest) = number.split_at(length);
    let title = rest.strip_prefix(':').or_else(|| rest.trim_start().strip_prefix(['–', '—']));
    let title = title.or_else(|| rest.strip_prefix([' ', '\t'])?.trim_start().strip_prefix('-'));
    let title = title.or_else(|| rest.trim_start().strip_prefix(':'))?;
    Some((id, title.trim()))
}

/// The length of a number such as `3` or `3.1` at the start of `text`.
fn number_length(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(text);
    while length > 0 && text[length..].starts_with('.') {
        let more = digits(&text[length + 1..]);
        if more == 0 {
            break;
        }
        length += 1 + more;
    }
    length
}

fn warn_of_near_miss(file: &mut TaskFile, line: &MarkdownLine<'_>) {
    let Some((level, text)) = line.heading() else { return };
    let looks_like =
        strip_word(text, "task").is_some_and(|rest| rest.starts_with(' ') && number_length(rest.trim_start()) > 0);
    if looks_like && TaskHeading::read(line).is_none() {
        let what = if (2..=4).contains(&level) { "a colon and a title are missing" } else { "tasks have 2 to 4 #" };
        file.warn(line.number, format!("this heading is not read as a task: {what}"));
    }
}

fn header_line(file: &mut TaskFile, line: &MarkdownLine<'_>) {
    if let Some((1, text)) = line.heading() {
        file.title.get_or_insert_with(|| text.to_owned());
    } else if line.is_prose()
        && let Some(goal) = label(line.text, "Goal")
        && !goal.is_empty()
    {
        file.goal.get_or_insert_with(|| goal.to_owned());
    }
}

/// The text after `**NAME:**` or `**NAME**:` on a line.
fn label<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let bold = text.trim_start().strip_prefix("**")?;
    let (inner, rest) = bold.split_once("**")?;
    let rest = match inner.strip_suffix(':') {
        Some(_) => rest,
        None => rest.strip_prefix(':')?,
    };
    inner.trim_end_matches(':').trim().eq_ignore_ascii_case(name).then(|| rest.trim())
}

/// The current list within a task.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum PlanList {
    #[default]
    None,
    Files,
    Acceptance,
}

/// What is known of the open task besides the task itself.
#[derive(Default)]
struct OpenPlanTask {
    ticked: Option<bool>,
    list: PlanList,
}

impl OpenPlanTask {
    fn new(heading: &TaskHeading<'_>) -> Self {
        Self { ticked: heading.checkbox.map(|checkbox| checkbox.is_ticked()), list: PlanList::None }
    }

    fn read_line(&mut self, source: &SourceInput<'_>, task: &mut SourceTask, line: &MarkdownLine<'_>) {
        if !line.is_prose() || line.text.trim().is_empty() {
            return;
        }
        if let Some(step) = step(source, line) {
            self.list = PlanList::None;
            task.steps.push(step);
        } else if let Some(rest) = label(line.text, "Files") {
            self.list = PlanList::Files;
            task.files.extend(files(rest));
        } else if let Some(rest) = label(line.text, "Acceptance Criteria").or_else(|| label(line.text, "Acceptance")) {
            self.list = PlanList::Acceptance;
            task.acceptance.extend((!rest.is_empty()).then(|| rest.to_owned()));
        } else if let Some(item) = list_item(line.text) {
            let item = Checkbox::parse_task(line.text).map_or(item, |checkbox| checkbox.rest.trim());
            match self.list {
                PlanList::None => {}
                PlanList::Files => task.files.extend(files(item)),
                PlanList::Acceptance => task.acceptance.push(visible(item).trim().to_owned()),
            }
        } else if !line.text.starts_with([' ', '\t']) {
            self.list = PlanList::None;
        }
    }

    fn close(&self, source: &SourceInput<'_>, file: &mut TaskFile, end: usize) {
        if let Some(task) = file.open_task() {
            task.state = state(&task.steps, self.ticked);
        }
        file.close(source, end);
    }
}

/// The files of an item such as ``Create: `a.rs` ``.
fn files(item: &str) -> Vec<FileRef> {
    let (word, paths) = item.trim_start_matches('*').split_once(':').unwrap_or_default();
    let action: Option<FileAction> = word.trim().trim_end_matches('*').parse().ok();
    action.into_iter().flat_map(|action| self::paths(paths).map(move |path| file_ref(action, path))).collect()
}

/// The paths in code spans, or else the first word.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let spans = text.split('`').skip(1).step_by(2).map(str::trim).filter(|path| !path.is_empty());
    let bare = if text.contains('`') { None } else { text.trim_start_matches('*').split_whitespace().next() };
    spans.chain(bare)
}

fn file_ref(action: FileAction, text: &str) -> FileRef {
    let ranged = text.rsplit_once(':').and_then(|(path, lines)| Some((path, line_range(lines)?)));
    match ranged {
        Some((path, range)) if !path.is_empty() => FileRef { action, path: path.to_owned(), range: Some(range) },
        _ => FileRef { action, path: text.to_owned(), range: None },
    }
}

/// The first range in `12-20,40-50`, if all of them are valid.
fn line_range(text: &str) -> Option<LineRange> {
    let mut ranges = text.split(',').map(|range| one_range(range.trim()));
    let first = ranges.next().flatten();
    first.filter(|_| ranges.all(|range| range.is_some()))
}

fn one_range(text: &str) -> Option<LineRange> {
    let (first, last) = text.split_once(['-', '–']).unwrap_or((text, text));
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    let range = LineRange { first: number(first)?, last: number(last)? };
    (range.first <= range.last).then_some(range)
}

/// Parses `- [ ] **Step 1: title**`. Old plans have no checkbox, some no bullet.
fn step(source: &SourceInput<'_>, line: &MarkdownLine<'_>) -> Option<TaskStep> {
    let checkbox = Checkbox::parse_task(line.text);
    let text = match checkbox {
        Some(checkbox) => checkbox.rest.trim(),
        None => list_item(line.text).unwrap_or(line.text.trim()),
    };
    let number = strip_word(text.strip_prefix("**")?, "step")?.trim_start();
    let length = number_length(number);
    if length == 0 {
        return None;
    }
    let title = number[length..].trim_start_matches([':', '.', ' ', '-']);
    let title = visible(&title.replacen("**", "", 1)).trim().to_owned();
    Some(TaskStep {
        title,
        done: checkbox.is_some_and(|checkbox| checkbox.is_ticked()),
        line: line.number,
        mark: checkbox.and_then(|checkbox| checkbox.mark(source, line)),
    })
}

/// The state from the checkbox of the heading, or else from those of the steps.
fn state(steps: &[TaskStep], ticked: Option<bool>) -> SourceState {
    let begun = steps.iter().any(|step| step.done);
    let finished = begun && steps.iter().all(|step| step.done || step.mark.is_none());
    match ticked {
        Some(true) => SourceState::Done,
        None if finished => SourceState::Done,
        Some(false) | None if begun => SourceState::InProgress,
        Some(false) | None => SourceState::Open,
    }
}
