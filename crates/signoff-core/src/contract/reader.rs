//! Reads the findings of a Markdown review: list items, table rows, headings and lines that state a severity. Each
//! gets the severity of the heading above it and the fields and paragraphs below it.

mod body;

use std::ops::Range;

use super::candidates::parse_nonce_comment;
use super::item::{
    self, OwnText, ReviewItem, head_length, heading_severity, is_field, is_heading, joined, line_number, named_file,
    parse_field,
};
use super::markdown_structure::{ListItem, MarkupKind};
use super::message::{FinalMessage, lines_from};
use super::{ReviewRequest, inline_severity, location, markdown, wording};
use crate::review::{Review, Severity, Verdict};

/// One statement of a review.
#[derive(Debug)]
pub(super) struct ReviewEntry {
    pub item: ReviewItem,
    /// Its position, including everything nested in it.
    pub range: Range<usize>,
    /// Whether it is below a heading of notes and remarks.
    pub under_notes: bool,
    /// Whether it is below a heading of praise, a summary or a list of checked items.
    under_commentary: bool,
    /// Whether its checkbox is ticked, if it has one.
    ticked: Option<bool>,
    /// Whether it says that a finding of an earlier review is fixed.
    reports_fixed: bool,
    /// Whether it states its own severity.
    states_severity: bool,
    origin: EntryOrigin,
}

impl ReviewEntry {
    /// Whether it is not a finding in a review that requests changes. An entry with a severity or an open checkbox
    /// is a finding.
    pub fn is_commentary(&self) -> bool {
        self.reports_fixed || self.ticked.unwrap_or(self.under_commentary && !self.states_severity)
    }

    /// Whether it is resolved: a ticked item below a heading such as Resolved, or a finding reported as fixed. It
    /// has no meaning beside an approval.
    pub fn is_resolved(&self) -> bool {
        self.reports_fixed || (self.ticked == Some(true) && self.under_commentary)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryOrigin {
    Item,
    Line,
    /// Text outside any list.
    Paragraph,
    /// A title above its details. If the details name the locations, it is only their heading.
    Heading,
}

/// Adds the entries after `from` to a review: findings of this kind, and notes. In a request for changes, paragraphs
/// may be findings too. Returns where the first entry begins.
pub(super) fn add_entries(
    review: &mut Review,
    message: &FinalMessage<'_>,
    from: usize,
    kind: &str,
    request: &ReviewRequest,
) -> usize {
    let requested = review.verdict == Verdict::ChangesRequested;
    let paragraphs = if requested { ParagraphRule::All } else { ParagraphRule::None };
    let (entries, start) = entries(MarkdownReader { paragraphs, ..MarkdownReader::new(message, from) });
    let is_listed = entries.iter().any(|entry| !entry.only_mentions_location() && !entry.is_commentary());
    let (approves, has_notes) = (review.verdict.approves(), review.verdict == Verdict::ApprovedWithMinor);
    for entry in entries.into_iter().filter(|entry| is_listed || !entry.only_mentions_location()) {
        let (has_severity, has_location) = (entry.item.severity.is_some(), entry.item.location.is_some());
        if entry.is_resolved() || (entry.is_commentary() && !(approves && has_severity)) {
            continue;
        }
        if has_severity || requested || (has_location && !approves) {
            review.findings.push(entry.item.finding(kind, request));
        } else if approves && (has_location || entry.under_notes || has_notes) {
            // Without a severity, an item with a location is a note.
            review.minor.push(entry.item.note());
        }
    }
    start
}

/// Reads all entries.
pub(super) fn read(message: &FinalMessage<'_>) -> Vec<ReviewEntry> {
    entries(MarkdownReader::new(message, 0)).0
}

/// Reads paragraphs only if they are the first one below a severity heading.
pub(super) fn read_labelled(message: &FinalMessage<'_>) -> Vec<ReviewEntry> {
    entries(MarkdownReader { paragraphs: ParagraphRule::BelowLabels, ..MarkdownReader::new(message, 0) }).0
}

/// The entries, and where the first one begins.
fn entries(mut reader: MarkdownReader<'_, '_>) -> (Vec<ReviewEntry>, usize) {
    let (message, from) = (reader.message, reader.done);
    for item in message.structure().items().filter(|item| item.range.start >= from) {
        reader.lines(item.range.start);
        reader.item(item);
    }
    reader.lines(message.text().len());
    reader.flush();
    let end = reader.first.unwrap_or(message.text().len());
    (reader.entries, end)
}

/// Maximum number of words of a line that is always a heading.
const MAX_SHORT_WORDS: usize = 4;

/// Maximum indentation depth of nested lists.
const MAX_INDENT: usize = 8;

/// How a line other than a `#` heading introduces the lines below it. Only a line in the same style ends its
/// section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LabelStyle {
    Bold,
    Plain,
    Item,
}

/// Which paragraphs may be findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParagraphRule {
    None,
    BelowLabels,
    All,
}

