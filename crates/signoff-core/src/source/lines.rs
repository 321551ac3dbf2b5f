//! The lines of a Markdown file, each classified as prose, fenced code, comment or front matter.

use std::borrow::Cow;
use std::collections::HashMap;

use super::tick::CheckboxMark;
use super::{SourceInput, SourceState, SourceTask, Warning};
use crate::text::shortened;

/// The end of the warning about an unclosed block that hid the rest of a file.
pub const NEVER_CLOSED: &str = "is never closed";

/// What a line is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Prose,
    /// Between fences, or a fence itself.
    Code,
    Comment,
    FrontMatter,
}

#[derive(Debug, Clone, Copy)]
pub struct MarkdownLine<'a> {
    /// Counted from 1.
    pub number: u32,
    /// Offset of its first byte in `SourceInput::text`.
    pub offset: usize,
    /// Without the line ending.
    pub text: &'a str,
    pub kind: LineKind,
}

impl<'a> MarkdownLine<'a> {
    pub fn is_prose(&self) -> bool {
        self.kind == LineKind::Prose
    }

    /// The heading's level and text, if this is one.
    pub fn heading(&self) -> Option<(usize, &'a str)> {
        let text = self.text.trim_start_matches(' ');
        let level = text.bytes().take_while(|byte| *byte == b'#').count();
        let rest = &text[level..];
        let fits = self.is_prose() && (1..=6).contains(&level) && self.text.len() - text.len() <= 3;
        let spaced = rest.is_empty() || rest.starts_with([' ', '\t']);
        (fits && spaced).then(|| (level, rest.trim().trim_end_matches('#').trim_end()))
    }
}

/// A list item that begins with a checkbox.
#[derive(Debug, Clone, Copy)]
pub struct Checkbox<'a> {
    /// Columns before the bullet. A tab is four.
    pub indent: usize,
    /// The character between the brackets.
    pub sign: char,
    /// Offset of the sign in its line.
    pub column: usize,
    /// The text after the closing bracket.
    pub rest: &'a str,
    /// Whether white space separates bullet and checkbox, as Markdown requires.
    pub spaced: bool,
}

impl<'a> Checkbox<'a> {
    /// Parses `- [x] rest`, with any Markdown bullet.
    pub fn parse(text: &'a str) -> Option<Self> {
        let unindented = text.trim_start();
        let margin = &text[..text.len() - unindented.len()];
        let indent = margin.chars().map(|c| if c == '\t' { 4 } else { 1 }).sum();
        let after = after_bullet(unindented)?;
        let bracket = after.trim_start();
        let inner = bracket.strip_prefix('[')?;
        let sign = inner.chars().next()?;
        let rest = inner[sign.len_utf8()..].strip_prefix(']')?;
        let column = text.len() - inner.len();
        Some(Self { indent, sign, column, rest, spaced: after.len() > bracket.len() })
    }

    /// Parses a checkbox with a space on either side, as in a task list.
    pub fn parse_task(text: &'a str) -> Option<Self> {
        let checkbox = Self::parse(text)?;
        let is_separated = checkbox.rest.is_empty() || checkbox.rest.starts_with([' ', '\t']);
        (checkbox.spaced && is_separated).then_some(checkbox)
    }

    /// Whether it is ticked, in formats that ignore case.
    pub fn is_ticked(&self) -> bool {
        matches!(self.sign, 'x' | 'X')
    }

    pub fn is_blank(&self) -> bool {
        self.sign == ' '
    }

    /// Sets the state and mark of a task whose box can only be open or ticked. Returns another sign in it.
    pub fn tick_task(&self, task: &mut SourceTask, source: &SourceInput<'_>, line: &MarkdownLine<'_>) -> Option<char> {
        task.mark = self.mark(source, line);
        if self.is_ticked() {
            task.state = SourceState::Done;
        }
        (!self.is_ticked() && !self.is_blank()).then_some(self.sign)
    }

    /// The mark of this checkbox if it is open.
    pub fn mark(&self, source: &SourceInput<'_>, line: &MarkdownLine<'_>) -> Option<CheckboxMark> {
        if self.is_ticked() {
            return None;
        }
        CheckboxMark::new(line.text, line.number, source.start + line.offset, self.column)
    }
}

/// The text after the bullet of a list item, including white space.
pub fn after_bullet(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix(['-', '*', '+']) {
        return Some(rest);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=9).contains(&digits) {
        return None;
    }
    text[digits..].strip_prefix(['.', ')'])
}

