//! Decodes a final message: size limit, UTF-8 and byte order mark. Joins one that came in several blocks.
//!
//! Blocks are paragraphs, joined by a blank line. If a block ends within a line or within quoted text, the next
//! block continues it directly, so that splitting a text never turns quoted text into the reviewer's own.
//! Objections count for every way to join: an approval also requires that nothing in `JoinedAnswer::alternatives`
//! objects or is broken. Those are the blocks with a blank line at every boundary, and with none.

use std::cell::OnceCell;
use std::ops::Range;

use super::Parsed;
use super::json;
use super::markdown_structure::{MarkdownStructure, MarkupKind};
use crate::review::{Review, Violation, ViolationCode};

/// Maximum size of a final message in bytes.
pub const MAX_BYTES: usize = 10 * 1024 * 1024;

/// A decoded final message.
pub(super) struct FinalMessage<'a> {
    text: &'a str,
    structure: OnceCell<MarkdownStructure>,
    json: OnceCell<Vec<Range<usize>>>,
}

impl<'a> FinalMessage<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, structure: OnceCell::new(), json: OnceCell::new() }
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The Markdown structure of the text. Parsed on first use, because most other contracts rarely need it.
    pub fn structure(&self) -> &MarkdownStructure {
        self.structure.get_or_init(|| MarkdownStructure::parse(self.text))
    }

    /// The markup that quotes the text at `offset`, if any.
    pub fn markup_at(&self, offset: usize) -> Option<MarkupKind> {
        self.structure().markup_at(offset)
    }

    /// Whether `offset` lies inside a JSON text, and therefore inside one of its strings.
    pub fn is_inside_json(&self, offset: usize) -> bool {
        let texts = self
            .json
            .get_or_init(|| json::scan(self.text).filter(|json| json.value.is_ok()).map(|json| json.range).collect());
        let after = texts.partition_point(|range| range.start < offset);
        after.checked_sub(1).and_then(|last| texts.get(last)).is_some_and(|range| offset < range.end)
    }

    /// The line around `offset`, without its line break.
    pub fn line_at(&self, offset: usize) -> Range<usize> {
        let start = self.text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[offset..].find('\n').map_or(self.text.len(), |at| offset + at);
        start..end
    }
}

/// Reads the review of a decoded message.
type MessageReader<'r> = &'r dyn Fn(&FinalMessage<'_>) -> Parsed<Review>;

/// Decodes the bytes of a message and passes it to the contract. Offsets count from the first byte.
pub(super) fn read(bytes: &[u8], contract: MessageReader<'_>) -> Parsed<Review> {
    match decode(bytes) {
        Ok(text) => read_text(text, contract),
        Err(violation) if violation.code == ViolationCode::NotUtf8 => read_invalid_utf8(bytes, contract, violation),
        Err(violation) => Err(violation),
    }
}

fn read_text(text: &str, contract: MessageReader<'_>) -> Parsed<Review> {
    let unmarked = text.strip_prefix('\u{feff}').unwrap_or(text);
    if unmarked.trim().is_empty() {
        return Err(Violation::new(ViolationCode::Empty, 0, "the answer is empty"));
    }
    let mark = text.len() - unmarked.len();
    contract(&FinalMessage::new(unmarked))
        .map_err(|violation| Violation { offset: violation.offset + mark, ..violation })
}

pub(super) fn check_size(bytes: &[u8]) -> Parsed<()> {
    if bytes.len() <= MAX_BYTES {
        return Ok(());
    }
    let message = format!("the answer has {} bytes; at most {MAX_BYTES} are read", bytes.len());
    Err(Violation::new(ViolationCode::TooLarge, MAX_BYTES, message))
}

/// Parses a text with one invalid UTF-8 byte, which is replaced by U+FFFD. The verdict must be the same without
/// that byte, and the byte must not be on a line with words of a verdict.
fn read_invalid_utf8(bytes: &[u8], contract: MessageReader<'_>, violation: Violation) -> Parsed<Review> {
    let at = violation.offset;
    // The message ends in the middle of a character, so it was truncated.
    if str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none()) {
        return Err(violation);
    }
    let (Ok(before), Ok(after)) = (str::from_utf8(&bytes[..at]), str::from_utf8(&bytes[at + 1..])) else {
        return Err(violation);
    };
    let lines = [before.rsplit('\n').next(), after.split('\n').next()];
    let line = lines.into_iter().flatten().collect::<String>().to_ascii_lowercase();
    if ["verdict", "approved", "issues"].into_iter().any(|word| line.contains(word)) {
        return Err(violation);
    }
    let original = |offset: usize| if offset > at { offset.saturating_sub(2).max(at) } else { offset };
    let shown = read_text(&format!("{before}\u{fffd}{after}"), contract)
        .map_err(|error| Violation { offset: original(error.offset), ..error })?;
    let bare = read_text(&format!("{before}{after}"), contract);
    if bare.is_ok_and(|bare| bare.verdict == shown.verdict) { Ok(shown) } else { Err(violation) }
}

