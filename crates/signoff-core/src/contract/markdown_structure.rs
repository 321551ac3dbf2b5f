//! The Markdown structure of a message: the reviewer's own text, quoted text and list items.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::message::trimmed;
use super::xml_tree;

mod quotation;

use quotation::{Hunks, QuotingTag};

/// The kind of markup that makes a piece of text quoted rather than the reviewer's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkupKind {
    Code,
    /// A code block marked as a diff, or a diff hunk without a fence.
    Diff,
    Quote,
    InlineCode,
    Html,
    Comment,
    Struck,
    Link,
    /// Inside a review element.
    Element,
}

#[derive(Debug, Clone)]
struct MarkupSpan {
    range: Range<usize>,
    kind: MarkupKind,
    /// The content of a code block, without the fences.
    content: Option<Range<usize>>,
}

/// The Markdown structure of a text, as byte ranges.
#[derive(Debug, Default)]
pub(super) struct MarkdownStructure {
    /// Outermost spans only, ordered and disjoint.
    spans: Vec<MarkupSpan>,
    comments: Vec<Range<usize>>,
    /// Link definitions, which Markdown does not render.
    definitions: Vec<Range<usize>>,
    hunks: Hunks,
    /// The content of HTML elements that quote, strike or format as code, across blocks.
    quotations: Vec<MarkupSpan>,
    /// Complete review elements. Only the XML contract reads their content.
    elements: Vec<Range<usize>>,
    bold: Vec<Range<usize>>,
    plain: Vec<Range<usize>>,
    items: Vec<ListItem>,
}

/// A list item, up to the first block nested in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListItem {
    pub range: Range<usize>,
    /// The end of the item, including everything nested in it.
    pub end: usize,
    /// The number of items it is nested in.
    pub depth: usize,
}

