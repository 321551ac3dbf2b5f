//! The severity contract: findings as `{severity, message, location}` objects, or as lines with HIGH, MEDIUM or LOW
//! and a `file:line`.
//!
//! There is no verdict word. An answer must state explicitly that nothing was found, or else it is inconclusive.

use std::ops::Range;
use std::rc::Rc;

use serde_json::Value;

use super::candidates::{
    self, AnswerCandidate, Binding, CandidateKind, Candidates, MAX_CANDIDATES, ObjectionSet, too_many,
};
use super::item::{self, ReviewItem};
use super::json::{self, JsonText};
use super::json_value::{self, missing, optional_text, required_text, wrong_type};
use super::location::{self, LocationMention};
use super::message::{FinalMessage, is_alone, lines_from, trimmed};
use super::reader::{self, ReviewEntry};
use super::wording::{is_listed, without_number, words};
use super::{Parsed, ReviewRequest};
use super::{inline_severity, retraction, wording};
use crate::review::{Finding, Review, Severity, Verdict, Violation, ViolationCode};

pub(super) const NO_ANSWER_MESSAGE: &str = "there is no finding, and no `[]`, `{\"issues\": []}` or line `NO ISSUES` \
     that says so";

const CLEAN: [&str; 4] = ["NO ISSUES", "No issues.", "No issues found.", "Plan looks good to proceed."];

/// The kind of a finding without a stated kind.
const KIND: &str = "issue";

pub(super) fn candidates(message: &FinalMessage<'_>, request: &ReviewRequest) -> Parsed<Candidates> {
    let mut found: Vec<AnswerCandidate> = Vec::new();
    let mut taken: Vec<Range<usize>> = Vec::new();
    let mut objections = ObjectionSet::default();
    for json in json::scan(message.text()) {
        if found.len() >= MAX_CANDIDATES {
            return Err(too_many(json.range.start));
        }
        if let Some(shape) = JsonShape::classify(&json) {
            found.extend(shape.candidate(&json, message, request));
            insert_range(&mut taken, json.range);
        } else {
            objections.insert(json.objection(message), request);
        }
    }
    let lines = line_candidates(message, &taken, request)?;
    found.extend(lines.into_iter().filter(|line| !repeats_json(line, &found, request)).collect::<Candidates>());
    found.extend(objections.first);
    retraction::add_retractions(&mut found, message, request);
    found.sort_by_key(|candidate| candidate.offset);
    Ok(found)
}

/// Adds a range to ordered, disjoint ranges. A broken text may contain others.
fn insert_range(taken: &mut Vec<Range<usize>>, range: Range<usize>) {
    match taken.last_mut() {
        Some(last) if range.start < last.end => last.end = last.end.max(range.end),
        Some(_) | None => taken.push(range),
    }
}

/// Whether a range touches none of ordered, disjoint ranges.
fn is_free(range: &Range<usize>, taken: &[Range<usize>]) -> bool {
    let next = taken.partition_point(|taken| taken.end <= range.start);
    taken.get(next).is_none_or(|taken| range.end <= taken.start)
}

/// Whether the findings in lines repeat those in JSON.
fn repeats_json(line: &AnswerCandidate, json: &[AnswerCandidate], request: &ReviewRequest) -> bool {
    let is_approval = |candidate: &AnswerCandidate| {
        let has_findings = candidate.answer.as_ref().is_ok_and(|review| !review.findings.is_empty());
        candidate.approves().filter(|_| has_findings && !candidate.kind.is_quoted_or_fragment())
    };
    !line.binding.has_nonce_of(request)
        && is_approval(line)
            .is_some_and(|approves| json.iter().any(|candidate| is_approval(candidate) == Some(approves)))
}

/// The shape of a JSON text in this contract.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonShape {
    /// An object with `issues`, or an array of objects that look like issues.
    Issues,
    Empty,
    /// An issue outside any list: part of a broken list, or a log line.
    Stray,
    /// A list of objects with other keys.
    Foreign,
}

impl JsonShape {
    fn classify(json: &JsonText) -> Option<Self> {
        let value = json.value.as_ref().ok();
        if let Some(values) = value.and_then(Value::as_array) {
            let is_issue = |value: &Value| value.get("severity").or(value.get("message")).is_some();
            let foreign = values.iter().any(Value::is_object).then_some(Self::Foreign);
            let listed = values.iter().any(is_issue).then_some(Self::Issues).or(foreign);
            return if values.is_empty() { Some(Self::Empty) } else { listed };
        }
        let states = value.and_then(Value::as_object).is_some_and(json_value::states_severity);
        let states = states && !json.seen.has("verdict");
        let stray = (json.seen.has("severity") || states).then_some(Self::Stray);
        if json.seen.has("issues") || json.is_too_deep_object() { Some(Self::Issues) } else { stray }
    }

