//! The XML contract: `<spec-review>` and `<code-review>`, fenced or not, with the prefix contract as the fallback.

use std::rc::Rc;

use super::candidates::{AnswerCandidate, Binding, CandidateKind, Candidates, MAX_CANDIDATES, clip, too_many};
use super::message::FinalMessage;
use super::xml_tree::{self, Element, ISSUES, ParsedXml};
use super::{Parsed, ReviewRequest};
use super::{objection, prefix, retraction};
use crate::review::{Finding, Note, Review, ReviewerKind, Severity, Verdict, Violation, ViolationCode};

pub(super) const NO_ANSWER_MESSAGE: &str =
    "there is no review element, and the message does not start with APPROVED: or ISSUES:";

/// The root element for a reviewer of this kind.
pub(super) fn root(kind: ReviewerKind) -> &'static str {
    if kind == ReviewerKind::Spec { "spec-review" } else { "code-review" }
}

/// The XML answers, or the prefix answer if there are none. A broken XML answer is a violation and does not trigger
/// the fallback.
pub(super) fn candidates_or_prefix(message: &FinalMessage<'_>, request: &ReviewRequest) -> Parsed<Candidates> {
    let mut found = candidates(message, request)?;
    let fallback = prefix::candidates(message, request)?;
    if found.is_empty() {
        return Ok(fallback);
    }
    // Beside an XML answer, a prefix counts only if it says the opposite.
    let is_opposed = |words: &AnswerCandidate| {
        let opposite = words.approves().map(|approves| !approves);
        found.iter().any(|xml| xml.approves() == opposite)
    };
    let opposed: Vec<_> = fallback.into_iter().filter(is_opposed).collect();
    found.extend(opposed);
    Ok(found)
}

pub(super) fn candidates(message: &FinalMessage<'_>, request: &ReviewRequest) -> Parsed<Candidates> {
    let mut found = Vec::new();
    for (start, parsed) in xml_tree::scan(message.text()) {
        if found.len() >= MAX_CANDIDATES {
            return Err(too_many(start));
        }
        found.extend(candidate(parsed, start, message, request));
    }
    retraction::add_retractions(&mut found, message, request);
    Ok(found)
}

fn candidate(
    parsed: ParsedXml,
    start: usize,
    message: &FinalMessage<'_>,
    request: &ReviewRequest,
) -> Option<AnswerCandidate> {
    let end = parsed.root.is_ok().then_some(start + parsed.length);
    let quoted = message.structure().is_quoted_answer(message.text(), start, end) || message.is_inside_json(start);
    if quoted && end.is_none() && !parsed.skipped_rest {
        return None;
    }
    let attribute =
        |name: &str| parsed.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim().to_owned());
    let binding = Binding { nonce: attribute("nonce"), commit: attribute("commit") };
    let kind = if quoted && !parsed.skipped_rest { CandidateKind::Quoted } else { CandidateKind::Plain };
    let answer = parsed.root.and_then(|root| review(&root, start, request)).map(Rc::new);
    Some(AnswerCandidate { offset: start, binding, kind, answer })
}

fn review(element: &Element, offset: usize, request: &ReviewRequest) -> Parsed<Review> {
    if element.name != root(request.kind) {
        let message = format!("a <{}> was asked for, not a <{}>", root(request.kind), clip(&element.name));
        return Err(Violation::new(ViolationCode::Malformed, offset, message));
    }
    let mut review = Review::new(request.reviewer.clone(), request.kind, verdict(element, offset, request.kind)?);
    let confidence = element.child_text("confidence").unwrap_or_default();
    review.confidence = confidence.to_ascii_lowercase().parse().unwrap_or_default();
    review.findings = element.descendants("issue").into_iter().map(|issue| finding(issue, request)).collect();
    review.minor = element.descendants("note").into_iter().map(note).collect();
    review.checked = element
        .children("checked")
        .flat_map(|checked| checked.children("item"))
        .map(|item| item.text.trim().to_owned())
        .collect();
    review.summary = element.child_text("summary").unwrap_or_default();
    if review.verdict.approves() && objection::contains_objection(&review.summary, request) {
        return Err(retraction::violation(offset));
    }
    check_unexpected(element, &review, offset)?;
    let blocking = |note: &Note| objection::note_contains_objection(&note.description, request);
    if review.verdict.approves() && review.minor.iter().any(blocking) {
        let message = "the verdict approves, but a note states a severity that blocks";
        return Err(Violation::new(ViolationCode::Disagreement, offset, message));
    }
    if review.verdict == Verdict::ChangesRequested {
        add_unlisted_issues(element, &mut review.findings, request);
    }
    if review.verdict == Verdict::ChangesRequested && review.findings.is_empty() {
        let message = "the verdict is ISSUES, but no <issue> is listed";
        return Err(Violation::new(ViolationCode::IssuesWithoutIssue, offset, message));
    }
    Ok(review)
}

/// Returns a violation if an approval contains an issue or a verdict in an unexpected place.
fn check_unexpected(element: &Element, review: &Review, offset: usize) -> Parsed<()> {
    if review.verdict.approves()
        && let Some(what) = unlisted_issue(element)
    {
        let message = format!("the verdict approves, but `{}` reads like an issue", clip(&what));
        return Err(Violation::new(ViolationCode::Disagreement, offset, message));
    }
    if review.verdict.approves() && element.descendants("verdict").len() > 1 {
        let message = "there is another <verdict> inside the review";
        return Err(Violation::new(ViolationCode::DuplicateKey, offset, message));
    }
    Ok(())
}

