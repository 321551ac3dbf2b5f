//! `**Verdict: APPROVED|CHANGES_REQUESTED|NEEDS_DISCUSSION**`, alone on its line, and the review around it.

use std::ops::Range;
use std::rc::Rc;

use super::Ask;
use super::binding::{self, Candidate, MAX_CANDIDATES, Standing, clip, comment_line, too_many};
use super::message::{Message, is_alone};
use super::reader::{self, Entry};
use crate::review::{Finding, Review, Severity, Verdict, Violation, ViolationCode};

pub(super) const NOTHING: &str = "there is no line `**Verdict: APPROVED**`, `**Verdict: CHANGES_REQUESTED**` or \
     `**Verdict: NEEDS_DISCUSSION**` outside quotes and code";

const OPENING: &str = "**Verdict:";

pub(super) fn candidates(message: &Message<'_>, ask: &Ask) -> Result<Vec<Candidate>, Violation> {
    if !message.text().contains(OPENING) {
        return Ok(Vec::new());
    }
    let mut found: Vec<Candidate> = Vec::new();
    let mut reviews: Vec<(Verdict, Rc<Review>)> = Vec::new();
    for (range, word) in verdict_lines(message) {
        if found.len() >= MAX_CANDIDATES {
            return Err(too_many(range.start));
        }
        let answer =
            verdict(word, range.start).map(|verdict| review_once(&mut reviews, verdict, message, ask));
        let binding = binding::beside(message, range.start, range.end, ask);
        found.push(Candidate { offset: range.start, binding, standing: Standing::Plain, answer });
    }
    if reviews.iter().any(|(verdict, _)| verdict.approves()) {
        let denial = denial(message, &found, ask);
        found.extend(denial);
    }
    Ok(found)
}

/// The first line that is no verdict by its form and takes an approval back by its words.
fn denial(message: &Message<'_>, verdicts: &[Candidate], ask: &Ask) -> Option<Candidate> {
    let mut start = 0;
    for line in message.text().split_inclusive('\n') {
        let offset = start + (line.len() - line.trim_start().len());
        start += line.len();
        let is_verdict = || verdicts.binary_search_by_key(&offset, |verdict| verdict.offset).is_ok();
        if denies(line) && !is_verdict() && message.outline().shown(offset).is_none() {
            let binding = binding::beside(message, offset, offset, ask);
            let answer = Err(binding::disagreement(offset));
            return Some(Candidate { offset, binding, standing: Standing::Plain, answer });
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
    let word: String =
        word.map(|c| if matches!(c, ' ' | '-') { '_' } else { c.to_ascii_uppercase() }).collect();
    rest.trim_start_matches(['*', '_', ' ']).starts_with(':')
        && DENIALS.iter().any(|denial| word.starts_with(denial))
}

fn strip_word<'l>(line: &'l str, word: &str) -> Option<&'l str> {
    let (first, rest) = line.split_at_checked(word.len())?;
    first.eq_ignore_ascii_case(word).then_some(rest)
}

/// The verdict lines that are said, with the word of each.
fn verdict_lines<'m>(message: &'m Message<'_>) -> impl Iterator<Item = (Range<usize>, &'m str)> {
    let text = message.text();
    message.outline().bold().filter_map(move |bold| {
        let word = text[bold.clone()].strip_prefix(OPENING)?.strip_suffix("**")?;
        (is_alone(text, &bold) && !is_indented(text, bold.start)).then_some((bold, word.trim()))
    })
}

/// Four columns and more are code to every reader, also where Markdown sees a paragraph that goes on.
fn is_indented(text: &str, start: usize) -> bool {
    let before = &text[..start];
    let blank = &before[before.trim_end_matches(|c: char| c.is_whitespace() && c != '\n').len()..];
    blank.contains('\t') || blank.chars().count() >= 4
}

fn verdict(word: &str, offset: usize) -> Result<Verdict, Violation> {
    match word {
        "APPROVED" => Ok(Verdict::Approved),
        "CHANGES_REQUESTED" => Ok(Verdict::ChangesRequested),
        "NEEDS_DISCUSSION" => Ok(Verdict::NeedsDiscussion),
        _ => {
            let message = format!(
                "the verdict must be APPROVED, CHANGES_REQUESTED or NEEDS_DISCUSSION, not `{}`",
                clip(word)
            );
            Err(Violation::new(ViolationCode::UnknownVerdict, offset, message))
        }
    }
}

/// The review of this message under `verdict`: the body is long, so it is read once per verdict.
fn review_once(
    reviews: &mut Vec<(Verdict, Rc<Review>)>,
    verdict: Verdict,
    message: &Message<'_>,
    ask: &Ask,
) -> Rc<Review> {
    if let Some((_, review)) = reviews.iter().find(|(known, _)| *known == verdict) {
        return Rc::clone(review);
    }
    let review = Rc::new(review(verdict.clone(), message, ask));
    reviews.push((verdict, Rc::clone(&review)));
    review
}

fn review(verdict: Verdict, message: &Message<'_>, ask: &Ask) -> Review {
    let mut review = Review::of(ask.reviewer.clone(), ask.kind, verdict);
    review.summary = body(message);
    for Entry { item, .. } in reader::read(message, 0).0 {
        if item.severity.is_none() && (item.place.is_none() || review.verdict.approves()) {
            // Without a severity a place makes a note, or a finding where changes are requested.
            review.minor.extend(item.place.is_some().then(|| item.note()));
        } else {
            review.findings.push(item.finding("changes", ask));
        }
    }
    if review.verdict == Verdict::ChangesRequested && review.findings.is_empty() {
        review.findings.push(body_finding(&review.summary, ask));
    }
    review
}

fn body_finding(body: &str, ask: &Ask) -> Finding {
    let description = if body.is_empty() { "Changes requested, without a reason." } else { body };
    Finding::of(&ask.reviewer, "changes", Severity::Critical, description)
}

/// The message without its verdict and nonce lines.
fn body(message: &Message<'_>) -> String {
    let text = message.text();
    let mut body = String::with_capacity(text.len());
    let mut from = 0;
    for (range, _) in verdict_lines(message) {
        push_lines(&mut body, &text[from..range.start]);
        from = range.end;
    }
    push_lines(&mut body, &text[from..]);
    body.trim().to_owned()
}

fn push_lines(body: &mut String, text: &str) {
    for line in text.split_inclusive('\n').filter(|line| comment_line(line).is_none()) {
        body.push_str(line);
    }
}