/// The text of a list item without a checkbox: what follows the bullet and a space.
pub fn list_item(text: &str) -> Option<&str> {
    let after = after_bullet(text.trim_start())?;
    let item = after.trim_start();
    (after.len() > item.len()).then(|| item.trim_end())
}

/// The number of the line that holds the byte at `offset`.
pub fn line_at(bytes: &[u8], offset: usize) -> u32 {
    let newlines = bytes.iter().take(offset).filter(|byte| **byte == b'\n').count();
    u32::try_from(newlines + 1).unwrap_or(u32::MAX)
}

/// Removes HTML comments from `text`. A comment that is not closed hides the rest. Comment signs in code spans are
/// text.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains("<!--") {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut cursor = 0;
    for (start, end) in comments(text) {
        shown.push_str(&text[cursor..start]);
        cursor = end.unwrap_or(text.len());
    }
    shown.push_str(&text[cursor..]);
    Cow::Owned(shown)
}

/// The comments of a line: the start of each, and its end if it is closed.
fn comments(text: &str) -> Vec<(usize, Option<usize>)> {
    let bytes = text.as_bytes();
    let last_runs = last_backtick_runs(bytes);
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'`' {
            at = after_code_span(bytes, at, &last_runs);
        } else if bytes[at..].starts_with(b"<!--") {
            let end = text[at + 2..].find("-->").map(|found| at + 2 + found + 3);
            found.push((at, end));
            at = end.unwrap_or(bytes.len());
        } else {
            at += 1;
        }
    }
    found
}

/// The start of the last run of backticks of each length. Keeps the search for the end of a code span linear.
fn last_backtick_runs(bytes: &[u8]) -> HashMap<usize, usize> {
    let mut last = HashMap::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = backticks(bytes, at);
        if length > 0 {
            last.insert(length, at);
        }
        at += length.max(1);
    }
    last
}

fn after_code_span(bytes: &[u8], start: usize, last_runs: &HashMap<usize, usize>) -> usize {
    let length = backticks(bytes, start);
    let mut at = start + length;
    if last_runs.get(&length).is_none_or(|last| *last < at) {
        return at;
    }
    while at < bytes.len() {
        let run = backticks(bytes, at);
        at += run.max(1);
        if run == length {
            break;
        }
    }
    at
}

fn backticks(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().take_while(|byte| **byte == b'`').count()
}

#[derive(Debug, Clone, Copy)]
struct CodeFence {
    sign: u8,
    length: usize,
    opened: u32,
}

#[derive(Debug, Clone, Copy)]
enum LineContext {
    Prose,
    Fence(CodeFence),
    Comment { opened: u32 },
    FrontMatter { until: usize },
}

/// An iterator over the lines of a file.
pub struct MarkdownLines<'a> {
    text: &'a str,
    offset: usize,
    number: u32,
    inside: LineContext,
    last_comment_end: usize,
}

impl<'a> MarkdownLines<'a> {
    pub fn new(source: &SourceInput<'a>) -> Self {
        let until = front_matter_end(source.text);
        let inside = until.map_or(LineContext::Prose, |until| LineContext::FrontMatter { until });
        let last_comment_end = source.text.rfind("-->").unwrap_or(0);
        Self { text: source.text, offset: 0, number: 0, inside, last_comment_end }
    }

    /// The block that was never closed, once all lines are read. It hid the rest of the file.
    pub fn unclosed(&self) -> Option<Warning> {
        match self.inside {
            LineContext::Prose | LineContext::FrontMatter { .. } => None,
            LineContext::Fence(CodeFence { opened, .. }) => Some(unclosed_warning(opened, "code fence")),
            LineContext::Comment { opened } => Some(unclosed_warning(opened, "comment")),
        }
    }

    fn classify(&mut self, text: &str, offset: usize) -> LineKind {
        match self.inside {
            LineContext::FrontMatter { until } => {
                if offset >= until {
                    self.inside = LineContext::Prose;
                }
                LineKind::FrontMatter
            }
            LineContext::Fence(fence) => {
                if closes(text, fence) {
                    self.inside = LineContext::Prose;
                }
                LineKind::Code
            }
            LineContext::Comment { .. } => {
                if text.contains("-->") {
                    self.inside = LineContext::Prose;
                }
                LineKind::Comment
            }
            LineContext::Prose => self.classify_prose(text, offset),
        }
    }