    fn candidate(
        self,
        json: &JsonText,
        message: &FinalMessage<'_>,
        request: &ReviewRequest,
    ) -> Option<AnswerCandidate> {
        let offset = json.range.start;
        let alone = is_alone(message.text(), &json.range);
        let kind = json.candidate_kind(message)?;
        let fenced = json.is_fenced(message);
        let kind = match self {
            // A partial answer in a fence is more likely sample data. A verdict takes precedence.
            Self::Issues if kind == CandidateKind::Plain && fenced && is_data(&json.value) => CandidateKind::Remark,
            Self::Issues => kind,
            Self::Foreign if kind.is_quoted_or_fragment() => return None,
            Self::Foreign if !fenced => CandidateKind::Denial,
            Self::Foreign if !states_severity(&json.value) => return None,
            Self::Foreign => CandidateKind::Remark,
            // `[]` is common in code and prose. It is an answer only if it is alone on its line.
            Self::Empty if !alone || kind.is_quoted_or_fragment() => return None,
            Self::Empty => CandidateKind::Remark,
            Self::Stray if kind.is_quoted_or_fragment() && json.value.is_ok() && json.enclosing_error.is_none() => {
                return None;
            }
            Self::Stray if fenced => CandidateKind::Remark,
            Self::Stray => CandidateKind::Denial,
        };
        let mut binding = json.binding();
        if binding.nonce.is_none() && alone {
            let beside = beside_fence(message, &json.range, request);
            binding = Binding { nonce: beside.nonce, commit: binding.commit.or(beside.commit) };
        }
        let answer = match self {
            Self::Stray => Err(stray(json)),
            Self::Foreign => {
                let message = "a list of objects without `severity` and `message` is not a list of issues";
                Err(Violation::new(ViolationCode::Malformed, offset, message))
            }
            Self::Issues | Self::Empty => {
                json.unambiguous().and_then(|value| parse_review(value, offset, request)).map(Rc::new)
            }
        };
        Some(AnswerCandidate { offset, binding, kind, answer })
    }
}

/// Whether a complete text has the shape of an answer, but neither a severity nor an empty list.
fn is_data(value: &Parsed<Value>) -> bool {
    let Ok(value) = value else { return false };
    match value.as_object() {
        Some(object) => object.get("issues").and_then(Value::as_array).is_none(),
        None => value.as_array().is_some_and(|values| values.iter().all(|value| value.get("severity").is_none())),
    }
}

fn states_severity(value: &Parsed<Value>) -> bool {
    let values = value.as_ref().ok().and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_object).any(json_value::states_severity)
}

fn stray(json: &JsonText) -> Violation {
    let offset = json.range.start;
    if json.enclosing_error == Some(ViolationCode::Truncated) {
        return Violation::new(ViolationCode::Truncated, offset, "the list of issues ends before it is complete");
    }
    let message = "the issue is outside a list; write `[…]` or `{\"issues\": […]}`";
    Violation::new(ViolationCode::Malformed, offset, message)
}

/// The nonce line of a JSON answer. A fence may be between them.
fn beside_fence(message: &FinalMessage<'_>, range: &Range<usize>, request: &ReviewRequest) -> Binding {
    let direct = candidates::adjacent_binding(message, range.start, range.end, request);
    if direct.nonce.is_some() {
        return direct;
    }
    let text = message.text();
    let is_fence = |line: &str| line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
    let above = trimmed(text, 0..message.line_at(range.start).start).end;
    let below = text.len() - text[message.line_at(range.end).end..].trim_start().len();
    let (above, below) = (message.line_at(above), message.line_at(below));
    if is_fence(&text[above.clone()]) && is_fence(&text[below.clone()]) {
        return candidates::adjacent_binding(message, above.start, below.end, request);
    }
    direct
}

fn parse_review(value: &Value, offset: usize, request: &ReviewRequest) -> Parsed<Review> {
    let listed = match value.as_object() {
        Some(object) => object.get("issues").ok_or_else(|| missing("issues", "an array", offset))?,
        None => value,
    };
    let issues = listed.as_array().ok_or_else(|| match value.as_object() {
        Some(_) => wrong_type("issues", "an array", listed, offset),
        None => Violation::new(ViolationCode::NoVerdict, offset, NO_ANSWER_MESSAGE),
    })?;
    let findings = issues.iter().map(|issue| finding(issue, offset, request)).collect::<Result<_, _>>()?;
    let review = review(findings, request);
    if review.verdict.approves() && denies(value) {
        let message = "no issue in the list counts as a finding, but the object says that the work did not pass";
        return Err(Violation::new(ViolationCode::IssuesWithoutIssue, offset, message));
    }
    Ok(review)
}

