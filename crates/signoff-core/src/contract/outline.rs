//! What Markdown makes of a message: which text is said, which is only shown, and the list items.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::message::trimmed;
use super::xml_tree;

mod hunk;
mod markup;

use hunk::Hunks;
use markup::{MarkupTag, Quotation};

/// Why a stretch of text is shown rather than said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Code,
    /// A code block marked as a diff, or a hunk without a fence around it.
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
struct Span {
    range: Range<usize>,
    shown: Shown,
    /// The text inside, for code blocks: without fences.
    content: Option<Range<usize>>,
}

/// The Markdown structure of a text, as byte ranges of it.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// Outermost ones only: ordered and disjoint.
    spans: Vec<Span>,
    comments: Vec<Range<usize>>,
    /// Definitions of links, which Markdown does not show.
    definitions: Vec<Range<usize>>,
    hunks: Hunks,
    /// What HTML elements quote, strike or show as code, over blocks too.
    quotations: Vec<Quotation>,
    /// Whole review elements. What is inside them is the business of the XML contract alone.
    elements: Vec<Range<usize>>,
    bold: Vec<Range<usize>>,
    plain: Vec<Range<usize>>,
    items: Vec<ListItem>,
}

/// A list item, up to the first block nested in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListItem {
    pub range: Range<usize>,
    /// Where the item ends with everything nested in it.
    pub end: usize,
    /// In how many other items it is nested.
    pub depth: usize,
}

impl Outline {
    pub fn of(text: &str) -> Self {
        let mut builder = Builder {
            text,
            outline: Self { hunks: Hunks::of(text), elements: elements(text), ..Self::default() },
            ..Builder::default()
        };
        let parser = Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH);
        let definitions =
            parser.reference_definitions().iter().map(|(_, definition)| definition.span.clone());
        builder.outline.definitions = definitions.collect();
        builder.outline.definitions.sort_by_key(|span| span.start);
        for (event, range) in parser.into_offset_iter() {
            builder.take(event, range);
        }
        let Builder { mut outline, tags, .. } = builder;
        let said = |tag: &MarkupTag| {
            covering(&outline.comments, tag.range.start).is_none() && !outline.is_in_element(tag.range.start)
        };
        outline.quotations = markup::quotations(tags.into_iter().filter(said), text);
        outline
    }

    /// The bold text that begins at `offset` and is said.
    pub fn bold_at(&self, offset: usize) -> Option<Range<usize>> {
        let found = self.bold.binary_search_by_key(&offset, |range| range.start).ok()?;
        (!self.is_set_apart(offset)).then(|| self.bold[found].clone())
    }

    /// Whether all of `range` is said, bold or plain, and nothing in it is code, a link, HTML or struck through.
    pub fn is_said(&self, range: &Range<usize>) -> bool {
        let next = self.spans.partition_point(|span| span.range.end <= range.start);
        let shows = self.spans.get(next).is_some_and(|span| span.range.start < range.end);
        !shows && !self.is_set_apart(range.start) && covering(&self.comments, range.start).is_none()
    }

    /// Whether the character at `offset` is text to Markdown, and not a part of its markup.
    pub fn is_text(&self, offset: usize) -> bool {
        covering(&self.plain, offset).is_some()
    }

    /// List items that are said, in order.
    pub fn items(&self) -> impl Iterator<Item = &ListItem> {
        self.items.iter().filter(|item| {
            let at = item.range.start;
            self.hunks.is_doubtful(at) || !self.is_set_apart(at)
        })
    }

    /// Whether a list item that is said begins at `offset`.
    pub fn has_item_at(&self, offset: usize) -> bool {
        let found = self.items.binary_search_by_key(&offset, |item| item.range.start);
        found.is_ok() && !self.is_set_apart(offset)
    }

    /// Where the first list item after `offset` begins.
    pub fn next_item(&self, offset: usize) -> Option<usize> {
        let next = self.items.partition_point(|item| item.range.start <= offset);
        self.items.get(next).map(|item| item.range.start)
    }

    /// Whether `range` is plain text that is said, without any markup in it.
    pub fn is_plain(&self, range: &Range<usize>) -> bool {
        let holds = covering(&self.plain, range.start).is_some_and(|plain| range.end <= plain.end);
        holds && !self.is_set_apart(range.start)
    }

    /// Whether the text is shown in a way that Markdown does not know.
    fn is_set_apart(&self, offset: usize) -> bool {
        self.hunks.cover(offset) || self.is_in_element(offset) || self.quotation(offset).is_some()
    }

    fn quotation(&self, offset: usize) -> Option<&Quotation> {
        let after = self.quotations.partition_point(|one| one.range.start <= offset);
        self.quotations.get(after.checked_sub(1)?).filter(|one| offset < one.range.end)
    }

    fn is_in_element(&self, offset: usize) -> bool {
        covering(&self.elements, offset).is_some_and(|element| element.start < offset)
    }

    /// Why the text at `offset` is only shown, if it is.
    pub fn shown(&self, offset: usize) -> Option<Shown> {
        if self.hunks.cover(offset) {
            return Some(Shown::Diff);
        }
        if covering(&self.comments, offset).is_some() {
            return Some(Shown::Comment);
        }
        if self.is_in_element(offset) {
            return Some(Shown::Element);
        }
        let quoted = self.quotation(offset).map(|one| one.shown);
        quoted.or_else(|| self.span(offset).map(|span| span.shown))
    }

    /// Why the texts on both sides of `offset` are only shown, if they belong to the same thing that is.
    pub fn shown_across(&self, offset: usize) -> Option<Shown> {
        let within = |range: &Range<usize>| range.start < offset && offset < range.end;
        let quotation = self.quotation(offset).filter(|one| within(&one.range)).map(|one| one.shown);
        let comment = covering(&self.comments, offset).is_some_and(within).then_some(Shown::Comment);
        let element = covering(&self.elements, offset).is_some_and(within).then_some(Shown::Element);
        let hunk = self.hunks.cover(offset).then_some(Shown::Diff);
        let definition = covering(&self.definitions, offset).is_some_and(within).then_some(Shown::Link);
        let span = || self.span(offset).filter(|span| within(&span.range)).map(|span| span.shown);
        quotation.or(hunk).or(comment).or(element).or(definition).or_else(span)
    }

    /// Whether a machine-readable answer is quoted from elsewhere; `end` is none where it breaks off.
    /// Fences and HTML do not quote it, unless the fence holds more than the answer: then it shows a file.
    pub fn quotes(&self, text: &str, start: usize, end: Option<usize>) -> bool {
        if follows_diff_marker(text, start) {
            return true;
        }
        match self.shown(start) {
            None | Some(Shown::Html) => false,
            Some(Shown::Code) => {
                let content = self.span(start).and_then(|span| span.content.clone());
                !content.is_some_and(|content| is_all_of(text, trimmed(text, content), start, end))
            }
            Some(
                Shown::Diff
                | Shown::Quote
                | Shown::InlineCode
                | Shown::Comment
                | Shown::Struck
                | Shown::Link
                | Shown::Element,
            ) => true,
        }
    }

    fn span(&self, offset: usize) -> Option<&Span> {
        let after = self.spans.partition_point(|span| span.range.start <= offset);
        self.spans.get(after.checked_sub(1)?).filter(|span| offset < span.range.end)
    }
}

