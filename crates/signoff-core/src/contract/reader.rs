//! The findings of a review in Markdown: list items, table rows, headings and lines that state a severity,
//! each with the severity announced above it and the fields and paragraphs below it.

mod body;
mod field;

use std::ops::Range;

use field::{field_of, head_length, is_field, named_file, number};

use super::binding::comment_line;
use super::item::{self, Item, OwnText, is_heading, joined, label};
use super::message::Message;
use super::outline::{ListItem, Shown};
use super::{place, resolved, sections, stated, verdict_line};
use crate::review::Severity;

/// What a review says in one place of its text.
#[derive(Debug)]
pub(super) struct Entry {
    pub item: Item,
    /// Where it stands, with everything nested in it.
    pub range: Range<usize>,
    /// Under a heading of notes and remarks.
    pub noted: bool,
    /// Under a heading that praises, sums up or lists what was checked.
    aside: bool,
    /// Whether its box is ticked, if it has one.
    ticked: Option<bool>,
    /// It says that a finding of an earlier review is fixed.
    recounts: bool,
    /// Whether it states its severity itself.
    states_severity: bool,
    origin: Origin,
}

impl Entry {
    /// Whether it is no finding where changes are requested. What states a severity is one, and so is a box that
    /// was left open.
    pub fn is_aside(&self) -> bool {
        self.recounts || self.ticked.unwrap_or(self.aside && !self.states_severity)
    }

    /// Whether it is a ticked item under a heading such as Resolved, or a finding that is said to be fixed, so that it says
    /// nothing beside an approval.
    pub fn is_resolved(&self) -> bool {
        self.recounts || (self.ticked == Some(true) && self.aside)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Item,
    Line,
    /// Text that is in no list.
    Paragraph,
    /// A title over its details. Where those name the places, it was only their heading.
    Heading,
}

/// Everything said after `from`, and where the first of it begins.
pub(super) fn read(message: &Message<'_>, from: usize) -> (Vec<Entry>, usize) {
    entries(Reader::new(message, from))
}

/// The same of a review that asks for changes: paragraphs may be findings too.
pub(super) fn read_request(message: &Message<'_>, from: usize) -> (Vec<Entry>, usize) {
    entries(Reader { paragraphs: Paragraphs::All, ..Reader::new(message, from) })
}

/// The same, but of paragraphs only the first below each heading of a severity.
pub(super) fn read_labelled(message: &Message<'_>) -> Vec<Entry> {
    entries(Reader { paragraphs: Paragraphs::BelowLabels, ..Reader::new(message, 0) }).0
}

fn entries(mut reader: Reader<'_, '_>) -> (Vec<Entry>, usize) {
    let (message, from) = (reader.message, reader.done);
    for item in message.outline().items().filter(|item| item.range.start >= from) {
        reader.lines(item.range.start);
        reader.item(item);
    }
    reader.lines(message.text().len());
    reader.flush();
    let end = reader.first.unwrap_or(message.text().len());
    (reader.entries, end)
}

/// How many words a line has that can only be a heading.
const SHORT: usize = 4;

/// How deep a list may be nested and still be shown so.
const DEEPEST: usize = 8;

/// How a line that is no `#` heading stands over others. A line ends the rule of one in its own style only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Bold,
    Plain,
    Item,
}

/// Which paragraphs may be findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paragraphs {
    None,
    BelowLabels,
    All,
}

struct Reader<'r, 'm> {
    message: &'r Message<'m>,
    done: usize,
    /// The `#` headings above, with the severity each announces.
    sections: Vec<(usize, Option<Severity>)>,
    label: Option<(Style, Severity)>,
    aside: Aside,
    noted: bool,
    /// Whether the items nested here have a label for their parent.
    under_label: bool,
    /// Where the current item of the outermost list ends, and the column its text begins in.
    top: (usize, usize),
    /// The entry whose fields and details may follow.
    open: Option<Entry>,
    entries: Vec<Entry>,
    first: Option<usize>,
    /// Blank lines since the last text.
    blank: usize,
    /// A heading above that states no severity: a finding if fields follow.
    title: Option<(Range<usize>, Item)>,
    /// Whether nothing came below the heading of a severity yet.
    below_label: bool,
    numbering: body::Numbering,
    paragraphs: Paragraphs,
    /// The end of the last paragraph.
    skip: usize,
}

