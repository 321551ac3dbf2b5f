//! Parses spec-kit's `tasks.md`: `- [ ] T001 [P] [US1] text` under `## Phase N: title`, with dependencies such as
//! `(depends on T012, T013-T015)` in the text of a task.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::lines::{Checkbox, MarkdownLine, MarkdownLines, short, strip_word, visible};
use super::order::MAX_DEPENDENCIES;
use super::{SourceError, SourceInput, SourceTask, TaskFile, TaskFormat, order};

const EXPECTED: &str = "lines such as `- [ ] T001 [P] text`";

pub fn read(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(TaskFormat::SpecKit);
    let mut lines = MarkdownLines::new(source);
    let mut phases = SpecKitPhases::default();
    for line in lines.by_ref() {
        let item = item(&line);
        // A non-blank line at the margin ends the item before it.
        let is_at_margin = !line.text.is_empty() && !line.text.starts_with([' ', '\t']);
        if item.is_some() || line.heading().is_some() || is_at_margin {
            file.close(source, line.offset);
        }
        if let Some((level, text)) = line.heading() {
            read_heading(&mut file, &mut phases, level, text);
        }
        match item {
            Some(SpecKitItem::Task(item)) => {
                let mut task = item.task(source, &mut file, &line);
                task.section = phases.title.clone();
                phases.by_task.push(phases.current);
                file.open(source, task, &line)?;
            }
            Some(SpecKitItem::Other) => {
                file.warn(line.number, "this box is not read as a task: it has no id such as T001");
            }
            None => {}
        }
    }
    file.finish(source, &lines, EXPECTED)?;
    order::refuse_duplicate_ids(source, &file)?;
    resolve_dependencies(source, &mut file)?;
    order::in_order(source, &mut file, &phases.by_task)?;
    Ok(file)
}

/// Whether this line is a task, which identifies spec-kit.
pub fn is_task(line: &MarkdownLine<'_>) -> bool {
    matches!(item(line), Some(SpecKitItem::Task(_)))
}

#[derive(Default)]
struct SpecKitPhases {
    current: usize,
    title: Option<String>,
    by_task: Vec<usize>,
}

enum SpecKitItem<'a> {
    Task(SpecKitTask<'a>),
    /// A checkbox without an id.
    Other,
}

struct SpecKitTask<'a> {
    checkbox: Checkbox<'a>,
    id: &'a str,
    parallel: bool,
    labels: Vec<&'a str>,
    text: &'a str,
}

fn item<'a>(line: &MarkdownLine<'a>) -> Option<SpecKitItem<'a>> {
    let checkbox = Checkbox::parse_task(line.text).filter(|_| line.is_prose())?;
    Some(SpecKitTask::parse(checkbox).map_or(SpecKitItem::Other, SpecKitItem::Task))
}

impl<'a> SpecKitTask<'a> {
    /// Parses id and marks in any order. The text begins at the first word that is neither.
    fn parse(checkbox: Checkbox<'a>) -> Option<Self> {
        let mut item = Self { checkbox, id: "", parallel: false, labels: Vec::new(), text: checkbox.rest.trim() };
        loop {
            let text = item.text;
            if let Some((label, after)) = label(text) {
                match label {
                    "P" | "p" => item.parallel = true,
                    _ => item.labels.push(label),
                }
                item.text = after.trim_start();
            } else if let Some((id, after)) = id(text).filter(|_| item.id.is_empty()) {
                item.id = id;
                item.text = after.trim_start();
            } else {
                return (!item.id.is_empty()).then_some(item);
            }
        }
    }

    fn task(&self, source: &SourceInput<'_>, file: &mut TaskFile, line: &MarkdownLine<'_>) -> SourceTask {
        let mut task = SourceTask::new(self.id, visible(self.text).trim(), line.number);
        task.parallel = self.parallel;
        task.requirements = self.labels.iter().map(|label| (*label).to_owned()).collect();
        if let Some(sign) = self.checkbox.tick_task(&mut task, source, line) {
            file.warn(line.number, format!("[{sign}] is neither [ ] nor [x]; {} is taken as open", self.id));
        }
        task
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
    let length = id_length(bare);
    let (id, after) = bare.split_at(length);
    let after = after.strip_prefix("**").unwrap_or(after);
    let after = after.strip_prefix(':').unwrap_or(after);
    let ends = after.is_empty() || after.starts_with([' ', '\t', '[']);
    (length > 0 && ends).then_some((id, after))
}

fn read_heading(file: &mut TaskFile, phases: &mut SpecKitPhases, level: usize, text: &str) {
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
    let Some(after) = strip_word(text, "phase").filter(|_| (1..=3).contains(&level)) else { return false };
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

/// The sort key of each id and the id, in order. By the key `T12` matches `T012`.
type Places = [((u64, String), String)];

/// The length of an id such as `T012` or `T012a` at the start of `text`.
fn id_length(text: &str) -> usize {
    let Some(digits) = text.strip_prefix(['T', 't']) else { return 0 };
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=9).contains(&count) {
        return 0;
    }
    let suffix = digits[count..].bytes().take_while(u8::is_ascii_lowercase).count();
    if suffix > 1 { 0 } else { 1 + count + suffix }
}

/// Fills in the dependencies of each task.
fn resolve_dependencies(source: &SourceInput<'_>, file: &mut TaskFile) -> Result<(), SourceError> {
    let places: BTreeMap<_, _> = file.tasks.iter().map(|task| (id_key(&task.id), task.id.clone())).collect();
    let places: Vec<_> = places.into_iter().collect();
    for task in &mut file.tasks {
        let mut found = DependencySet::default();
        for range in ranges(&task.title) {
            found.add(&places, range).map_err(|problem| source.error(task.line, format!("{}{problem}", task.id)))?;
        }
        task.depends_on = found.ids;
    }
    Ok(())
}

/// The dependencies of one task, without duplicates, in the order they are named.
#[derive(Default)]
struct DependencySet {
    ids: Vec<String>,
    known: HashSet<String>,
    /// For a position covered by a range, the position after that range, so that no range is expanded twice.
    after: HashMap<usize, usize>,
}

impl DependencySet {
    /// Adds a range of ids, or returns what is wrong with it.
    fn add(&mut self, places: &Places, range: IdRange<'_>) -> Result<(), String> {
        let IdRange { first, last } = range;
        let known = |id| {
            let place = places.binary_search_by(|(other, _)| other.cmp(&id_key(id))).ok();
            place.map_or(id, |place| places[place].1.as_str())
        };
        self.insert(known(first));
        if first != last {
            let (from, to) = (id_key(first), id_key(last));
            if from > to {
                return Err(format!(": the range {first}-{last} runs backwards"));
            }
            let start = places.partition_point(|(key, _)| *key < from);
            let end = places.partition_point(|(key, _)| *key <= to);
            self.insert_range(places, start, end);
            self.insert(known(last));
        }
        if self.ids.len() > MAX_DEPENDENCIES {
            return Err(format!(" depends on more than {MAX_DEPENDENCIES} tasks"));
        }
        Ok(())
    }

