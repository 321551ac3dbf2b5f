//! The JSON texts inside a message: every outermost object and array, whole or broken.

use std::ops::Range;

use super::binding::{Binding, Candidate, Standing, clip};
use super::json_value::{self, Attempt, Seen, Value};
use super::message::Message;
use super::outline::Shown;
use crate::review::{Violation, ViolationCode};

/// An object or array that is no part of another one.
#[derive(Debug)]
pub(super) struct JsonText {
    pub range: Range<usize>,
    pub value: Result<Value, Violation>,
    pub seen: Seen,
    /// It stands inside a JSON text that breaks off so, and nobody knows what it was a part of.
    ruin: Option<ViolationCode>,
    /// Whether a broken text has a key of an answer in it, or breaks off with the message.
    telling: bool,
}

impl JsonText {
    /// The `nonce` and `commit` keys, as far as they were read.
    pub fn binding(&self) -> Binding {
        Binding { nonce: self.seen.text("nonce"), commit: self.seen.text("commit") }
    }

    /// What this text, which is no answer, says against an approval.
    pub fn doubt(&self, message: &Message<'_>) -> Option<Candidate> {
        let offset = self.range.start;
        if self.standing(message)? == Standing::Quoted {
            return None;
        }
        let fenced = self.is_fenced(message);
        let (standing, violation) = match &self.value {
            Err(violation) if self.telling => (Standing::Denial, violation.clone()),
            // A snippet of code in a fence is whole in its own language.
            Err(_) if fenced => return None,
            Err(violation) => (Standing::Doubt, violation.clone()),
            Ok(value) => {
                let own = if let Value::Object(object) = value { object.rejection() } else { None };
                let own = own.filter(|key| !fenced || *key == "passed");
                let key = own.or_else(|| value.nested_rejection().filter(|_| !fenced))?;
                let message =
                    format!("an object that is no answer says by `{}` that the work did not pass", clip(key));
                (Standing::Denial, Violation::new(ViolationCode::Disagreement, offset, message))
            }
        };
        Some(Candidate { offset, binding: self.binding(), standing, answer: Err(violation) })
    }

    pub fn is_fenced(&self, message: &Message<'_>) -> bool {
        message.outline().shown(self.range.start) == Some(Shown::Code)
    }

    pub fn ruin(&self) -> Option<ViolationCode> {
        self.ruin
    }

    /// An object nested so deep that its keys were never reached: it may have been the answer.
    pub fn is_unfathomed(&self) -> bool {
        let too_deep = |violation: &Violation| violation.code == ViolationCode::TooDeep;
        !self.seen.has_any() && self.value.as_ref().is_err_and(too_deep)
    }

    /// The value, unless a key appears twice in it: then nobody knows which one was meant.
    pub fn unambiguous(&self) -> Result<&Value, Violation> {
        let value = self.value.as_ref().map_err(Clone::clone)?;
        match self.seen.duplicate() {
            None => Ok(value),
            Some(key) => {
                let message = format!("the key `{}` appears twice in one object", clip(&key));
                Err(Violation::new(ViolationCode::DuplicateKey, self.range.start, message))
            }
        }
    }

    /// None for a broken text that is only shown: quotations may be cut anywhere.
    pub fn standing(&self, message: &Message<'_>) -> Option<Standing> {
        let end = self.value.is_ok().then_some(self.range.end);
        let quoted = message.outline().quotes(message.text(), self.range.start, end);
        match (quoted, end) {
            (true, None) => None,
            (false, _) if self.ruin.is_none() => Some(Standing::Plain),
            (false, _) => Some(Standing::Fragment),
            (true, Some(_)) => Some(Standing::Quoted),
        }
    }
}

