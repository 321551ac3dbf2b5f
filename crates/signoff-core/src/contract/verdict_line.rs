//! Lines that state a verdict: `**Verdict: APPROVED**`, `**Verdict:** APPROVED`, `**Verdict:** **APPROVED**`,
//! `Verdict: **APPROVED**` or `Verdict: APPROVED`.

use std::ops::Range;

use super::message::{Message, trimmed};
use crate::review::Verdict;

/// A line that has the form of a verdict, and is said rather than shown.
#[derive(Debug)]
pub(super) struct VerdictLine<'m> {
    pub range: Range<usize>,
    /// What stands in the place of the verdict word.
    pub word: &'m str,
    /// The verdict, where the word is one. A full stop or a mark of approval after it does not count.
    pub verdict: Option<Verdict>,
    /// Whether the whole line is the bold form, so that any other word in it is a mistake of the reviewer.
    pub is_bold: bool,
}

impl VerdictLine<'_> {
    /// Whether the line is an answer, if perhaps a wrong one.
    pub fn is_answer(&self) -> bool {
        self.verdict.is_some() || self.is_bold
    }

    /// Whether the line names a verdict and then says more: `Verdict: APPROVED once the tests pass`.
    pub fn says_more(&self) -> bool {
        self.verdict.is_none() && WORDS.iter().any(|(word, _)| starts_with(self.word, word))
    }
}

const WORDS: [(&str, Verdict); 3] = [
    ("APPROVED", Verdict::Approved),
    ("CHANGES_REQUESTED", Verdict::ChangesRequested),
    ("NEEDS_DISCUSSION", Verdict::NeedsDiscussion),
];

/// What may stand after the word, once.
const MARKS: [&str; 4] = [".", "✅", "✔", "👍"];

const BOLD: &str = "**Verdict:";
const MARK: &str = "**";

/// Whether a line begins like a verdict, wherever it stands.
pub(super) fn begins(line: &str) -> bool {
    [BOLD, "**Verdict**:", "Verdict:"].into_iter().any(|opening| line.starts_with(opening))
}

/// The lines of the message that have the form of a verdict and are said, in order.
pub(super) fn all<'m>(message: &Message<'m>) -> impl Iterator<Item = VerdictLine<'m>> {
    let text = message.text();
    let mut start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let range = trimmed(text, start..start + line.len());
        start += line.len();
        if begins(&text[range.clone()]) { read(message, range) } else { None }
    })
}

fn read<'m>(message: &Message<'m>, range: Range<usize>) -> Option<VerdictLine<'m>> {
    let (text, outline) = (message.text(), message.outline());
    if is_indented(text, range.start) || !outline.is_said(&range) {
        return None;
    }
    let line = &text[range.clone()];
    let bold = outline.bold_at(range.start).map_or(0, |bold| bold.len());
    let (inside, after) = line.split_at_checked(bold)?;
    let inside = inside.strip_suffix("**").unwrap_or_default();
    let (whole, word, tail) = match inside.strip_prefix(BOLD).map(str::trim) {
        Some("") => (line, after.trim(), ""),
        Some(word) => (inside.trim_end(), word, after.trim()),
        None if bold > 0 => (line, after.strip_prefix(':')?.trim(), ""),
        None => (line, line.strip_prefix("Verdict:")?.trim(), ""),
    };
    let is_bold = bold == line.len();
    let at = whole.len() - word.len();
    let (at, word, tail) = match bold_word(message, range.start + at, word).filter(|_| tail.is_empty()) {
        Some((word, tail)) => (at + MARK.len(), word, tail),
        None => (at, word, tail),
    };
    let verdict = if tail.is_empty() || is_mark(tail) { verdict_of(word, tail) } else { None };
    let word = if tail.is_empty() { word } else { &line[at..] };
    outline.is_text(range.start + at).then_some(VerdictLine { range, word, verdict, is_bold })
}

/// The text inside the bold type that begins at `offset`, and what stands behind it.
fn bold_word<'m>(message: &Message<'m>, offset: usize, word: &'m str) -> Option<(&'m str, &'m str)> {
    let bold = message.outline().bold_at(offset)?;
    let (inside, tail) = word.split_at_checked(bold.len())?;
    Some((inside.strip_prefix(MARK)?.strip_suffix(MARK)?, tail.trim()))
}

/// The verdict a word states; at most one mark goes with it, inside or outside the bold text.
fn verdict_of(word: &str, tail: &str) -> Option<Verdict> {
    let bare = MARKS.into_iter().find_map(|mark| without_selector(word).strip_suffix(mark));
    let word = if tail.is_empty() { bare.unwrap_or(word).trim_end() } else { word };
    WORDS.into_iter().find(|(known, _)| is_word(word, known)).map(|(_, verdict)| verdict)
}

fn is_mark(tail: &str) -> bool {
    MARKS.contains(&without_selector(tail))
}

/// Without the selector that asks for the colourful form of a sign: `✔️`.
fn without_selector(text: &str) -> &str {
    text.strip_suffix('\u{fe0f}').unwrap_or(text)
}

/// The word in any case. `changes requested` and `needs-discussion` are understood too: neither approves.
fn is_word(word: &str, known: &str) -> bool {
    word.len() == known.len() && starts_with(word, known)
}

fn starts_with(text: &str, known: &str) -> bool {
    let same = |(a, b): (u8, u8)| a.eq_ignore_ascii_case(&b) || (b == b'_' && matches!(a, b' ' | b'-'));
    text.len() >= known.len() && text.bytes().zip(known.bytes()).all(same)
}

/// Four columns and more are code to every reader, also where Markdown sees a paragraph that goes on.
fn is_indented(text: &str, start: usize) -> bool {
    let before = &text[..start];
    let blank = &before[before.trim_end_matches(|c: char| c.is_whitespace() && c != '\n').len()..];
    blank.contains('\t') || blank.chars().count() >= 4
}
