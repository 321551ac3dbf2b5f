//! `{"verdict": "pass"|"drift", "followUpPrompt": "…"}`, anywhere in the message, fenced or not.

use std::rc::Rc;

use super::Ask;
use super::binding::{Candidate, MAX_CANDIDATES, clip, too_many};
use super::json_text::{self, JsonText};
use super::json_value::{Object, Value};
use super::message::Message;
use crate::review::{Finding, Review, Severity, Verdict, Violation, ViolationCode};

pub(super) const NOTHING: &str = "there is no JSON object with a `verdict` key";

pub(super) fn candidates(message: &Message<'_>, ask: &Ask) -> Result<Vec<Candidate>, Violation> {
    let mut found = Vec::new();
    let answers = |json: &JsonText| json.seen.has("verdict") || json.is_unfathomed();
    for json in json_text::scan(message.text()).filter(answers) {
        if found.len() >= MAX_CANDIDATES {
            return Err(too_many(json.range.start));
        }
        found.extend(candidate(&json, message, ask));
    }
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
    Some(Candidate { offset, binding: json.binding(), standing: json.standing(message)?, answer })
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
