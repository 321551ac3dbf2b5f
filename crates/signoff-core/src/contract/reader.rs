//! The findings of a review in Markdown: list items, table rows, headings and lines that state a severity,
//! each with the severity announced above it and the fields listed below it.

use super::item::{self, Item, is_heading, label};
use super::message::Message;
use super::outline::ListItem;
use super::{place, stated};
use crate::review::Severity;

/// What a review says in one place of its text.
#[derive(Debug)]
pub(super) struct Entry {
    pub item: Item,
    /// Under a heading that praises: no finding unless it says so itself.
    pub praised: bool,
    origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Item,
    Line,
    /// A title over its details. Where those name the places, it was only their heading.
    Heading,
}

/// Everything said after `from`, and where the first of it begins.
pub(super) fn read(message: &Message<'_>, from: usize) -> (Vec<Entry>, usize) {
    let mut reader = Reader::new(message, from);
    for item in message.outline().items().filter(|item| item.range.start >= from) {
        reader.lines(item.range.start);
        reader.item(item);
    }
    reader.lines(message.text().len());
    reader.flush();
    let end = reader.first.unwrap_or(message.text().len());
    (reader.entries, end)
}

/// How a line that is no `#` heading stands over others. A line ends the rule of one in its own style only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Bold,
    Plain,
    Item,
}

struct Reader<'r, 'm> {
    message: &'r Message<'m>,
    done: usize,
    /// The `#` headings above, with the severity each announces.
    sections: Vec<(usize, Option<Severity>)>,
    label: Option<(Style, Severity)>,
    praised: bool,
    /// Whether the items nested here have a label for their parent.
    under_label: bool,
    /// The entry whose fields may follow.
    open: Option<Entry>,
    entries: Vec<Entry>,
    first: Option<usize>,
}

impl<'r, 'm> Reader<'r, 'm> {
    fn new(message: &'r Message<'m>, from: usize) -> Self {
        Self {
            message,
            done: from,
            sections: Vec::new(),
            label: None,
            praised: false,
            under_label: false,
            open: None,
            entries: Vec::new(),
            first: None,
        }
    }

    fn announced(&self) -> Option<Severity> {
        let section = || self.sections.iter().rev().find_map(|(_, severity)| *severity);
        self.label.map(|(_, severity)| severity).or_else(section)
    }

    fn lines(&mut self, to: usize) {
        let mut start = self.done.min(to);
        self.done = to.max(self.done);
        for line in self.message.text()[start..to].split_inclusive('\n') {
            let at = start + (line.len() - line.trim_start().len());
            start += line.len();
            if !line.trim().is_empty() && self.message.outline().shown(at).is_none() {
                self.line(at, line.trim());
            }
        }
    }

    fn line(&mut self, at: usize, line: &str) {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if level > 0 && line[level..].starts_with(' ') {
            self.heading(at, line, level);
        } else if let Some(severity) = label(line) {
            self.flush();
            self.first.get_or_insert(at);
            self.praised = false;
            self.label = Some((style(line), severity));
        } else if self.open.is_some() && is_field(line) {
            self.field(line);
        } else if is_heading(line) && line.split_whitespace().count() <= 4 && stated::tag(line).is_none() {
            self.flush();
            self.end_label(style(line));
            self.praised = praises(line);
        } else {
            self.stated_line(at, line);
        }
    }

    fn heading(&mut self, at: usize, line: &str, level: usize) {
        self.flush();
        self.label = None;
        self.praised = praises(line);
        self.sections.retain(|(above, _)| *above < level);
        let title = line.trim_start_matches('#').trim_start();
        let numbered = title.trim_start_matches(|c: char| c.is_ascii_digit());
        let unnumbered = numbered.strip_prefix(['.', ')']).filter(|_| numbered.len() < title.len());
        let title = unnumbered.map_or(title, str::trim_start);
        let inherited = self.announced();
        let announced = label(line);
        let entry = announced
            .is_none()
            .then(|| Item::of(self.message, at + line.len() - title.len(), title))
            .flatten();
        let severity = entry.as_ref().and_then(|item| item.severity);
        self.sections.push((level, announced.or(severity)));
        if announced.is_some() {
            self.first.get_or_insert(at);
        }
        if let Some(item) = entry.filter(|_| severity.or(inherited).is_some() && !self.praised) {
            self.open(at, item, Origin::Heading);
        }
    }

    /// A line that opens with a severity is a finding. `Important: …` without a place may be any remark.
    fn stated_line(&mut self, at: usize, line: &str) {
        let Some((severity, range)) = stated::tag(line) else { return };
        let opens = line.starts_with("**") || !line[..range.start].contains(char::is_alphanumeric);
        if !opens || self.message.outline().shown(at + range.start).is_some() {
            return;
        }
        let Some(item) = Item::of(self.message, at, line) else { return };
        let bracketed = line[..range.start].ends_with('[');
        if item.place.is_some() || bracketed || severity != Severity::Important {
            self.flush();
            self.open(at, item, Origin::Line);
        }
    }