/// Whether an object says in the words of another contract that the work did not pass.
fn denies(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    json_value::denial(object, "issues").is_some() || !object.get("verdict").is_none_or(|word| word == "pass")
}

fn finding(value: &Value, offset: usize, request: &ReviewRequest) -> Parsed<Finding> {
    let issue = value.as_object().ok_or_else(|| wrong_type("issues", "an array of objects", value, offset))?;
    let message = required_text(issue, "message", offset)?;
    let (file, line) = optional_text(issue, "location", offset)?.map_or((None, None), location::parse_location);
    let text = |key| json_value::text(issue, key);
    let kind = text("kind").or_else(|| text("type")).filter(|kind| !kind.is_empty());
    let severity = Severity::parse_or_critical(optional_text(issue, "severity", offset)?);
    let finding = Finding::new(&request.reviewer, kind.unwrap_or_else(|| KIND.to_owned()), severity, message.trim());
    Ok(Finding { file, line, suggestion: text("suggestion"), ..finding })
}

/// The review of the findings. The threshold decides the verdict, because this contract has none.
fn review(findings: Vec<Finding>, request: &ReviewRequest) -> Review {
    let blocked = findings.iter().any(|finding| request.fail_on.is_reached_by(finding.severity));
    let verdict = if blocked { Verdict::ChangesRequested } else { Verdict::Approved };
    Review { findings, ..Review::new(request.reviewer.clone(), request.kind, verdict) }
}

/// The finding lines, which form one answer, and each line that says that there are none.
fn line_candidates(message: &FinalMessage<'_>, taken: &[Range<usize>], request: &ReviewRequest) -> Parsed<Candidates> {
    let mut lines = SeverityLines::default();
    let text = message.text();
    // Lines with JSON answers are read as JSON.
    lines.read_listed(message, taken, request);
    for line in lines_from(text, 0) {
        // A line that begins with a severity is separate, even if Markdown adds it to the item above.
        if !is_free(&line.range(), &lines.listed) && !inline_severity::begins_with_severity(line.text) {
            lines.below_label = false;
        } else if is_free(&line.range(), taken) {
            lines.read_line(message, trimmed(text, line.range()), request);
        }
        if lines.clean.len() > MAX_CANDIDATES {
            return Err(too_many(line.range().end));
        }
    }
    Ok(lines.candidates(request))
}

#[derive(Default)]
struct SeverityLines {
    findings: Vec<(usize, Finding)>,
    first: Option<usize>,
    binding: Binding,
    clean: Vec<AnswerCandidate>,
    /// Whether the previous line is a severity heading. A "nothing found" line then refers only to that severity.
    below_label: bool,
    /// Lines that begin with a severity and name no location. Alone they are neither findings nor "nothing found".
    unplaced: Vec<(usize, Finding)>,
    /// The ranges below severity headings that were read as findings.
    listed: Vec<Range<usize>>,
}

impl SeverityLines {
    /// Reads the list items below severity headings, with or without a location, outside the `taken` ranges.
    fn read_listed(&mut self, message: &FinalMessage<'_>, taken: &[Range<usize>], request: &ReviewRequest) {
        // Lists are findings of this contract only below severity headings.
        if !message.text().lines().any(|line| item::heading_severity(line.trim()).is_some()) {
            return;
        }
        for entry in reader::read_labelled(message).into_iter().filter(ReviewEntry::is_announced) {
            let start = entry.range.start;
            if is_free(&(start..start + 1), taken) && !entry.is_commentary() {
                let range = trimmed(message.text(), entry.range.clone());
                self.add_finding(message, &range, entry.item.finding(KIND, request), request);
                insert_range(&mut self.listed, entry.range);
            }
        }
    }

    fn add_finding(
        &mut self,
        message: &FinalMessage<'_>,
        range: &Range<usize>,
        finding: Finding,
        request: &ReviewRequest,
    ) {
        let binding = candidates::adjacent_binding(message, range.start, range.end, request);
        if self.first.is_none() || binding.has_nonce_of(request) {
            self.binding = binding;
        }
        self.first = Some(self.first.map_or(range.start, |first| first.min(range.start)));
        self.findings.push((range.start, finding));
    }

    fn read_line(&mut self, message: &FinalMessage<'_>, line: Range<usize>, request: &ReviewRequest) {
        let text = &message.text()[line.clone()];
        let below_label = self.below_label;
        if !text.is_empty() {
            self.below_label = item::heading_severity(text).is_some();
        }
        if CLEAN.contains(&text) && message.structure().is_plain(&line) {
            let binding = candidates::adjacent_binding(message, line.start, line.end, request);
            let contradicted = is_over_finding(message, &line).then(|| {
                let text = "the answer says that there are no issues, and a list of locations follows";
                Violation::new(ViolationCode::Disagreement, line.start, text)
            });
            let answer = contradicted.map_or_else(|| Ok(Rc::new(review(Vec::new(), request))), Err);
            let clean = AnswerCandidate { offset: line.start, binding, kind: CandidateKind::Remark, answer };
            self.clean.extend((!below_label).then_some(clean));
        } else if let Some((_, word)) = inline_severity::severity(text)
            && message.markup_at(line.start).is_none()
            && message.markup_at(line.start + word.start).is_none()
        {
            self.read_severity(message, line, &word, request);
        }
    }

