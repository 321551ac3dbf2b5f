//! The JSON texts inside a message: every outermost object and array, whole or broken.

use std::ops::Range;

use super::binding::{Binding, Standing, clip};
use super::json_value::{self, Attempt, Seen, Value};
use super::message::Message;
use crate::review::{Violation, ViolationCode};

/// An object or array that is no part of another one.
#[derive(Debug)]
pub(super) struct JsonText {
    pub range: Range<usize>,
    pub value: Result<Value, Violation>,
    pub seen: Seen,
    /// It stands inside a JSON text that breaks off so, and nobody knows what it was a part of.
    ruin: Option<ViolationCode>,
}

impl JsonText {
    /// The `nonce` and `commit` keys, as far as they were read.
    pub fn binding(&self) -> Binding {
        Binding { nonce: self.seen.text("nonce"), commit: self.seen.text("commit") }
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
            (true | false, _) => Some(Standing::Quoted),
        }
    }
}

/// The JSON texts in order: the whole ones, and the broken ones that have a key of an answer.
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
            if !may_open(&text[start..]) {
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
            if code.is_none() || seen.has_any() || unfathomed {
                let value = value.map_err(|(code, error)| broken(code, &error, end));
                return Some(JsonText { range: start..end, value, seen, ruin: around });
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

fn broken(code: ViolationCode, error: &serde_json::Error, offset: usize) -> Violation {
    // The reader counts lines and columns from the bracket; the offset says more.
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    Violation::new(code, offset, format!("the JSON answer breaks off: {reason}"))
}
