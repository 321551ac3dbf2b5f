//! Quotations that CommonMark does not define: HTML elements, of which it only reports the tags and which it
//! splits at blank lines, and diff hunks without a fence, whose context lines look like ordinary lines.

use std::ops::Range;

use super::{MarkupKind, MarkupSpan, covering};
use crate::contract::message::{MessageLine, lines_from};
use crate::patch::parse_range;

/// A tag of an element that quotes its content.
#[derive(Debug, Clone)]
pub(super) struct QuotingTag {
    pub range: Range<usize>,
    /// Index into `QUOTING_ELEMENTS`.
    element: usize,
    closes: bool,
}

/// `details` is not in the list: its content is the reviewer's own text.
const QUOTING_ELEMENTS: [(&str, MarkupKind); 12] = [
    ("blockquote", MarkupKind::Quote),
    ("q", MarkupKind::Quote),
    ("del", MarkupKind::Struck),
    ("s", MarkupKind::Struck),
    ("strike", MarkupKind::Struck),
    ("code", MarkupKind::InlineCode),
    ("pre", MarkupKind::Quote),
    ("kbd", MarkupKind::InlineCode),
    ("samp", MarkupKind::InlineCode),
    ("template", MarkupKind::Quote),
    ("textarea", MarkupKind::Quote),
    ("xmp", MarkupKind::Quote),
];

/// Finds the quoting tags in a range of HTML.
pub(super) fn tags_in(text: &str, range: Range<usize>) -> impl Iterator<Item = QuotingTag> {
    let html = &text[range.clone()];
    html.match_indices('<').filter_map(move |(at, _)| {
        let inside = &html[at + 1..];
        let name = inside.strip_prefix('/').unwrap_or(inside);
        let length = name.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let element = QUOTING_ELEMENTS.iter().position(|(one, _)| one.eq_ignore_ascii_case(&name[..length]))?;
        let rest = &name[length..];
        let is_tag = rest.starts_with(|c: char| c == '>' || c == '/' || c.is_whitespace());
        let start = range.start + at;
        let closes = inside.starts_with('/');
        let range = start..start + 1 + usize::from(closes) + length;
        is_tag.then_some(QuotingTag { range, element, closes })
    })
}

/// Pairs the tags. An element that is never closed extends to the end of the text, unless its name is in capitals:
/// `Vec<S>` opens nothing.
pub(super) fn quotations(tags: impl Iterator<Item = QuotingTag>, text: &str) -> Vec<MarkupSpan> {
    let tags: Vec<QuotingTag> = tags.collect();
    let mut closing = [None; QUOTING_ELEMENTS.len()];
    for (index, tag) in tags.iter().enumerate().filter(|(_, tag)| tag.closes) {
        closing[tag.element] = Some(index);
    }
    let quotation = |element: usize, range| MarkupSpan { range, kind: QUOTING_ELEMENTS[element].1, content: None };
    let mut found = Vec::new();
    let mut open: Option<(usize, usize, usize)> = None;
    for (index, tag) in tags.iter().enumerate() {
        open = match open {
            None if tag.closes => None,
            None => {
                let closed = closing[tag.element].is_some_and(|last| last > index);
                let lower = !text[tag.range.clone()].contains(|c: char| c.is_ascii_uppercase());
                (closed || lower).then_some((tag.element, tag.range.start, 1))
            }
            Some((element, start, depth)) if element != tag.element => Some((element, start, depth)),
            Some((element, start, depth)) if !tag.closes => Some((element, start, depth + 1)),
            Some((element, start, 1)) => {
                found.push(quotation(element, start..tag.range.start));
                None
            }
            Some((element, start, depth)) => Some((element, start, depth - 1)),
        };
    }
    found.extend(open.map(|(element, start, _)| quotation(element, start..text.len())));
    found
}

