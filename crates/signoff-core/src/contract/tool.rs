//! The argument objects of `set_loop_review_result` and `set_review_result`.
//!
//! The bearer token takes the place of the nonce: signoff checks it before a call reaches this reader.

use super::binding::{self, Binding, clip};
use super::json_value::{self, Object, Value, missing, wrong_type};
use super::message::decode;
use super::{Ask, objection};
use crate::review::{Finding, IntentSatisfied, Note, Review, Severity, Verdict, Violation, ViolationCode};

/// The kind of a finding that is about the task's intent as a whole.
const INTENT: &str = "spec-intent-mismatch";

/// Reads all calls of the tool, in their order. The strictest counts: a refusal outranks every approval, whichever came
/// first, and only a single call approves.
pub(super) fn parse(calls: Option<&[u8]>, ask: &Ask) -> Result<Review, Violation> {
    let Some(bytes) = calls else {
        return Err(Violation::new(ViolationCode::Empty, 0, "the reviewer did not report its result"));
    };
    let text = decode(bytes)?;
    let calls = objects(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut reviews: Vec<_> =
        calls.into_iter().map(|call| call.and_then(|call| review(&call, ask))).collect();
    let refuses =
        |review: &Result<Review, Violation>| review.as_ref().is_ok_and(|review| !review.verdict.approves());
    if reviews.iter().any(refuses) {
        let refusals = reviews.into_iter().filter(refuses).flatten();
        return refusals.reduce(together).map(|review| binding::finish(review, ask)).ok_or_else(repeated);
    }
    if let Some(at) = reviews.iter().position(Result::is_err) {
        return reviews.swap_remove(at);
    }
    let [_] = reviews.as_slice() else { return Err(repeated()) };
    reviews.swap_remove(0).map(|review| binding::finish(review, ask))
}

/// Two refusals as one: what both found.
fn together(mut first: Review, second: Review) -> Review {
    for finding in second.findings {
        if !first.findings.contains(&finding) {
            first.findings.push(finding);
        }
    }
    first.minor.extend(second.minor);
    first.interpreted_intent = first.interpreted_intent.or(second.interpreted_intent);
    first
}

fn repeated() -> Violation {
    Violation::new(ViolationCode::Malformed, 0, "there is more than one argument object, and none refuses")
}

/// The argument objects, up to the first that cannot be read.
fn objects(text: &str) -> Vec<Result<Object, Violation>> {
    let mut found = Vec::new();
    let mut start = 0;
    while found.is_empty() || !text[start..].trim().is_empty() {
        let (object, length) = object(&text[start..]);
        let read = object.is_ok();
        found.push(object.map_err(|violation| Violation { offset: violation.offset + start, ..violation }));
        start += length;
        if !read || found.len() > MOST_CALLS {
            break;
        }
    }
    found
}

/// More calls than these are not recorded.
const MOST_CALLS: usize = crate::grant::MOST_REPORTS;

/// The first argument object of a text, and where it ends.
fn object(text: &str) -> (Result<Object, Violation>, usize) {
    if text.trim().is_empty() {
        let message = "the argument object is empty";
        return (Err(Violation::new(ViolationCode::Empty, 0, message)), text.len());
    }
    let attempt = json_value::read(text);
    let length = attempt.length;
    let value = attempt.value.map_err(|(code, error)| {
        Violation::new(code, length, format!("the arguments are not a JSON object: {error}"))
    });
    let duplicate = attempt.seen.duplicate().map(|key| {
        let message = format!("the key `{}` appears twice in one object", clip(&key));
        Violation::new(ViolationCode::DuplicateKey, 0, message)
    });
    (value.and_then(|value| duplicate.map_or(Ok(value), Err)).and_then(as_object), length)
}

fn as_object(value: Value) -> Result<Object, Violation> {
    if let Value::Object(object) = value {
        return Ok(object);
    }
    let message = format!("the arguments must be an object, not {}", value.what());
    Err(Violation::new(ViolationCode::WrongType, 0, message))
}

/// A loop review names its loop; a commit, where one is named, is the one under review.
fn check_binding(report: &Object, ask: &Ask) -> Result<(), Violation> {
    let said = report.optional_text("loopId", 0)?;
    report.optional_text("taskId", 0)?;
    if let Some(asked) = &ask.loop_id {
        let said = said.ok_or_else(|| missing("loopId", "a string", 0))?;
        if said != asked.as_str() {
            let message =
                format!("`loopId` must be \"{asked}\", the loop under review, not \"{}\"", clip(said));
            return Err(Violation::new(ViolationCode::WrongLoop, 0, message));
        }
    }
    let commit = report.optional_text("commit", 0)?.map(str::to_owned);
    binding::check_commit(&Binding { nonce: None, commit }, ask, 0)
}

fn review(report: &Object, ask: &Ask) -> Result<Review, Violation> {
    check_binding(report, ask)?;
    let passed = boolean(report, "passed")?.ok_or_else(|| missing("passed", "true or false", 0))?;
    let intent = report.optional_text("interpretedIntent", 0)?.map(str::trim).filter(|text| !text.is_empty());
    let satisfied = boolean(report, "intentSatisfied")?;
    let issues = issues(report, ask)?;
    let noted = |issue: &Finding| objection::is_in_note(&issue.description, ask);
    if passed && (states_blocking(report, ask) || issues.iter().any(noted)) {
        let message = "`passed` is true, but an issue states a severity that blocks";
        return Err(Violation::new(ViolationCode::Disagreement, 0, message));
    }
    let mut review = Review::of(ask.reviewer.clone(), ask.kind, Verdict::Approved);
    review.interpreted_intent = intent.map(str::to_owned);
    review.intent_satisfied = match satisfied {
        Some(true) => IntentSatisfied::Yes,
        Some(false) => IntentSatisfied::No,
        None => IntentSatisfied::Unstated,
    };
    if passed {
        review.minor = issues.into_iter().map(note).collect();
    } else {
        review.findings = issues;
    }
    let unnamed = !passed && review.findings.is_empty();
    if unnamed || satisfied == Some(false) && passed {
        review.findings.push(intent_finding(intent, unnamed, ask));
    }
    if !review.findings.is_empty() {
        review.verdict = Verdict::ChangesRequested;
    }
    Ok(review)
}

/// Whether an issue states a severity at or above the bar, though the tool asks for none.
fn states_blocking(report: &Object, ask: &Ask) -> bool {
    let Some(Value::Array(issues)) = report.get("issues") else { return false };
    let severity = |issue: &Value| match issue {
        Value::Object(issue) => issue.text("severity").map(|word| Severity::from_word(Some(&word))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Array(_) => None,
    };
    issues.iter().filter_map(severity).any(|severity| ask.fail_on.is_reached_by(severity))
}

fn intent_finding(intent: Option<&str>, unnamed: bool, ask: &Ask) -> Finding {
    let description = match (intent, unnamed) {
        (Some(intent), true) => intent.to_owned(),
        (None, true) => "The review did not pass and names no issue.".to_owned(),
        (Some(intent), false) => format!("The intent is not satisfied: {intent}"),
        (None, false) => "The intent is not satisfied.".to_owned(),
    };
    Finding::of(&ask.reviewer, INTENT, Severity::Critical, description)
}

fn note(issue: Finding) -> Note {
    Note { file: issue.file, line: issue.line, description: issue.description }
}

fn boolean(object: &Object, key: &str) -> Result<Option<bool>, Violation> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(value)) => Ok(Some(*value)),
        Some(other) => Err(wrong_type(key, "true or false", other, 0)),
    }
}