/// Whether what follows is no finding, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aside {
    No,
    /// Until the next `#` heading of this level or above, or one that names a problem.
    Section(usize),
    /// Until the first paragraph after its list.
    Lead,
    LeadListed,
}

impl<'r, 'm> Reader<'r, 'm> {
    fn new(message: &'r Message<'m>, from: usize) -> Self {
        Self {
            message,
            done: from,
            sections: Vec::new(),
            label: None,
            aside: Aside::No,
            noted: false,
            under_label: false,
            top: (from, 0),
            open: None,
            entries: Vec::new(),
            first: None,
            blank: 0,
            title: None,
            below_label: false,
            numbering: body::Numbering::default(),
            paragraphs: Paragraphs::None,
            skip: from,
        }
    }

    fn announced(&self) -> Option<Severity> {
        let section = || self.sections.iter().rev().find_map(|(_, severity)| *severity);
        self.label.map(|(_, severity)| severity).or_else(section)
    }

    fn lines(&mut self, to: usize) {
        let text = self.message.text();
        let mut start = self.done.min(to);
        self.done = to.max(self.done);
        self.numbering.look_ahead(&text[to..]);
        for line in text[start..to].split_inclusive('\n') {
            let begin = start;
            let at = start + (line.len() - line.trim_start().len());
            start += line.len();
            let shown = self.message.outline().shown(at);
            if line.trim().is_empty() || shown == Some(Shown::Comment) {
                let whole = line.ends_with('\n') && (begin == 0 || text[..begin].ends_with('\n'));
                self.blank += usize::from(whole && line.trim().is_empty());
                continue;
            }
            if begin < self.skip {
                continue;
            }
            let inner = line.starts_with([' ', '\t']) || !(begin == 0 || text[..begin].ends_with('\n'));
            if inner && self.continues(begin, line, shown) {
                self.continue_item(line, shown);
            } else if let Some(shown) = shown {
                self.shown_line(at, line, shown);
            } else {
                self.line(at, line.trim());
            }
        }
    }

    /// Whether an indented line is a part of the open list item and nothing of its own.
    fn continues(&self, begin: usize, line: &str, shown: Option<Shown>) -> bool {
        let bare = line.trim();
        let own = || label(bare).is_some() || stated::tag(bare).is_some() || verdict_line::begins(bare);
        self.open.as_ref().is_some_and(|open| open.origin == Origin::Item)
            && begin < self.top.0
            && comment_line(bare).is_none()
            && (shown.is_some() || !own())
    }

    fn continue_item(&mut self, line: &str, shown: Option<Shown>) {
        if shown.is_none() && is_field(line.trim()) {
            return self.field(line.trim());
        }
        let blank = line.bytes().take(self.top.1).take_while(|byte| *byte == b' ').count();
        self.append(line[blank..].trim_end());
    }

    fn line(&mut self, at: usize, line: &str) {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if level > 0 && line[level..].starts_with(' ') {
            self.heading(at, line, level);
        } else if verdict_line::begins(line) {
            self.flush();
            self.end_label(style(line));
            (self.aside, self.title, self.below_label) = (Aside::No, None, false);
        } else if let Some(severity) = label(line) {
            self.flush();
            self.first.get_or_insert(at);
            (self.aside, self.noted, self.title) = (Aside::No, false, None);
            self.begin_label(style(line), severity);
        } else if (self.open.is_some() || self.title.is_some()) && is_field(line) {
            self.open_title();
            self.field(line);
        } else if is_heading(line) && stated::tag(line).is_none() && !self.runs_on(at, line) {
            if self.takes_detail(line) {
                return self.append(line);
            }
            self.lead(at, line);
        } else {
            if self.aside == Aside::LeadListed {
                self.aside = Aside::No;
            }
            if !self.stated_line(at, line) {
                self.body(at, line);
            }
        }
    }

