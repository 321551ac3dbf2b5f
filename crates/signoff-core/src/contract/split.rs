//! Joins an answer that came in several blocks or messages.
//!
//! Blocks are paragraphs, joined by a blank line. If a block ends within a line or within quoted text, the next
//! block continues it directly, so that splitting a text never turns quoted text into the reviewer's own.
//! Objections count for every way to join: an approval also requires that nothing in `SplitAnswer::alternatives`
//! objects or is broken. Those are the blocks with a blank line at every boundary, and with none.

use super::markdown_structure::MarkupKind;
use super::message::FinalMessage;

/// The text of an agent since its last tool use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks {
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
pub struct SplitAnswer {
    pub text: String,
    /// The other ways to join the blocks, if they differ from `text`.
    pub alternatives: Vec<String>,
    /// The start of the first line that may be part of the answer and could not be parsed.
    pub unreadable: Option<String>,
}

/// Longer answers are truncated here, one byte above the limit, so that the parser reports them as too large.
const MAX_LENGTH: usize = super::MAX_BYTES + 1;

/// Maximum number of boundaries; `Blocks` ignores further ones.
const MAX_BOUNDARIES: usize = 10_000;

const PARAGRAPH: &str = "\n\n";

const COMMENT_END: &str = "-->";

impl Blocks {
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
    pub fn join(self) -> SplitAnswer {
        let Self { text: together, boundaries: seams, unreadable, ended: _ } = self;
        if seams.is_empty() {
            return SplitAnswer { text: together, alternatives: Vec::new(), unreadable };
        }
        let message = FinalMessage::new(&together);
        let breaks: Vec<usize> = seams.iter().copied().filter(|seam| is_paragraph_end(&message, *seam)).collect();
        let text = with_breaks(&together, &breaks);
        let apart = (breaks.len() < seams.len()).then(|| with_breaks(&together, &seams));
        let together = (!breaks.is_empty()).then_some(together);
        SplitAnswer { text, alternatives: [apart, together].into_iter().flatten().collect(), unreadable }
    }
}

fn with_breaks(text: &str, seams: &[usize]) -> String {
    let mut joined = String::with_capacity(text.len() + seams.len() * PARAGRAPH.len());
    let mut from = 0;
    for seam in seams {
        joined.push_str(&text[from..*seam]);
        joined.push_str(PARAGRAPH);
        from = *seam;
    }
    joined.push_str(&text[from..]);
    joined
}

/// Whether a blank line at a boundary preserves the meaning. `message` is all blocks joined without blank lines.
fn is_paragraph_end(message: &FinalMessage<'_>, seam: usize) -> bool {
    let (before, after) = message.text().split_at(seam);
    let (Some(last), Some(next)) = (before.chars().next_back(), after.chars().next()) else { return false };
    let spaced = last.is_whitespace() || next.is_whitespace();
    // A capital after a lower-case letter begins a sentence. Other adjacent letters may be one word.
    let word = last.is_alphanumeric() && next.is_alphanumeric() && (last.is_uppercase() || !next.is_uppercase());
    let closes = matches!(next, '\\' | ',' | ';' | ':' | '.' | '!' | '?' | ')' | ']' | '}' | '\'' | '"' | '…' | '%');
    let markup = last == next && !last.is_alphanumeric() && !before.ends_with(COMMENT_END);
    // A hunk's header is what marks its lines as a diff.
    let header = message.text()[message.line_at(seam)].trim_start().starts_with("@@");
    let opens = matches!(last, '[' | '(' | '{' | '<' | '\\' | '@' | '#' | '|' | '+') || is_invisible(last);
    let emphasis = opens_emphasis(before) || closes_emphasis(after);
    if spaced || word || opens || closes || markup || emphasis || header || message.is_inside_json(seam) {
        return false;
    }
    match message.structure().markup_across(seam) {
        None => true,
        // After a closed comment, only Markdown treats the rest of the line as HTML.
        Some(MarkupKind::Html) => before.ends_with(COMMENT_END),
        // Followed by a word, a code fence opens a block and does not close one.
        Some(MarkupKind::Code) => is_fence(before) && !next.is_alphanumeric(),
        Some(
            MarkupKind::Diff
            | MarkupKind::Quote
            | MarkupKind::InlineCode
            | MarkupKind::Comment
            | MarkupKind::Struck
            | MarkupKind::Link
            | MarkupKind::Element,
        ) => false,
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
