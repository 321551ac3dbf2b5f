//! The tool contract: the argument objects of `set_loop_review_result` and `set_review_result`.
//!
//! The bearer token replaces the nonce. signoff checks it before a call reaches this parser.

use serde_json::Value;

use super::candidates::{self, Binding, clip};
use super::json_value::{self, JsonObject, missing, optional, optional_text, wrong_type};
use super::message::decode;
use super::{Parsed, ReviewRequest, objection};
use crate::review::{Finding, IntentSatisfied, Note, Review, Severity, Verdict, Violation, ViolationCode};

/// The kind of a finding about the intent of the task as a whole.
const INTENT: &str = "spec-intent-mismatch";

/// Parses all calls of the tool, in order. The strictest one counts: a refusal outranks every approval, and an
/// approval requires that it is the only call.
pub(super) fn parse(calls: Option<&[u8]>, request: &ReviewRequest) -> Parsed<Review> {
    let Some(bytes) = calls else {
        return Err(Violation::new(ViolationCode::Empty, 0, "the reviewer did not report its result"));
    };
    let text = decode(bytes)?;
    let calls = objects(text.strip_prefix('\u{feff}').unwrap_or(text));
    let reviews = calls.into_iter().map(|call| call.and_then(|call| review(&call, request)));
    let refuses = |review: &Parsed<Review>| review.as_ref().is_ok_and(|review| !review.verdict.approves());
    let (refusals, others): (Vec<_>, Vec<_>) = reviews.partition(refuses);
    if let Some(refusal) = refusals.into_iter().flatten().reduce(merge_refusals) {
        return Ok(candidates::finish(refusal, request));
    }
    let approvals: Vec<Review> = others.into_iter().collect::<Parsed<_>>()?;
    let [approval] = <[Review; 1]>::try_from(approvals).map_err(|_| {
        let message = "there is more than one argument object, and none refuses";
        Violation::new(ViolationCode::Malformed, 0, message)
    })?;
    Ok(candidates::finish(approval, request))
}

/// Combines two refusals into one with the findings of both.
fn merge_refusals(mut first: Review, second: Review) -> Review {
    for finding in second.findings {
        if !first.findings.contains(&finding) {
            first.findings.push(finding);
        }
    }
    first.minor.extend(second.minor);
    first.interpreted_intent = first.interpreted_intent.or(second.interpreted_intent);
    first
}

/// The argument objects, up to the first one that cannot be parsed.
fn objects(text: &str) -> Vec<Parsed<JsonObject>> {
    let mut found = Vec::new();
    let mut start = 0;
    while found.is_empty() || !text[start..].trim().is_empty() {
        let (object, length) = object(&text[start..]);
        let read = object.is_ok();
        found.push(object.map_err(|violation| Violation { offset: violation.offset + start, ..violation }));
        start += length;
        if !read || found.len() > crate::report_token::MAX_REPORTS {
            break;
        }
    }
    found
}

/// The first argument object of a text, and where it ends.
fn object(text: &str) -> (Parsed<JsonObject>, usize) {
    if text.trim().is_empty() {
        let message = "the argument object is empty";
        return (Err(Violation::new(ViolationCode::Empty, 0, message)), text.len());
    }
    let parsed = json_value::read(text);
    let length = parsed.length;
    let value = parsed
        .value
        .map_err(|(code, error)| Violation::new(code, length, format!("the arguments are not a JSON object: {error}")));
    (value.and_then(|value| parsed.seen.check_duplicate(0).map(|()| value)).and_then(as_object), length)
}

fn as_object(value: Value) -> Parsed<JsonObject> {
    if let Value::Object(object) = value {
        return Ok(object);
    }
    let message = format!("the arguments must be an object, not {}", json_value::type_name(&value));
    Err(Violation::new(ViolationCode::WrongType, 0, message))
}

/// Requires a loop review to name its loop, and a named commit to be the one under review.
fn check_binding(report: &JsonObject, request: &ReviewRequest) -> Parsed<()> {
    let sent = optional_text(report, "loopId", 0)?;
    optional_text(report, "taskId", 0)?;
    if let Some(asked) = &request.loop_id {
        let sent = sent.ok_or_else(|| missing("loopId", "a string", 0))?;
        if sent != asked.as_str() {
            let message = format!("`loopId` must be \"{asked}\", the loop under review, not \"{}\"", clip(sent));
            return Err(Violation::new(ViolationCode::WrongLoop, 0, message));
        }
    }
    let commit = optional_text(report, "commit", 0)?.map(str::to_owned);
    candidates::check_commit(&Binding { nonce: None, commit }, request, 0)
}