/// The text in the place of an issue that is not an `<issue>`.
fn unlisted_issue(element: &Element) -> Option<String> {
    let of_issues = element.name == ISSUES;
    if of_issues && !says_none(&element.text) {
        return Some(element.text.trim().to_owned());
    }
    element.children.iter().find_map(|child| {
        let lost = if of_issues { is_unlisted(child) } else { is_stray_issue(child) };
        if lost && child.descendants("issue").is_empty() {
            return Some(format!("<{}>", child.name));
        }
        unlisted_issue(child)
    })
}

/// Adds a finding for each text in the place of an issue that is not an `<issue>`.
fn add_unlisted_issues(element: &Element, findings: &mut Vec<Finding>, request: &ReviewRequest) {
    let mut add = |severity: Severity, text: String| {
        if !says_none(&text) {
            findings.push(Finding::new(&request.reviewer, "unstated", severity, text));
        }
    };
    let of_issues = element.name == ISSUES;
    if of_issues {
        add(Severity::Critical, element.text.trim().to_owned());
    }
    for child in &element.children {
        let lost = if of_issues { is_unlisted(child) } else { is_stray_issue(child) };
        if lost && child.descendants("issue").is_empty() {
            add(Severity::parse_or_critical(child.attribute("severity")), child.all_text());
        }
    }
    element.children.iter().for_each(|child| add_unlisted_issues(child, findings, request));
}

/// Whether a child of the issue list has content without being an issue or a note.
fn is_unlisted(child: &Element) -> bool {
    let listed = matches!(child.name.as_str(), "issue" | "minor" | "note");
    let blank = says_none(&child.text) && child.children.is_empty() && child.attribute("severity").is_none();
    !listed && !blank
}

/// Whether a note or an unknown element states a severity above minor.
fn is_stray_issue(child: &Element) -> bool {
    let severity = child.attribute("severity").map(|word| Severity::parse_or_critical(Some(word)));
    (!child.is_known() || child.name == "note") && severity.is_some_and(|severity| severity > Severity::Minor)
}

/// Whether a text in a list of issues says that there are none.
fn says_none(text: &str) -> bool {
    const NONE: [&str; 7] = ["", "none", "none found", "no issues", "no issues found", "nothing", "n/a"];
    let word = text.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    NONE.contains(&word.as_str())
}

fn verdict(element: &Element, offset: usize, kind: ReviewerKind) -> Parsed<Verdict> {
    let mut verdicts = element.children("verdict");
    let missing = || Violation::new(ViolationCode::MissingKey, offset, "the <verdict> is missing");
    let first = verdicts.next().ok_or_else(missing)?;
    if verdicts.next().is_some() {
        return Err(Violation::new(ViolationCode::DuplicateKey, offset, "there are two <verdict> elements"));
    }
    let word = first.text.trim();
    let bare = !first.has_unknown_child && first.children.is_empty();
    verdict_word(word, kind).filter(|_| bare).ok_or_else(|| {
        let message = format!("the verdict must be {}, not `{}`", words(kind), clip(word));
        Violation::new(ViolationCode::UnknownVerdict, offset, message)
    })
}

/// Parses a verdict word. A spec review has no `APPROVED_WITH_MINOR`.
pub(super) fn verdict_word(word: &str, kind: ReviewerKind) -> Option<Verdict> {
    match word {
        "APPROVED" => Some(Verdict::Approved),
        "APPROVED_WITH_MINOR" if kind != ReviewerKind::Spec => Some(Verdict::ApprovedWithMinor),
        "ISSUES" => Some(Verdict::ChangesRequested),
        _ => None,
    }
}

pub(super) fn words(kind: ReviewerKind) -> &'static str {
    if kind == ReviewerKind::Spec { "APPROVED or ISSUES" } else { "APPROVED, APPROVED_WITH_MINOR or ISSUES" }
}

fn finding(issue: &Element, request: &ReviewRequest) -> Finding {
    let (file, line) = location(issue);
    let own = issue.text.trim();
    let requirement = issue.child_text("requirement");
    let suggestion = issue.child_text("fix");
    let own = (!own.is_empty()).then(|| own.to_owned());
    let description = match (issue.child_text("description"), own) {
        (Some(description), Some(own)) => Some(format!("{description}\n{own}")),
        (description, own) => description.or(own),
    };
    let description = description
        .or_else(|| requirement.clone())
        .or_else(|| suggestion.clone())
        .unwrap_or_else(|| "An issue without a description.".to_owned());
    let kind = issue.attribute("type").filter(|kind| !kind.is_empty()).unwrap_or("unstated");
    let severity = Severity::parse_or_critical(issue.attribute("severity"));
    Finding { file, line, requirement, suggestion, ..Finding::new(&request.reviewer, kind, severity, description) }
}

fn note(note: &Element) -> Note {
    let (file, line) = location(note);
    let description = note.child_text("description").unwrap_or_else(|| note.text.trim().to_owned());
    Note { file, line, description }
}

/// The location of an issue or a note. Of a range of lines, the first.
fn location(element: &Element) -> (Option<String>, Option<u32>) {
    let Some(location) = element.children("location").next() else { return (None, None) };
    let file = location.attribute("file").filter(|file| !file.is_empty()).map(str::to_owned);
    let line = location.attribute("line").unwrap_or_default();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    (file, line[..digits].parse().ok())
}