/// Whether the code block's content is the answer, an XML declaration or a nonce comment before it aside.
fn is_all_of(text: &str, content: Range<usize>, start: usize, end: Option<usize>) -> bool {
    let before = text.get(content.start..start).unwrap_or_default().trim();
    let after = end.and_then(|end| text.get(end..content.end)).unwrap_or_default().trim();
    let is_markup = |side: &str| {
        side.is_empty()
            || super::binding::comment_line(side).is_some()
            || (side.starts_with("<?xml") && side.ends_with("?>"))
    };
    is_markup(before) && is_markup(after)
}

/// `+{…` and `-{…`: the answer is a line of a diff. `- {…` is a list item.
fn follows_diff_marker(text: &str, start: usize) -> bool {
    let before = text[..start].trim_end_matches([' ', '\t']);
    let spaced = before.len() < start;
    let marker = before.chars().next_back();
    let at_line_start =
        matches!(before.len().checked_sub(2).map(|at| before.as_bytes()[at]), None | Some(b'\n'));
    at_line_start && (marker == Some('+') || (marker == Some('-') && !spaced))
}

fn covering(ranges: &[Range<usize>], offset: usize) -> Option<&Range<usize>> {
    let after = ranges.partition_point(|range| range.start <= offset);
    ranges.get(after.checked_sub(1)?).filter(|range| offset < range.end)
}

