//! Objections: a refusing verdict in any format or a blocking finding, anywhere in the answer outside quotes and
//! code. They reject an approval and count without the nonce.

use std::ops::Range;

use super::candidates::{AnswerCandidate, CandidateKind};
use super::markdown_structure::MarkupKind;
use super::message::{self, FinalMessage};
use super::reader::{self, ReviewEntry};
use super::{
    ReviewRequest, candidates, item, json, json_text, labelled, markdown, prefix, retraction, sections, severity, xml,
    xml_tree,
};
use crate::review::{Review, Violation, ViolationCode};

/// Returns the review. An approval is a violation if anything in the message objects.
pub(super) fn check_objections(
    review: Review,
    message: &FinalMessage<'_>,
    ask: &ReviewRequest,
) -> Result<Review, Violation> {
    if !review.verdict.approves() {
        return Ok(review);
    }
    objection(message, ask).map_or(Ok(review), Err)
}

/// Checks an approval against a text that need not be an answer itself.
pub(super) fn check_objections_in_text(review: Review, text: &[u8], ask: &ReviewRequest) -> Result<Review, Violation> {
    if !review.verdict.approves() {
        return Ok(review);
    }
    message::check_size(text)?;
    check_objections(review, &FinalMessage::new(&String::from_utf8_lossy(text)), ask)
}

/// Returns the review of a tool report. An approval is a violation if the text beside it objects or withdraws it.
pub(super) fn check_objections_to_report(
    review: Review,
    text: &[u8],
    ask: &ReviewRequest,
) -> Result<Review, Violation> {
    let review = check_objections_in_text(review, text, ask)?;
    let text = String::from_utf8_lossy(text);
    let message = FinalMessage::new(&text);
    if review.verdict.approves() {
        candidates::check_nonces(&message, ask)?;
    }
    match retraction::first_after(&message, 0).filter(|_| review.verdict.approves()) {
        Some(offset) => Err(retraction::violation(offset)),
        None => Ok(review),
    }
}

fn objection(message: &FinalMessage<'_>, ask: &ReviewRequest) -> Option<Violation> {
    let entries = reader::read(message, 0).0.into_iter().filter(ReviewEntry::is_resolved);
    let unresolved = blanked(message.text(), entries.map(|entry| entry.range));
    let message = &FinalMessage::new(&unresolved);
    let candidates = match candidates(message, ask) {
        Ok(candidates) => candidates,
        Err(violation) => return Some(violation),
    };
    if let Err(violation) =
        candidates::check_candidates(candidates.iter().filter(|one| is_outside_code(message, one)), ask)
    {
        return Some(violation);
    }
    // If the approval is fenced or the refusal has the nonce, a fenced refusal is not an example.
    let is_fenced = |one: &AnswerCandidate| message.structure().markup_at(one.offset) == Some(MarkupKind::Code);
    let fenced = candidates.iter().any(|one| one.kind.is_answer() && approves(one) && is_fenced(one));
    let counts = |one: &AnswerCandidate| {
        is_outside_code(message, one) || (is_fenced(one) && (fenced || one.binding.has_nonce_of(ask)))
    };
    let refusal = candidates.iter().find(|one| refuses(one) && counts(one));
    refusal.map(|one| opposed(one.offset)).or_else(|| in_prose(message, ask))
}

/// The candidates of every format. [`in_prose`] reads severities without a location.
fn candidates(message: &FinalMessage<'_>, ask: &ReviewRequest) -> Result<Vec<AnswerCandidate>, Violation> {
    let is_object = |one: &AnswerCandidate| message.text()[one.offset..].starts_with('{');
    let mut found = severity::candidates(message, ask)?;
    found.retain(|one| one.kind != CandidateKind::Denial || is_object(one));
    found.extend(xml::candidates_or_prefix(message, ask)?);
    found.extend(markdown::candidates(message, ask)?);
    // A list of issues below the bar was read above and is not a denial.
    let accepted: Vec<usize> = found.iter().filter(|one| approves(one)).map(|one| one.offset).collect();
    let json = json::candidates(message, ask)?;
    found.extend(json.into_iter().filter(|one| !one.kind.is_objection() || !accepted.contains(&one.offset)));
    Ok(found)
}

fn approves(candidate: &AnswerCandidate) -> bool {
    candidate.answer.as_ref().is_ok_and(|review| review.verdict.approves())
}

fn opposed(offset: usize) -> Violation {
    let message = "the answer approves, and elsewhere refuses or names a blocking finding";
    Violation::new(ViolationCode::Disagreement, offset, message)
}

