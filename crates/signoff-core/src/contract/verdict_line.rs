//! Lines that state a verdict: `**Verdict: APPROVED**`, `**Verdict:** APPROVED`, `**Verdict:** **APPROVED**`,
//! `Verdict: **APPROVED**` or `Verdict: APPROVED`.

use std::ops::Range;

use super::message::{FinalMessage, trimmed};
use crate::review::Verdict;

/// An unquoted line in the form of a verdict.
#[derive(Debug)]
pub(super) struct VerdictLine<'m> {
    pub range: Range<usize>,
    /// The text in the position of the verdict word.
    pub word: &'m str,
    /// The verdict, if the word is one. A full stop or approval mark after it is ignored.
    pub verdict: Option<Verdict>,
    /// Whether the whole line is bold, so that any other word in it is a mistake of the reviewer.
    pub is_bold: bool,
}

impl VerdictLine<'_> {
    /// Whether the line is an answer, valid or not.
    pub fn is_answer(&self) -> bool {
        self.verdict.is_some() || self.is_bold
    }

    /// Whether the line names a verdict and continues: `Verdict: APPROVED once the tests pass`.
    pub fn says_more(&self) -> bool {
        self.verdict.is_none() && WORDS.iter().any(|(word, _)| starts_with(self.word, word))
    }
}

const WORDS: [(&str, Verdict); 3] = [
    ("APPROVED", Verdict::Approved),
    ("CHANGES_REQUESTED", Verdict::ChangesRequested),
    ("NEEDS_DISCUSSION", Verdict::NeedsDiscussion),
];

/// Marks allowed after the word, at most one.
const MARKS: [&str; 4] = [".", "✅", "✔", "👍"];

const BOLD: &str = "**Verdict:";
const MARK: &str = "**";

/// Whether a line begins like a verdict.
pub(super) fn begins_verdict(line: &str) -> bool {
    [BOLD, "**Verdict**:", "Verdict:"].into_iter().any(|opening| line.starts_with(opening))
}

/// The unquoted lines of the message in the form of a verdict, in order.
pub(super) fn verdict_lines<'m>(message: &FinalMessage<'m>) -> impl Iterator<Item = VerdictLine<'m>> {
    let text = message.text();
    let mut start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let range = trimmed(text, start..start + line.len());
        start += line.len();
        if begins_verdict(&text[range.clone()]) { read(message, range) } else { None }
    })
}

fn read<'m>(message: &FinalMessage<'m>, range: Range<usize>) -> Option<VerdictLine<'m>> {
    let (text, outline) = (message.text(), message.structure());
    if is_indented(text, range.start) || !outline.is_own_text(&range) {
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

/// The bold text that begins at `offset`, and the text after it.
fn bold_word<'m>(message: &FinalMessage<'m>, offset: usize, word: &'m str) -> Option<(&'m str, &'m str)> {
    let bold = message.structure().bold_at(offset)?;
    let (inside, tail) = word.split_at_checked(bold.len())?;
    Some((inside.strip_prefix(MARK)?.strip_suffix(MARK)?, tail.trim()))
}

/// The verdict of a word, with at most one mark inside or outside the bold text.
fn verdict_of(word: &str, tail: &str) -> Option<Verdict> {
    let bare = MARKS.into_iter().find_map(|mark| without_selector(word).strip_suffix(mark));
    let word = if tail.is_empty() { bare.unwrap_or(word).trim_end() } else { word };
    WORDS.into_iter().find(|(known, _)| is_word(word, known)).map(|(_, verdict)| verdict)
}

fn is_mark(tail: &str) -> bool {
    MARKS.contains(&without_selector(tail))
}

/// Removes the variation selector of an emoji: `✔️`.
fn without_selector(text: &str) -> &str {
    text.strip_suffix('\u{fe0f}').unwrap_or(text)
}

/// Compares the word in any case. `changes requested` and `needs-discussion` are accepted too, because neither
/// approves.
fn is_word(word: &str, known: &str) -> bool {
    word.len() == known.len() && starts_with(word, known)
}

fn starts_with(text: &str, known: &str) -> bool {
    let same = |(a, b): (u8, u8)| a.eq_ignore_ascii_case(&b) || (b == b'_' && matches!(a, b' ' | b'-'));
    text.len() >= known.len() && text.bytes().zip(known.bytes()).all(same)
}

/// Four or more columns are code to every reader, even where Markdown continues a paragraph.
fn is_indented(text: &str, start: usize) -> bool {
    let before = &text[..start];
    let blank = &before[before.trim_end_matches(|c: char| c.is_whitespace() && c != '\n').len()..];
    blank.contains('\t') || blank.chars().count() >= 4
}
