//! The JSON contract: `{"verdict": "pass"|"drift", "followUpPrompt": "…"}` anywhere in the message, fenced or not. Finds
//! the JSON texts in a message: every outermost object and array, complete or broken.

use std::ops::Range;
use std::rc::Rc;

use serde_json::Value;

use super::candidates::{
    AnswerCandidate, Binding, CandidateKind, Candidates, MAX_CANDIDATES, ObjectionSet, clip, too_many,
};
use super::json_value::{self, JsonObject, KeyScan, ParsedJson, required_text};
use super::markdown_structure::MarkupKind;
use super::message::FinalMessage;
use super::{Parsed, ReviewRequest};
use super::{objection, retraction};
use crate::review::{Finding, Review, Severity, Verdict, Violation, ViolationCode};

pub(super) const NO_ANSWER_MESSAGE: &str = "there is no JSON object with a `verdict` key";

pub(super) fn candidates(message: &FinalMessage<'_>, request: &ReviewRequest) -> Parsed<Candidates> {
    let mut found = Vec::new();
    let mut objections = ObjectionSet::default();
    for json in scan(message.text()) {
        if !(json.seen.has("verdict") || json.is_too_deep_object()) {
            objections.insert(json.objection(message), request);
            continue;
        }
        if found.len() >= MAX_CANDIDATES {
            return Err(too_many(json.range.start));
        }
        found.extend(candidate(&json, message, request));
    }
    found.extend(objections.first);
    retraction::add_retractions(&mut found, message, request);
    Ok(found)
}

fn candidate(json: &JsonText, message: &FinalMessage<'_>, request: &ReviewRequest) -> Option<AnswerCandidate> {
    let offset = json.range.start;
    let answer = json.unambiguous().and_then(|value| match value.as_object() {
        Some(object) => review(object, offset, request).map(Rc::new),
        None => Err(Violation::new(ViolationCode::NoVerdict, offset, NO_ANSWER_MESSAGE)),
    });
    let kind = json.candidate_kind(message)?;
    // A partial answer in a fence is more likely sample data. A verdict takes precedence.
    let data = kind == CandidateKind::Plain && is_data(json) && json.is_fenced(message);
    let kind = if data { CandidateKind::Remark } else { kind };
    Some(AnswerCandidate { offset, binding: json.binding(), kind, answer })
}

/// Whether it has the key `verdict` and no other key of an answer.
fn is_data(json: &JsonText) -> bool {
    let verdict = json.seen.text("verdict").is_some_and(|word| matches!(word.as_str(), "pass" | "drift"));
    let object = json.value.as_ref().ok().and_then(Value::as_object);
    object.is_some_and(|object| !object.contains_key("followUpPrompt")) && !verdict
}

fn review(object: &JsonObject, offset: usize, request: &ReviewRequest) -> Parsed<Review> {
    let word = required_text(object, "verdict", offset)?;
    let follow_up = required_text(object, "followUpPrompt", offset)?;
    let verdict = match word {
        "pass" => Verdict::Approved,
        "drift" => Verdict::ChangesRequested,
        _ => {
            let message = format!("`verdict` must be \"pass\" or \"drift\", not \"{}\"", clip(word));
            return Err(Violation::new(ViolationCode::UnknownVerdict, offset, message));
        }
    };
    if let Some(key) = json_value::denial(object, "verdict").filter(|_| verdict.approves()) {
        let message = format!("`verdict` is \"pass\", but `{}` says that the work did not pass", clip(key));
        return Err(Violation::new(ViolationCode::Disagreement, offset, message));
    }
    if verdict.approves() && objection::contains_objection(follow_up, request) {
        return Err(retraction::violation(offset));
    }
    let mut review = Review::new(request.reviewer.clone(), request.kind, verdict);
    if review.verdict == Verdict::ChangesRequested {
        review.findings.push(drift(follow_up, offset, request)?);
    }
    review.summary = follow_up.trim().to_owned();
    review.follow_up_prompt = Some(follow_up.to_owned());
    Ok(review)
}

