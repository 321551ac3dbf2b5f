//! Findings as `{severity, message, location}` or as lines with HIGH, MEDIUM or LOW and a `file:line`.
//!
//! There is no verdict word: nothing found has to be *said*, or the answer is inconclusive.

use std::ops::Range;
use std::rc::Rc;

use super::Ask;
use super::binding::{self, Binding, Candidate, Doubts, MAX_CANDIDATES, Standing, too_many};
use super::item::{self, Item};
use super::json_text::{self, JsonText};
use super::json_value::{Object, Value, missing, wrong_type};
use super::message::{Message, is_alone, trimmed};
use super::place::{self, Place};
use super::reader::{self, Entry};
use super::{resolved, retraction, stated};
use crate::review::{Finding, Review, Severity, Verdict, Violation, ViolationCode};

pub(super) const NOTHING: &str = "there is no finding, and no `[]`, `{\"issues\": []}` or line `NO ISSUES` \
     that says so";

const CLEAN: [&str; 4] = ["NO ISSUES", "No issues.", "No issues found.", "Plan looks good to proceed."];

/// The kind of a finding whose reviewer named none.
const KIND: &str = "issue";

pub(super) fn candidates(message: &Message<'_>, ask: &Ask) -> Result<Vec<Candidate>, Violation> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut taken: Vec<Range<usize>> = Vec::new();
    let mut doubts = Doubts::default();
    for json in json_text::scan(message.text()) {
        if found.len() >= MAX_CANDIDATES {
            return Err(too_many(json.range.start));
        }
        if let Some(shape) = Shape::of(&json) {
            found.extend(json_candidate(&json, shape, message, ask));
            take(&mut taken, json.range);
        } else {
            doubts.take(json.doubt(message), ask);
        }
    }
    let lines = line_candidates(message, &taken, ask)?;
    found.extend(lines.into_iter().filter(|line| !retells(line, &found, ask)).collect::<Vec<_>>());
    found.extend(doubts.first);
    retraction::add(&mut found, message, ask);
    found.sort_by_key(|candidate| candidate.offset);
    Ok(found)
}

/// Adds a range to ordered, disjoint ones: a broken text may hold others.
fn take(taken: &mut Vec<Range<usize>>, range: Range<usize>) {
    match taken.last_mut() {
        Some(last) if range.start < last.end => last.end = last.end.max(range.end),
        Some(_) | None => taken.push(range),
    }
}

/// Whether findings in lines are the prose to findings in JSON that come to the same.
fn retells(line: &Candidate, json: &[Candidate], ask: &Ask) -> bool {
    let told = |candidate: &Candidate| {
        let review = candidate.answer.as_ref().ok()?;
        (!review.findings.is_empty() && !candidate.standing.is_shown()).then(|| review.verdict.approves())
    };
    !line.binding.carries(ask)
        && told(line).is_some_and(|approves| json.iter().any(|candidate| told(candidate) == Some(approves)))
}

/// What a JSON text is to this contract.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// An object with `issues`, or an array of things that look like issues.
    Issues,
    Empty,
    /// An issue that is in no list: part of a broken one, or a log line.
    Stray,
    /// A list of things in other words.
    Foreign,
}

impl Shape {
    fn of(json: &JsonText) -> Option<Self> {
        if let Ok(Value::Array(values)) = &json.value {
            let is_issue = |value: &Value| matches!(value, Value::Object(one) if one.has("severity") || one.has("message"));
            let foreign = values.iter().any(Value::is_object).then_some(Self::Foreign);
            let listed = values.iter().any(is_issue).then_some(Self::Issues).or(foreign);
            return if values.is_empty() { Some(Self::Empty) } else { listed };
        }
        let states = matches!(&json.value, Ok(Value::Object(object)) if object.states_severity());
        let states = states && !json.seen.has("verdict");
        let stray = (json.seen.has("severity") || states).then_some(Self::Stray);
        if json.seen.has("issues") || json.is_unfathomed() { Some(Self::Issues) } else { stray }
    }
}

