//! Parses JSON with `serde_json`, and records what it would drop: duplicate keys and nesting depth.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::wording::is_listed;
use crate::review::{Severity, Violation, ViolationCode};

/// Maximum nesting depth. It also limits how often a hostile text is parsed again.
pub(super) const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum JsonValue {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Array(Vec<JsonValue>),
    Object(JsonObject),
}

impl JsonValue {
    /// The key with which a nested object says that the work did not pass.
    pub fn nested_rejection(&self) -> Option<&str> {
        match self {
            Self::Array(values) => values.iter().find_map(Self::rejection_within),
            Self::Object(object) => object.keys.values().find_map(Self::rejection_within),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) => None,
        }
    }

    fn rejection_within(&self) -> Option<&str> {
        let Self::Object(object) = self else { return self.nested_rejection() };
        let verdict = || object.get("verdict").filter(|value| denies("verdict", value)).map(|_| "verdict");
        object.rejection().or_else(verdict).or_else(|| self.nested_rejection())
    }

    pub fn as_object(&self) -> Option<&JsonObject> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }

    pub fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(values) = self { Some(values) } else { None }
    }

    pub fn is_object(&self) -> bool {
        self.as_object().is_some()
    }

    /// The type for error messages.
    pub fn type_name(&self) -> &'static str {
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
pub(super) struct JsonObject {
    keys: BTreeMap<String, JsonValue>,
}

impl JsonObject {
    pub fn get(&self, key: &str) -> Option<&JsonValue> {
        self.keys.get(key)
    }