/// The finding of a `drift` verdict: its follow-up prompt, which the fixer gets.
fn drift(follow_up: &str, offset: usize, request: &ReviewRequest) -> Parsed<Finding> {
    if follow_up.trim().is_empty() {
        let message = "`drift` with an empty `followUpPrompt`: say what has to be fixed";
        return Err(Violation::new(ViolationCode::IssuesWithoutIssue, offset, message));
    }
    Ok(Finding::new(&request.reviewer, "drift", Severity::Critical, follow_up.trim()))
}

/// An outermost object or array.
#[derive(Debug)]
pub(super) struct JsonText {
    pub range: Range<usize>,
    pub value: Parsed<Value>,
    pub seen: KeyScan,
    /// The error of the broken JSON text around it, if there is one.
    pub enclosing_error: Option<ViolationCode>,
    /// Whether a broken text contains a key of an answer, or is truncated at the end of the message.
    looks_like_answer: bool,
}

impl JsonText {
    /// The `nonce` and `commit` keys, if they were read.
    pub fn binding(&self) -> Binding {
        Binding { nonce: self.seen.text("nonce"), commit: self.seen.text("commit") }
    }

    /// The objection that this text, which is not an answer, makes to an approval.
    pub fn objection(&self, message: &FinalMessage<'_>) -> Option<AnswerCandidate> {
        let offset = self.range.start;
        if self.candidate_kind(message)? == CandidateKind::Quoted {
            return None;
        }
        let fenced = self.is_fenced(message);
        let (kind, violation) = match &self.value {
            Err(violation) if self.looks_like_answer => (CandidateKind::Denial, violation.clone()),
            // A code snippet in a fence is not broken JSON.
            Err(_) if fenced => return None,
            Err(violation) => (CandidateKind::Doubt, violation.clone()),
            Ok(value) => {
                let own = value.as_object().and_then(json_value::rejection);
                let own = own.filter(|key| !fenced || *key == "passed");
                let key = own.or_else(|| json_value::nested_rejection(value).filter(|_| !fenced))?;
                let message = format!("`{}` in an object that is not an answer rejects the work", clip(key));
                (CandidateKind::Denial, Violation::new(ViolationCode::Disagreement, offset, message))
            }
        };
        Some(AnswerCandidate { offset, binding: self.binding(), kind, answer: Err(violation) })
    }

    pub fn is_fenced(&self, message: &FinalMessage<'_>) -> bool {
        message.markup_at(self.range.start) == Some(MarkupKind::Code)
    }

    /// Whether it is an object nested so deep that its keys were not read. It may be the answer.
    pub fn is_too_deep_object(&self) -> bool {
        let too_deep = |violation: &Violation| violation.code == ViolationCode::TooDeep;
        self.seen.keys.is_empty() && self.value.as_ref().is_err_and(too_deep)
    }

    /// The value, or a violation if a key in it is duplicated.
    pub fn unambiguous(&self) -> Parsed<&Value> {
        let value = self.value.as_ref().map_err(Clone::clone)?;
        self.seen.check_duplicate(self.range.start).map(|()| value)
    }

    /// Returns `None` for a broken text that is quoted, because quotations may be cut anywhere.
    pub fn candidate_kind(&self, message: &FinalMessage<'_>) -> Option<CandidateKind> {
        let end = self.value.is_ok().then_some(self.range.end);
        let quoted = message.structure().is_quoted_answer(message.text(), self.range.start, end);
        match (quoted, end) {
            (true, None) => None,
            (false, _) if self.enclosing_error.is_none() => Some(CandidateKind::Plain),
            (false, _) => Some(CandidateKind::Fragment),
            (true, Some(_)) => Some(CandidateKind::Quoted),
        }
    }
}