fn json_candidate(json: &JsonText, shape: Shape, message: &Message<'_>, ask: &Ask) -> Option<Candidate> {
    let offset = json.range.start;
    let alone = is_alone(message.text(), &json.range);
    let said = json.standing(message)?;
    let fenced = json.is_fenced(message);
    let standing = match shape {
        // Half an answer in a fence is more likely data that is shown: a verdict goes before it.
        Shape::Issues if said == Standing::Plain && fenced && is_data(&json.value) => Standing::Remark,
        Shape::Issues => said,
        Shape::Foreign if said.is_shown() => return None,
        Shape::Foreign if !fenced => Standing::Denial,
        Shape::Foreign if !states_severity(&json.value) => return None,
        Shape::Foreign => Standing::Remark,
        // `[]` is ordinary in code and prose: it answers only where nothing else is on its line.
        Shape::Empty if !alone || said.is_shown() => return None,
        Shape::Empty => Standing::Remark,
        Shape::Stray if said.is_shown() && json.value.is_ok() && json.ruin().is_none() => {
            return None;
        }
        Shape::Stray if fenced => Standing::Remark,
        Shape::Stray => Standing::Denial,
    };
    let mut binding = json.binding();
    if binding.nonce.is_none() && alone {
        let beside = beside_fence(message, &json.range, ask);
        binding = Binding { nonce: beside.nonce, commit: binding.commit.or(beside.commit) };
    }
    let answer = match shape {
        Shape::Stray => Err(stray(json)),
        Shape::Foreign => {
            let message = "a list of objects without `severity` and `message`: nobody knows what it says";
            Err(Violation::new(ViolationCode::Malformed, offset, message))
        }
        Shape::Issues | Shape::Empty => {
            json.unambiguous().and_then(|value| review_of(value, offset, ask)).map(Rc::new)
        }
    };
    Some(Candidate { offset, binding, standing, answer })
}

/// Whether a whole text has the outline of an answer, but nothing that states a severity or an empty list.
fn is_data(value: &Result<Value, Violation>) -> bool {
    match value {
        Ok(Value::Object(object)) => !matches!(object.get("issues"), Some(Value::Array(_))),
        Ok(Value::Array(values)) => {
            !values.iter().any(|value| matches!(value, Value::Object(one) if one.has("severity")))
        }
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_)) | Err(_) => false,
    }
}

fn states_severity(value: &Result<Value, Violation>) -> bool {
    let states = |value: &Value| matches!(value, Value::Object(one) if one.states_severity());
    matches!(value, Ok(Value::Array(values)) if values.iter().any(states))
}

fn stray(json: &JsonText) -> Violation {
    let offset = json.range.start;
    if json.ruin() == Some(ViolationCode::Truncated) {
        return Violation::new(
            ViolationCode::Truncated,
            offset,
            "the list of issues ends before it is complete",
        );
    }
    let message = "an issue stands in no list; write `[…]` or `{\"issues\": […]}`";
    Violation::new(ViolationCode::Malformed, offset, message)
}

/// The nonce line of an answer in JSON. The fence around it is no text between them.
fn beside_fence(message: &Message<'_>, range: &Range<usize>, ask: &Ask) -> Binding {
    let direct = binding::beside(message, range.start, range.end, ask);
    if direct.nonce.is_some() {
        return direct;
    }
    let text = message.text();
    let is_fence = |line: &str| line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
    let above = trimmed(text, 0..message.line_at(range.start).start).end;
    let below = text.len() - text[message.line_at(range.end).end..].trim_start().len();
    let (above, below) = (message.line_at(above), message.line_at(below));
    if is_fence(&text[above.clone()]) && is_fence(&text[below.clone()]) {
        return binding::beside(message, above.start, below.end, ask);
    }
    direct
}