impl MarkdownStructure {
    pub fn parse(text: &str) -> Self {
        let mut builder = StructureBuilder {
            text,
            structure: Self {
                hunks: Hunks::parse(text),
                elements: xml_tree::complete_elements(text).collect(),
                ..Self::default()
            },
            ..StructureBuilder::default()
        };
        let parser = Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH);
        let definitions = parser.reference_definitions().iter().map(|(_, definition)| definition.span.clone());
        builder.structure.definitions = definitions.collect();
        builder.structure.definitions.sort_by_key(|span| span.start);
        for (event, range) in parser.into_offset_iter() {
            builder.handle(event, range);
        }
        let StructureBuilder { mut structure, tags, .. } = builder;
        let is_own_text = |tag: &QuotingTag| {
            covering(&structure.comments, tag.range.start).is_none() && !structure.is_in_element(tag.range.start)
        };
        structure.quotations = quotation::quotations(tags.into_iter().filter(is_own_text), text);
        structure
    }

    /// The unquoted bold text that begins at `offset`.
    pub fn bold_at(&self, offset: usize) -> Option<Range<usize>> {
        let found = self.bold.binary_search_by_key(&offset, |range| range.start).ok()?;
        (!self.is_quoted_outside_markdown(offset)).then(|| self.bold[found].clone())
    }

    /// Whether all of `range` is the reviewer's own text: nothing in it is code, a link, HTML or struck through.
    pub fn is_own_text(&self, range: &Range<usize>) -> bool {
        let next = self.spans.partition_point(|span| span.range.end <= range.start);
        let shows = self.spans.get(next).is_some_and(|span| span.range.start < range.end);
        !shows && !self.is_quoted_outside_markdown(range.start) && covering(&self.comments, range.start).is_none()
    }

    /// Whether the character at `offset` is text rather than Markdown markup.
    pub fn is_text(&self, offset: usize) -> bool {
        covering(&self.plain, offset).is_some()
    }

    /// The unquoted list items, in order.
    pub fn items(&self) -> impl Iterator<Item = &ListItem> {
        self.items.iter().filter(|item| {
            let at = item.range.start;
            self.hunks.is_doubtful(at) || !self.is_quoted_outside_markdown(at)
        })
    }

    /// Whether an unquoted list item begins at `offset`.
    pub fn has_item_at(&self, offset: usize) -> bool {
        let found = self.items.binary_search_by_key(&offset, |item| item.range.start);
        found.is_ok() && !self.is_quoted_outside_markdown(offset)
    }

    /// The start of the first list item after `offset`.
    pub fn next_item(&self, offset: usize) -> Option<usize> {
        let next = self.items.partition_point(|item| item.range.start <= offset);
        self.items.get(next).map(|item| item.range.start)
    }

    /// Whether `range` is unquoted plain text without any markup.
    pub fn is_plain(&self, range: &Range<usize>) -> bool {
        let holds = covering(&self.plain, range.start).is_some_and(|plain| range.end <= plain.end);
        holds && !self.is_quoted_outside_markdown(range.start)
    }

    /// Whether the text is quoted by something that CommonMark does not define: a bare diff hunk, a review element or
    /// an HTML element.
    fn is_quoted_outside_markdown(&self, offset: usize) -> bool {
        self.hunks.covers(offset) || self.is_in_element(offset) || covering_span(&self.quotations, offset).is_some()
    }

    fn is_in_element(&self, offset: usize) -> bool {
        covering(&self.elements, offset).is_some_and(|element| element.start < offset)
    }

    /// The markup that quotes the text at `offset`, if any.
    pub fn markup_at(&self, offset: usize) -> Option<MarkupKind> {
        if self.hunks.covers(offset) {
            return Some(MarkupKind::Diff);
        }
        if covering(&self.comments, offset).is_some() {
            return Some(MarkupKind::Comment);
        }
        if self.is_in_element(offset) {
            return Some(MarkupKind::Element);
        }
        let quoted = covering_span(&self.quotations, offset).map(|one| one.kind);
        quoted.or_else(|| covering_span(&self.spans, offset).map(|span| span.kind))
    }

    /// The markup that quotes the text on both sides of `offset`, if both are part of the same markup.
    pub fn markup_across(&self, offset: usize) -> Option<MarkupKind> {
        let within = |range: &Range<usize>| range.start < offset && offset < range.end;
        let span_of = |spans| covering_span(spans, offset).filter(|span| within(&span.range)).map(|span| span.kind);
        let comment = covering(&self.comments, offset).is_some_and(within).then_some(MarkupKind::Comment);
        let element = covering(&self.elements, offset).is_some_and(within).then_some(MarkupKind::Element);
        let hunk = self.hunks.covers(offset).then_some(MarkupKind::Diff);
        let definition = covering(&self.definitions, offset).is_some_and(within).then_some(MarkupKind::Link);
        let quotation = span_of(&self.quotations);
        quotation.or(hunk).or(comment).or(element).or(definition).or_else(|| span_of(&self.spans))
    }

    /// Whether a machine-readable answer is quoted. `end` is `None` if the answer is truncated. A fence or HTML
    /// does not quote it, unless the fence holds more than the answer, as when it shows a file.
    pub fn is_quoted_answer(&self, text: &str, start: usize, end: Option<usize>) -> bool {
        if follows_diff_marker(text, start) {
            return true;
        }
        match self.markup_at(start) {
            None | Some(MarkupKind::Html) => false,
            Some(MarkupKind::Code) => {
                let content = covering_span(&self.spans, start).and_then(|span| span.content.clone());
                !content.is_some_and(|content| is_whole_content(text, trimmed(text, content), start, end))
            }
            Some(
                MarkupKind::Diff
                | MarkupKind::Quote
                | MarkupKind::InlineCode
                | MarkupKind::Comment
                | MarkupKind::Struck
                | MarkupKind::Link
                | MarkupKind::Element,
            ) => true,
        }
    }
}

/// Whether the answer is the whole content of the code block, except for an XML declaration or a nonce comment.
fn is_whole_content(text: &str, content: Range<usize>, start: usize, end: Option<usize>) -> bool {
    let before = text.get(content.start..start).unwrap_or_default().trim();
    let after = end.and_then(|end| text.get(end..content.end)).unwrap_or_default().trim();
    let is_markup = |side: &str| {
        side.is_empty()
            || super::candidates::parse_nonce_comment(side).is_some()
            || (side.starts_with("<?xml") && side.ends_with("?>"))
    };
    is_markup(before) && is_markup(after)
}

/// Whether the answer is a line of a diff: `+{…` or `-{…`. `- {…` is a list item.
fn follows_diff_marker(text: &str, start: usize) -> bool {
    let before = text[..start].trim_end_matches([' ', '\t']);
    let spaced = before.len() < start;
    let marker = before.chars().next_back();
    let at_line_start = matches!(before.len().checked_sub(2).map(|at| before.as_bytes()[at]), None | Some(b'\n'));
    at_line_start && (marker == Some('+') || (marker == Some('-') && !spaced))
}

fn covering_span(spans: &[MarkupSpan], offset: usize) -> Option<&MarkupSpan> {
    let after = spans.partition_point(|span| span.range.start <= offset);
    spans.get(after.checked_sub(1)?).filter(|span| offset < span.range.end)
}

fn covering(ranges: &[Range<usize>], offset: usize) -> Option<&Range<usize>> {
    let after = ranges.partition_point(|range| range.start <= offset);
    ranges.get(after.checked_sub(1)?).filter(|range| offset < range.end)
}