/// The JSON texts in order: the complete ones, and the broken ones that may be an answer.
///
/// Linear: a broken text is parsed again only from the brackets inside it, and a bracket lies inside at most twice
/// [`json_value::MAX_DEPTH`] broken texts (once for each interpretation of the quotes).
pub(super) fn scan(text: &str) -> impl Iterator<Item = JsonText> {
    let mut from = 0;
    let mut broken_until: Option<(usize, ViolationCode)> = None;
    std::iter::from_fn(move || {
        loop {
            let start = from + text[from..].find(['{', '['])?;
            from = start + 1;
            let looks_like_answer = has_answer_key(&text[start..]);
            if !may_open(&text[start..]) {
                if looks_like_answer || is_cut_off(&text[start..]) {
                    return Some(invalid_json(start));
                }
                continue;
            }
            let ParsedJson { value, length, seen } = json_value::read(&text[start..]);
            let end = start + length;
            let around = broken_until.filter(|(to, _)| start < *to).map(|(_, code)| code);
            let code = value.as_ref().err().map(|(code, _)| *code);
            // Text that is nested too deep belongs to this value. No other text begins before its end.
            if matches!(code, None | Some(ViolationCode::TooDeep)) {
                from = end;
            }
            if let Some(code) = code.filter(|_| broken_until.is_none_or(|(to, _)| to < end)) {
                broken_until = Some((end, code));
            }
            let is_too_deep = code == Some(ViolationCode::TooDeep) && text[start..].starts_with('{');
            let keyed = is_keyed(&text[start..]);
            // An object, or a list of objects.
            let opens_object = || text[start..].starts_with('{') || text[start + 1..].trim_start().starts_with('{');
            let looks_like_answer = looks_like_answer || (code == Some(ViolationCode::Truncated) && opens_object());
            if code.is_none() || !seen.keys.is_empty() || is_too_deep || keyed || looks_like_answer {
                let value = value.map_err(|(code, error)| broken(code, &error, end));
                return Some(JsonText { range: start..end, value, seen, enclosing_error: around, looks_like_answer });
            }
        }
    })
}

/// Whether the text after the bracket can be JSON at all. Skips most brackets of ordinary text cheaply.
fn may_open(text: &str) -> bool {
    let next = text[1..].bytes().find(|byte| !byte.is_ascii_whitespace());
    if text.starts_with('{') {
        matches!(next, Some(b'"' | b'}'))
    } else {
        matches!(next, Some(b']' | b'[' | b'{' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'))
    }
}

/// Whether a broken object has a key and a colon, unlike sets in prose and code.
fn is_keyed(text: &str) -> bool {
    let inside = text.strip_prefix('{').and_then(|inside| inside.trim_start().strip_prefix('"'));
    let key = inside.and_then(|key| key.split_once('"'));
    key.is_some_and(|(key, rest)| !key.contains('\n') && rest.trim_start().starts_with(':'))
}

/// Whether an object that does not begin like JSON is never closed.
fn is_cut_off(text: &str) -> bool {
    let key = |c: char| is_quote(c) || matches!(c, '/' | '#' | ',');
    text.strip_prefix('{').is_some_and(|inside| inside.trim_start().starts_with(key) && !inside.contains(['{', '}']))
}

/// The keys that identify an answer even if it is not valid JSON.
const LOOSE_ANSWER_KEYS: [&str; 6] = ["verdict", "followUpPrompt", "issues", "findings", "severity", "intentSatisfied"];

/// Whether the text between a brace and the next one has a key of an answer. The ranges searched are disjoint, so
/// this is linear.
fn has_answer_key(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('{').and_then(|inside| inside.split(['{', '}']).next()) else {
        return false;
    };
    inside.match_indices(':').any(|(at, _)| {
        let before = inside[..at].trim_end_matches(|c: char| c.is_whitespace() || is_quote(c));
        let joined = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let is_key = |key: &str| before.strip_suffix(key).is_some_and(|rest| !rest.ends_with(joined));
        !inside[at + 1..].starts_with(':') && LOOSE_ANSWER_KEYS.into_iter().any(is_key)
    })
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '‘' | '’' | '“' | '”' | '„' | '«' | '»')
}

/// A text that looks like an answer in JSON but is invalid from its first character.
fn invalid_json(start: usize) -> JsonText {
    let message = "this looks like an answer, but it is not JSON";
    JsonText {
        range: start..start + 1,
        value: Err(Violation::new(ViolationCode::Malformed, start, message)),
        seen: KeyScan::default(),
        enclosing_error: None,
        looks_like_answer: true,
    }
}

fn broken(code: ViolationCode, error: &serde_json::Error, offset: usize) -> Violation {
    // The parser counts lines and columns from the bracket. The offset is more useful.
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    Violation::new(code, offset, format!("the JSON answer breaks off: {reason}"))
}
