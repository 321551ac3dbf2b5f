//! The paragraphs of a review: what follows the title of a finding, and findings that stand in no list.

use std::ops::Range;

use super::{Aside, Entry, Origin, Paragraphs, Reader, Style, style};
use crate::contract::binding::comment_line;
use crate::contract::item::{Item, OwnText, is_heading, label};
use crate::contract::outline::{ListItem, Shown};
use crate::contract::{place, resolved, sections, stated, verdict_line};
use crate::review::Severity;

/// Where the current item of an outermost list stands, for paragraphs that are not indented below it.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    own: Option<u32>,
    next: Option<u32>,
    /// Whether an item of this list has such a paragraph.
    has_bodies: bool,
    /// Whether the current one has.
    has_body: bool,
}

impl Numbering {
    pub(super) fn begin(&mut self, text: &str) {
        let number = number_of(text);
        let goes_on = number.is_some() && number == self.own.and_then(|own| own.checked_add(1));
        *self = Self { own: number, next: None, has_bodies: self.has_bodies && goes_on, has_body: false };
    }

    pub(super) fn look_ahead(&mut self, text: &str) {
        self.next = number_of(text);
    }

    /// Whether the list goes on behind the paragraph, or its other items have paragraphs too.
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

impl Reader<'_, '_> {
    /// Remembers the title of a finding whose severity or place may follow in a field.
    pub(super) fn entitle(&mut self, at: usize, line: &str) {
        let item = Item::of(self.message, at, line);
        self.title = item.map(|item| (at..at + line.len(), item));
    }

    /// Opens the title above as a finding: a field of it follows.
    pub(super) fn open_title(&mut self) {
        if self.open.is_none()
            && let Some((range, item)) = self.title.take()
        {
            self.open(range, item, Origin::Heading);
        }
    }

    /// Whether the open finding goes on with the next line of text.
    fn takes_body(&self) -> bool {
        let is_new = self.blank > 0;
        let says = |open: &&Entry| open.item.place.is_some() || !stated::says_nothing(&open.item.description);
        self.open.as_ref().filter(says).is_some_and(|open| match open.origin {
            Origin::Heading => true,
            Origin::Line | Origin::Paragraph => !is_new,
            Origin::Item => self.numbering.takes_body(is_new),
        })
    }

    /// Whether a line that ends with a colon is the first of a paragraph that goes on.
    pub(super) fn runs_on(&self, at: usize, line: &str) -> bool {
        let text = self.message.text();
        let next = &text[self.message.line_at(at).end..];
        let at = text.len() - next.trim_start().len();
        let is_close = next[..next.len() - next.trim_start().len()].matches('\n').count() <= 1;
        let is_text = is_close && at < text.len() && !self.message.outline().has_item_at(at);
        let is_lead = style(line) == Style::Bold || line.starts_with('#') || sections::is_aside(line);
        self.paragraphs == Paragraphs::All && is_text && !is_lead && !self.paragraph_at(at).is_empty()
    }

    /// A line over what follows that only names a detail of the open finding: `**Fix:**`.
    pub(super) fn takes_detail(&self, line: &str) -> bool {
        self.takes_body() && sections::names_detail(line)
    }

    /// Code and quotations below the title of a finding.
    pub(super) fn shown_line(&mut self, at: usize, line: &str, shown: Shown) {
        match shown {
            Shown::Code | Shown::Diff | Shown::Quote => {
                if self.takes_body() {
                    self.append(line.trim_end());
                }
            }
            Shown::InlineCode | Shown::Link => self.body(at, line.trim()),
            Shown::Html | Shown::Comment | Shown::Struck | Shown::Element => {}
        }
    }

    /// An item that holds nothing but code or a quotation.
    pub(super) fn shown_item(&mut self, item: &ListItem, own: &OwnText<'_>) -> Option<Item> {
        let text = &self.message.text()[own.offset..item.end];
        let at = own.offset + (text.len() - text.trim_start().len());
        let shown = self.message.outline().shown(at);
        let is_block = matches!(shown, Some(Shown::Code | Shown::Diff | Shown::Quote));
        if self.paragraphs != Paragraphs::All || !own.text.trim().is_empty() || !is_block {
            return None;
        }
        let end = self.message.outline().next_item(at).map_or(item.end, |next| next.min(item.end));
        self.done = self.done.max(end);
        let mut said = Item::of(self.message, at, &self.message.text()[at..end])?;
        let lines = self.message.text()[at..end].trim_end().lines();
        said.description =
            lines.map(|line| line.strip_prefix("  ").unwrap_or(line)).collect::<Vec<_>>().join("\n");
        Some(said)
    }