/// Whether a candidate objects to the work, with any binding.
fn refuses(candidate: &AnswerCandidate) -> bool {
    match candidate.kind {
        CandidateKind::Plain | CandidateKind::Fragment => match &candidate.answer {
            Ok(review) => !review.verdict.approves(),
            Err(violation) => is_refusal(violation.code),
        },
        CandidateKind::Denial => true,
        CandidateKind::Remark | CandidateKind::Quoted | CandidateKind::Doubt => false,
    }
}

/// Whether an answer with this violation still refuses.
fn is_refusal(code: ViolationCode) -> bool {
    matches!(
        code,
        ViolationCode::UnknownVerdict
            | ViolationCode::IssuesWithoutIssue
            | ViolationCode::Disagreement
            | ViolationCode::Malformed
            | ViolationCode::Truncated
            | ViolationCode::MissingKey
    )
}

/// Whether it is outside code and outside the strings of a JSON text.
fn is_outside_code(message: &FinalMessage<'_>, candidate: &AnswerCandidate) -> bool {
    let shown = message.structure().markup_at(candidate.offset);
    !matches!(shown, Some(MarkupKind::Code | MarkupKind::Diff)) && !message.is_inside_json(candidate.offset)
}

/// Finds a blocking finding or an `ISSUES: …` line outside the machine-readable parts of the message.
fn in_prose(message: &FinalMessage<'_>, ask: &ReviewRequest) -> Option<Violation> {
    let prose = prose(message);
    let prose = FinalMessage::new(&prose);
    let blocks = |entry: &ReviewEntry| entry.item.severity.is_some_and(|severity| ask.fail_on.is_reached_by(severity));
    let finding = reader::read(&prose, 0).0.iter().any(blocks).then_some(0);
    let finding = finding.or_else(|| paragraph_below_label(&prose, ask));
    let finding = finding.or_else(|| labelled::first_blocking(&prose, ask));
    let refusal = || prefix::issues_line(&prose).or_else(|| retraction::first_anywhere(&prose));
    finding.or_else(refusal).map(opposed)
}

/// The first paragraph below a heading such as `### Critical issues`, unless it says that there are none.
fn paragraph_below_label(prose: &FinalMessage<'_>, ask: &ReviewRequest) -> Option<usize> {
    let mut below_label = false;
    let mut start = 0;
    for line in prose.text().split_inclusive('\n') {
        let at = start + (line.len() - line.trim_start().len());
        start += line.len();
        let bare = line.trim();
        if bare.is_empty() || prose.structure().markup_at(at).is_some() {
            continue;
        }
        let is_text = !item::is_heading(bare) && !prose.structure().has_item_at(at);
        if below_label && is_text && !sections::says_none(bare) {
            return Some(at);
        }
        below_label = item::heading_severity(bare).is_some_and(|severity| ask.fail_on.is_reached_by(severity));
    }
    None
}

/// Whether a text beside an approval, such as a summary, names a blocking finding or contradicts the approval.
pub(super) fn contains_objection(text: &str, ask: &ReviewRequest) -> bool {
    retraction::is_stated_in(text) || note_contains_objection(text, ask)
}

/// Whether a minor note states a severity that blocks, or refuses the work.
pub(super) fn note_contains_objection(text: &str, ask: &ReviewRequest) -> bool {
    in_prose(&FinalMessage::new(text), ask).is_some()
}

/// The message with JSON texts, review elements and HTML tags replaced by white space.
fn prose(message: &FinalMessage<'_>) -> String {
    let text = message.text();
    let is_answer = |json: &json_text::JsonText| json.value.is_ok() && text[json.range.clone()].contains('{');
    let json = json_text::scan(text).filter(is_answer).map(|json| json.range);
    let whole = xml_tree::scan(text).filter(|(_, attempt)| attempt.root.is_ok());
    let elements = whole.map(|(start, attempt)| start..start + attempt.length);
    let mut prose = blanked(text, json.chain(elements)).into_bytes();
    blank_tags(&mut prose, message);
    String::from_utf8(prose).unwrap_or_default()
}

/// Replaces the ranges by white space. Line breaks stay.
fn blanked(text: &str, ranges: impl Iterator<Item = Range<usize>>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in ranges {
        for byte in bytes[range].iter_mut().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Puts the text between HTML tags on lines of its own.
fn blank_tags(bytes: &mut [u8], message: &FinalMessage<'_>) {
    let text = message.text();
    let mut from = 0;
    while let Some(start) = text[from..].find('<').map(|at| from + at) {
        from = start + 1;
        let is_tag = text[from..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        let Some(end) = text[from..].find(['<', '>']).map(|at| from + at).filter(|_| is_tag) else {
            continue;
        };
        if text[end..].starts_with('>') && message.structure().markup_at(start) == Some(MarkupKind::Html) {
            bytes[start..end].fill(b' ');
            bytes[end] = b'\n';
        }
    }
}