    fn read_severity(
        &mut self,
        message: &FinalMessage<'_>,
        line: Range<usize>,
        word: &Range<usize>,
        request: &ReviewRequest,
    ) {
        let text = &message.text()[line.clone()];
        let opens = begins_label(&text[..word.start]);
        let unnumbered = without_number(text);
        let item = ReviewItem::parse(message, line.end - unnumbered.len(), unnumbered);
        let Some(item) = item.filter(|_| !wording::is_marked_done(text)) else { return };
        if item.location.is_some() {
            self.add_finding(message, &line, item.finding(KIND, request), request);
        } else if opens && !counts_none(&text[word.end..]) && !self.is_over_list(message, &line) {
            let below = item::heading_severity(text).and_then(|_| text_below(message, &line));
            let finding = item.finding(KIND, request);
            let description = below.unwrap_or_else(|| finding.description.clone());
            self.unplaced.push((line.start, Finding { description, ..finding }));
        }
    }

    /// Whether a line is a severity heading above findings or above a "nothing found" line.
    fn is_over_list(&self, message: &FinalMessage<'_>, line: &Range<usize>) -> bool {
        let text = message.text();
        let below = text.len() - text[line.end..].trim_start().len();
        let next = &text[message.line_at(below)];
        let is_listed = || !is_free(&(below..below + 1), &self.listed);
        item::heading_severity(&text[line.clone()]).is_some()
            && (message.structure().has_item_at(below) || inline_severity::says_nothing(next) || is_listed())
    }

    fn candidates(self, request: &ReviewRequest) -> Vec<AnswerCandidate> {
        let mut found = self.clean;
        if let Some(offset) = self.first {
            let mut findings: Vec<_> = self.findings.into_iter().chain(self.unplaced).collect();
            findings.sort_by_key(|(at, _)| *at);
            let review = review(findings.into_iter().map(|(_, finding)| finding).collect(), request);
            let kind = if review.verdict.approves() { CandidateKind::Remark } else { CandidateKind::Plain };
            let answer = Ok(Rc::new(review));
            found.push(AnswerCandidate { offset, binding: self.binding, kind, answer });
        } else if let Some((offset, _)) = self.unplaced.first() {
            let blocks = self.unplaced.iter().any(|(_, finding)| request.fail_on.is_reached_by(finding.severity));
            let kind = if blocks { CandidateKind::Denial } else { CandidateKind::Doubt };
            let binding = found.first().map(|clean| clean.binding.clone()).unwrap_or_default();
            let message = "a line states a severity without a `file:line`, which contradicts an approval";
            let answer = Err(Violation::new(ViolationCode::Disagreement, *offset, message));
            found.push(AnswerCandidate { offset: *offset, binding, kind, answer });
        }
        found
    }
}

/// The paragraph below a severity heading, as one line.
fn text_below(message: &FinalMessage<'_>, line: &Range<usize>) -> Option<String> {
    let below = message.text()[line.end..].trim_start();
    let text = item::joined(below.lines().take_while(|line| !line.trim().is_empty() && !item::is_heading(line)));
    (!text.is_empty()).then_some(text)
}

/// Whether a list follows directly whose first item begins with a location and states no severity.
fn is_over_finding(message: &FinalMessage<'_>, line: &Range<usize>) -> bool {
    let text = message.text();
    let below = text.len() - text[line.end..].trim_start().len();
    let next = &text[message.line_at(below)];
    let leads = |location: LocationMention| !next[..location.range.start].contains(char::is_alphabetic);
    message.structure().has_item_at(below)
        && location::find(next).is_some_and(leads)
        && inline_severity::severity(next).is_none()
}

/// Whether only a number and the word `severity` come before a stated severity.
fn begins_label(before: &str) -> bool {
    let mut words = before.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    words.all(|word| word.eq_ignore_ascii_case("severity"))
}

/// Whether the line counts no findings: `HIGH: 0`, `LOW: none`, `MEDIUM: no issues`.
fn counts_none(after: &str) -> bool {
    let mut words = words(after);
    let Some(first) = words.next() else { return false };
    let is_thing = |word: &str| is_listed(word, "issue issues findings problems");
    is_listed(first, "0 none nothing nil") || (is_listed(first, "no") && words.next().is_some_and(is_thing))
}
