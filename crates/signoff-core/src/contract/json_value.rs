//! JSON as reviewers write it: read by `serde_json`, keeping what it would drop — duplicate keys and depth.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::review::{Severity, Violation, ViolationCode};

/// Answers nest less than this; the bound also limits how often a hostile text can be read twice.
pub(super) const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Array(Vec<Value>),
    Object(Object),
}

impl Value {
    /// A key by which an object in this value, below its top, says that the work did not pass.
    pub fn nested_rejection(&self) -> Option<&str> {
        match self {
            Self::Array(values) => values.iter().find_map(Self::rejection_within),
            Self::Object(object) => object.keys.values().find_map(Self::rejection_within),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) => None,
        }
    }

    fn rejection_within(&self) -> Option<&str> {
        let Self::Object(object) = self else { return self.nested_rejection() };
        let verdict = object.keys.get_key_value("verdict").filter(|(key, value)| denies(key, value));
        let verdict = || verdict.map(|(key, _)| key.as_str());
        object.rejection().or_else(verdict).or_else(|| self.nested_rejection())
    }

    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// What a person would call it, for messages.
    pub fn what(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Object {
    keys: BTreeMap<String, Value>,
}

impl Object {
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.keys.get(key)
    }

    pub fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// The string under `key`, or none where it is missing or null.
    pub fn optional_text(&self, key: &str, offset: usize) -> Result<Option<&str>, Violation> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(key, "a string", other, offset)),
        }
    }

    pub fn required_text(&self, key: &str, offset: usize) -> Result<&str, Violation> {
        match self.get(key) {
            None => Err(missing(key, "a string", offset)),
            Some(Value::Text(text)) => Ok(text),
            Some(other) => Err(wrong_type(key, "a string", other, offset)),
        }
    }

    /// A key by which the object says that the work did not pass; `own` is read by the caller.
    pub fn denial(&self, own: &str) -> Option<&str> {
        let mut keys = self.keys.iter().filter(|(key, _)| key.as_str() != own);
        keys.find(|(key, value)| denies(key, value)).map(|(key, _)| key.as_str())
    }

    /// The same for an object that is no answer. Many of those speak of a status or an error of other things.
    pub fn rejection(&self) -> Option<&str> {
        let mut keys = self.keys.iter();
        keys.find(|(key, value)| match value {
            Value::Bool(false) => REJECTIONS.contains(&key.as_str()),
            Value::Array(values) => PROBLEMS.contains(&key.as_str()) && values.iter().any(Value::is_object),
            Value::Null | Value::Bool(true) | Value::Number(_) | Value::Text(_) | Value::Object(_) => false,
        })
        .map(|(key, _)| key.as_str())
    }

    /// Whether one of its texts is a severity, under whichever key.
    pub fn states_severity(&self) -> bool {
        let is_severity =
            |value: &Value| matches!(value, Value::Text(word) if Severity::known(word.trim()).is_some());
        self.keys.values().any(is_severity)
    }

    /// The string under `key`, whatever else may stand there.
    pub fn text(&self, key: &str) -> Option<String> {
        if let Some(Value::Text(text)) = self.get(key) { Some(text.trim().to_owned()) } else { None }
    }
}

/// Keys that say yes or no, keys that say how it went, and keys under which problems are listed or counted.
const JUDGEMENTS: [&str; 5] = ["passed", "approved", "intentsatisfied", "success", "ok"];
const REJECTIONS: [&str; 3] = ["passed", "approved", "intentSatisfied"];
const OUTCOMES: [&str; 4] = ["verdict", "status", "result", "decision"];
const PROBLEMS: [&str; 7] = ["issues", "findings", "error", "errors", "problems", "blockers", "violations"];

/// The outcomes that speak for the work, or only of the review being over.
const GOOD: [&str; 14] = [
    "pass",
    "passed",
    "approved",
    "approve",
    "ok",
    "okay",
    "success",
    "clean",
    "lgtm",
    "done",
    "complete",
    "completed",
    "finished",
    "reviewed",
];