#[derive(Default)]
struct StructureBuilder<'t> {
    text: &'t str,
    structure: MarkdownStructure,
    /// For each open element, whether it quotes its content.
    open: Vec<bool>,
    /// Number of open elements that quote their content.
    markup_depth: usize,
    /// The open list items, and whether a nested block has ended the item's own text.
    open_items: Vec<(usize, bool)>,
    /// The HTML tags that quote, strike or format as code.
    tags: Vec<QuotingTag>,
}

impl StructureBuilder<'_> {
    fn handle(&mut self, event: Event<'_>, range: Range<usize>) {
        if let Event::Start(tag) = event {
            self.start(&tag, range);
        } else if let Event::End(tag) = event {
            self.end(tag);
        } else if matches!(event, Event::Text(_)) {
            self.text(range);
        } else if matches!(event, Event::Code(_)) {
            self.push_markup(range, MarkupKind::InlineCode);
        } else if matches!(event, Event::InlineHtml(_)) {
            let comment = self.text[range.clone()].starts_with("<!--");
            if !comment && self.markup_depth == 0 {
                self.tags.extend(quotation::tags_in(self.text, range.clone()));
            }
            self.push_markup(range, if comment { MarkupKind::Comment } else { MarkupKind::Html });
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        if is_block(tag) {
            self.end_item_text(range.start);
        }
        let markup = markup_of(tag);
        self.open.push(markup.is_some());
        if let Some(markup) = markup {
            if markup == MarkupKind::Html && self.markup_depth == 0 {
                self.comments_in(range.clone());
                self.tags.extend(quotation::tags_in(self.text, range.clone()));
            }
            self.push_markup(range, markup);
            self.markup_depth += 1;
        } else if matches!(tag, Tag::Strong) && self.markup_depth == 0 {
            self.structure.bold.push(range);
        } else if matches!(tag, Tag::Item) && self.markup_depth == 0 {
            let (end, depth) = (range.end, self.open_items.len());
            self.open_items.push((self.structure.items.len(), false));
            self.structure.items.push(ListItem { range, end, depth });
        }
    }

    fn end(&mut self, tag: TagEnd) {
        if self.open.pop() == Some(true) {
            self.markup_depth -= 1;
        } else if matches!(tag, TagEnd::Item) && self.markup_depth == 0 {
            self.open_items.pop();
        }
    }

    fn text(&mut self, range: Range<usize>) {
        if self.markup_depth == 0 {
            self.structure.plain.push(range);
        } else if let Some(span) = self.structure.spans.last_mut()
            && matches!(span.kind, MarkupKind::Code | MarkupKind::Diff)
        {
            let start = span.content.as_ref().map_or(range.start, |content| content.start);
            span.content = Some(start..range.end);
        }
    }

    fn push_markup(&mut self, range: Range<usize>, markup: MarkupKind) {
        if self.markup_depth == 0 {
            self.structure.spans.push(MarkupSpan { range, kind: markup, content: None });
        }
    }

    fn end_item_text(&mut self, at: usize) {
        if let Some((item, ended)) = self.open_items.last_mut()
            && !*ended
        {
            self.structure.items[*item].range.end = at;
            *ended = true;
        }
    }

    /// Records comments inside a block of HTML, which the Markdown parser does not report separately.
    fn comments_in(&mut self, block: Range<usize>) {
        let mut from = block.start;
        while let Some(start) = self.text[from..block.end].find("<!--").map(|at| from + at) {
            let close = self.text[start..block.end].find("-->").map(|at| start + at + 3);
            from = close.unwrap_or(block.end);
            self.structure.comments.push(start..from);
        }
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    matches!(tag, Tag::List(_) | Tag::BlockQuote(_) | Tag::CodeBlock(_) | Tag::HtmlBlock)
}

fn markup_of(tag: &Tag<'_>) -> Option<MarkupKind> {
    if let Tag::CodeBlock(CodeBlockKind::Fenced(info)) = tag {
        let word = info.split_whitespace().next().unwrap_or_default();
        let diff = word.eq_ignore_ascii_case("diff") || word.eq_ignore_ascii_case("patch");
        return Some(if diff { MarkupKind::Diff } else { MarkupKind::Code });
    }
    let kinds = [
        (matches!(tag, Tag::CodeBlock(_)), MarkupKind::Code),
        (matches!(tag, Tag::BlockQuote(_)), MarkupKind::Quote),
        (matches!(tag, Tag::HtmlBlock), MarkupKind::Html),
        (matches!(tag, Tag::Strikethrough), MarkupKind::Struck),
        (matches!(tag, Tag::Link { .. } | Tag::Image { .. }), MarkupKind::Link),
    ];
    kinds.into_iter().find_map(|(is, markup)| is.then_some(markup))
}
