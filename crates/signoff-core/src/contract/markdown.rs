//! The Markdown contract: `**Verdict: APPROVED|CHANGES_REQUESTED|NEEDS_DISCUSSION**`, alone on its line, and the
//! review around it.

use std::ops::Range;
use std::rc::Rc;

use super::candidates::{
    self, AnswerCandidate, CandidateKind, Candidates, MAX_CANDIDATES, ObjectionSet, clip, lines_without_nonce, too_many,
};
use super::message::{FinalMessage, MessageLine, lines_from, trimmed};
use super::{Parsed, ReviewRequest};
use super::{reader, retraction};
use crate::review::{Finding, Review, Severity, Verdict, Violation, ViolationCode};

pub(super) const NO_ANSWER_MESSAGE: &str = "there is no line `**Verdict: APPROVED**`, `**Verdict: CHANGES_REQUESTED**` or \
     `**Verdict: NEEDS_DISCUSSION**` outside quotes and code";

pub(super) fn candidates(message: &FinalMessage<'_>, request: &ReviewRequest) -> Parsed<Candidates> {
    if !message.text().contains("Verdict") {
        return Ok(Vec::new());
    }
    let mut found: Vec<AnswerCandidate> = Vec::new();
    let mut objections = ObjectionSet::default();
    let mut reviews: Vec<Rc<Review>> = Vec::new();
    for line in verdict_lines(message) {
        let offset = line.range.start;
        if found.len() >= MAX_CANDIDATES {
            return Err(too_many(offset));
        }
        let binding = candidates::adjacent_binding(message, offset, line.range.end, request);
        let (kind, answer) = match &line.verdict {
            Some(verdict) => (CandidateKind::Plain, Ok(review_once(&mut reviews, verdict.clone(), message, request))),
            None if line.is_bold => (CandidateKind::Plain, Err(unknown(line.word, offset))),
            None if line.says_more() => (CandidateKind::Doubt, Err(says_more(line.word, offset))),
            None => continue,
        };
        let candidate = AnswerCandidate { offset, binding, kind, answer };
        if kind == CandidateKind::Doubt { objections.insert(Some(candidate), request) } else { found.push(candidate) }
    }
    if reviews.iter().any(|review| review.verdict.approves()) {
        let denial = denial(message, &found, request);
        found.extend(denial);
    }
    found.extend(objections.first);
    retraction::add_retractions(&mut found, message, request);
    Ok(found)
}

/// The first line that withdraws an approval without having the form of a verdict.
fn denial(
    message: &FinalMessage<'_>,
    verdicts: &[AnswerCandidate],
    request: &ReviewRequest,
) -> Option<AnswerCandidate> {
    let is_denial = |line: &MessageLine<'_>| {
        let offset = line.text_start();
        let is_verdict = || verdicts.binary_search_by_key(&offset, |verdict| verdict.offset).is_ok();
        denies(line.text) && !is_verdict() && message.markup_at(offset).is_none()
    };
    let offset = lines_from(message.text(), 0).find(is_denial)?.text_start();
    // A refusal needs no nonce. It counts like the approval.
    let binding = retraction::approvals(verdicts, request).last().map(|one| one.binding.clone())?;
    let answer = Err(candidates::disagreement(offset));
    Some(AnswerCandidate { offset, binding, kind: CandidateKind::Plain, answer })
}

/// `__Verdict: CHANGES_REQUESTED__`, `**Verdict:** changes requested`, `Verdict: NEEDS_DISCUSSION, see below`.
fn denies(line: &str) -> bool {
    const DENIALS: [&str; 3] = ["CHANGES_REQUESTED", "NEEDS_DISCUSSION", "REJECTED"];
    const MAX_WORD_CHARS: usize = 17;
    let decoration = |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '#' | '-' | '+' | '~' | ':');
    let mut rest = line.trim_start_matches(decoration);
    for word in ["final", "overall", "my"] {
        rest = strip_word(rest, word).unwrap_or(rest).trim_start_matches(decoration);
    }
    let Some(rest) = strip_word(rest, "verdict") else { return false };
    let word = rest.trim_start_matches(decoration).chars().take(MAX_WORD_CHARS);
    let word: String = word.map(|c| if matches!(c, ' ' | '-') { '_' } else { c.to_ascii_uppercase() }).collect();
    rest.trim_start_matches(['*', '_', ' ']).starts_with(':') && DENIALS.iter().any(|denial| word.starts_with(denial))
}

fn strip_word<'l>(line: &'l str, word: &str) -> Option<&'l str> {
    let (first, rest) = line.split_at_checked(word.len())?;
    first.eq_ignore_ascii_case(word).then_some(rest)
}

fn unknown(word: &str, offset: usize) -> Violation {
    let message = format!("the verdict must be APPROVED, CHANGES_REQUESTED or NEEDS_DISCUSSION, not `{}`", clip(word));
    Violation::new(ViolationCode::UnknownVerdict, offset, message)
}

fn says_more(word: &str, offset: usize) -> Violation {
    let message = format!("the verdict line must hold nothing but the verdict, not `{}`", clip(word));
    Violation::new(ViolationCode::NoVerdict, offset, message)
}