/// Decodes an answer within the size limit.
pub(super) fn decode(bytes: &[u8]) -> Parsed<&str> {
    check_size(bytes)?;
    std::str::from_utf8(bytes)
        .map_err(|error| Violation::new(ViolationCode::NotUtf8, error.valid_up_to(), "the answer is not UTF-8 text"))
}

/// A line of a text, with its line break.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageLine<'m> {
    pub start: usize,
    pub text: &'m str,
}

impl MessageLine<'_> {
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// The offset of the first character that is not white space.
    pub fn text_start(&self) -> usize {
        self.start + (self.text.len() - self.text.trim_start().len())
    }
}

/// The lines of a text from an offset on.
pub(super) fn lines_from(text: &str, from: usize) -> impl Iterator<Item = MessageLine<'_>> {
    let mut end = from;
    text[from..].split_inclusive('\n').map(move |text| {
        let start = end;
        end += text.len();
        MessageLine { start, text }
    })
}

/// Trims white space from a range of `text`.
pub(super) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let slice = &text[range.clone()];
    let start = range.start + (slice.len() - slice.trim_start().len());
    start..start + slice.trim().len()
}

/// Whether a range has only white space beside it on its lines. Scans no further than that white space.
pub(super) fn is_alone(text: &str, range: &Range<usize>) -> bool {
    let blank = |c: char| c.is_whitespace() && c != '\n';
    let before = text[..range.start].trim_end_matches(blank);
    let after = text[range.end..].trim_start_matches(blank);
    (before.is_empty() || before.ends_with('\n')) && (after.is_empty() || after.starts_with('\n'))
}

/// The text of an agent since its last tool use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerBlocks {
    text: String,
    /// The start of each block except the first.
    boundaries: Vec<usize>,
    /// Whether the next text begins a new block.
    ended: bool,
    /// The start of the first line that may be a block and could not be parsed.
    unreadable: Option<String>,
}

/// An answer joined from blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JoinedAnswer {
    pub text: String,
    /// The other ways to join the blocks, if they differ from `text`.
    pub alternatives: Vec<String>,
    /// The start of the first line that may be part of the answer and could not be parsed.
    pub unreadable: Option<String>,
}

/// Longer answers are truncated here, one byte above the limit, so that the parser reports them as too large.
const MAX_LENGTH: usize = MAX_BYTES + 1;

/// Maximum number of boundaries; `AnswerBlocks` ignores further ones.
const MAX_BOUNDARIES: usize = 10_000;

const PARAGRAPH: &str = "\n\n";

const COMMENT_END: &str = "-->";

impl AnswerBlocks {
    /// Adds to the current block.
    pub fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let begins = std::mem::take(&mut self.ended) && !self.text.is_empty();
        if begins && self.boundaries.len() < MAX_BOUNDARIES && self.text.len() < MAX_LENGTH {
            self.boundaries.push(self.text.len());
        }
        let room = MAX_LENGTH.saturating_sub(self.text.len());
        let end = (room..text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
        self.text.push_str(&text[..end]);
    }

    /// Adds a whole block.
    pub fn add(&mut self, block: &str) {
        self.end_block();
        self.push(block);
        self.end_block();
    }

    /// Ends the current block.
    pub fn end_block(&mut self) {
        self.ended = true;
    }

    /// Records a line that may be a block and could not be parsed.
    pub fn add_unreadable(&mut self, line: String) {
        self.unreadable.get_or_insert(line);
    }