struct MarkdownReader<'r, 'm> {
    message: &'r FinalMessage<'m>,
    done: usize,
    /// The `#` headings above, each with the severity it announces.
    sections: Vec<(usize, Option<Severity>)>,
    label: Option<(LabelStyle, Severity)>,
    commentary: CommentaryScope,
    under_notes: bool,
    /// Whether the nested items have a label as their parent.
    under_label: bool,
    /// The end of the current item of the outermost list, and the column of its text.
    top: (usize, usize),
    /// The entry that may get further fields and details.
    open: Option<ReviewEntry>,
    entries: Vec<ReviewEntry>,
    first: Option<usize>,
    /// Number of blank lines since the last text.
    blank: usize,
    /// A heading above that states no severity. It is a finding if fields follow.
    title: Option<(Range<usize>, ReviewItem)>,
    /// Whether nothing has followed the severity heading yet.
    below_label: bool,
    numbering: body::ListNumbering,
    paragraphs: ParagraphRule,
    /// The end of the last paragraph.
    skip: usize,
}

/// Whether the following text holds no findings, and where that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommentaryScope {
    No,
    /// Until the next `#` heading of this level or above, or one that names a problem.
    Section(usize),
    /// Until the first paragraph after its list.
    Lead,
    LeadListed,
}

impl<'r, 'm> MarkdownReader<'r, 'm> {
    fn new(message: &'r FinalMessage<'m>, from: usize) -> Self {
        Self {
            message,
            done: from,
            sections: Vec::new(),
            label: None,
            commentary: CommentaryScope::No,
            under_notes: false,
            under_label: false,
            top: (from, 0),
            open: None,
            entries: Vec::new(),
            first: None,
            blank: 0,
            title: None,
            below_label: false,
            numbering: body::ListNumbering::default(),
            paragraphs: ParagraphRule::None,
            skip: from,
        }
    }

    fn announced(&self) -> Option<Severity> {
        let section = || self.sections.iter().rev().find_map(|(_, severity)| *severity);
        self.label.map(|(_, severity)| severity).or_else(section)
    }

    fn lines(&mut self, to: usize) {
        let text = self.message.text();
        let from = self.done.min(to);
        self.done = to.max(self.done);
        self.numbering.look_ahead(&text[to..]);
        for source_line in lines_from(&text[..to], from) {
            let (begin, at, line) = (source_line.start, source_line.text_start(), source_line.text);
            let markup = self.message.markup_at(at);
            if line.trim().is_empty() || markup == Some(MarkupKind::Comment) {
                let whole = line.ends_with('\n') && (begin == 0 || text[..begin].ends_with('\n'));
                self.blank += usize::from(whole && line.trim().is_empty());
                continue;
            }
            if begin < self.skip {
                continue;
            }
            let inner = line.starts_with([' ', '\t']) || !(begin == 0 || text[..begin].ends_with('\n'));
            if inner && self.continues(begin, line, markup) {
                self.continue_item(line, markup);
            } else if let Some(markup) = markup {
                self.quoted_line(at, line, markup);
            } else {
                self.line(at, line.trim());
            }
        }
    }

    /// Whether an indented line is a continuation of the open list item.
    fn continues(&self, begin: usize, line: &str, markup: Option<MarkupKind>) -> bool {
        let bare = line.trim();
        let own = || {
            heading_severity(bare).is_some() || inline_severity::tag(bare).is_some() || markdown::begins_verdict(bare)
        };
        self.open.as_ref().is_some_and(|open| open.origin == EntryOrigin::Item)
            && begin < self.top.0
            && parse_nonce_comment(bare).is_none()
            && (markup.is_some() || !own())
    }

    fn continue_item(&mut self, line: &str, markup: Option<MarkupKind>) {
        if markup.is_none() && is_field(line.trim()) {
            return self.field(line.trim());
        }
        let blank = line.bytes().take(self.top.1).take_while(|byte| *byte == b' ').count();
        self.append(line[blank..].trim_end());
    }

