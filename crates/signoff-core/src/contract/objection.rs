//! What keeps an approval from standing: a refusing verdict in any format, or a blocking finding, anywhere in the answer
//! outside quotes and code. The nonce protects approvals; objections need none.

use std::ops::Range;

use super::binding::{Candidate, Standing};
use super::message::{self, Message};
use super::outline::Shown;
use super::reader::{self, Entry};
use super::{
    Ask, binding, item, json, json_text, labelled, markdown, prefix, retraction, sections, severity, xml,
    xml_tree,
};
use crate::review::{Review, Violation, ViolationCode};

/// The review of a message; an approval only if nothing in the message objects.
pub(super) fn unopposed(review: Review, message: &Message<'_>, ask: &Ask) -> Result<Review, Violation> {
    if !review.verdict.approves() {
        return Ok(review);
    }
    objection(message, ask).map_or(Ok(review), Err)
}

/// The same for a text that may be no answer itself.
pub(super) fn unopposed_text(review: Review, text: &[u8], ask: &Ask) -> Result<Review, Violation> {
    if !review.verdict.approves() {
        return Ok(review);
    }
    message::check_size(text)?;
    unopposed(review, &Message::new(&String::from_utf8_lossy(text)), ask)
}

/// The review of a tool report; an approval only if the text beside it neither objects nor takes it back.
pub(super) fn unopposed_report(review: Review, text: &[u8], ask: &Ask) -> Result<Review, Violation> {
    let review = unopposed_text(review, text, ask)?;
    let text = String::from_utf8_lossy(text);
    let message = Message::new(&text);
    if review.verdict.approves() {
        binding::check_nonces(&message, ask)?;
    }
    match retraction::first_after(&message, 0).filter(|_| review.verdict.approves()) {
        Some(offset) => Err(retraction::violation(offset)),
        None => Ok(review),
    }
}

fn objection(message: &Message<'_>, ask: &Ask) -> Option<Violation> {
    let entries = reader::read(message, 0).0.into_iter().filter(Entry::is_resolved);
    let unresolved = blanked(message.text(), entries.map(|entry| entry.range));
    let message = &Message::new(&unresolved);
    let candidates = match candidates(message, ask) {
        Ok(candidates) => candidates,
        Err(violation) => return Some(violation),
    };
    if let Err(violation) =
        binding::check_candidates(candidates.iter().filter(|one| is_outside(message, one)), ask)
    {
        return Some(violation);
    }
    // Where the approval is fenced, or the refusal has the nonce, a refusal in a fence is no example.
    let is_fenced = |one: &Candidate| message.outline().shown(one.offset) == Some(Shown::Code);
    let fenced = candidates.iter().any(|one| one.standing.is_said() && approves(one) && is_fenced(one));
    let counts = |one: &Candidate| {
        is_outside(message, one) || (is_fenced(one) && (fenced || one.binding.carries(ask)))
    };
    let refusal = candidates.iter().find(|one| refuses(one) && counts(one));
    refusal.map(|one| opposed(one.offset)).or_else(|| in_prose(message, ask))
}

/// What each format finds. Severities without a place are read by [`in_prose`].
fn candidates(message: &Message<'_>, ask: &Ask) -> Result<Vec<Candidate>, Violation> {
    let is_object = |one: &Candidate| message.text()[one.offset..].starts_with('{');
    let mut found = severity::candidates(message, ask)?;
    found.retain(|one| one.standing != Standing::Denial || is_object(one));
    found.extend(xml::candidates_or_prefix(message, ask)?);
    found.extend(markdown::candidates(message, ask)?);
    // A list of issues below the bar is read above, and is no denial.
    let accepted: Vec<usize> = found.iter().filter(|one| approves(one)).map(|one| one.offset).collect();
    let json = json::candidates(message, ask)?;
    found.extend(
        json.into_iter().filter(|one| !one.standing.only_doubts() || !accepted.contains(&one.offset)),
    );
    Ok(found)
}

fn approves(candidate: &Candidate) -> bool {
    candidate.answer.as_ref().is_ok_and(|review| review.verdict.approves())
}

fn opposed(offset: usize) -> Violation {
    let message = "the answer approves, and elsewhere refuses or names a blocking finding";
    Violation::new(ViolationCode::Disagreement, offset, message)
}