fn review(report: &JsonObject, request: &ReviewRequest) -> Parsed<Review> {
    check_binding(report, request)?;
    let passed = boolean(report, "passed")?.ok_or_else(|| missing("passed", "true or false", 0))?;
    let intent = optional_text(report, "interpretedIntent", 0)?.map(str::trim).filter(|text| !text.is_empty());
    let satisfied = boolean(report, "intentSatisfied")?;
    let issues = issues(report, request)?;
    let noted = |issue: &Finding| objection::note_contains_objection(&issue.description, request);
    if passed && (states_blocking(report, request) || issues.iter().any(noted)) {
        let message = "`passed` is true, but an issue states a severity that blocks";
        return Err(Violation::new(ViolationCode::Disagreement, 0, message));
    }
    let mut review = Review::new(request.reviewer.clone(), request.kind, Verdict::Approved);
    review.interpreted_intent = intent.map(str::to_owned);
    review.intent_satisfied = IntentSatisfied::from_option(satisfied);
    if passed {
        review.minor = issues.into_iter().map(note).collect();
    } else {
        review.findings = issues;
    }
    let unnamed = !passed && review.findings.is_empty();
    if unnamed || satisfied == Some(false) && passed {
        review.findings.push(intent_finding(intent, unnamed, request));
    }
    if !review.findings.is_empty() {
        review.verdict = Verdict::ChangesRequested;
    }
    Ok(review)
}

/// Whether an issue states a severity at or above the threshold, although the tool does not ask for one.
fn states_blocking(report: &JsonObject, request: &ReviewRequest) -> bool {
    let issues = report.get("issues").and_then(Value::as_array).into_iter().flatten();
    let found = issues.filter_map(|issue| json_value::text(issue.as_object()?, "severity"));
    found.map(|word| Severity::parse_or_critical(Some(&word))).any(|severity| request.fail_on.is_reached_by(severity))
}

fn intent_finding(intent: Option<&str>, unnamed: bool, request: &ReviewRequest) -> Finding {
    let description = match (intent, unnamed) {
        (Some(intent), true) => intent.to_owned(),
        (None, true) => "The review did not pass and names no issue.".to_owned(),
        (Some(intent), false) => format!("The intent is not satisfied: {intent}"),
        (None, false) => "The intent is not satisfied.".to_owned(),
    };
    Finding::new(&request.reviewer, INTENT, Severity::Critical, description)
}

fn note(issue: Finding) -> Note {
    Note { file: issue.file, line: issue.line, description: issue.description }
}

fn boolean(object: &JsonObject, key: &str) -> Parsed<Option<bool>> {
    optional(object, key, "true or false", 0, Value::as_bool)
}

fn issues(report: &JsonObject, request: &ReviewRequest) -> Parsed<Vec<Finding>> {
    let issues = optional(report, "issues", "an array of objects", 0, Value::as_array)?;
    issues.into_iter().flatten().enumerate().map(|(at, one)| issue(at, one, request)).collect()
}

fn issue(at: usize, value: &Value, request: &ReviewRequest) -> Parsed<Finding> {
    let issue = value.as_object().ok_or_else(|| wrong_type(&format!("issues[{at}]"), "an object", value, 0))?;
    let within =
        |violation: Violation| Violation { message: format!("issues[{at}]: {}", violation.message), ..violation };
    let field = |key| optional_text(issue, key, 0).map_err(within).map(|text| text.map(str::to_owned));
    let (kind, suggestion) = (field("type")?, field("suggestion")?);
    let description = field("description")?.or_else(|| suggestion.clone()).or_else(|| kind.clone());
    let description = description.unwrap_or_else(|| "An issue without a description.".to_owned());
    let kind = kind.unwrap_or_else(|| "unstated".to_owned());
    let finding = Finding::new(&request.reviewer, kind, Severity::Critical, description);
    Ok(Finding { file: field("file")?, line: line(issue).map_err(within)?, suggestion, ..finding })
}

/// The line of an issue. A fraction or a negative number is not a line, but the issue still counts.
fn line(issue: &JsonObject) -> Parsed<Option<u32>> {
    let number = optional(issue, "line", "a number", 0, Value::as_f64)?;
    let is_line = |number: &f64| number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number);
    Ok(number.filter(is_line).map(|number| number as u32))
}
