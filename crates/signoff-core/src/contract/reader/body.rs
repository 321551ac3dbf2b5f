//! Reads the paragraphs of a review: text below the title of a finding, and findings outside lists.

use std::ops::Range;

use super::{CommentaryScope, EntryOrigin, LabelStyle, MarkdownReader, ParagraphRule, ReviewEntry, style};
use crate::contract::candidates::parse_nonce_comment;
use crate::contract::item::{OwnText, ReviewItem, heading_severity, is_heading};
use crate::contract::markdown_structure::{ListItem, MarkupKind};
use crate::contract::{inline_severity, location, markdown, wording};
use crate::review::Severity;

/// The position in the outermost list, for paragraphs that follow an item without indentation.
#[derive(Debug, Default)]
pub(super) struct ListNumbering {
    own: Option<u32>,
    next: Option<u32>,
    /// Whether an item of this list has such a paragraph.
    has_bodies: bool,
    /// Whether the current item has one.
    has_body: bool,
}

impl ListNumbering {
    pub(super) fn begin(&mut self, text: &str) {
        let number = number_of(text);
        let goes_on = number.is_some() && number == self.own.and_then(|own| own.checked_add(1));
        *self = Self { own: number, next: None, has_bodies: self.has_bodies && goes_on, has_body: false };
    }

    pub(super) fn look_ahead(&mut self, text: &str) {
        self.next = number_of(text);
    }

    /// Whether the list continues after the paragraph, or its other items have paragraphs too.
    fn takes_body(&self, is_new: bool) -> bool {
        let goes_on = self.next.is_some() && self.next == self.own.and_then(|own| own.checked_add(1));
        let is_last = self.next.is_none() && self.has_bodies && !(self.has_body && is_new);
        self.own.is_some() && (goes_on || is_last)
    }
}

fn number_of(text: &str) -> Option<u32> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    rest.starts_with(['.', ')']).then(|| number.parse().ok()).flatten()
}

impl MarkdownReader<'_, '_> {
    /// Turns the title above into a finding, because one of its fields follows.
    pub(super) fn open_title(&mut self) {
        if self.open.is_none()
            && let Some((range, item)) = self.title.take()
        {
            self.open(range, item, EntryOrigin::Heading);
        }
    }

    /// Whether the next line of text belongs to the open finding.
    pub(super) fn takes_body(&self) -> bool {
        let is_new = self.blank > 0;
        let says = |open: &&ReviewEntry| {
            open.item.location.is_some() || !inline_severity::says_nothing(&open.item.description)
        };
        self.open.as_ref().filter(says).is_some_and(|open| match open.origin {
            EntryOrigin::Heading => true,
            EntryOrigin::Line | EntryOrigin::Paragraph => !is_new,
            EntryOrigin::Item => self.numbering.takes_body(is_new),
        })
    }

    /// Whether a line that ends with a colon is the first line of a longer paragraph.
    pub(super) fn starts_paragraph(&self, at: usize, line: &str) -> bool {
        let text = self.message.text();
        let next = &text[self.message.line_at(at).end..];
        let at = text.len() - next.trim_start().len();
        let is_close = next[..next.len() - next.trim_start().len()].matches('\n').count() <= 1;
        let is_text = is_close && at < text.len() && !self.message.structure().has_item_at(at);
        let is_lead = style(line) == LabelStyle::Bold || line.starts_with('#') || wording::is_commentary(line);
        self.paragraphs == ParagraphRule::All && is_text && !is_lead && !self.paragraph_at(at).is_empty()
    }

    /// Adds code and quotations below the title of a finding.
    pub(super) fn quoted_line(&mut self, at: usize, line: &str, markup: MarkupKind) {
        match markup {
            MarkupKind::Code | MarkupKind::Diff | MarkupKind::Quote if self.takes_body() => {
                self.append(line.trim_end())
            }
            MarkupKind::Code | MarkupKind::Diff | MarkupKind::Quote => {}
            MarkupKind::InlineCode | MarkupKind::Link => self.body(at, line.trim()),
            MarkupKind::Html | MarkupKind::Comment | MarkupKind::Struck | MarkupKind::Element => {}
        }
    }

    /// Reads an item that holds only code or a quotation.
    pub(super) fn quoted_item(&mut self, item: &ListItem, own: &OwnText<'_>) -> Option<ReviewItem> {
        let text = &self.message.text()[own.offset..item.end];
        let at = own.offset + (text.len() - text.trim_start().len());
        let markup = self.message.markup_at(at);
        let is_block = matches!(markup, Some(MarkupKind::Code | MarkupKind::Diff | MarkupKind::Quote));
        if self.paragraphs != ParagraphRule::All || !own.text.trim().is_empty() || !is_block {
            return None;
        }
        let end = self.message.structure().next_item(at).map_or(item.end, |next| next.min(item.end));
        self.done = self.done.max(end);
        let mut item = ReviewItem::parse(self.message, at, &self.message.text()[at..end])?;
        let lines = self.message.text()[at..end].trim_end().lines();
        item.description = lines.map(|line| line.strip_prefix("  ").unwrap_or(line)).collect::<Vec<_>>().join("\n");
        Some(item)
    }