#[derive(Default)]
struct Builder<'t> {
    text: &'t str,
    outline: Outline,
    /// How many open elements show what is inside them.
    showing: usize,
    /// The open list items, and whether a nested block has ended each one's own text.
    open_items: Vec<(usize, bool)>,
    /// The HTML tags that quote, strike or show as code.
    tags: Vec<MarkupTag>,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        if let Event::Start(tag) = event {
            self.start(&tag, range);
        } else if let Event::End(tag) = event {
            self.end(tag);
        } else if matches!(event, Event::Text(_)) {
            self.text(range);
        } else if matches!(event, Event::Code(_)) {
            self.show(range, Shown::InlineCode);
        } else if matches!(event, Event::InlineHtml(_)) {
            let comment = self.text[range.clone()].starts_with("<!--");
            if !comment && self.showing == 0 {
                self.tags.extend(markup::tags_in(self.text, range.clone()));
            }
            self.show(range, if comment { Shown::Comment } else { Shown::Html });
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        if is_block(tag) {
            self.end_item_text(range.start);
        }
        if let Some(shown) = shown_by(tag) {
            if shown == Shown::Html && self.showing == 0 {
                self.comments_in(range.clone());
                self.tags.extend(markup::tags_in(self.text, range.clone()));
            }
            self.show(range, shown);
            self.showing += 1;
        } else if matches!(tag, Tag::Strong) && self.showing == 0 {
            self.outline.bold.push(range);
        } else if matches!(tag, Tag::Item) && self.showing == 0 {
            let (end, depth) = (range.end, self.open_items.len());
            self.open_items.push((self.outline.items.len(), false));
            self.outline.items.push(ListItem { range, end, depth });
        }
    }

    fn end(&mut self, tag: TagEnd) {
        if ends_shown(tag) {
            self.showing = self.showing.saturating_sub(1);
        } else if matches!(tag, TagEnd::Item) && self.showing == 0 {
            self.open_items.pop();
        }
    }

    fn text(&mut self, range: Range<usize>) {
        if self.showing == 0 {
            self.outline.plain.push(range);
        } else if let Some(span) = self.outline.spans.last_mut()
            && matches!(span.shown, Shown::Code | Shown::Diff)
        {
            let start = span.content.as_ref().map_or(range.start, |content| content.start);
            span.content = Some(start..range.end);
        }
    }

    fn show(&mut self, range: Range<usize>, shown: Shown) {
        if self.showing == 0 {
            self.outline.spans.push(Span { range, shown, content: None });
        }
    }

    fn end_item_text(&mut self, at: usize) {
        if let Some((item, ended)) = self.open_items.last_mut()
            && !*ended
        {
            self.outline.items[*item].range.end = at;
            *ended = true;
        }
    }

    /// Comments inside a block of HTML, which the Markdown parser does not tell apart.
    fn comments_in(&mut self, block: Range<usize>) {
        let mut from = block.start;
        while let Some(start) = self.text[from..block.end].find("<!--").map(|at| from + at) {
            let close = self.text[start..block.end].find("-->").map(|at| start + at + 3);
            from = close.unwrap_or(block.end);
            self.outline.comments.push(start..from);
        }
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    matches!(tag, Tag::List(_) | Tag::BlockQuote(_) | Tag::CodeBlock(_) | Tag::HtmlBlock)
}

fn shown_by(tag: &Tag<'_>) -> Option<Shown> {
    if let Tag::CodeBlock(CodeBlockKind::Fenced(info)) = tag {
        let word = info.split_whitespace().next().unwrap_or_default();
        let diff = word.eq_ignore_ascii_case("diff") || word.eq_ignore_ascii_case("patch");
        return Some(if diff { Shown::Diff } else { Shown::Code });
    }
    let kinds = [
        (matches!(tag, Tag::CodeBlock(_)), Shown::Code),
        (matches!(tag, Tag::BlockQuote(_)), Shown::Quote),
        (matches!(tag, Tag::HtmlBlock), Shown::Html),
        (matches!(tag, Tag::Strikethrough), Shown::Struck),
        (matches!(tag, Tag::Link { .. } | Tag::Image { .. }), Shown::Link),
    ];
    kinds.into_iter().find_map(|(is, shown)| is.then_some(shown))
}

fn ends_shown(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::CodeBlock
            | TagEnd::BlockQuote(_)
            | TagEnd::HtmlBlock
            | TagEnd::Strikethrough
            | TagEnd::Link
            | TagEnd::Image
    )
}

fn elements(text: &str) -> Vec<Range<usize>> {
    let whole = xml_tree::scan(text).filter(|(_, attempt)| attempt.root.is_ok());
    whole.map(|(start, attempt)| start..start + attempt.length).collect()
}
