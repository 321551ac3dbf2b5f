//! Objections: a refusing verdict in any format or a blocking finding, anywhere in the answer outside quotes and
//! code. They reject an approval and count without the nonce.

use std::ops::Range;

use super::candidates::{AnswerCandidate, CandidateKind, Candidates};
use super::markdown_structure::MarkupKind;
use super::message::{self, FinalMessage, lines_from};
use super::reader::{self, ReviewEntry};
use super::wording::{is_listed, without_number};
use super::{
    Parsed, ReviewRequest, candidates, inline_severity, item, json, location, markdown, prefix, retraction, severity,
    wording, xml, xml_tree,
};
use crate::review::{Review, Severity, Violation, ViolationCode};

/// Returns the review. An approval is a violation if anything in the message objects.
pub(super) fn check_objections(review: Review, message: &FinalMessage<'_>, request: &ReviewRequest) -> Parsed<Review> {
    if review.verdict.approves() {
        find_objection(message, request)?;
    }
    Ok(review)
}

/// Checks an approval against a text that need not be an answer itself.
pub(super) fn check_objections_in_text(review: Review, text: &[u8], request: &ReviewRequest) -> Parsed<Review> {
    if !review.verdict.approves() {
        return Ok(review);
    }
    message::check_size(text)?;
    check_objections(review, &FinalMessage::new(&String::from_utf8_lossy(text)), request)
}

/// Returns the review of a tool report. An approval is a violation if the text beside it objects or withdraws it.
pub(super) fn check_objections_to_report(review: Review, text: &[u8], request: &ReviewRequest) -> Parsed<Review> {
    let review = check_objections_in_text(review, text, request)?;
    if !review.verdict.approves() {
        return Ok(review);
    }
    let text = String::from_utf8_lossy(text);
    let message = FinalMessage::new(&text);
    candidates::check_nonces(&message, request)?;
    retraction::first_after(&message, 0).map_or(Ok(review), |offset| Err(retraction::violation(offset)))
}

/// Returns a violation if anything in the message objects.
fn find_objection(message: &FinalMessage<'_>, request: &ReviewRequest) -> Parsed<()> {
    let entries = reader::read(message).into_iter().filter(ReviewEntry::is_resolved);
    let unresolved = blanked(message.text(), entries.map(|entry| entry.range));
    let message = &FinalMessage::new(&unresolved);
    let candidates = candidates(message, request)?;
    candidates::check_candidates(candidates.iter().filter(|candidate| is_outside_code(message, candidate)), request)?;
    // If the approval is fenced or the refusal has the nonce, a fenced refusal is not an example.
    let is_fenced = |candidate: &AnswerCandidate| message.markup_at(candidate.offset) == Some(MarkupKind::Code);
    let fenced = candidates
        .iter()
        .any(|candidate| candidate.kind.is_answer() && candidate.approves() == Some(true) && is_fenced(candidate));
    let counts = |candidate: &AnswerCandidate| {
        is_outside_code(message, candidate)
            || (is_fenced(candidate) && (fenced || candidate.binding.has_nonce_of(request)))
    };
    let refusal = candidates.iter().find(|candidate| refuses(candidate) && counts(candidate));
    refusal.map(|candidate| candidate.offset).or_else(|| in_prose(message, request)).map_or(Ok(()), |offset| {
        let message = "the answer approves, and elsewhere refuses or names a blocking finding";
        Err(Violation::new(ViolationCode::Disagreement, offset, message))
    })
}

/// The candidates of every format. [`in_prose`] reads severities without a location.
fn candidates(message: &FinalMessage<'_>, request: &ReviewRequest) -> Parsed<Candidates> {
    let is_object = |candidate: &AnswerCandidate| message.text()[candidate.offset..].starts_with('{');
    let mut found = severity::candidates(message, request)?;
    found.retain(|candidate| candidate.kind != CandidateKind::Denial || is_object(candidate));
    found.extend(xml::candidates_or_prefix(message, request)?);
    found.extend(markdown::candidates(message, request)?);
    // A list of issues below the threshold was read above and is not a denial.
    let accepted: Vec<usize> =
        found.iter().filter(|candidate| candidate.approves() == Some(true)).map(|candidate| candidate.offset).collect();
    let json = json::candidates(message, request)?;
    found.extend(
        json.into_iter().filter(|candidate| !candidate.kind.is_objection() || !accepted.contains(&candidate.offset)),
    );
    Ok(found)
}