    /// Reads a line that begins with a severity as a finding. `Important: …` without a location may be an ordinary
    /// remark. Returns whether the line is a finding.
    pub(super) fn severity_line(&mut self, at: usize, line: &str) -> bool {
        let Some((severity, range)) = inline_severity::tag(line) else { return false };
        let opens = line.starts_with("**") || !line[..range.start].contains(char::is_alphanumeric);
        if !opens || self.message.markup_at(at + range.start).is_some() {
            return false;
        }
        let Some(item) = ReviewItem::parse(self.message, at, line) else { return false };
        let bracketed = line[..range.start].ends_with('[');
        // `| Minor | 1 |` is a count, not a finding. Beside an approval, only minor or zero counts are skipped.
        let is_count = !item.description.contains(|c: char| !c.is_ascii_digit())
            && (self.paragraphs == ParagraphRule::All || severity == Severity::Minor || item.description == "0");
        let counts = !is_count && (item.location.is_some() || bracketed || severity != Severity::Important);
        if counts {
            self.flush();
            self.open(at..at + line.len(), item, EntryOrigin::Line);
        }
        counts
    }

    /// Reads a line of a paragraph, which continues the open finding or may be a finding itself.
    pub(super) fn body(&mut self, at: usize, line: &str) {
        // A table row below another row that is a finding.
        let is_next_row =
            || line.starts_with('|') && self.open.as_ref().is_some_and(|open| open.origin == EntryOrigin::Line);
        if is_rule(line) {
            if self.open.as_ref().is_some_and(|open| open.origin != EntryOrigin::Item) {
                self.flush();
            }
        } else if self.takes_body() && !is_next_row() {
            self.append_body(line);
        } else {
            self.paragraph(at);
        }
    }

    fn append_body(&mut self, line: &str) {
        self.blank = self.blank.min(1);
        self.append(line);
        let Some(open) = &mut self.open else { return };
        if open.origin == EntryOrigin::Item {
            (self.numbering.has_body, self.numbering.has_bodies) = (true, true);
        } else if open.item.location.is_none() {
            open.item.location = location::find(line).filter(|location| location.line.is_some());
        }
    }

    /// Reads a paragraph outside any finding. It is a finding if it names a line of a file or is the first one
    /// below a severity heading. Otherwise it continues the paragraph before it.
    fn paragraph(&mut self, at: usize) {
        let range = self.paragraph_at(at);
        self.skip = range.end;
        let is_first = std::mem::take(&mut self.below_label);
        if self.commentary != CommentaryScope::No {
            return;
        }
        let text = &self.message.text()[range.clone()];
        let Some(item) = ReviewItem::parse(self.message, at, text) else { return };
        let is_placed = item.location.as_ref().is_some_and(|location| location.line.is_some());
        let first_line = text.lines().next().unwrap_or_default();
        let counts = match self.paragraphs {
            ParagraphRule::None => return,
            ParagraphRule::BelowLabels => is_first && !wording::says_none(first_line),
            ParagraphRule::All => is_placed || (is_first && !wording::says_none(first_line)),
        };
        if counts && !wording::says_done(text) {
            self.flush();
            let title = self.title.take();
            self.open(range, item, EntryOrigin::Paragraph);
            if let (Some(open), Some((_, title))) = (&mut self.open, title) {
                open.item.description = format!("{}\n{}", title.description, open.item.description);
            }
        } else if self.open.as_ref().is_some_and(|open| open.origin == EntryOrigin::Paragraph) {
            self.append(&item.description);
        }
    }

    fn paragraph_at(&self, at: usize) -> Range<usize> {
        let (text, structure) = (self.message.text(), self.message.structure());
        let mut end = at;
        for line in text[at..].split_inclusive('\n') {
            let bare = line.trim();
            let start = end + (line.len() - line.trim_start().len());
            let markup = structure.markup_at(start);
            let is_block = markup.is_some_and(|markup| !matches!(markup, MarkupKind::InlineCode | MarkupKind::Link));
            let is_other = || {
                let leads =
                    heading_severity(bare).is_some() || is_heading(bare) || inline_severity::begins_with_severity(line);
                leads
                    || markdown::begins_verdict(bare)
                    || parse_nonce_comment(bare).is_some()
                    || structure.has_item_at(start)
            };
            if bare.is_empty() || is_block || (end > at && is_other()) {
                break;
            }
            end += line.len();
        }
        at..at + text[at..end].trim_end().len()
    }
}

impl ReviewEntry {
    /// Whether it is a paragraph that only mentions a location. It counts as a finding only beside other findings;
    /// otherwise the whole text is one finding.
    pub fn only_mentions_location(&self) -> bool {
        self.origin == EntryOrigin::Paragraph && self.item.severity.is_none()
    }

    /// Whether it is a paragraph or list item that takes its severity from the heading above it.
    pub fn is_announced(&self) -> bool {
        let is_body = matches!(self.origin, EntryOrigin::Item | EntryOrigin::Paragraph);
        is_body && !self.states_severity && self.item.severity.is_some()
    }
}

/// A Markdown thematic break: `---`.
fn is_rule(line: &str) -> bool {
    const SHORTEST: usize = 3;
    line.len() >= SHORTEST && ["-", "*", "_"].iter().any(|mark| line.replace([' '], "").replace(mark, "").is_empty())
}
