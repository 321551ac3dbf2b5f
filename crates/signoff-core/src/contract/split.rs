//! An answer that comes in several blocks or messages, as one text.
//!
//! Blocks are paragraphs: a blank line goes between two of them. Where a block breaks off within a line or within
//! something quoted, the next one goes on there, so that cutting a text never turns what it quotes into what it says.
//! Whatever the boundaries, objections count: an approval stands only if nothing objects to it, and nothing is broken, in
//! [`SplitAnswer::others`] either, which are the blocks with a blank line at every boundary, and with none.

use super::message::Message;
use super::outline::Shown;

/// What an agent said since it last used a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks {
    text: String,
    /// Where blocks begin, but for the first.
    seams: Vec<usize>,
    /// Whether the next text begins a block.
    ended: bool,
    /// The beginning of the first line that may be a block and could not be read.
    unreadable: Option<String>,
}

/// An answer made of blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SplitAnswer {
    pub text: String,
    /// The other ways to read it, where they differ.
    pub others: Vec<String>,
    /// The beginning of the first line that may belong to it and could not be read.
    pub unreadable: Option<String>,
}

/// Longer answers are cut here, one byte above the limit, so that the reader sees that the answer is too long.
const LONGEST: usize = super::MAX_BYTES + 1;

/// Maximum number of boundaries; `Blocks` ignores further ones.
const MOST_SEAMS: usize = 10_000;

const PARAGRAPH: &str = "\n\n";

const COMMENT_END: &str = "-->";

impl Blocks {
    /// Adds to the current block.
    pub fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let begins = std::mem::take(&mut self.ended) && !self.text.is_empty();
        if begins && self.seams.len() < MOST_SEAMS && self.text.len() < LONGEST {
            self.seams.push(self.text.len());
        }
        let room = LONGEST.saturating_sub(self.text.len());
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

    /// A line that may be a block could not be read.
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

    /// Whether the last of it is this text.
    pub fn ends_with(&self, text: &str) -> bool {
        self.text.trim_end().ends_with(text.trim())
    }

    /// All blocks as one answer.
    pub fn join(self) -> SplitAnswer {
        let Self { text: together, seams, unreadable, ended: _ } = self;
        if seams.is_empty() {
            return SplitAnswer { text: together, others: Vec::new(), unreadable };
        }
        let message = Message::new(&together);
        let breaks: Vec<usize> =
            seams.iter().copied().filter(|seam| is_paragraph_end(&message, *seam)).collect();
        let text = with_breaks(&together, &breaks);
        let apart = (breaks.len() < seams.len()).then(|| with_breaks(&together, &seams));
        let together = (!breaks.is_empty()).then_some(together);
        SplitAnswer { text, others: [apart, together].into_iter().flatten().collect(), unreadable }
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

/// Whether a blank line at a boundary leaves everything as it was said. `message` is all blocks without any.
fn is_paragraph_end(message: &Message<'_>, seam: usize) -> bool {
    let (before, after) = message.text().split_at(seam);
    let (Some(last), Some(next)) = (before.chars().next_back(), after.chars().next()) else { return false };
    let spaced = last.is_whitespace() || next.is_whitespace();
    // A capital after a small letter begins a sentence; other letters that touch may be one word.
    let word =
        last.is_alphanumeric() && next.is_alphanumeric() && (last.is_uppercase() || !next.is_uppercase());
    let closes =
        matches!(next, '\\' | ',' | ';' | ':' | '.' | '!' | '?' | ')' | ']' | '}' | '\'' | '"' | '…' | '%');
    let markup = last == next && !last.is_alphanumeric() && !before.ends_with(COMMENT_END);
    // The header of a hunk is what makes its lines a diff.
    let header = message.text()[message.line_at(seam)].trim_start().starts_with("@@");
    let opens = matches!(last, '[' | '(' | '{' | '<' | '\\' | '@' | '#' | '|' | '+') || is_invisible(last);
    let emphasis = opens_emphasis(before) || closes_emphasis(after);
    if spaced || word || opens || closes || markup || emphasis || header || message.is_inside_json(seam) {
        return false;
    }
    match message.outline().shown_across(seam) {
        None => true,
        // A comment that is closed goes on in its line for Markdown alone.
        Some(Shown::Html) => before.ends_with(COMMENT_END),
        // With a word behind it, the mark of a code block opens one and ends none.
        Some(Shown::Code) => is_fence(before) && !next.is_alphanumeric(),
        Some(
            Shown::Diff
            | Shown::Quote
            | Shown::InlineCode
            | Shown::Comment
            | Shown::Struck
            | Shown::Link
            | Shown::Element,
        ) => false,
    }
}

/// Whether a character shows nothing and is no space: it is a part of the line it stands in.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}')
}

const EMPHASIS: [char; 2] = ['*', '_'];

/// Whether a text ends with marks that set off what comes next.
fn opens_emphasis(before: &str) -> bool {
    let rest = before.trim_end_matches(EMPHASIS);
    rest.len() < before.len() && rest.chars().next_back().is_none_or(|c| c.is_whitespace() || c == '\\')
}

/// Whether a text begins with marks that set off what came before.
fn closes_emphasis(after: &str) -> bool {
    let rest = after.trim_start_matches(EMPHASIS);
    after.len() - rest.len() >= 2 && !rest.chars().next().is_some_and(char::is_alphanumeric)
}

/// Whether the last line is nothing but the mark of a code block.
fn is_fence(text: &str) -> bool {
    const SHORTEST: usize = 3;
    let line = text.rsplit('\n').next().unwrap_or_default().trim();
    let is_mark = |mark: char| line.len() >= SHORTEST && line.chars().all(|c| c == mark);
    is_mark('`') || is_mark('~')
}
