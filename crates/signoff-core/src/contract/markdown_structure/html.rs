//! HTML elements that quote their content. The Markdown parser only reports their tags, and splits them at blank
//! lines.

use std::ops::Range;

use super::MarkupKind;

/// A tag of an element that quotes its content.
#[derive(Debug, Clone)]
pub(super) struct QuotingTag {
    pub range: Range<usize>,
    /// Index into `SHOWING`.
    element: usize,
    closes: bool,
}

/// The content of a quoting element.
#[derive(Debug, Clone)]
pub(super) struct HtmlQuotation {
    pub range: Range<usize>,
    pub kind: MarkupKind,
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
pub(super) fn quotations(tags: impl Iterator<Item = QuotingTag>, text: &str) -> Vec<HtmlQuotation> {
    let tags: Vec<QuotingTag> = tags.collect();
    let mut closing = [None; QUOTING_ELEMENTS.len()];
    for (index, tag) in tags.iter().enumerate().filter(|(_, tag)| tag.closes) {
        closing[tag.element] = Some(index);
    }
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
                found.push(HtmlQuotation { range: start..tag.range.start, kind: QUOTING_ELEMENTS[element].1 });
                None
            }
            Some((element, start, depth)) => Some((element, start, depth - 1)),
        };
    }
    if let Some((element, start, _)) = open {
        found.push(HtmlQuotation { range: start..text.len(), kind: QUOTING_ELEMENTS[element].1 });
    }
    found
}
