//! The prefix contract: `APPROVED:`, `APPROVED_WITH_MINOR:` or `ISSUES:` at the start of the message.

use std::rc::Rc;

use super::candidates::{self, AnswerCandidate, CandidateKind, Candidates, lines_without_nonce, parse_nonce_comment};
use super::message::{FinalMessage, MessageLine, lines_from};
use super::xml::{verdict_word, words};
use super::{Parsed, ReviewRequest};
use super::{inline_severity, reader, retraction};
use crate::review::{Finding, Review, Severity, Verdict, Violation, ViolationCode};

pub(super) const NO_ANSWER_MESSAGE: &str = "the message does not start with APPROVED:, APPROVED_WITH_MINOR: or ISSUES:";

const VERDICT_WORDS: [&str; 3] = ["APPROVED", "APPROVED_WITH_MINOR", "ISSUES"];

pub(super) fn candidates(message: &FinalMessage<'_>, request: &ReviewRequest) -> Parsed<Candidates> {
    let text = message.text();
    let start = answer_start(text);
    let begins = |word: &&str| text[start..].strip_prefix(word).is_some_and(|rest| rest.starts_with(':'));
    let Some(word) = VERDICT_WORDS.into_iter().find(begins) else { return Ok(Vec::new()) };
    let line = message.line_at(start);
    let answer = review(message, start, word, request).map(Rc::new);
    let binding = candidates::adjacent_binding(message, start, line.end, request);
    let first = AnswerCandidate { offset: start, binding, kind: CandidateKind::Plain, answer };
    let mut found = vec![first];
    // Repeating the word adds nothing. Another word contradicts the first.
    if let Some((offset, other)) = contradiction(message, line.end, word) {
        let binding = found[0].binding.clone();
        let verdict = verdict_word(other, request.kind).unwrap_or(Verdict::ChangesRequested);
        let answer = Ok(Rc::new(Review::new(request.reviewer.clone(), request.kind, verdict)));
        found.push(AnswerCandidate { offset, binding, kind: CandidateKind::Plain, answer });
    }
    retraction::add_retractions(&mut found, message, request);
    Ok(found)
}

/// The start of the answer, after white space and a nonce line.
fn answer_start(text: &str) -> usize {
    let start = text.len() - text.trim_start().len();
    let line = text[start..].split('\n').next().unwrap_or_default();
    if parse_nonce_comment(line).is_none() {
        return start;
    }
    let rest = &text[start + line.len()..];
    text.len() - rest.trim_start().len()
}

/// The verdict word at the start of a line, with any emphasis. `ISSUES: none` does not count.
fn emphasised_word(line: &str) -> Option<&'static str> {
    let decoration = [' ', '\t', '*', '_', '#'];
    let bare = line.trim_start_matches(decoration);
    let word = VERDICT_WORDS.into_iter().find(|word| {
        let rest = bare.strip_prefix(word).map(|rest| rest.trim_start_matches(['*', ' ']));
        rest.is_some_and(|rest| rest.starts_with(':') || rest.starts_with("_:") || rest.starts_with("__:"))
    })?;
    (!inline_severity::says_nothing(&bare[word.len()..])).then_some(word)
}

/// The first later unquoted line that begins with another verdict word.
fn contradiction(message: &FinalMessage<'_>, from: usize, word: &str) -> Option<(usize, &'static str)> {
    lines_from(message.text(), from).find_map(|line| {
        let other = emphasised_word(line.text).filter(|other| *other != word)?;
        message.markup_at(line.text_start()).is_none().then_some((line.text_start(), other))
    })
}

/// The first unquoted line that begins with `ISSUES:` and names an issue or introduces a list.
pub(super) fn issues_line(message: &FinalMessage<'_>) -> Option<usize> {
    let text = message.text();
    let names_issue = |line: &MessageLine<'_>| {
        let below = text.len() - text[line.range().end..].trim_start().len();
        let is_named = line.text.split_once(':').is_some_and(|(_, rest)| rest.contains(char::is_alphanumeric));
        emphasised_word(line.text) == Some("ISSUES") && (is_named || message.structure().has_item_at(below))
    };
    let mut offsets = lines_from(text, 0).filter(names_issue).map(|line| line.text_start());
    offsets.find(|offset| message.markup_at(*offset).is_none())
}

fn review(message: &FinalMessage<'_>, start: usize, word: &str, request: &ReviewRequest) -> Parsed<Review> {
    let verdict = verdict_word(word, request.kind).ok_or_else(|| {
        let text = format!("the verdict must be {}, not {word}", words(request.kind));
        Violation::new(ViolationCode::UnknownVerdict, start, text)
    })?;
    let content_start = start + word.len() + 1;
    let mut review = Review::new(request.reviewer.clone(), request.kind, verdict);
    let summary_end = reader::add_entries(&mut review, message, content_start, "issue", request);
    review.summary =
        lines_without_nonce(&message.text()[content_start..summary_end]).collect::<String>().trim().to_owned();
    if review.verdict == Verdict::ChangesRequested && review.findings.is_empty() {
        if review.summary.is_empty() {
            let text = "ISSUES: without any issue";
            return Err(Violation::new(ViolationCode::IssuesWithoutIssue, start, text));
        }
        review.findings.push(Finding::new(&request.reviewer, "issue", Severity::Critical, review.summary.clone()));
    }
    Ok(review)
}
