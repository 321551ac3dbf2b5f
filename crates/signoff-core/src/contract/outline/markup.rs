//! HTML elements that show their content: Markdown knows their tags only, and splits them at blank lines.

use std::ops::Range;

use super::Shown;

/// A tag of an element that shows what is inside it.
#[derive(Debug, Clone)]
pub(super) struct MarkupTag {
    pub range: Range<usize>,
    /// Index into `SHOWING`.
    element: usize,
    closes: bool,
}

/// The content of such an element.
#[derive(Debug, Clone)]
pub(super) struct Quotation {
    pub range: Range<usize>,
    pub shown: Shown,
}

/// `details` is not among them: what it folds away is said.
const SHOWING: [(&str, Shown); 12] = [
    ("blockquote", Shown::Quote),
    ("q", Shown::Quote),
    ("del", Shown::Struck),
    ("s", Shown::Struck),
    ("strike", Shown::Struck),
    ("code", Shown::InlineCode),
    ("pre", Shown::Quote),
    ("kbd", Shown::InlineCode),
    ("samp", Shown::InlineCode),
    ("template", Shown::Quote),
    ("textarea", Shown::Quote),
    ("xmp", Shown::Quote),
];

/// The tags in a stretch of HTML.
pub(super) fn tags_in(text: &str, range: Range<usize>) -> impl Iterator<Item = MarkupTag> {
    let html = &text[range.clone()];
    html.match_indices('<').filter_map(move |(at, _)| {
        let inside = &html[at + 1..];
        let name = inside.strip_prefix('/').unwrap_or(inside);
        let length = name.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let element = SHOWING.iter().position(|(one, _)| one.eq_ignore_ascii_case(&name[..length]))?;
        let rest = &name[length..];
        let is_tag = rest.starts_with(|c: char| c == '>' || c == '/' || c.is_whitespace());
        let start = range.start + at;
        let closes = inside.starts_with('/');
        let range = start..start + 1 + usize::from(closes) + length;
        is_tag.then_some(MarkupTag { range, element, closes })
    })
}

/// What is between the tags. An element that is never closed goes on to the end of the text, unless its
/// name is in capitals: `Vec<S>` opens nothing.
pub(super) fn quotations(tags: impl Iterator<Item = MarkupTag>, text: &str) -> Vec<Quotation> {
    let tags: Vec<MarkupTag> = tags.collect();
    let mut closing = [None; SHOWING.len()];
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
                found.push(Quotation { range: start..tag.range.start, shown: SHOWING[element].1 });
                None
            }
            Some((element, start, depth)) => Some((element, start, depth - 1)),
        };
    }
    if let Some((element, start, _)) = open {
        found.push(Quotation { range: start..text.len(), shown: SHOWING[element].1 });
    }
    found
}
