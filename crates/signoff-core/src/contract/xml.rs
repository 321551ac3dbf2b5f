//! `<spec-review>` and `<code-review>`, fenced or not, with the prefix words as the fallback.

use std::rc::Rc;

use super::Ask;
use super::binding::{Binding, Candidate, MAX_CANDIDATES, Standing, clip, too_many};
use super::message::Message;
use super::prefix;
use super::xml_tree::{self, Attempt, Element};
use crate::review::{
    Confidence, Finding, Note, Review, ReviewerKind, Severity, Verdict, Violation, ViolationCode,
};

pub(super) const NOTHING: &str =
    "there is no review element, and the message does not start with APPROVED: or ISSUES:";

const ROOTS: [&str; 2] = ["spec-review", "code-review"];

/// The element a reviewer of this kind answers with.
pub(super) fn root(kind: ReviewerKind) -> &'static str {
    match kind {
        ReviewerKind::Spec => "spec-review",
        ReviewerKind::Code | ReviewerKind::Security | ReviewerKind::Tests | ReviewerKind::General => {
            "code-review"
        }
    }
}

/// The XML answers, or the prefix answer of a message that has none at all: a broken XML answer is a
/// violation, not a reason to look for another one.
pub(super) fn candidates_or_prefix(message: &Message<'_>, ask: &Ask) -> Result<Vec<Candidate>, Violation> {
    let found = candidates(message, ask)?;
    if found.is_empty() { prefix::candidates(message, ask) } else { Ok(found) }
}

pub(super) fn candidates(message: &Message<'_>, ask: &Ask) -> Result<Vec<Candidate>, Violation> {
    let text = message.text();
    let mut found = Vec::new();
    let mut from = 0;
    for start in starts(text) {
        if start < from {
            continue;
        }
        if found.len() >= MAX_CANDIDATES {
            return Err(too_many(start));
        }
        let attempt = xml_tree::read(&text[start..], start);
        // At least past the opening, so that what broke at its first byte is not read again.
        from = start + attempt.length.max(1);
        found.extend(candidate(attempt, start, message, ask));
    }
    Ok(found)
}

/// Where an opening tag of either root begins, in order.
fn starts(text: &str) -> Vec<usize> {
    let opens = |root: &&str, at: usize| {
        let rest = &text[at + 1 + root.len()..];
        rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || matches!(c, '>' | '/'))
    };
    let mut starts: Vec<usize> = Vec::new();
    for root in ROOTS {
        let tag = format!("<{root}");
        starts.extend(text.match_indices(&tag).map(|(at, _)| at).filter(|at| opens(&root, *at)));
    }
    starts.sort_unstable();
    starts
}

fn candidate(attempt: Attempt, start: usize, message: &Message<'_>, ask: &Ask) -> Option<Candidate> {
    let end = attempt.root.is_ok().then_some(start + attempt.length);
    let quoted = message.outline().quotes(message.text(), start, end);
    if quoted && end.is_none() {
        return None;
    }
    let attribute = |name: &str| {
        attempt.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim().to_owned())
    };
    let binding = Binding { nonce: attribute("nonce"), commit: attribute("commit") };
    let standing = if quoted { Standing::Quoted } else { Standing::Plain };
    let answer = attempt.root.and_then(|root| review(&root, start, ask)).map(Rc::new);
    Some(Candidate { offset: start, binding, standing, answer })
}