/// The review of this message with `verdict`. The body is parsed once per verdict, because it is long.
fn review_once(
    reviews: &mut Vec<Rc<Review>>,
    verdict: Verdict,
    message: &FinalMessage<'_>,
    request: &ReviewRequest,
) -> Rc<Review> {
    if let Some(review) = reviews.iter().find(|review| review.verdict == verdict) {
        return Rc::clone(review);
    }
    let review = Rc::new(review(verdict, message, request));
    reviews.push(Rc::clone(&review));
    review
}

fn review(verdict: Verdict, message: &FinalMessage<'_>, request: &ReviewRequest) -> Review {
    let mut review = Review::new(request.reviewer.clone(), request.kind, verdict);
    review.summary = body(message);
    reader::add_entries(&mut review, message, 0, KIND, request);
    if review.verdict == Verdict::ChangesRequested && review.findings.is_empty() {
        let body = review.summary.as_str();
        let description = if body.is_empty() { "Changes requested, without a reason." } else { body };
        review.findings.push(Finding::new(&request.reviewer, KIND, Severity::Critical, description));
    }
    review
}

/// The message without its verdict and nonce lines.
fn body(message: &FinalMessage<'_>) -> String {
    let text = message.text();
    let mut body = String::with_capacity(text.len());
    let mut from = 0;
    for VerdictLine { range, .. } in verdict_lines(message).filter(VerdictLine::is_answer) {
        body.extend(lines_without_nonce(&text[from..range.start]));
        from = range.end;
    }
    body.extend(lines_without_nonce(&text[from..]));
    body.trim().to_owned()
}

/// An unquoted line that states a verdict: `**Verdict: APPROVED**`, `**Verdict:** APPROVED`, `**Verdict:** **APPROVED**`,
/// `Verdict: **APPROVED**` or `Verdict: APPROVED`.
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
        self.verdict.is_none() && VERDICTS.iter().any(|(word, _)| starts_with(self.word, word))
    }
}

const VERDICTS: [(&str, Verdict); 3] = [
    ("APPROVED", Verdict::Approved),
    ("CHANGES_REQUESTED", Verdict::ChangesRequested),
    ("NEEDS_DISCUSSION", Verdict::NeedsDiscussion),
];

/// Marks allowed after the word, at most one.
const MARKS: [&str; 4] = [".", "✅", "✔", "👍"];

/// The kind of a finding without a stated kind.
const KIND: &str = "changes";

const BOLD: &str = "**Verdict:";
const MARK: &str = "**";

/// Whether a line begins like a verdict.
pub(super) fn begins_verdict(line: &str) -> bool {
    [BOLD, "**Verdict**:", "Verdict:"].into_iter().any(|opening| line.starts_with(opening))
}

/// The unquoted lines of the message in the form of a verdict, in order.
pub(super) fn verdict_lines<'m>(message: &FinalMessage<'m>) -> impl Iterator<Item = VerdictLine<'m>> {
    let text = message.text();
    let lines = lines_from(text, 0).map(|line| trimmed(text, line.range()));
    lines.filter(|range| begins_verdict(&text[range.clone()])).filter_map(|range| verdict_line(message, range))
}

fn verdict_line<'m>(message: &FinalMessage<'m>, range: Range<usize>) -> Option<VerdictLine<'m>> {
    let (text, structure) = (message.text(), message.structure());
    if is_indented(text, range.start) || !structure.is_own_text(&range) {
        return None;
    }
    let line = &text[range.clone()];
    let bold = structure.bold_at(range.start).map_or(0, |bold| bold.len());
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
    let verdict = if tail.is_empty() || is_mark(tail) { parse_verdict(word, tail) } else { None };
    let word = if tail.is_empty() { word } else { &line[at..] };
    structure.is_text(range.start + at).then_some(VerdictLine { range, word, verdict, is_bold })
}

/// The bold text that begins at `offset`, and the text after it.
fn bold_word<'m>(message: &FinalMessage<'m>, offset: usize, word: &'m str) -> Option<(&'m str, &'m str)> {
    let bold = message.structure().bold_at(offset)?;
    let (inside, tail) = word.split_at_checked(bold.len())?;
    Some((inside.strip_prefix(MARK)?.strip_suffix(MARK)?, tail.trim()))
}

/// The verdict of a word, with at most one mark inside or outside the bold text.
fn parse_verdict(word: &str, tail: &str) -> Option<Verdict> {
    let bare = MARKS.into_iter().find_map(|mark| without_selector(word).strip_suffix(mark));
    let word = if tail.is_empty() { bare.unwrap_or(word).trim_end() } else { word };
    let is_word = |known: &str| word.len() == known.len() && starts_with(word, known);
    VERDICTS.into_iter().find(|(known, _)| is_word(known)).map(|(_, verdict)| verdict)
}

fn is_mark(tail: &str) -> bool {
    MARKS.contains(&without_selector(tail))
}

/// Removes the variation selector of an emoji: `✔️`.
fn without_selector(text: &str) -> &str {
    text.strip_suffix('\u{fe0f}').unwrap_or(text)
}

/// Compares in any case. `changes requested` and `needs-discussion` are accepted too, because neither approves.
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