fn review_of(value: &Value, offset: usize, ask: &Ask) -> Result<Review, Violation> {
    let issues = match value {
        Value::Array(issues) => issues,
        Value::Object(object) => match object.get("issues") {
            Some(Value::Array(issues)) => issues,
            Some(other) => return Err(wrong_type("issues", "an array", other, offset)),
            None => return Err(missing("issues", "an array", offset)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {
            return Err(Violation::new(ViolationCode::NoVerdict, offset, NOTHING));
        }
    };
    let findings = issues.iter().map(|issue| finding(issue, offset, ask)).collect::<Result<_, _>>()?;
    let review = review(findings, ask);
    if review.verdict.approves() && denies(value) {
        let message =
            "the list of issues holds none that counts, but the object says that the work did not pass";
        return Err(Violation::new(ViolationCode::IssuesWithoutIssue, offset, message));
    }
    Ok(review)
}

/// Whether an object says in another contract's words that the work did not pass.
fn denies(value: &Value) -> bool {
    let Value::Object(object) = value else { return false };
    let pass = |word: &Value| *word == Value::Text("pass".to_owned());
    object.denial("issues").is_some() || !object.get("verdict").is_none_or(pass)
}

fn finding(value: &Value, offset: usize, ask: &Ask) -> Result<Finding, Violation> {
    let Value::Object(issue) = value else {
        return Err(wrong_type("issues", "an array of objects", value, offset));
    };
    let message = issue.required_text("message", offset)?;
    let (file, line) = location(issue, offset)?;
    let kind = issue.text("kind").or_else(|| issue.text("type")).filter(|kind| !kind.is_empty());
    let severity = Severity::from_word(issue.optional_text("severity", offset)?);
    let finding =
        Finding::of(&ask.reviewer, kind.unwrap_or_else(|| KIND.to_owned()), severity, message.trim());
    Ok(Finding { file, line, suggestion: issue.text("suggestion"), ..finding })
}

fn location(issue: &Object, offset: usize) -> Result<(Option<String>, Option<u32>), Violation> {
    Ok(issue.optional_text("location", offset)?.map_or((None, None), place::of_location))
}

/// What the findings amount to: the bar decides, since this contract has no verdict of its own.
fn review(findings: Vec<Finding>, ask: &Ask) -> Review {
    let blocked = findings.iter().any(|finding| ask.fail_on.is_reached_by(finding.severity));
    let verdict = if blocked { Verdict::ChangesRequested } else { Verdict::Approved };
    Review { findings, ..Review::of(ask.reviewer.clone(), ask.kind, verdict) }
}

/// The finding lines, which are one answer together, and each line that says there are none.
fn line_candidates(
    message: &Message<'_>,
    taken: &[Range<usize>],
    ask: &Ask,
) -> Result<Vec<Candidate>, Violation> {
    let mut lines = Lines::default();
    let text = message.text();
    let is_free = |ranges: &[Range<usize>], line: &Range<usize>| {
        let next = ranges.partition_point(|range| range.end <= line.start);
        ranges.get(next).is_none_or(|range| line.end <= range.start)
    };
    // Lines that hold JSON answers are read as JSON.
    let listed = lines.take_listed(message, |item| is_free(taken, item), ask);
    lines.listed.clone_from(&listed);
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        // A line that opens with a severity is one of its own, also where Markdown counts it to the item above.
        if !is_free(&listed, &(start..end)) && !stated::opens(line) {
            lines.below_label = false;
        } else if is_free(taken, &(start..end)) {
            lines.take(message, trimmed(text, start..end), ask);
        }
        start = end;
        if lines.clean.len() > MAX_CANDIDATES {
            return Err(too_many(start));
        }
    }
    Ok(lines.candidates(ask))
}

#[derive(Default)]
struct Lines {
    findings: Vec<(usize, Finding)>,
    first: Option<usize>,
    binding: Binding,
    clean: Vec<Candidate>,
    /// Whether the line before is a heading of a severity: what says then that there is nothing is about that one.
    below_label: bool,
    /// The lines that open with a severity and name no place: alone no findings, and not nothing either.
    vague: Vec<(usize, Finding)>,
    /// What stands below headings of a severity and was taken as findings.
    listed: Vec<Range<usize>>,
}

impl Lines {
    /// Takes the list items below headings of a severity, with or without a place. Returns where they stand.
    fn take_listed(
        &mut self,
        message: &Message<'_>,
        is_free: impl Fn(&Range<usize>) -> bool,
        ask: &Ask,
    ) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        // Only the severity headings of a review make its lists findings of this contract.
        if !message.text().lines().any(|line| item::label(line.trim()).is_some()) {
            return ranges;
        }
        for entry in reader::read_labelled(message).into_iter().filter(Entry::is_announced) {
            let start = entry.range.start;
            if is_free(&(start..start + 1)) && !entry.is_aside() {
                let range = trimmed(message.text(), entry.range.clone());
                self.found(message, &range, entry.item.finding(KIND, ask), ask);
                take(&mut ranges, entry.range);
            }
        }
        ranges
    }

    fn found(&mut self, message: &Message<'_>, range: &Range<usize>, finding: Finding, ask: &Ask) {
        let binding = binding::beside(message, range.start, range.end, ask);
        if self.first.is_none() || binding.carries(ask) {
            self.binding = binding;
        }
        self.first = Some(self.first.map_or(range.start, |first| first.min(range.start)));
        self.findings.push((range.start, finding));
    }

    fn take(&mut self, message: &Message<'_>, line: Range<usize>, ask: &Ask) {
        let text = &message.text()[line.clone()];
        let below_label = self.below_label;
        if !text.is_empty() {
            self.below_label = item::label(text).is_some();
        }
        if CLEAN.contains(&text) && message.outline().is_plain(&line) {
            let binding = binding::beside(message, line.start, line.end, ask);
            let contradicted = is_over_finding(message, &line).then(|| placed(line.start));
            let answer = contradicted.map_or_else(|| Ok(Rc::new(review(Vec::new(), ask))), Err);
            let clean = Candidate { offset: line.start, binding, standing: Standing::Remark, answer };
            self.clean.extend((!below_label).then_some(clean));
        } else if let Some((_, stated)) = stated::severity(text)
            && message.outline().shown(line.start).is_none()
            && message.outline().shown(line.start + stated.start).is_none()
        {
            self.take_severity(message, line, &stated, ask);
        }
    }

    fn take_severity(&mut self, message: &Message<'_>, line: Range<usize>, stated: &Range<usize>, ask: &Ask) {
        let text = &message.text()[line.clone()];
        let opens = opens(&text[..stated.start]);
        let numbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let unnumbered = numbered.strip_prefix(['.', ')']).filter(|_| numbered.len() < text.len());
        let said = unnumbered.unwrap_or(text).trim_start();
        let item = Item::of(message, line.end - said.len(), said);
        let Some(item) = item.filter(|_| !resolved::is_marked_done(text)) else { return };
        if item.place.is_some() {
            self.found(message, &line, item.finding(KIND, ask), ask);
        } else if opens && !counts_none(&text[stated.end..]) && !self.is_over_list(message, &line) {
            let below = item::label(text).and_then(|_| text_below(message, &line));
            let finding = item.finding(KIND, ask);
            let description = below.unwrap_or_else(|| finding.description.clone());
            self.vague.push((line.start, Finding { description, ..finding }));
        }
    }

    /// Whether a line is a heading of a severity over findings, or over a line that says there is nothing.
    fn is_over_list(&self, message: &Message<'_>, line: &Range<usize>) -> bool {
        let text = message.text();
        let below = text.len() - text[line.end..].trim_start().len();
        let next = &text[message.line_at(below)];
        let listed = self.listed.partition_point(|range| range.end <= below);
        let is_listed = || self.listed.get(listed).is_some_and(|range| range.contains(&below));
        item::label(&text[line.clone()]).is_some()
            && (message.outline().has_item_at(below) || stated::says_nothing(next) || is_listed())
    }

    fn candidates(self, ask: &Ask) -> Vec<Candidate> {
        let mut found = self.clean;
        if let Some(offset) = self.first {
            let mut findings: Vec<_> = self.findings.into_iter().chain(self.vague).collect();
            findings.sort_by_key(|(at, _)| *at);
            let review = review(findings.into_iter().map(|(_, finding)| finding).collect(), ask);
            let standing = if review.verdict.approves() { Standing::Remark } else { Standing::Plain };
            let answer = Ok(Rc::new(review));
            found.push(Candidate { offset, binding: self.binding, standing, answer });
        } else if let Some((offset, _)) = self.vague.first() {
            let blocks = self.vague.iter().any(|(_, finding)| ask.fail_on.is_reached_by(finding.severity));
            let standing = if blocks { Standing::Denial } else { Standing::Doubt };
            let binding = found.first().map(|clean| clean.binding.clone()).unwrap_or_default();
            found.push(Candidate { offset: *offset, binding, standing, answer: Err(placeless(*offset)) });
        }
        found
    }
}