    /// A line of a paragraph: a part of the open finding, else perhaps a finding of its own.
    pub(super) fn body(&mut self, at: usize, line: &str) {
        if is_rule(line) {
            if self.open.as_ref().is_some_and(|open| open.origin != Origin::Item) {
                self.flush();
            }
        } else if self.takes_body() && !self.is_next_row(line) {
            self.append_body(line);
        } else {
            self.paragraph(at);
        }
    }

    /// Whether a row of a table stands below one that is a finding.
    fn is_next_row(&self, line: &str) -> bool {
        line.starts_with('|') && self.open.as_ref().is_some_and(|open| open.origin == Origin::Line)
    }

    fn append_body(&mut self, line: &str) {
        self.blank = self.blank.min(1);
        self.append(line);
        let Some(open) = &mut self.open else { return };
        if open.origin == Origin::Item {
            (self.numbering.has_body, self.numbering.has_bodies) = (true, true);
        } else if open.item.place.is_none() {
            open.item.place = place::find(line).filter(|place| place.line.is_some());
        }
    }

    /// A paragraph that belongs to no finding is one if it names a line of a file, or comes first below the heading of a
    /// severity. Another one explains the paragraph before it.
    fn paragraph(&mut self, at: usize) {
        let range = self.paragraph_at(at);
        self.skip = range.end;
        let is_first = std::mem::take(&mut self.below_label);
        if self.aside != Aside::No {
            return;
        }
        let text = &self.message.text()[range.clone()];
        let Some(item) = Item::of(self.message, at, text) else { return };
        let is_placed = item.place.as_ref().is_some_and(|place| place.line.is_some());
        let first_line = text.lines().next().unwrap_or_default();
        let counts = match self.paragraphs {
            Paragraphs::None => return,
            Paragraphs::BelowLabels => is_first && !sections::says_none(first_line),
            Paragraphs::All => is_placed || (is_first && !sections::says_none(first_line)),
        };
        if counts && !resolved::says_done(text) {
            self.flush();
            let title = self.title.take();
            self.open(range, item, Origin::Paragraph);
            if let (Some(open), Some((_, title))) = (&mut self.open, title) {
                open.item.description = format!("{}\n{}", title.description, open.item.description);
            }
        } else if self.open.as_ref().is_some_and(|open| open.origin == Origin::Paragraph) {
            self.append(&item.description);
        }
    }

    fn paragraph_at(&self, at: usize) -> Range<usize> {
        let (text, outline) = (self.message.text(), self.message.outline());
        let mut end = at;
        for line in text[at..].split_inclusive('\n') {
            let bare = line.trim();
            let start = end + (line.len() - line.trim_start().len());
            let shown = outline.shown(start);
            let is_block = shown.is_some_and(|shown| !matches!(shown, Shown::InlineCode | Shown::Link));
            let is_other = || {
                let leads = label(bare).is_some() || is_heading(bare) || stated::opens(line);
                leads
                    || verdict_line::begins(bare)
                    || comment_line(bare).is_some()
                    || outline.has_item_at(start)
            };
            if bare.is_empty() || is_block || (end > at && is_other()) {
                break;
            }
            end += line.len();
        }
        at..at + text[at..end].trim_end().len()
    }

    /// Below the heading of a severity nothing was said yet.
    pub(super) fn begin_label(&mut self, style: Style, severity: Severity) {
        self.label = Some((style, severity));
        self.below_label = true;
    }
}

impl Entry {
    /// Whether it is a paragraph that only names a place. Beside other findings it is one; alone, the whole text is.
    pub fn is_passing(&self) -> bool {
        self.origin == Origin::Paragraph && self.item.severity.is_none()
    }

    /// Whether it is a paragraph or list item whose severity is the one of the heading above it.
    pub fn is_announced(&self) -> bool {
        let is_body = matches!(self.origin, Origin::Item | Origin::Paragraph);
        is_body && !self.states_severity && self.item.severity.is_some()
    }
}

/// `---`, which Markdown shows as a rule over the width of the page.
fn is_rule(line: &str) -> bool {
    const SHORTEST: usize = 3;
    line.len() >= SHORTEST
        && ["-", "*", "_"].iter().any(|mark| line.replace([' '], "").replace(mark, "").is_empty())
}
