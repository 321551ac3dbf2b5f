//! The Markdown contract: `**Verdict: APPROVED|CHANGES_REQUESTED|NEEDS_DISCUSSION**`, alone on its line, and the
//! review around it.

use std::rc::Rc;

use super::ReviewRequest;
use super::candidates::{
    self, AnswerCandidate, CandidateKind, MAX_CANDIDATES, ObjectionSet, clip, parse_nonce_comment, too_many,
};
use super::message::FinalMessage;
use super::verdict_line::{self, VerdictLine};
use super::{reader, retraction};
use crate::review::{Finding, Review, Severity, Verdict, Violation, ViolationCode};

pub(super) const NOTHING: &str = "there is no line `**Verdict: APPROVED**`, `**Verdict: CHANGES_REQUESTED**` or \
     `**Verdict: NEEDS_DISCUSSION**` outside quotes and code";

pub(super) fn candidates(message: &FinalMessage<'_>, ask: &ReviewRequest) -> Result<Vec<AnswerCandidate>, Violation> {
    if !message.text().contains("Verdict") {
        return Ok(Vec::new());
    }
    let mut found: Vec<AnswerCandidate> = Vec::new();
    let mut doubts = ObjectionSet::default();
    let mut reviews: Vec<(Verdict, Rc<Review>)> = Vec::new();
    for line in verdict_line::verdict_lines(message) {
        let offset = line.range.start;
        if found.len() >= MAX_CANDIDATES {
            return Err(too_many(offset));
        }
        let binding = candidates::adjacent_binding(message, offset, line.range.end, ask);
        let (standing, answer) = match &line.verdict {
            Some(verdict) => (CandidateKind::Plain, Ok(review_once(&mut reviews, verdict.clone(), message, ask))),
            None if line.is_bold => (CandidateKind::Plain, Err(unknown(line.word, offset))),
            None if line.says_more() => (CandidateKind::Doubt, Err(says_more(line.word, offset))),
            None => continue,
        };
        let candidate = AnswerCandidate { offset, binding, kind: standing, answer };
        if standing == CandidateKind::Doubt { doubts.insert(Some(candidate), ask) } else { found.push(candidate) }
    }
    if reviews.iter().any(|(verdict, _)| verdict.approves()) {
        let denial = denial(message, &found, ask);
        found.extend(denial);
    }
    found.extend(doubts.first);
    retraction::add_retractions(&mut found, message, ask);
    Ok(found)
}

/// The first line that withdraws an approval without having the form of a verdict.
fn denial(message: &FinalMessage<'_>, verdicts: &[AnswerCandidate], ask: &ReviewRequest) -> Option<AnswerCandidate> {
    let mut start = 0;
    for line in message.text().split_inclusive('\n') {
        let offset = start + (line.len() - line.trim_start().len());
        start += line.len();
        let is_verdict = || verdicts.binary_search_by_key(&offset, |verdict| verdict.offset).is_ok();
        if denies(line) && !is_verdict() && message.structure().markup_at(offset).is_none() {
            // A refusal needs no nonce. It counts like the approval.
            let binding = retraction::approvals(verdicts, ask).last().map(|one| one.binding.clone())?;
            let answer = Err(candidates::disagreement(offset));
            return Some(AnswerCandidate { offset, binding, kind: CandidateKind::Plain, answer });
        }
    }
    None
}

/// `__Verdict: CHANGES_REQUESTED__`, `**Verdict:** changes requested`, `Verdict: NEEDS_DISCUSSION, see below`.
fn denies(line: &str) -> bool {
    const DENIALS: [&str; 3] = ["CHANGES_REQUESTED", "NEEDS_DISCUSSION", "REJECTED"];
    const LONGEST: usize = 17;
    let decoration = |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '#' | '-' | '+' | '~' | ':');
    let mut rest = line.trim_start_matches(decoration);
    for word in ["final", "overall", "my"] {
        rest = strip_word(rest, word).unwrap_or(rest).trim_start_matches(decoration);
    }
    let Some(rest) = strip_word(rest, "verdict") else { return false };
    let word = rest.trim_start_matches(decoration).chars().take(LONGEST);
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
    reviews: &mut Vec<(Verdict, Rc<Review>)>,
    verdict: Verdict,
    message: &FinalMessage<'_>,
    ask: &ReviewRequest,
) -> Rc<Review> {
    if let Some((_, review)) = reviews.iter().find(|(known, _)| *known == verdict) {
        return Rc::clone(review);
    }
    let review = Rc::new(review(verdict.clone(), message, ask));
    reviews.push((verdict, Rc::clone(&review)));
    review
}

fn review(verdict: Verdict, message: &FinalMessage<'_>, ask: &ReviewRequest) -> Review {
    let mut review = Review::new(ask.reviewer.clone(), ask.kind, verdict);
    review.summary = body(message);
    let requested = review.verdict == Verdict::ChangesRequested;
    let entries = if requested { reader::read_request(message, 0).0 } else { reader::read(message, 0).0 };
    let is_listed = entries.iter().any(|entry| !entry.only_mentions_location() && !entry.is_aside());
    for entry in entries.into_iter().filter(|entry| is_listed || !entry.only_mentions_location()) {
        let stated = entry.item.severity.is_some();
        let placed = entry.item.place.is_some();
        if review.verdict.approves() && (entry.is_resolved() || (entry.is_aside() && !stated)) {
            continue;
        }
        if review.verdict.approves() && !stated {
            // Without a severity, an item with a location is a note.
            review.minor.extend((placed || entry.under_notes).then(|| entry.item.note()));
        } else if review.verdict.approves() || (!entry.is_aside() && (requested || stated || placed)) {
            review.findings.push(entry.item.finding("changes", ask));
        }
    }
    if requested && review.findings.is_empty() {
        review.findings.push(body_finding(&review.summary, ask));
    }
    review
}

fn body_finding(body: &str, ask: &ReviewRequest) -> Finding {
    let description = if body.is_empty() { "Changes requested, without a reason." } else { body };
    Finding::new(&ask.reviewer, "changes", Severity::Critical, description)
}

/// The message without its verdict and nonce lines.
fn body(message: &FinalMessage<'_>) -> String {
    let text = message.text();
    let mut body = String::with_capacity(text.len());
    let mut from = 0;
    for VerdictLine { range, .. } in verdict_line::verdict_lines(message).filter(VerdictLine::is_answer) {
        push_lines(&mut body, &text[from..range.start]);
        from = range.end;
    }
    push_lines(&mut body, &text[from..]);
    body.trim().to_owned()
}

fn push_lines(body: &mut String, text: &str) {
    for line in text.split_inclusive('\n').filter(|line| parse_nonce_comment(line).is_none()) {
        body.push_str(line);
    }
}