/// The JSON texts in order: the whole ones, and the broken ones that may have been an answer.
///
/// Linear: a broken text is read again only from the brackets inside it, and a bracket can lie inside at
/// most twice [`json_value::MAX_DEPTH`] broken texts (once for each reading of what is inside the quotes).
pub(super) fn scan(text: &str) -> impl Iterator<Item = JsonText> {
    let mut from = 0;
    let mut ruin: Option<(usize, ViolationCode)> = None;
    std::iter::from_fn(move || {
        loop {
            let start = from + text[from..].find(['{', '['])?;
            from = start + 1;
            let telling = is_telling(&text[start..]);
            if !may_open(&text[start..]) {
                if telling || is_cut_off(&text[start..]) {
                    return Some(misspelt(start));
                }
                continue;
            }
            let Attempt { value, length, seen } = json_value::read(&text[start..]);
            let end = start + length;
            let around = ruin.filter(|(to, _)| start < *to).map(|(_, code)| code);
            let code = value.as_ref().err().map(|(code, _)| *code);
            // What is nested too deep is part of it: no text of its own begins before this place.
            if matches!(code, None | Some(ViolationCode::TooDeep)) {
                from = end;
            }
            if let Some(code) = code.filter(|_| ruin.is_none_or(|(to, _)| to < end)) {
                ruin = Some((end, code));
            }
            let unfathomed = code == Some(ViolationCode::TooDeep) && text[start..].starts_with('{');
            let keyed = is_keyed(&text[start..]);
            let telling = telling || (code == Some(ViolationCode::Truncated) && holds_object(&text[start..]));
            if code.is_none() || seen.has_any() || unfathomed || keyed || telling {
                let value = value.map_err(|(code, error)| broken(code, &error, end));
                return Some(JsonText { range: start..end, value, seen, ruin: around, telling });
            }
        }
    })
}

/// Whether what follows the bracket can be JSON at all: spares the reader most brackets of ordinary text.
fn may_open(text: &str) -> bool {
    let next = text[1..].bytes().find(|byte| !byte.is_ascii_whitespace());
    if text.starts_with('{') {
        matches!(next, Some(b'"' | b'}'))
    } else {
        matches!(next, Some(b']' | b'[' | b'{' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'))
    }
}

/// Whether a broken object got as far as a key and its colon, which sets in prose and code do not.
fn is_keyed(text: &str) -> bool {
    let inside = text.strip_prefix('{').and_then(|inside| inside.trim_start().strip_prefix('"'));
    let key = inside.and_then(|key| key.split_once('"'));
    key.is_some_and(|(key, rest)| !key.contains('\n') && rest.trim_start().starts_with(':'))
}

/// Whether the bracket opens an object or a list of them.
fn holds_object(text: &str) -> bool {
    text.starts_with('{') || text[1..].trim_start().starts_with('{')
}

/// Whether an object that begins unlike JSON is never closed.
fn is_cut_off(text: &str) -> bool {
    let key = |c: char| is_quote(c) || matches!(c, '/' | '#' | ',');
    text.strip_prefix('{')
        .is_some_and(|inside| inside.trim_start().starts_with(key) && !inside.contains(['{', '}']))
}

/// The keys by which an answer is known even where it is no JSON.
const TELLING: [&str; 6] = ["verdict", "followUpPrompt", "issues", "findings", "severity", "intentSatisfied"];

/// Whether what follows a brace, up to the next one, has a key of an answer. The stretches looked at are
/// disjoint, so this is linear.
fn is_telling(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('{').and_then(|inside| inside.split(['{', '}']).next()) else {
        return false;
    };
    inside.match_indices(':').any(|(at, _)| {
        let before = inside[..at].trim_end_matches(|c: char| c.is_whitespace() || is_quote(c));
        let joined = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let is_key = |key: &str| before.strip_suffix(key).is_some_and(|rest| !rest.ends_with(joined));
        !inside[at + 1..].starts_with(':') && TELLING.into_iter().any(is_key)
    })
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '‘' | '’' | '“' | '”' | '„' | '«' | '»')
}

/// What is written like an answer in JSON, but is none from its first character on.
fn misspelt(start: usize) -> JsonText {
    let message = "this looks like an answer, but it is not JSON";
    JsonText {
        range: start..start + 1,
        value: Err(Violation::new(ViolationCode::Malformed, start, message)),
        seen: Seen::default(),
        ruin: None,
        telling: true,
    }
}

fn broken(code: ViolationCode, error: &serde_json::Error, offset: usize) -> Violation {
    // The reader counts lines and columns from the bracket; the offset says more.
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    Violation::new(code, offset, format!("the JSON answer breaks off: {reason}"))
}