    fn line(&mut self, at: usize, line: &str) {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if level > 0 && line[level..].starts_with(' ') {
            self.heading(at, line, level);
        } else if markdown::begins_verdict(line) {
            self.flush();
            self.end_label(style(line));
            (self.commentary, self.title, self.below_label) = (CommentaryScope::No, None, false);
        } else if let Some(severity) = heading_severity(line) {
            self.flush();
            self.first.get_or_insert(at);
            (self.commentary, self.under_notes, self.title) = (CommentaryScope::No, false, None);
            (self.label, self.below_label) = (Some((style(line), severity)), true);
        } else if (self.open.is_some() || self.title.is_some()) && is_field(line) {
            self.open_title();
            self.field(line);
        } else if is_heading(line) && inline_severity::tag(line).is_none() && !self.starts_paragraph(at, line) {
            // A heading such as `**Fix:**` may name a detail of the open finding.
            if self.takes_body() && wording::names_detail(line) {
                return self.append(line);
            }
            self.lead(at, line);
        } else {
            if self.commentary == CommentaryScope::LeadListed {
                self.commentary = CommentaryScope::No;
            }
            if !self.severity_line(at, line) {
                self.body(at, line);
            }
        }
    }

    /// Reads a line that introduces others without being a `#` heading: `**Strengths**`, `I checked:`.
    fn lead(&mut self, at: usize, line: &str) {
        let is_commentary = wording::is_commentary(line);
        if line.split_whitespace().count() <= MAX_SHORT_WORDS {
            self.flush();
            self.end_label(style(line));
            self.under_notes = wording::is_notes_heading(line);
            self.commentary = CommentaryScope::No;
        }
        if style(line) == LabelStyle::Bold && !is_commentary {
            self.flush();
            // Its severity or location may follow in a field.
            self.title = ReviewItem::parse(self.message, at, line).map(|item| (at..at + line.len(), item));
        }
        if is_commentary {
            self.commentary = CommentaryScope::Lead;
        } else if !matches!(self.commentary, CommentaryScope::Section(_)) || wording::names_problem(line) {
            self.commentary = CommentaryScope::No;
        }
    }

    fn heading(&mut self, at: usize, line: &str, level: usize) {
        self.flush();
        (self.label, self.title) = (None, None);
        let within = matches!(self.commentary, CommentaryScope::Section(above) if above < level)
            && !wording::names_problem(line);
        if !within {
            self.commentary =
                if wording::is_commentary(line) { CommentaryScope::Section(level) } else { CommentaryScope::No };
        }
        self.under_notes = wording::is_notes_heading(line);
        self.sections.retain(|(above, _)| *above < level);
        let title = line.trim_start_matches('#').trim_start();
        let title = wording::without_number(title);
        let inherited = self.announced();
        let announced = heading_severity(line);
        let entry = announced
            .is_none()
            .then(|| ReviewItem::parse(self.message, at + line.len() - title.len(), title))
            .flatten();
        let severity = entry.as_ref().and_then(|item| item.severity);
        self.sections.push((level, announced.or(severity)));
        self.below_label = announced.is_some();
        if announced.is_some() {
            self.first.get_or_insert(at);
        }
        let Some(item) = entry.filter(|_| self.commentary == CommentaryScope::No) else { return };
        if severity.or(inherited).is_some() {
            self.open(at..at + line.len(), item, EntryOrigin::Heading);
        } else {
            self.title = Some((at..at + line.len(), item));
        }
    }