/// Whether a candidate objects to the work, with any binding.
fn refuses(candidate: &AnswerCandidate) -> bool {
    match candidate.kind {
        CandidateKind::Plain | CandidateKind::Fragment => match &candidate.answer {
            Ok(review) => !review.verdict.approves(),
            Err(violation) => REFUSALS.contains(&violation.code),
        },
        CandidateKind::Denial => true,
        CandidateKind::Remark | CandidateKind::Quoted | CandidateKind::Doubt => false,
    }
}

/// The violations with which an answer still refuses.
const REFUSALS: [ViolationCode; 6] = [
    ViolationCode::UnknownVerdict,
    ViolationCode::IssuesWithoutIssue,
    ViolationCode::Disagreement,
    ViolationCode::Malformed,
    ViolationCode::Truncated,
    ViolationCode::MissingKey,
];

/// Whether it is outside code and outside the strings of a JSON text.
fn is_outside_code(message: &FinalMessage<'_>, candidate: &AnswerCandidate) -> bool {
    let markup = message.markup_at(candidate.offset);
    !matches!(markup, Some(MarkupKind::Code | MarkupKind::Diff)) && !message.is_inside_json(candidate.offset)
}

/// Finds a blocking finding or an `ISSUES: …` line outside the machine-readable parts of the message.
fn in_prose(message: &FinalMessage<'_>, request: &ReviewRequest) -> Option<usize> {
    let prose = prose(message);
    let prose = FinalMessage::new(&prose);
    let blocks =
        |entry: &ReviewEntry| entry.item.severity.is_some_and(|severity| request.fail_on.is_reached_by(severity));
    let finding = reader::read(&prose).iter().any(blocks).then_some(0);
    let finding = finding.or_else(|| paragraph_below_label(&prose, request));
    let finding = finding.or_else(|| first_labelled(&prose, request));
    let refusal = || prefix::issues_line(&prose).or_else(|| retraction::first_anywhere(&prose));
    finding.or_else(refusal)
}

/// The first paragraph below a heading such as `### Critical issues`, unless it says that there are none.
fn paragraph_below_label(prose: &FinalMessage<'_>, request: &ReviewRequest) -> Option<usize> {
    let mut below_label = false;
    for line in lines_from(prose.text(), 0) {
        let (at, bare) = (line.text_start(), line.text.trim());
        if bare.is_empty() || prose.markup_at(at).is_some() {
            continue;
        }
        let is_text = !item::is_heading(bare) && !prose.structure().has_item_at(at);
        if below_label && is_text && !wording::says_none(bare) {
            return Some(at);
        }
        below_label = item::heading_severity(bare).is_some_and(|severity| request.fail_on.is_reached_by(severity));
    }
    None
}

/// Whether a text beside an approval, such as a summary, names a blocking finding or contradicts the approval.
pub(super) fn contains_objection(text: &str, request: &ReviewRequest) -> bool {
    retraction::is_stated_in(text) || note_contains_objection(text, request)
}

/// Whether a minor note states a severity that blocks, or refuses the work.
pub(super) fn note_contains_objection(text: &str, request: &ReviewRequest) -> bool {
    in_prose(&FinalMessage::new(text), request).is_some()
}

/// The message with JSON texts, review elements and HTML tags replaced by white space.
fn prose(message: &FinalMessage<'_>) -> String {
    let text = message.text();
    let is_answer = |json: &json::JsonText| json.value.is_ok() && text[json.range.clone()].contains('{');
    let json = json::scan(text).filter(is_answer).map(|json| json.range);
    let mut prose = blanked(text, json.chain(xml_tree::complete_elements(text))).into_bytes();
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
        if text[end..].starts_with('>') && message.markup_at(start) == Some(MarkupKind::Html) {
            bytes[start..end].fill(b' ');
            bytes[end] = b'\n';
        }
    }
}