/// The paragraph below the heading of a severity, as one line.
fn text_below(message: &Message<'_>, line: &Range<usize>) -> Option<String> {
    let below = message.text()[line.end..].trim_start();
    let text =
        item::joined(below.lines().take_while(|line| !line.trim().is_empty() && !item::is_heading(line)));
    (!text.is_empty()).then_some(text)
}

/// Whether a list follows at once whose first item begins with a place and states no severity.
fn is_over_finding(message: &Message<'_>, line: &Range<usize>) -> bool {
    let text = message.text();
    let below = text.len() - text[line.end..].trim_start().len();
    let next = &text[message.line_at(below)];
    let leads = |place: Place| !next[..place.range.start].contains(char::is_alphabetic);
    message.outline().has_item_at(below)
        && place::find(next).is_some_and(leads)
        && stated::severity(next).is_none()
}

fn placed(offset: usize) -> Violation {
    let message = "the answer says that there are no issues, and a list of places follows";
    Violation::new(ViolationCode::Disagreement, offset, message)
}

fn placeless(offset: usize) -> Violation {
    let message = "a line states a severity without a `file:line`; an approval does not go with it";
    Violation::new(ViolationCode::Disagreement, offset, message)
}

/// Whether nothing but a number and the word `severity` comes before a stated severity.
fn opens(before: &str) -> bool {
    let mut words = before.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    words.all(|word| word.eq_ignore_ascii_case("severity"))
}

/// `HIGH: 0`, `LOW: none` and `MEDIUM: no issues` count findings, they are none.
fn counts_none(after: &str) -> bool {
    const NONE: [&str; 4] = ["0", "none", "nothing", "nil"];
    const THINGS: [&str; 4] = ["issue", "issues", "findings", "problems"];
    let is_one_of = |word: Option<&str>, words: &[&str]| {
        word.is_some_and(|word| words.iter().any(|one| one.eq_ignore_ascii_case(word)))
    };
    let mut words = after.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let first = words.next();
    is_one_of(first, &NONE) || (is_one_of(first, &["no"]) && is_one_of(words.next(), &THINGS))
}
