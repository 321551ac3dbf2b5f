//! `{"verdict": "pass"|"drift", "followUpPrompt": "…"}`, anywhere in the message, fenced or not.

use std::rc::Rc;

use super::Ask;
use super::binding::{Candidate, Doubts, MAX_CANDIDATES, Standing, clip, too_many};
use super::json_text::{self, JsonText};
use super::json_value::{Object, Value};
use super::message::Message;
use super::{objection, retraction};
use crate::review::{Finding, Review, Severity, Verdict, Violation, ViolationCode};

pub(super) const NOTHING: &str = "there is no JSON object with a `verdict` key";

pub(super) fn candidates(message: &Message<'_>, ask: &Ask) -> Result<Vec<Candidate>, Violation> {
    let mut found = Vec::new();
    let mut doubts = Doubts::default();
    for json in json_text::scan(message.text()) {
        if !(json.seen.has("verdict") || json.is_unfathomed()) {
            doubts.take(json.doubt(message), ask);
            continue;
        }
        if found.len() >= MAX_CANDIDATES {
            return Err(too_many(json.range.start));
        }
        found.extend(candidate(&json, message, ask));
    }
    found.extend(doubts.first);
    retraction::add(&mut found, message, ask);
    Ok(found)
}

fn candidate(json: &JsonText, message: &Message<'_>, ask: &Ask) -> Option<Candidate> {
    let offset = json.range.start;
    let answer = json.unambiguous().and_then(|value| match value {
        Value::Object(object) => review(object, offset, ask).map(Rc::new),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Array(_) => {
            Err(Violation::new(ViolationCode::NoVerdict, offset, NOTHING))
        }
    });
    let said = json.standing(message)?;
    // Half an answer in a fence is more likely data that is shown: a verdict goes before it.
    let data = said == Standing::Plain && is_data(json) && json.is_fenced(message);
    let standing = if data { Standing::Remark } else { said };
    Some(Candidate { offset, binding: json.binding(), standing, answer })
}

/// Whether it has a key `verdict` and nothing else of an answer.
fn is_data(json: &JsonText) -> bool {
    let known = |word: &str| matches!(word, "pass" | "drift");
    let verdict = json.seen.text("verdict").is_some_and(|word| known(&word));
    matches!(&json.value, Ok(Value::Object(object)) if !object.has("followUpPrompt")) && !verdict
}

fn review(object: &Object, offset: usize, ask: &Ask) -> Result<Review, Violation> {
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
    if verdict.approves() && objection::is_in(follow_up, ask) {
        return Err(retraction::violation(offset));
    }
    let mut review = Review::of(ask.reviewer.clone(), ask.kind, verdict);
    if review.verdict == Verdict::ChangesRequested {
        review.findings.push(drift(follow_up, offset, ask)?);
    }
    review.summary = follow_up.trim().to_owned();
    review.follow_up_prompt = Some(follow_up.to_owned());
    Ok(review)
}

/// The one finding of a drift: its follow-up, which is what the fixer is told.
fn drift(follow_up: &str, offset: usize, ask: &Ask) -> Result<Finding, Violation> {
    if follow_up.trim().is_empty() {
        let message = "`drift` with an empty `followUpPrompt`: say what has to be fixed";
        return Err(Violation::new(ViolationCode::IssuesWithoutIssue, offset, message));
    }
    Ok(Finding::of(&ask.reviewer, "drift", Severity::Critical, follow_up.trim()))
}