fn issues(report: &Object, ask: &Ask) -> Result<Vec<Finding>, Violation> {
    match report.get("issues") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(issues)) => {
            issues.iter().enumerate().map(|(at, one)| issue(at, one, ask)).collect()
        }
        Some(other) => Err(wrong_type("issues", "an array of objects", other, 0)),
    }
}

fn issue(at: usize, value: &Value, ask: &Ask) -> Result<Finding, Violation> {
    let Value::Object(issue) = value else {
        return Err(wrong_type(&format!("issues[{at}]"), "an object", value, 0));
    };
    let within = |violation: Violation| Violation {
        message: format!("issues[{at}]: {}", violation.message),
        ..violation
    };
    let field = |key| issue.optional_text(key, 0).map_err(within).map(|text| text.map(str::to_owned));
    let (kind, suggestion) = (field("type")?, field("suggestion")?);
    let description = field("description")?.or_else(|| suggestion.clone()).or_else(|| kind.clone());
    let description = description.unwrap_or_else(|| "An issue without a description.".to_owned());
    let kind = kind.unwrap_or_else(|| "unstated".to_owned());
    let finding = Finding::of(&ask.reviewer, kind, Severity::Critical, description);
    Ok(Finding { file: field("file")?, line: line(issue).map_err(within)?, suggestion, ..finding })
}

fn line(issue: &Object) -> Result<Option<u32>, Violation> {
    match issue.get("line") {
        None | Some(Value::Null) => Ok(None),
        // A fraction or a negative number names no line, but the issue is still one.
        Some(Value::Number(number)) => {
            let whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number);
            Ok(whole.then_some(*number as u32))
        }
        Some(other) => Err(wrong_type("line", "a number", other, 0)),
    }
}