fn denies(key: &str, value: &Value) -> bool {
    let key: String = key.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let says_nothing = match value {
        Value::Null => true,
        Value::Bool(said) => !said,
        Value::Number(number) => *number == 0.0,
        Value::Text(text) => text.trim().is_empty() || text.trim().eq_ignore_ascii_case("none"),
        Value::Array(values) => values.is_empty(),
        Value::Object(object) => object.keys.is_empty(),
    };
    let good = |text: &String| GOOD.iter().any(|good| good.eq_ignore_ascii_case(text.trim()));
    if JUDGEMENTS.contains(&key.as_str()) {
        !matches!(value, Value::Null | Value::Bool(true))
    } else if OUTCOMES.contains(&key.as_str()) {
        !matches!(value, Value::Null | Value::Bool(true)) && !matches!(value, Value::Text(text) if good(text))
    } else {
        PROBLEMS.contains(&key.as_str()) && !says_nothing
    }
}

pub(super) fn missing(key: &str, expected: &str, offset: usize) -> Violation {
    Violation::new(ViolationCode::MissingKey, offset, format!("`{key}` is missing: {expected} is required"))
}

pub(super) fn wrong_type(key: &str, expected: &str, found: &Value, offset: usize) -> Violation {
    let message = format!("`{key}` must be {expected}, not {}", found.what());
    Violation::new(ViolationCode::WrongType, offset, message)
}

/// The keys that make an object an answer, or say what it belongs to.
const MARKS: [&str; 5] = ["verdict", "issues", "severity", "nonce", "commit"];

/// What is known about a JSON text apart from its value: also of one that breaks off.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Those of [`MARKS`] that were read in the outermost object, with their texts.
    keys: RefCell<BTreeMap<String, Option<String>>>,
    duplicate: RefCell<Option<String>>,
    too_deep: Cell<bool>,
}

impl Seen {
    /// Whether `key`, one of [`MARKS`], was read.
    pub fn has(&self, key: &str) -> bool {
        self.keys.borrow().contains_key(key)
    }

    pub fn has_any(&self) -> bool {
        !self.keys.borrow().is_empty()
    }

    pub fn text(&self, key: &str) -> Option<String> {
        self.keys.borrow().get(key).cloned().flatten()
    }

    pub fn duplicate(&self) -> Option<String> {
        self.duplicate.borrow().clone()
    }
}

/// One attempt to read JSON from the start of a text.
pub(super) struct Attempt {
    pub value: Result<Value, (ViolationCode, serde_json::Error)>,
    /// How far it was read.
    pub length: usize,
    pub seen: Seen,
}

/// Reads one JSON value from the start of `text`; what follows it is left alone.
pub(super) fn read(text: &str) -> Attempt {
    let seen = Seen::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let result = Node { depth: 0, seen: &seen }.deserialize(&mut deserializer);
    let length = deserializer.into_iter::<IgnoredAny>().byte_offset();
    let value = result.map_err(|error| {
        let code = match (seen.too_deep.get(), error.is_eof()) {
            (true, _) => ViolationCode::TooDeep,
            (false, true) => ViolationCode::Truncated,
            (false, false) => ViolationCode::Malformed,
        };
        (code, error)
    });
    Attempt { value, length, seen }
}

#[derive(Clone, Copy)]
struct Node<'s> {
    depth: usize,
    seen: &'s Seen,
}

impl Node<'_> {
    fn inner<E: Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            self.seen.too_deep.set(true);
            return Err(E::custom(format!("nested more than {MAX_DEPTH} deep")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    fn saw(self, key: &str, value: &Value) {
        if self.depth > 0 || !MARKS.contains(&key) {
            return;
        }
        let text = match value {
            Value::Text(text) => text.trim().to_owned(),
            // What is no text names no commit, so it cannot be the one under review.
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) if key == "commit" => {
                value.what().to_owned()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => return,
        };
        self.seen.keys.borrow_mut().insert(key.to_owned(), Some(text));
    }

    fn about_to_read(self, key: &str) {
        if self.depth == 0 && MARKS.contains(&key) {
            self.seen.keys.borrow_mut().insert(key.to_owned(), None);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut values = Vec::new();
        while let Some(value) = access.next_element_seed(inner)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut keys = BTreeMap::new();
        while let Some(key) = access.next_key::<String>()? {
            self.about_to_read(&key);
            let value = access.next_value_seed(inner)?;
            self.saw(&key, &value);
            if keys.insert(key.clone(), value).is_some() {
                self.seen.duplicate.borrow_mut().get_or_insert(key);
            }
        }
        Ok(Value::Object(Object { keys }))
    }
}
