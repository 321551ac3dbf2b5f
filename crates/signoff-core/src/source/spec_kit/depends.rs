//! Parses `(depends on T012, T013-T015)` and `after T012` in the text of a task.

use std::collections::{HashMap, HashSet};

use super::super::{SourceError, SourceInput, SourceTask, TaskFile};
use super::Places;

/// Maximum dependencies per task. It bounds the expansion of ranges.
const MAX_DEPENDENCIES: usize = 256;

/// The length of an id such as `T012` or `T012a` at the start of `text`.
pub fn id_length(text: &str) -> usize {
    let Some(digits) = text.strip_prefix(['T', 't']) else { return 0 };
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=9).contains(&count) {
        return 0;
    }
    let suffix = digits[count..].bytes().take_while(u8::is_ascii_lowercase).count();
    if suffix > 1 { 0 } else { 1 + count + suffix }
}

/// Fills in the dependencies of each task.
pub fn resolve(source: &SourceInput<'_>, file: &mut TaskFile) -> Result<(), SourceError> {
    let places: Places = file.tasks.iter().map(|task| (key(&task.id), task.id.clone())).collect();
    let places: Vec<((u64, String), String)> = places.into_iter().collect();
    for task in &mut file.tasks {
        let mut found = DependencySet::default();
        for range in ranges(&task.title) {
            add(source, task, &places, (range, &mut found))?;
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
    fn insert(&mut self, id: &str) {
        if !self.known.contains(id) {
            self.known.insert(id.to_owned());
            self.ids.push(id.to_owned());
        }
    }

    fn insert_range(&mut self, places: &[((u64, String), String)], mut from: usize, to: usize) {
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

fn add(
    source: &SourceInput<'_>,
    task: &SourceTask,
    places: &[((u64, String), String)],
    ((first, last), found): ((&str, &str), &mut DependencySet),
) -> Result<(), SourceError> {
    let known = |id| {
        let place = places.binary_search_by(|(other, _)| other.cmp(&key(id))).ok();
        place.map_or(id, |place| places[place].1.as_str())
    };
    if first == last {
        found.insert(known(first));
    } else {
        let (from, to) = (key(first), key(last));
        if from > to {
            let message = format!("{}: the range {first}-{last} runs backwards", task.id);
            return Err(source.error(task.line, message));
        }
        found.insert(known(first));
        let start = places.partition_point(|(key, _)| *key < from);
        let end = places.partition_point(|(key, _)| *key <= to);
        found.insert_range(places, start, end);
        found.insert(known(last));
    }
    if found.ids.len() > MAX_DEPENDENCIES {
        let message = format!("{} depends on more than {MAX_DEPENDENCIES} tasks", task.id);
        return Err(source.error(task.line, message));
    }
    Ok(())
}

/// The sort key of an id, which makes `T12` equal `T012`.
pub fn key(id: &str) -> (u64, String) {
    let digits = id.trim_start_matches(['T', 't']);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    (digits[..count].parse().unwrap_or(u64::MAX), digits[count..].to_owned())
}

/// The ids and ranges of ids after `depends on` or `after`.
fn ranges(text: &str) -> Vec<(&str, &str)> {
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
fn id_list<'a>(text: &'a str, found: &mut Vec<(&'a str, &'a str)>) -> usize {
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
        found.push((first, last));
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
        let found = |text| ranges(text).into_iter().map(|(a, b)| format!("{a}..{b}")).collect::<Vec<_>>().join(" ");
        insta::assert_snapshot!(found("x (depends on T012, T013-T015)"), @"T012..T012 T013..T015");
        insta::assert_snapshot!(found("Depends on: T1 and T2"), @"T1..T1 T2..T2");
        insta::assert_snapshot!(found("run after T012, after T013"), @"T012..T012 T013..T013");
        insta::assert_snapshot!(found("after login, see T004; thereafter T005; depends on US1"), @"");
        insta::assert_snapshot!(found("(depends on T001–T003, `T009`)"), @"T001..T003 T009..T009");
    }
}