    fn item(&mut self, item: &ListItem) {
        let (offset, text) = item::own_text(self.message, item);
        self.done = self.done.max(offset + text.len());
        let first_line = text.lines().next().unwrap_or_default();
        if let Some(severity) = label(text.trim()).filter(|_| !item.nested) {
            self.flush();
            self.first.get_or_insert(item.range.start);
            self.label = Some((Style::Item, severity));
            self.under_label = true;
            return;
        }
        let titled = self.open.as_ref().is_some_and(|open| open.origin == Origin::Heading);
        if is_field(first_line) && self.open.is_some() && (item.nested || titled) {
            text.lines().for_each(|line| self.field(line));
            return;
        }
        if !item.nested {
            self.under_label = false;
            if is_heading(text.trim()) && !text.trim().contains('\n') {
                self.end_label(Style::Item);
            }
        }
        self.entry(item, offset, text);
    }

    fn entry(&mut self, item: &ListItem, offset: usize, text: &str) {
        let head = head_length(text);
        let Some(said) = Item::of(self.message, offset, &text[..head]) else { return };
        // Without a place or a severity of its own, a nested item explains its parent and others their title.
        let titled = self.open.as_ref().is_some_and(|open| open.origin == Origin::Heading);
        let explains = titled || (item.nested && !self.under_label);
        if explains && said.place.is_none() && said.severity.is_none() {
            return;
        }
        self.flush();
        self.open(item.range.start, said, Origin::Item);
        text[head..].lines().for_each(|line| self.field(line));
        if is_field(text.lines().next().unwrap_or_default()) {
            self.describe(text);
        }
    }

    fn open(&mut self, at: usize, mut item: Item, origin: Origin) {
        let from_heading = self.announced();
        item.severity = item.severity.or(from_heading);
        if origin != Origin::Line {
            self.first.get_or_insert(at);
        }
        self.open = Some(Entry { item, praised: self.praised, origin });
    }

    fn field(&mut self, line: &str) {
        let Some(open) = &mut self.open else { return };
        if open.item.place.is_none() {
            open.item.place = place::find(line).or_else(|| named_file(line));
        } else if let Some(place) = open.item.place.as_mut().filter(|place| place.line.is_none()) {
            place.line = field_of(line)
                .filter(|(name, _)| name.starts_with("line"))
                .and_then(|(_, value)| number(value));
        }
        if let Some((severity, _)) = field_of(line)
            .filter(|(name, _)| matches!(name.as_str(), "severity" | "priority" | "level"))
            .and_then(|_| stated::severity(line))
        {
            open.item.severity = Some(severity);
        }
    }

    /// An item that begins with its fields is described by the other lines.
    fn describe(&mut self, text: &str) {
        let told = text.lines().filter(|line| !is_field(line)).flat_map(str::split_whitespace);
        let told = told.collect::<Vec<_>>().join(" ");
        if let Some(open) = self.open.as_mut().filter(|_| !told.is_empty()) {
            open.item.description = told;
        }
    }

    fn end_label(&mut self, style: Style) {
        self.label = self.label.filter(|(of, _)| *of != style);
    }

    fn flush(&mut self) {
        let Some(entry) = self.open.take() else { return };
        if entry.item.place.is_none() && stated::says_nothing(&entry.item.description) {
            return;
        }
        let only_title = |last: &Entry| last.origin == Origin::Heading && last.item.place.is_none();
        if entry.origin == Origin::Item
            && entry.item.place.is_some()
            && self.entries.last().is_some_and(only_title)
        {
            self.entries.pop();
        }
        self.entries.push(entry);
    }
}

fn style(line: &str) -> Style {
    if line.starts_with(['*', '_']) { Style::Bold } else { Style::Plain }
}

/// Whether a heading stands over what is good.
fn praises(line: &str) -> bool {
    const PRAISE: [&str; 9] =
        ["strengths", "strength", "positives", "positive", "praise", "good", "well", "highlights", "works"];
    line.split(|c: char| !c.is_alphanumeric())
        .any(|word| PRAISE.iter().any(|one| one.eq_ignore_ascii_case(word)))
}

/// `**File:** a.rs:1`, `- Severity: Minor`: the name in lower case and the value.
fn field_of(line: &str) -> Option<(String, &str)> {
    const LONGEST: usize = 12;
    let bare = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '-' | '+'));
    let end = bare.find(|c: char| !c.is_ascii_alphabetic()).filter(|end| (1..=LONGEST).contains(end))?;
    let value = bare[end..].trim_start_matches(['*', '_', '(', ')', 's']).strip_prefix(':')?;
    Some((bare[..end].to_ascii_lowercase(), value.trim_start_matches(['*', '_', ' '])))
}

fn is_field(line: &str) -> bool {
    const FIELDS: [&str; 11] = [
        "file",
        "files",
        "location",
        "locations",
        "path",
        "where",
        "line",
        "lines",
        "severity",
        "priority",
        "level",
    ];
    field_of(line).is_some_and(|(name, _)| FIELDS.contains(&name.as_str()))
}

/// How much of an item comes before its fields.
fn head_length(text: &str) -> usize {
    let mut length = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if number > 0 && is_field(line) {
            break;
        }
        length += line.len();
    }
    length
}

/// `File: src/a.rs`, whose line may be the next field.
fn named_file(line: &str) -> Option<place::Place> {
    let (name, value) = field_of(line)?;
    let is_place = ["file", "location", "path", "where"].iter().any(|place| name.starts_with(place));
    is_place.then(|| place::file(value)).flatten()
}

fn number(value: &str) -> Option<u32> {
    let digits = value.trim_start_matches(['L', '`']);
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    digits[..length].parse().ok()
}