/// The first line in which one part is only a label whose severity reaches the threshold and another part describes it:
/// `src/a.rs:6: critical: …`, `P1: …`, `Must fix: …`, `| 🔴 Critical | src/a.rs | … |`, `**Severity:** Important`. A
/// known finding or a location with a state such as `not fixed` counts too.
fn first_labelled(prose: &FinalMessage<'_>, request: &ReviewRequest) -> Option<usize> {
    let text = prose.text();
    // Whether the current table has a severity column.
    let mut graded = false;
    lines_from(text, 0).find_map(|source_line| {
        let at = source_line.text_start();
        let line = LabelledLine::new(source_line.text.trim());
        let is_row = line.text.starts_with('|');
        graded &= is_row;
        let below = text[source_line.range().end..].split('\n').next().unwrap_or_default().trim();
        let is_header = is_row && is_delimiter(below);
        let is_prose = |part: usize| prose.markup_at(at + part).is_none();
        let blocks = !is_header && is_prose(0) && line.blocks(graded, is_prose, request);
        graded |= is_row && line.parts.iter().any(|part| names_severity(&line.text[part.clone()]));
        blocks.then_some(at)
    })
}

/// Whether a line is the delimiter row of a table: `|---|:--|`.
fn is_delimiter(line: &str) -> bool {
    line.contains("--") && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

/// A part that states a severity.
struct SeverityLabel {
    part: usize,
    severity: Severity,
}

/// A line and its parts: the text between separators, without the signs around it.
struct LabelledLine {
    text: String,
    parts: Vec<Range<usize>>,
    /// The first part that contains a letter.
    lead: usize,
}

const SEPARATORS: [char; 10] = ['|', ':', '[', ']', '(', ')', '—', '–', '*', '_'];

impl LabelledLine {
    fn new(line: &str) -> Self {
        // A dash between blanks, with the same number of bytes.
        let text = line.replace(" - ", "—");
        let mut parts = Vec::new();
        let mut start = 0;
        for part in text.split_inclusive(SEPARATORS) {
            let bare = part.trim_start_matches(|c: char| !c.is_alphanumeric());
            let begin = start + (part.len() - bare.len());
            let length = bare.trim_end_matches(|c: char| !c.is_alphanumeric()).len();
            parts.extend((length > 0).then_some(begin..begin + length));
            start += part.len();
        }
        let has_letter = |part: &Range<usize>| text[part.clone()].contains(char::is_alphabetic);
        let lead = parts.iter().position(has_letter).unwrap_or_default();
        Self { text, parts, lead }
    }

    fn part(&self, index: usize) -> Option<&str> {
        self.parts.get(index).map(|part| &self.text[part.clone()])
    }

    fn blocks(&self, graded: bool, is_prose: impl Fn(usize) -> bool, request: &ReviewRequest) -> bool {
        let label = |part: usize| {
            let weak = || self.weak_label(part).filter(|_| is_prose(self.parts[part].start));
            Some(SeverityLabel { part, severity: self.label(part, graded).or_else(weak)? })
        };
        let labels: Vec<SeverityLabel> = (0..self.parts.len()).filter_map(label).collect();
        let worst = labels.iter().map(|label| label.severity).max();
        let is_below = worst.is_some_and(|severity| !request.fail_on.is_reached_by(severity));
        let labelled = worst.is_some() && self.is_described(&labels) && !self.is_negated(&labels);
        !is_below && (labelled || self.is_open(request)) && !wording::reports_fixed(&self.text)
    }

    /// The severity of a part that can only be a label: `critical`, or any other severity after `Severity:` or in a
    /// severity column.
    fn label(&self, index: usize, graded: bool) -> Option<Severity> {
        const LABELS: [&str; 7] = ["critical", "blocker", "blocking", "severe", "p0", "p1", "must fix"];
        let part = without_number(self.part(index)?);
        if LABELS.iter().any(|label| label.eq_ignore_ascii_case(part)) {
            return Some(Severity::Critical);
        }
        let named = || index.checked_sub(1).and_then(|index| self.part(index)).is_some_and(names_severity);
        parse_severity(part).filter(|_| graded || named())
    }

    /// The severity of a part with a word such as `high` in the position of a label: at the start of the line, in
    /// brackets, as `HIGH:`, or as `— Important —`. A heading is not a label; it applies to the lines below it.
    fn weak_label(&self, index: usize) -> Option<Severity> {
        let part = without_number(self.part(index)?);
        let last = part.rsplit(' ').next().unwrap_or_default();
        let severity = inline_severity::severity_word(last).or_else(|| parse_severity(part))?;
        let (before, after) = (self.gap(index), self.gap(index + 1));
        let shouted = last.bytes().all(|byte| byte.is_ascii_uppercase()) && after.starts_with(':');
        let of_problem = || index.checked_sub(1).and_then(|index| self.part(index)).is_some_and(wording::names_problem);
        let bracketed = before.contains('[') || (before.contains('(') && of_problem());
        let bracketed = bracketed && after.starts_with([']', ')', '*', '_']);
        let is_separated = |gap: &str| gap.contains(['|', '—', '–', '(', ')']);
        let is_severity_cell = matches!(part, "Important" | "Major") && is_separated(before) && is_separated(after);
        let bare = parse_severity(part).is_some() && (index == self.lead || bracketed || is_severity_cell);
        ((shouted || bare) && item::heading_severity(&self.text).is_none()).then_some(severity)
    }

    /// The text between a part and the one before it.
    fn gap(&self, index: usize) -> &str {
        let start = index.checked_sub(1).and_then(|index| self.parts.get(index)).map_or(0, |part| part.end);
        let end = self.parts.get(index).map_or(self.text.len(), |part| part.start);
        &self.text[start..end]
    }

    /// Whether the line describes the label, or states that the label is the severity of something above it.
    fn is_described(&self, labels: &[SeverityLabel]) -> bool {
        let is_label = |index: &usize| labels.binary_search_by_key(index, |label| label.part).is_ok();
        let mut others = (0..self.parts.len()).filter(|index| !is_label(index));
        others.any(|index| {
            let part = self.part(index).unwrap_or_default();
            if names_severity(part) { labels.len() == 1 } else { part.contains(char::is_alphabetic) }
        }) || labels.iter().any(|label| self.part(label.part).is_some_and(|part| part.contains(", ")))
    }

    /// Whether a part says that there is nothing or that it is done: `Critical: 0, Important: 0`, `| … | Fixed |`.
    fn is_negated(&self, labels: &[SeverityLabel]) -> bool {
        let denies = |part: &str| {
            inline_severity::says_nothing(part)
                || wording::is_commentary(part)
                || is_listed(without_number(part), wording::DONE)
        };
        let counted = |label: &SeverityLabel| {
            let next = self.part(label.part + 1).and_then(|part| part.split(',').next());
            next.is_some_and(inline_severity::says_nothing)
        };
        self.parts.iter().any(|part| denies(&self.text[part.clone()])) || labels.iter().all(counted)
    }

    /// Whether the line names a location or a known finding and gives it an unresolved state.
    fn is_open(&self, request: &ReviewRequest) -> bool {
        const OPEN: &str = "open|still open|still there|still present|unresolved|unfixed|\
            not fixed|not resolved|not addressed";
        let parts = || (0..self.parts.len()).filter_map(|index| self.part(index));
        let is_state = |part: &str| OPEN.split('|').any(|state| state.eq_ignore_ascii_case(part));
        let is_below =
            |part: &str| parse_severity(part).is_some_and(|severity| !request.fail_on.is_reached_by(severity));
        request.fail_on.is_reached_by(Severity::Critical)
            && parts().any(is_state)
            && !parts().any(is_below)
            && (wording::contains_finding_id(&self.text) || location::find(&self.text).is_some())
    }
}

/// The severity of a part that is only its word, perhaps with a noun: `High`, `Medium severity`, `P2`.
fn parse_severity(part: &str) -> Option<Severity> {
    let (word, noun) = part.split_once([' ', '-']).unwrap_or((part, "severity"));
    // A critical priority is a label of its own.
    let priority = Severity::from_priority(word).filter(|severity| *severity != Severity::Critical);
    let severity = priority.or_else(|| inline_severity::severity_word(word));
    severity.filter(|_| is_listed(noun, "severity priority issue bug finding"))
}

/// Whether a part ends with the name of the next one: `Severity`, `The key is wrong. Severity`.
fn names_severity(part: &str) -> bool {
    let last = part.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    is_listed(last, "severity priority")
}
