//! The JSON contract: `{"verdict": "pass"|"drift", "followUpPrompt": "…"}` anywhere in the message, fenced or not.

use std::rc::Rc;

use super::ReviewRequest;
use super::candidates::{AnswerCandidate, CandidateKind, MAX_CANDIDATES, ObjectionSet, clip, too_many};
use super::json_text::{self, JsonText};
use super::json_value::{JsonObject, JsonValue};
use super::message::FinalMessage;
use super::{objection, retraction};
use crate::review::{Finding, Review, Severity, Verdict, Violation, ViolationCode};

pub(super) const NOTHING: &str = "there is no JSON object with a `verdict` key";

pub(super) fn candidates(message: &FinalMessage<'_>, ask: &ReviewRequest) -> Result<Vec<AnswerCandidate>, Violation> {
    let mut found = Vec::new();
    let mut doubts = ObjectionSet::default();
    for json in json_text::scan(message.text()) {
        if !(json.seen.has("verdict") || json.is_too_deep_object()) {
            doubts.insert(json.objection(message), ask);
            continue;
        }
        if found.len() >= MAX_CANDIDATES {
            return Err(too_many(json.range.start));
        }
        found.extend(candidate(&json, message, ask));
    }
    found.extend(doubts.first);
    retraction::add_retractions(&mut found, message, ask);
    Ok(found)
}

fn candidate(json: &JsonText, message: &FinalMessage<'_>, ask: &ReviewRequest) -> Option<AnswerCandidate> {
    let offset = json.range.start;
    let answer = json.unambiguous().and_then(|value| match value {
        JsonValue::Object(object) => review(object, offset, ask).map(Rc::new),
        JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) | JsonValue::Text(_) | JsonValue::Array(_) => {
            Err(Violation::new(ViolationCode::NoVerdict, offset, NOTHING))
        }
    });
    let said = json.candidate_kind(message)?;
    // A partial answer in a fence is more likely sample data. A verdict takes precedence.
    let data = said == CandidateKind::Plain && is_data(json) && json.is_fenced(message);
    let standing = if data { CandidateKind::Remark } else { said };
    Some(AnswerCandidate { offset, binding: json.binding(), kind: standing, answer })
}

/// Whether it has the key `verdict` and no other key of an answer.
fn is_data(json: &JsonText) -> bool {
    let known = |word: &str| matches!(word, "pass" | "drift");
    let verdict = json.seen.text("verdict").is_some_and(|word| known(&word));
    matches!(&json.value, Ok(JsonValue::Object(object)) if !object.has("followUpPrompt")) && !verdict
}

fn review(object: &JsonObject, offset: usize, ask: &ReviewRequest) -> Result<Review, Violation> {
    let word = object.required_text("verdict", offset)?;
    let follow_up = object.required_text("followUpPrompt", offset)?;
    let verdict = match word {
        "pass" => Verdict::Approved,
        "drift" => Verdict::ChangesRequested,
        _ => {
            let message = format!("`verdict` must be \"pass\" or \"drift\", not \"{}\"", clip(word));
            return Err(Violation::new(ViolationCode::UnknownVerdict, offset, message));
        }
    };
    if let Some(key) = object.denial("verdict").filter(|_| verdict.approves()) {
        let message = format!("`verdict` is \"pass\", but `{}` says that the work did not pass", clip(key));
        return Err(Violation::new(ViolationCode::Disagreement, offset, message));
    }
    if verdict.approves() && objection::contains_objection(follow_up, ask) {
        return Err(retraction::violation(offset));
    }
    let mut review = Review::new(ask.reviewer.clone(), ask.kind, verdict);
    if review.verdict == Verdict::ChangesRequested {
        review.findings.push(drift(follow_up, offset, ask)?);
    }
    review.summary = follow_up.trim().to_owned();
    review.follow_up_prompt = Some(follow_up.to_owned());
    Ok(review)
}

/// The finding of a `drift` verdict: its follow-up prompt, which the fixer gets.
fn drift(follow_up: &str, offset: usize, ask: &ReviewRequest) -> Result<Finding, Violation> {
    if follow_up.trim().is_empty() {
        let message = "`drift` with an empty `followUpPrompt`: say what has to be fixed";
        return Err(Violation::new(ViolationCode::IssuesWithoutIssue, offset, message));
    }
    Ok(Finding::new(&ask.reviewer, "drift", Severity::Critical, follow_up.trim()))
}