    /// A line that stands over others without being a `#` heading: `**Strengths**`, `I checked:`.
    fn lead(&mut self, at: usize, line: &str) {
        let is_aside = sections::is_aside(line);
        if line.split_whitespace().count() <= SHORT {
            self.flush();
            self.end_label(style(line));
            self.noted = sections::is_notes(line);
            self.aside = Aside::No;
        }
        if style(line) == Style::Bold && !is_aside {
            self.flush();
            self.entitle(at, line);
        }
        if is_aside {
            self.aside = Aside::Lead;
        } else if !matches!(self.aside, Aside::Section(_)) || sections::names_problem(line) {
            self.aside = Aside::No;
        }
    }

    fn heading(&mut self, at: usize, line: &str, level: usize) {
        self.flush();
        (self.label, self.title) = (None, None);
        let within =
            matches!(self.aside, Aside::Section(above) if above < level) && !sections::names_problem(line);
        if !within {
            self.aside = if sections::is_aside(line) { Aside::Section(level) } else { Aside::No };
        }
        self.noted = sections::is_notes(line);
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
        self.below_label = announced.is_some();
        if announced.is_some() {
            self.first.get_or_insert(at);
        }
        let Some(item) = entry.filter(|_| self.aside == Aside::No) else { return };
        if severity.or(inherited).is_some() {
            self.open(at..at + line.len(), item, Origin::Heading);
        } else {
            self.title = Some((at..at + line.len(), item));
        }
    }

    /// A line that opens with a severity is a finding. `Important: …` without a place may be any remark. Returns
    /// whether it is one.
    fn stated_line(&mut self, at: usize, line: &str) -> bool {
        let Some((severity, range)) = stated::tag(line) else { return false };
        let opens = line.starts_with("**") || !line[..range.start].contains(char::is_alphanumeric);
        if !opens || self.message.outline().shown(at + range.start).is_some() {
            return false;
        }
        let Some(item) = Item::of(self.message, at, line) else { return false };
        let bracketed = line[..range.start].ends_with('[');
        // `| Minor | 1 |` counts findings. Beside an approval only what does not block is no objection.
        let is_count = !item.description.contains(|c: char| !c.is_ascii_digit())
            && (self.paragraphs == Paragraphs::All || severity == Severity::Minor || item.description == "0");
        let counts = !is_count && (item.place.is_some() || bracketed || severity != Severity::Important);
        if counts {
            self.flush();
            self.open(at..at + line.len(), item, Origin::Line);
        }
        counts
    }

    fn item(&mut self, item: &ListItem) {
        let own = item::own_text(self.message, item);
        self.below_label = false;
        self.done = self.done.max(own.offset + own.text.len());
        let bare = own.text.trim();
        if self.aside == Aside::Lead {
            self.aside = Aside::LeadListed;
        }
        if let Some(severity) = label(bare).filter(|_| item.depth == 0) {
            self.flush();
            self.first.get_or_insert(item.range.start);
            self.label = Some((Style::Item, severity));
            self.under_label = true;
            return;
        }
        if item.depth == 0 {
            self.under_label = false;
            self.numbering.begin(&self.message.text()[item.range.clone()]);
        }
        if is_field(bare) {
            self.open_title();
        }
        let inner = item.depth > usize::from(self.under_label);
        let titled = self.open.as_ref().is_some_and(|open| open.origin == Origin::Heading);
        if is_field(bare) && self.open.is_some() && (inner || titled) {
            bare.lines().for_each(|line| self.field(line));
        } else if titled && sections::is_detail(bare) {
            self.detail(item, &own);
        } else if !(inner && self.explains(item, &own)) {
            if item.depth == 0 {
                self.top = (item.end, own.offset - self.message.line_at(own.offset).start);
                if is_heading(bare) && !bare.contains('\n') {
                    self.end_label(Style::Item);
                }
            }
            self.entry(item, &own);
        }
    }