    pub fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// The string at `key`, or `None` if it is missing or null.
    pub fn optional_text(&self, key: &str, offset: usize) -> Result<Option<&str>, Violation> {
        match self.get(key) {
            None | Some(JsonValue::Null) => Ok(None),
            Some(JsonValue::Text(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(key, "a string", other, offset)),
        }
    }

    pub fn required_text(&self, key: &str, offset: usize) -> Result<&str, Violation> {
        match self.get(key) {
            None => Err(missing(key, "a string", offset)),
            Some(JsonValue::Text(text)) => Ok(text),
            Some(other) => Err(wrong_type(key, "a string", other, offset)),
        }
    }

    /// The key with which the object says that the work did not pass. The caller reads the key `own` itself.
    pub fn denial(&self, own: &str) -> Option<&str> {
        let mut keys = self.keys.iter().filter(|(key, _)| key.as_str() != own);
        keys.find(|(key, value)| denies(key, value)).map(|(key, _)| key.as_str())
    }

    /// The same for an object that is not an answer. Fewer keys count, because such objects often describe the
    /// status or errors of other things.
    pub fn rejection(&self) -> Option<&str> {
        let denied = |key: &str, value: &JsonValue| *value == JsonValue::Bool(false) && REJECTIONS.contains(&key);
        let listed = |key: &str, value: &JsonValue| {
            let values = value.as_array().filter(|_| PROBLEMS.contains(&key));
            values.is_some_and(|values| values.iter().any(JsonValue::is_object))
        };
        let mut keys = self.keys.iter();
        keys.find(|(key, value)| denied(key, value) || listed(key, value)).map(|(key, _)| key.as_str())
    }

    /// Whether any of its strings is a severity.
    pub fn states_severity(&self) -> bool {
        let is_severity =
            |value: &JsonValue| matches!(value, JsonValue::Text(word) if Severity::parse(word.trim()).is_some());
        self.keys.values().any(is_severity)
    }

    /// The string at `key`. Ignores values of other types.
    pub fn text(&self, key: &str) -> Option<String> {
        if let Some(JsonValue::Text(text)) = self.get(key) { Some(text.trim().to_owned()) } else { None }
    }
}

/// Keys with a yes or no, keys with an outcome, and keys that list or count problems.
const JUDGEMENTS: [&str; 5] = ["passed", "approved", "intentsatisfied", "success", "ok"];
const REJECTIONS: [&str; 3] = ["passed", "approved", "intentSatisfied"];
const OUTCOMES: [&str; 4] = ["verdict", "status", "result", "decision"];
const PROBLEMS: [&str; 7] = ["issues", "findings", "error", "errors", "problems", "blockers", "violations"];

/// Outcomes in favour of the work, or that only say that the review is complete.
const GOOD: &str = "pass passed approved approve ok okay success clean lgtm done complete completed finished \
    reviewed";

fn denies(key: &str, value: &JsonValue) -> bool {
    let key: String = key.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let says_nothing = match value {
        JsonValue::Null => true,
        JsonValue::Bool(said) => !said,
        JsonValue::Number(number) => *number == 0.0,
        JsonValue::Text(text) => text.trim().is_empty() || text.trim().eq_ignore_ascii_case("none"),
        JsonValue::Array(values) => values.is_empty(),
        JsonValue::Object(object) => object.keys.is_empty(),
    };
    let good = |text: &String| is_listed(text.trim(), GOOD);
    if JUDGEMENTS.contains(&key.as_str()) {
        !matches!(value, JsonValue::Null | JsonValue::Bool(true))
    } else if OUTCOMES.contains(&key.as_str()) {
        !matches!(value, JsonValue::Null | JsonValue::Bool(true))
            && !matches!(value, JsonValue::Text(text) if good(text))
    } else {
        PROBLEMS.contains(&key.as_str()) && !says_nothing
    }
}

pub(super) fn missing(key: &str, expected: &str, offset: usize) -> Violation {
    Violation::new(ViolationCode::MissingKey, offset, format!("`{key}` is missing: {expected} is required"))
}

pub(super) fn wrong_type(key: &str, expected: &str, found: &JsonValue, offset: usize) -> Violation {
    let message = format!("`{key}` must be {expected}, not {}", found.type_name());
    Violation::new(ViolationCode::WrongType, offset, message)
}

/// The keys that make an object an answer, or that bind it.
const ANSWER_KEYS: [&str; 5] = ["verdict", "issues", "severity", "nonce", "commit"];

/// Information about a JSON text besides its value. Available for truncated texts too.
#[derive(Debug, Default)]
pub(super) struct KeyScan {
    /// The `ANSWER_KEYS` read in the outermost object, with their strings.
    keys: RefCell<BTreeMap<String, Option<String>>>,
    duplicate: RefCell<Option<String>>,
    too_deep: Cell<bool>,
}

impl KeyScan {
    /// Whether `key`, one of `ANSWER_KEYS`, was read.
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

/// The result of parsing JSON from the start of a text.
pub(super) struct ParsedJson {
    pub value: Result<JsonValue, (ViolationCode, serde_json::Error)>,
    /// Number of bytes read.
    pub length: usize,
    pub seen: KeyScan,
}

/// Parses one JSON value from the start of `text`. Ignores the text after it.
pub(super) fn read(text: &str) -> ParsedJson {
    let seen = KeyScan::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let result = JsonSeed { depth: 0, seen: &seen }.deserialize(&mut deserializer);
    let length = deserializer.into_iter::<IgnoredAny>().byte_offset();
    let value = result.map_err(|error| {
        let code = match (seen.too_deep.get(), error.is_eof()) {
            (true, _) => ViolationCode::TooDeep,
            (false, true) => ViolationCode::Truncated,
            (false, false) => ViolationCode::Malformed,
        };
        (code, error)
    });
    ParsedJson { value, length, seen }
}

#[derive(Clone, Copy)]
struct JsonSeed<'s> {
    depth: usize,
    seen: &'s KeyScan,
}

impl JsonSeed<'_> {
    fn nested<E: Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            self.seen.too_deep.set(true);
            return Err(E::custom(format!("nested more than {MAX_DEPTH} deep")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    fn record_value(self, key: &str, value: &JsonValue) {
        if self.depth > 0 || !ANSWER_KEYS.contains(&key) {
            return;
        }
        let text = if let JsonValue::Text(text) = value {
            text.trim()
        } else if key == "commit" && *value != JsonValue::Null {
            // A value that is not a string names no commit, so it never matches the one under review.
            value.type_name()
        } else {
            return;
        };
        self.seen.keys.borrow_mut().insert(key.to_owned(), Some(text.to_owned()));
    }

    fn record_key(self, key: &str) {
        if self.depth == 0 && ANSWER_KEYS.contains(&key) {
            self.seen.keys.borrow_mut().insert(key.to_owned(), None);
        }
    }
}

impl<'de> DeserializeSeed<'de> for JsonSeed<'_> {
    type Value = JsonValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonValue, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonSeed<'_> {
    type Value = JsonValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<JsonValue, E> {
        Ok(JsonValue::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<JsonValue, E> {
        Ok(JsonValue::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<JsonValue, E> {
        Ok(JsonValue::Number(value as f64))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<JsonValue, E> {
        Ok(JsonValue::Number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<JsonValue, E> {
        Ok(JsonValue::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<JsonValue, E> {
        Ok(JsonValue::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<JsonValue, A::Error> {
        let inner = self.nested()?;
        let mut values = Vec::new();
        while let Some(value) = access.next_element_seed(inner)? {
            values.push(value);
        }
        Ok(JsonValue::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<JsonValue, A::Error> {
        let inner = self.nested()?;
        let mut keys = BTreeMap::new();
        while let Some(key) = access.next_key::<String>()? {
            self.record_key(&key);
            let value = access.next_value_seed(inner)?;
            self.record_value(&key, &value);
            if keys.insert(key.clone(), value).is_some() {
                self.seen.duplicate.borrow_mut().get_or_insert(key);
            }
        }
        Ok(JsonValue::Object(JsonObject { keys }))
    }
}