    /// Drops all blocks. Called when the agent uses a tool: text before a tool use is not part of the answer.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether the joined text ends with `text`, ignoring white space.
    pub fn ends_with(&self, text: &str) -> bool {
        self.text.trim_end().ends_with(text.trim())
    }

    /// Joins all blocks into one answer.
    pub fn join(self) -> JoinedAnswer {
        let Self { text: joined, boundaries, unreadable, ended: _ } = self;
        if boundaries.is_empty() {
            return JoinedAnswer { text: joined, alternatives: Vec::new(), unreadable };
        }
        let message = FinalMessage::new(&joined);
        let breaks: Vec<usize> =
            boundaries.iter().copied().filter(|boundary| is_paragraph_end(&message, *boundary)).collect();
        let text = with_breaks(&joined, &breaks);
        let separated = (breaks.len() < boundaries.len()).then(|| with_breaks(&joined, &boundaries));
        let joined = (!breaks.is_empty()).then_some(joined);
        JoinedAnswer { text, alternatives: [separated, joined].into_iter().flatten().collect(), unreadable }
    }
}

fn with_breaks(text: &str, boundaries: &[usize]) -> String {
    let mut joined = String::with_capacity(text.len() + boundaries.len() * PARAGRAPH.len());
    let mut from = 0;
    for boundary in boundaries {
        joined.push_str(&text[from..*boundary]);
        joined.push_str(PARAGRAPH);
        from = *boundary;
    }
    joined.push_str(&text[from..]);
    joined
}

/// Whether a blank line at a boundary preserves the meaning. `message` is all blocks joined without blank lines.
fn is_paragraph_end(message: &FinalMessage<'_>, boundary: usize) -> bool {
    let (before, after) = message.text().split_at(boundary);
    let (Some(last), Some(next)) = (before.chars().next_back(), after.chars().next()) else { return false };
    let spaced = last.is_whitespace() || next.is_whitespace();
    // A capital after a lower-case letter begins a sentence. Other adjacent letters may be one word.
    let word = last.is_alphanumeric() && next.is_alphanumeric() && (last.is_uppercase() || !next.is_uppercase());
    let closes = matches!(next, '\\' | ',' | ';' | ':' | '.' | '!' | '?' | ')' | ']' | '}' | '\'' | '"' | '…' | '%');
    let markup = last == next && !last.is_alphanumeric() && !before.ends_with(COMMENT_END);
    // A hunk's header is what marks its lines as a diff.
    let header = message.text()[message.line_at(boundary)].trim_start().starts_with("@@");
    let opens = matches!(last, '[' | '(' | '{' | '<' | '\\' | '@' | '#' | '|' | '+') || is_invisible(last);
    let emphasis = opens_emphasis(before) || closes_emphasis(after);
    if spaced || word || opens || closes || markup || emphasis || header || message.is_inside_json(boundary) {
        return false;
    }
    match message.structure().markup_across(boundary) {
        None => true,
        // After a closed comment, only Markdown treats the rest of the line as HTML.
        Some(MarkupKind::Html) => before.ends_with(COMMENT_END),
        // Followed by a word, a code fence opens a block and does not close one.
        Some(kind) => kind == MarkupKind::Code && is_fence(before) && !next.is_alphanumeric(),
    }
}

/// Whether a character is invisible without being white space. It belongs to its line.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}')
}

const EMPHASIS: [char; 2] = ['*', '_'];

/// Whether a text ends with marks that open emphasis.
fn opens_emphasis(before: &str) -> bool {
    let rest = before.trim_end_matches(EMPHASIS);
    rest.len() < before.len() && rest.chars().next_back().is_none_or(|c| c.is_whitespace() || c == '\\')
}

/// Whether a text begins with marks that close emphasis.
fn closes_emphasis(after: &str) -> bool {
    let rest = after.trim_start_matches(EMPHASIS);
    after.len() - rest.len() >= 2 && !rest.chars().next().is_some_and(char::is_alphanumeric)
}

/// Whether the last line is only a code fence.
fn is_fence(text: &str) -> bool {
    const SHORTEST: usize = 3;
    let line = text.rsplit('\n').next().unwrap_or_default().trim();
    let is_mark = |mark: char| line.len() >= SHORTEST && line.chars().all(|c| c == mark);
    is_mark('`') || is_mark('~')
}