fn review(element: &Element, offset: usize, ask: &Ask) -> Result<Review, Violation> {
    if element.name != root(ask.kind) {
        let message = format!("a <{}> was asked for, not a <{}>", root(ask.kind), clip(&element.name));
        return Err(Violation::new(ViolationCode::Malformed, offset, message));
    }
    let mut review = Review::of(ask.reviewer.clone(), ask.kind, verdict(element, offset, ask.kind)?);
    review.confidence = confidence(element);
    review.findings = element.descendants("issue").into_iter().map(|issue| finding(issue, ask)).collect();
    review.minor = element.descendants("note").into_iter().map(note).collect();
    review.checked = element
        .children("checked")
        .flat_map(|checked| checked.children("item"))
        .map(|item| item.text.trim().to_owned())
        .collect();
    review.summary = element.child_text("summary").unwrap_or_default();
    if review.verdict == Verdict::ChangesRequested && review.findings.is_empty() {
        let message = "the verdict is ISSUES, but no <issue> is listed";
        return Err(Violation::new(ViolationCode::IssuesWithoutIssue, offset, message));
    }
    Ok(review)
}

fn verdict(element: &Element, offset: usize, kind: ReviewerKind) -> Result<Verdict, Violation> {
    let mut verdicts = element.children("verdict");
    let Some(first) = verdicts.next() else {
        return Err(Violation::new(ViolationCode::MissingKey, offset, "the <verdict> is missing"));
    };
    if verdicts.next().is_some() {
        return Err(Violation::new(ViolationCode::DuplicateKey, offset, "there are two <verdict> elements"));
    }
    let word = first.text.trim();
    verdict_word(word, kind).ok_or_else(|| {
        let message = format!("the verdict must be {}, not `{}`", words(kind), clip(word));
        Violation::new(ViolationCode::UnknownVerdict, offset, message)
    })
}

/// The verdict words, which differ by kind: a specification is met or not, there is no minor way to miss it.
pub(super) fn verdict_word(word: &str, kind: ReviewerKind) -> Option<Verdict> {
    match word {
        "APPROVED" => Some(Verdict::Approved),
        "APPROVED_WITH_MINOR" if kind != ReviewerKind::Spec => Some(Verdict::ApprovedWithMinor),
        "ISSUES" => Some(Verdict::ChangesRequested),
        _ => None,
    }
}

pub(super) fn words(kind: ReviewerKind) -> &'static str {
    match kind {
        ReviewerKind::Spec => "APPROVED or ISSUES",
        ReviewerKind::Code | ReviewerKind::Security | ReviewerKind::Tests | ReviewerKind::General => {
            "APPROVED, APPROVED_WITH_MINOR or ISSUES"
        }
    }
}

fn confidence(element: &Element) -> Confidence {
    match element.child_text("confidence").unwrap_or_default().to_ascii_lowercase().as_str() {
        "high" => Confidence::High,
        "medium" => Confidence::Medium,
        "low" => Confidence::Low,
        _ => Confidence::Unstated,
    }
}

fn finding(issue: &Element, ask: &Ask) -> Finding {
    let (file, line) = location(issue);
    let own = issue.text.trim();
    let requirement = issue.child_text("requirement");
    let suggestion = issue.child_text("fix");
    let description = issue
        .child_text("description")
        .or_else(|| (!own.is_empty()).then(|| own.to_owned()))
        .or_else(|| requirement.clone())
        .or_else(|| suggestion.clone())
        .unwrap_or_else(|| "An issue without a description.".to_owned());
    let kind = issue.attribute("type").filter(|kind| !kind.is_empty()).unwrap_or("unstated");
    let severity = Severity::from_word(issue.attribute("severity"));
    Finding { file, line, requirement, suggestion, ..Finding::of(&ask.reviewer, kind, severity, description) }
}

fn note(note: &Element) -> Note {
    let (file, line) = location(note);
    let description = note.child_text("description").unwrap_or_else(|| note.text.trim().to_owned());
    Note { file, line, description }
}

/// The place of an issue or a note. Of a range of lines, the first.
fn location(element: &Element) -> (Option<String>, Option<u32>) {
    let Some(location) = element.children("location").next() else { return (None, None) };
    let file = location.attribute("file").filter(|file| !file.is_empty()).map(str::to_owned);
    let line = location.attribute("line").unwrap_or_default();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    (file, line[..digits].parse().ok())
}