/// Whether a candidate speaks against the work, however it is bound.
fn refuses(candidate: &Candidate) -> bool {
    match candidate.standing {
        Standing::Plain | Standing::Fragment => match &candidate.answer {
            Ok(review) => !review.verdict.approves(),
            Err(violation) => is_refusal(violation.code),
        },
        Standing::Denial => true,
        Standing::Remark | Standing::Quoted | Standing::Doubt => false,
    }
}

/// Whether an answer that breaks its contract in this way still refuses.
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

/// Whether it stands outside code, and is no line of a string in a JSON text.
fn is_outside(message: &Message<'_>, candidate: &Candidate) -> bool {
    let shown = message.outline().shown(candidate.offset);
    !matches!(shown, Some(Shown::Code | Shown::Diff)) && !message.is_inside_json(candidate.offset)
}

/// A blocking finding, or a line `ISSUES: …`, outside the machine-readable parts of the message.
fn in_prose(message: &Message<'_>, ask: &Ask) -> Option<Violation> {
    let prose = prose(message);
    let prose = Message::new(&prose);
    let blocks =
        |entry: &Entry| entry.item.severity.is_some_and(|severity| ask.fail_on.is_reached_by(severity));
    let finding = reader::read(&prose, 0).0.iter().any(blocks).then_some(0);
    let finding = finding.or_else(|| paragraph_below_label(&prose, ask));
    let finding = finding.or_else(|| labelled::first_blocking(&prose, ask));
    let refusal = || prefix::issues_line(&prose).or_else(|| retraction::first_anywhere(&prose));
    finding.or_else(refusal).map(opposed)
}

/// The first paragraph below a heading such as `### Critical issues` that does not say that there are none.
fn paragraph_below_label(prose: &Message<'_>, ask: &Ask) -> Option<usize> {
    let mut below_label = false;
    let mut start = 0;
    for line in prose.text().split_inclusive('\n') {
        let at = start + (line.len() - line.trim_start().len());
        start += line.len();
        let bare = line.trim();
        if bare.is_empty() || prose.outline().shown(at).is_some() {
            continue;
        }
        let is_text = !item::is_heading(bare) && !prose.outline().has_item_at(at);
        if below_label && is_text && !sections::says_none(bare) {
            return Some(at);
        }
        below_label = item::label(bare).is_some_and(|severity| ask.fail_on.is_reached_by(severity));
    }
    None
}

/// Whether a text beside an approval, such as a summary, names a blocking finding or contradicts the approval.
pub(super) fn is_in(text: &str, ask: &Ask) -> bool {
    retraction::is_stated_in(text) || is_in_note(text, ask)
}

/// Whether a minor note states a severity that blocks, or refuses the work.
pub(super) fn is_in_note(text: &str, ask: &Ask) -> bool {
    in_prose(&Message::new(text), ask).is_some()
}

/// The message with white space in the place of JSON texts, review elements and HTML tags.
fn prose(message: &Message<'_>) -> String {
    let text = message.text();
    let is_answer = |json: &json_text::JsonText| json.value.is_ok() && text[json.range.clone()].contains('{');
    let json = json_text::scan(text).filter(is_answer).map(|json| json.range);
    let whole = xml_tree::scan(text).filter(|(_, attempt)| attempt.root.is_ok());
    let elements = whole.map(|(start, attempt)| start..start + attempt.length);
    let mut prose = blanked(text, json.chain(elements)).into_bytes();
    blank_tags(&mut prose, message);
    String::from_utf8(prose).unwrap_or_default()
}

/// The text with white space in the place of some parts. Lines stay where they are.
fn blanked(text: &str, ranges: impl Iterator<Item = Range<usize>>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in ranges {
        for byte in bytes[range].iter_mut().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Makes lines of their own of what stands between HTML tags.
fn blank_tags(bytes: &mut [u8], message: &Message<'_>) {
    let text = message.text();
    let mut from = 0;
    while let Some(start) = text[from..].find('<').map(|at| from + at) {
        from = start + 1;
        let is_tag = text[from..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        let Some(end) = text[from..].find(['<', '>']).map(|at| from + at).filter(|_| is_tag) else {
            continue;
        };
        if text[end..].starts_with('>') && message.outline().shown(start) == Some(Shown::Html) {
            bytes[start..end].fill(b' ');
            bytes[end] = b'\n';
        }
    }
}