    fn insert(&mut self, id: &str) {
        if !self.known.contains(id) {
            self.known.insert(id.to_owned());
            self.ids.push(id.to_owned());
        }
    }

    fn insert_range(&mut self, places: &Places, mut from: usize, to: usize) {
        while from < to && self.ids.len() <= MAX_DEPENDENCIES {
            from = match self.after.get(&from) {
                Some(next) => *next,
                None => {
                    self.insert(&places[from].1);
                    self.after.insert(from, to);
                    from + 1
                }
            };
        }
    }
}

/// The sort key of an id, which makes `T12` equal `T012`.
fn id_key(id: &str) -> (u64, String) {
    let digits = id.trim_start_matches(['T', 't']);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    (digits[..count].parse().unwrap_or(u64::MAX), digits[count..].to_owned())
}

/// The first and the last id of a range; a single id is both.
#[derive(Debug, Clone, Copy)]
struct IdRange<'a> {
    first: &'a str,
    last: &'a str,
}

/// The ids and ranges of ids after `depends on` or `after`.
fn ranges(text: &str) -> Vec<IdRange<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if let Some(length) = introduces(text, at) {
            let taken = id_list(&text[at + length..], &mut found);
            at += length + taken;
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

/// The length of the words at `at` that may introduce a list of ids.
fn introduces(text: &str, at: usize) -> Option<usize> {
    let begins = !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
    let is = |word: &str| {
        begins
            && text.as_bytes()[at..].get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    };
    ["depends on", "depend on", "after"].into_iter().find(|word| is(word)).map(str::len)
}

/// Parses `T012, T013-T015 and T020`. Returns the length parsed.
fn id_list<'a>(text: &'a str, found: &mut Vec<IdRange<'a>>) -> usize {
    let mut rest = text.strip_prefix(':').unwrap_or(text);
    loop {
        let next = after_separators(rest);
        let length = id_length(next);
        let ends = !next[length..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if length == 0 || !ends {
            return text.len() - rest.len();
        }
        let (first, after) = next.split_at(length);
        let (last, after) = range_end(after).unwrap_or((first, after));
        found.push(IdRange { first, last });
        rest = after;
    }
}

fn after_separators(text: &str) -> &str {
    let mut text = text;
    loop {
        let trimmed = text.trim_start_matches([' ', '\t', ',', '&', '+', ';', '`', '*']);
        let next = trimmed.strip_prefix("and ").or_else(|| trimmed.strip_prefix("or ")).unwrap_or(trimmed);
        if next.len() == text.len() {
            return text;
        }
        text = next;
    }
}

/// Parses `-T015` after the first id of a range.
fn range_end(text: &str) -> Option<(&str, &str)> {
    let dash = text.trim_start_matches([' ', '`', '*']);
    let after =
        dash.strip_prefix(['-', '–', '—']).or_else(|| dash.strip_prefix("..")).or_else(|| dash.strip_prefix("to "))?;
    let last = after.trim_start_matches([' ', '`', '*']);
    let length = id_length(last);
    (length > 0).then(|| last.split_at(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_where_they_are_depended_on_and_nowhere_else() {
        let found = |text| {
            ranges(text)
                .into_iter()
                .map(|range| format!("{}..{}", range.first, range.last))
                .collect::<Vec<_>>()
                .join(" ")
        };
        insta::assert_snapshot!(found("x (depends on T012, T013-T015)"), @"T012..T012 T013..T015");
        insta::assert_snapshot!(found("Depends on: T1 and T2"), @"T1..T1 T2..T2");
        insta::assert_snapshot!(found("run after T012, after T013"), @"T012..T012 T013..T013");
        insta::assert_snapshot!(found("after login, see T004; thereafter T005; depends on US1"), @"");
        insta::assert_snapshot!(found("(depends on T001–T003, `T009`)"), @"T001..T003 T009..T009");
    }
}