    /// Adds a nested item to its parent's entry. Returns false if the item is not nested or states a severity, which makes
    /// it an entry of its own; a parent that is only a title is then dropped.
    fn explains(&mut self, item: &ListItem, own: &OwnText<'_>) -> bool {
        let Some(open) = self.open.as_ref().filter(|_| item.range.start < self.top.0) else { return false };
        let head = head_length(own.text);
        let Some(said) = Item::of(self.message, own.offset, &own.text[..head]) else { return true };
        if said.severity.is_some() {
            let bare = open.item.place.is_none() && !open.states_severity && open.origin == Origin::Item;
            if bare && is_heading(&open.item.description) && !open.item.description.contains('\n') {
                self.open = None;
            }
            return false;
        }
        self.detail(item, own);
        if let Some(open) = self.open.as_mut().filter(|open| open.item.place.is_none()) {
            open.item.place = said.place;
        }
        true
    }

    /// Adds an item to what is open, with its bullet.
    fn detail(&mut self, item: &ListItem, own: &OwnText<'_>) {
        let text = &self.message.text()[item.range.start..own.offset + own.text.len()];
        let indent = "  ".repeat(item.depth.saturating_sub(1).min(DEEPEST));
        self.append(&format!("{indent}{}", joined(text.lines())));
    }

    fn append(&mut self, text: &str) {
        if let Some(open) = &mut self.open {
            let breaks = 1 + std::mem::take(&mut self.blank);
            open.item.description.extend(std::iter::repeat_n('\n', breaks));
            open.item.description.push_str(text);
        }
    }

    fn entry(&mut self, item: &ListItem, own: &OwnText<'_>) {
        let (head, rest) = own.text.split_at(head_length(own.text));
        let Some(said) = Item::of(self.message, own.offset, head).or_else(|| self.shown_item(item, own))
        else {
            return self.flush();
        };
        self.flush();
        self.open(item.range.start..item.end, said, Origin::Item);
        if let Some(open) = &mut self.open {
            open.ticked = own.ticked;
        }
        let end = &own.text[own.text.trim_end().len()..];
        self.blank = end.matches('\n').count().saturating_sub(1);
        rest.lines().filter(|line| is_field(line)).for_each(|line| self.field(line));
        let told = |text: &str| joined(text.lines().filter(|line| !is_field(line)));
        let (all, more) = (told(own.text), told(rest));
        let Some(open) = &mut self.open else { return };
        if is_field(head) && !all.is_empty() {
            open.item.description = all;
        } else if !more.is_empty() {
            open.item.description = format!("{} {more}", open.item.description);
        }
    }

    fn open(&mut self, range: Range<usize>, mut item: Item, origin: Origin) {
        (self.blank, self.title) = (0, None);
        let states_severity = item.severity.is_some();
        item.severity = item.severity.or(self.announced());
        if matches!(origin, Origin::Item | Origin::Heading) {
            self.first.get_or_insert(range.start);
        }
        let (aside, noted) = (self.aside != Aside::No, self.noted);
        let text = &self.message.text()[range.clone()];
        let recounts = sections::recounts(text)
            || (aside && sections::names_finding(text))
            || resolved::is_marked_done(text);
        self.open =
            Some(Entry { item, range, noted, aside, ticked: None, recounts, states_severity, origin });
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
            open.states_severity = true;
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
        let only_title = |last: &Entry| {
            let is_bare = last.item.place.is_none() && !last.item.description.contains('\n');
            last.origin == Origin::Heading && is_bare && !last.states_severity
        };
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