/// The lines of diffs without a fence.
#[derive(Debug, Default)]
pub(super) struct Hunks {
    lines: Vec<Range<usize>>,
    /// Lines after a blank line in an incomplete hunk. They belong to the diff or to the review after it. They hold
    /// no verdict, but their list items are read.
    doubtful: Vec<Range<usize>>,
}

impl Hunks {
    pub fn parse(text: &str) -> Self {
        let mut hunks = Self::default();
        if !text.contains("@@") {
            return hunks;
        }
        let mut open: Option<DiffHunk> = None;
        for line in lines_from(text, 0) {
            if let Some(next) = DiffHunk::parse_header(line.text) {
                hunks.close(open.replace(next));
            } else if !open.as_mut().is_some_and(|hunk| hunk.accept(line)) {
                hunks.close(open.take());
            }
        }
        hunks.close(open);
        hunks
    }

    fn close(&mut self, hunk: Option<DiffHunk>) {
        let Some(hunk) = hunk else { return };
        let complete = hunk.is_complete();
        let mut after_blank = false;
        for (range, blank) in hunk.lines {
            after_blank |= blank;
            if after_blank && !complete {
                self.doubtful.push(range.clone());
            }
            self.lines.push(range);
        }
    }

    pub fn covers(&self, offset: usize) -> bool {
        covering(&self.lines, offset).is_some()
    }

    pub fn is_doubtful(&self, offset: usize) -> bool {
        covering(&self.doubtful, offset).is_some()
    }
}

/// A partly parsed hunk.
struct DiffHunk {
    /// Number of sign columns, one for each file compared.
    columns: usize,
    /// Number of lines left of the old and the new file, if the header states them.
    left: Option<(u64, u64)>,
    lines: Vec<(Range<usize>, bool)>,
}

impl DiffHunk {
    /// Parses `@@ -1,4 +1,6 @@`, `@@@ -1,3 -1,3 +1,4 @@@`, and headers without numbers: `@@ … @@`, `@@ fn a() @@`.
    fn parse_header(line: &str) -> Option<Self> {
        let line = line.trim();
        let signs = line.bytes().take_while(|byte| *byte == b'@').count();
        if signs < 2 {
            return None;
        }
        let columns = signs - 1;
        let left = lengths(&line[signs..], columns);
        let spaced = line[signs..].is_empty() || line[signs..].starts_with(char::is_whitespace);
        spaced.then_some(Self { columns, left, lines: Vec::new() })
    }

    fn is_complete(&self) -> bool {
        self.left == Some((0, 0))
    }

    fn accept(&mut self, one: MessageLine<'_>) -> bool {
        let line = one.text;
        let blank = line.trim().is_empty();
        let signs = line.as_bytes().get(..self.columns.min(line.trim_end_matches(['\r', '\n']).len()));
        let signs = signs.unwrap_or_default();
        let is_sign = |byte: &u8| matches!(byte, b' ' | b'\t' | b'+' | b'-');
        let remark = line.starts_with('\\');
        if self.is_complete() || !(blank || remark || signs.iter().all(is_sign)) {
            return false;
        }
        let removed = !blank && signs.contains(&b'-');
        let added = !blank && signs.contains(&b'+');
        if let Some((old, new)) = &mut self.left
            && !remark
        {
            *old = old.saturating_sub(u64::from(!added));
            *new = new.saturating_sub(u64::from(!removed));
        }
        self.lines.push((one.range(), blank));
        true
    }
}

/// The line counts in the header. For a combined diff only that of the new file, because the old files differ.
fn lengths(head: &str, columns: usize) -> Option<(u64, u64)> {
    let mut words = head.split_whitespace();
    let mut old = 0;
    for _ in 0..columns {
        (_, old) = parse_range(words.next()?.strip_prefix('-')?)?;
    }
    let (_, new) = parse_range(words.next()?.strip_prefix('+')?)?;
    words.next()?.starts_with("@@").then_some((if columns == 1 { old.into() } else { 0 }, new.into()))
}