    fn item(&mut self, item: &ListItem) {
        let own = item::own_text(self.message, item);
        self.below_label = false;
        self.done = self.done.max(own.offset + own.text.len());
        let bare = own.text.trim();
        if self.commentary == CommentaryScope::Lead {
            self.commentary = CommentaryScope::LeadListed;
        }
        if let Some(severity) = heading_severity(bare).filter(|_| item.depth == 0) {
            self.flush();
            self.first.get_or_insert(item.range.start);
            self.label = Some((LabelStyle::Item, severity));
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
        let titled = self.open.as_ref().is_some_and(|open| open.origin == EntryOrigin::Heading);
        if is_field(bare) && self.open.is_some() && (inner || titled) {
            bare.lines().for_each(|line| self.field(line));
        } else if titled && wording::names_detail(bare) && !is_heading(bare) {
            self.detail(item, &own);
        } else if !(inner && self.add_nested(item, &own)) {
            if item.depth == 0 {
                self.top = (item.end, own.offset - self.message.line_at(own.offset).start);
                if is_heading(bare) && !bare.contains('\n') {
                    self.end_label(LabelStyle::Item);
                }
            }
            self.entry(item, &own);
        }
    }

    /// Adds a nested item to its parent's entry. Returns false if the item is not nested or states a severity,
    /// which makes it an entry itself; a parent that is only a title is then dropped.
    fn add_nested(&mut self, item: &ListItem, own: &OwnText<'_>) -> bool {
        let Some(open) = self.open.as_ref().filter(|_| item.range.start < self.top.0) else { return false };
        let head = head_length(own.text);
        let Some(parsed) = ReviewItem::parse(self.message, own.offset, &own.text[..head]) else { return true };
        if parsed.severity.is_some() {
            let bare = open.item.location.is_none() && !open.states_severity && open.origin == EntryOrigin::Item;
            if bare && is_heading(&open.item.description) && !open.item.description.contains('\n') {
                self.open = None;
            }
            return false;
        }
        self.detail(item, own);
        if let Some(open) = self.open.as_mut().filter(|open| open.item.location.is_none()) {
            open.item.location = parsed.location;
        }
        true
    }

    /// Adds an item to the open entry, with its bullet.
    fn detail(&mut self, item: &ListItem, own: &OwnText<'_>) {
        let text = &self.message.text()[item.range.start..own.offset + own.text.len()];
        let indent = "  ".repeat(item.depth.saturating_sub(1).min(MAX_INDENT));
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
        let Some(parsed) = ReviewItem::parse(self.message, own.offset, head).or_else(|| self.quoted_item(item, own))
        else {
            return self.flush();
        };
        self.flush();
        self.open(item.range.start..item.end, parsed, EntryOrigin::Item);
        if let Some(open) = &mut self.open {
            open.ticked = own.ticked;
        }
        let end = &own.text[own.text.trim_end().len()..];
        self.blank = end.matches('\n').count().saturating_sub(1);
        rest.lines().filter(|line| is_field(line)).for_each(|line| self.field(line));
        let without_fields = |text: &str| joined(text.lines().filter(|line| !is_field(line)));
        let (all, more) = (without_fields(own.text), without_fields(rest));
        let Some(open) = &mut self.open else { return };
        if is_field(head) && !all.is_empty() {
            open.item.description = all;
        } else if !more.is_empty() {
            open.item.description = format!("{} {more}", open.item.description);
        }
    }

    fn open(&mut self, range: Range<usize>, mut item: ReviewItem, origin: EntryOrigin) {
        (self.blank, self.title) = (0, None);
        let states_severity = item.severity.is_some();
        item.severity = item.severity.or(self.announced());
        if matches!(origin, EntryOrigin::Item | EntryOrigin::Heading) {
            self.first.get_or_insert(range.start);
        }
        let (commentary, noted) = (self.commentary != CommentaryScope::No, self.under_notes);
        let text = &self.message.text()[range.clone()];
        let recounts = wording::reports_fixed(text)
            || (commentary && wording::contains_finding_id(text))
            || wording::is_marked_done(text);
        self.open = Some(ReviewEntry {
            item,
            range,
            under_notes: noted,
            under_commentary: commentary,
            ticked: None,
            reports_fixed: recounts,
            states_severity,
            origin,
        });
    }

    fn field(&mut self, line: &str) {
        let Some(open) = &mut self.open else { return };
        if open.item.location.is_none() {
            open.item.location = location::find(line).or_else(|| named_file(line));
        } else if let Some(location) = open.item.location.as_mut().filter(|location| location.line.is_none()) {
            location.line = parse_field(line)
                .filter(|(name, _)| name.starts_with("line"))
                .and_then(|(_, value)| line_number(value));
        }
        if let Some((severity, _)) = parse_field(line)
            .filter(|(name, _)| matches!(name.as_str(), "severity" | "priority" | "level"))
            .and_then(|_| inline_severity::severity(line))
        {
            open.item.severity = Some(severity);
            open.states_severity = true;
        }
    }

    fn end_label(&mut self, style: LabelStyle) {
        self.label = self.label.filter(|(of, _)| *of != style);
    }

    fn flush(&mut self) {
        let Some(entry) = self.open.take() else { return };
        if entry.item.location.is_none() && inline_severity::says_nothing(&entry.item.description) {
            return;
        }
        let only_title = |last: &ReviewEntry| {
            let is_bare = last.item.location.is_none() && !last.item.description.contains('\n');
            last.origin == EntryOrigin::Heading && is_bare && !last.states_severity
        };
        if entry.origin == EntryOrigin::Item
            && entry.item.location.is_some()
            && self.entries.last().is_some_and(only_title)
        {
            self.entries.pop();
        }
        self.entries.push(entry);
    }
}

fn style(line: &str) -> LabelStyle {
    if line.starts_with(['*', '_']) { LabelStyle::Bold } else { LabelStyle::Plain }
}