    fn classify_prose(&mut self, text: &str, offset: usize) -> LineKind {
        if let Some((sign, length)) = opens_fence(text) {
            self.inside = LineContext::Fence(CodeFence { sign, length, opened: self.number });
            return LineKind::Code;
        }
        if !text.contains("<!--") {
            return LineKind::Prose;
        }
        let begins = text.trim_start().starts_with("<!--");
        let open = comments(text).last().is_some_and(|(_, end)| end.is_none());
        if open && (begins || self.last_comment_end > offset) {
            self.inside = LineContext::Comment { opened: self.number };
        }
        if begins { LineKind::Comment } else { LineKind::Prose }
    }
}

fn unclosed_warning(line: u32, what: &str) -> Warning {
    Warning { line, message: format!("the {what} that opens here {NEVER_CLOSED}") }
}

impl<'a> Iterator for MarkdownLines<'a> {
    type Item = MarkdownLine<'a>;

    fn next(&mut self) -> Option<MarkdownLine<'a>> {
        let rest = self.text.get(self.offset..).filter(|rest| !rest.is_empty())?;
        let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let text = rest[..length].trim_end_matches('\n');
        let text = text.strip_suffix('\r').unwrap_or(text);
        let offset = self.offset;
        self.offset += length;
        self.number += 1;
        let kind = self.classify(text, offset);
        Some(MarkdownLine { number: self.number, offset, text, kind })
    }
}

/// The start of the line that ends the front matter.
fn front_matter_end(text: &str) -> Option<usize> {
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let bare = line.trim_end();
        match (index, bare) {
            (0, "---") => {}
            (0, _) => return None,
            (_, "---" | "...") => return Some(offset),
            (_, _) => {}
        }
        offset += line.len();
    }
    None
}

fn opens_fence(text: &str) -> Option<(u8, usize)> {
    let text = text.trim_start();
    let text = list_item(text).unwrap_or(text);
    let sign = *text.as_bytes().first()?;
    if !matches!(sign, b'`' | b'~') {
        return None;
    }
    let length = text.bytes().take_while(|byte| *byte == sign).count();
    let info_fits = sign == b'~' || !text[length..].contains('`');
    (length >= 3 && info_fits).then_some((sign, length))
}

fn closes(text: &str, fence: CodeFence) -> bool {
    let text = text.trim();
    text.len() >= fence.length && text.bytes().all(|byte| byte == fence.sign)
}

/// Maximum number of parts in a task number.
const MAX_LEVELS: usize = 8;

/// `1.2` or `2.3a` at the start of `text`, and what follows it.
pub fn leading_number(text: &str) -> Option<(&str, &str)> {
    let bare = text.strip_prefix("**").unwrap_or(text);
    let numeric = bare.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let number = bare[..numeric].trim_end_matches('.');
    // Bounded, because each level of an id is looked up.
    let shallow = number.bytes().filter(|byte| *byte == b'.').count() < MAX_LEVELS;
    let well_formed = shallow && number.split('.').all(|part| (1..=9).contains(&part.len()));
    let letter = usize::from(
        number.len() == numeric
            && number.contains('.')
            && bare[numeric..].starts_with(|c: char| c.is_ascii_lowercase()),
    );
    let (id, rest) = bare.split_at(number.len() + letter);
    let rest = rest.trim_start_matches(['.', ')', ':']).trim_start_matches("**").trim_start_matches(':');
    let ends = rest.is_empty() || rest.starts_with([' ', '\t']);
    (well_formed && ends).then(|| (id, rest.trim()))
}

/// Whether the number at the start of `text` has no dot in or after it, as in `3 retries`. It is a count rather
/// than a task number.
pub fn begins_with_count(text: &str) -> bool {
    let bare = text.strip_prefix("**").unwrap_or(text);
    let after = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    after.len() < bare.len() && !after.starts_with('.')
}

/// The text after a word at its start, in any case.
pub fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then_some(rest)
}

/// Truncates a name, so that it can be repeated for each task.
pub fn short(text: &str) -> String {
    shortened(text, 200)
}

/// The texts that say something, as paragraphs.
pub fn paragraphs(texts: &[&Option<String>]) -> String {
    let texts = texts.iter().filter_map(|text| text.as_deref()).map(str::trim).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The lines of a body without surrounding blank lines, trailing space and carriage returns.
pub fn body(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let blank = lines.iter().take_while(|line| line.is_empty()).count();
    lines[blank..].join("\n")
}
