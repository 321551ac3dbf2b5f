//! Parses JSON with `serde_json`, and records what it would drop: duplicate keys and nesting depth.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::Parsed;
use super::candidates::clip;
use super::wording::is_listed;
use crate::review::{Severity, Violation, ViolationCode};

pub(crate) type JsonObject = Map<String, Value>;

/// Maximum nesting depth. It also limits how often a hostile text is parsed again.
pub(super) const MAX_DEPTH: usize = 32;

/// The key with which a nested object says that the work did not pass.
pub(super) fn nested_rejection(value: &Value) -> Option<&str> {
    match value {
        Value::Array(values) => values.iter().find_map(rejection_within),
        Value::Object(object) => object.values().find_map(rejection_within),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn rejection_within(value: &Value) -> Option<&str> {
    let Some(object) = value.as_object() else { return nested_rejection(value) };
    let verdict = || object.get("verdict").filter(|verdict| denies("verdict", verdict)).map(|_| "verdict");
    rejection(object).or_else(verdict).or_else(|| nested_rejection(value))
}

/// The type for error messages.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The value at `key` as `read` converts it, or `None` if it is missing or null.
pub(crate) fn optional<'o, T>(
    object: &'o JsonObject,
    key: &str,
    expected: &str,
    offset: usize,
    read: impl Fn(&'o Value) -> Option<T>,
) -> Parsed<Option<T>> {
    let value = object.get(key).filter(|value| !value.is_null());
    value.map(|value| read(value).ok_or_else(|| wrong_type(key, expected, value, offset))).transpose()
}

pub(crate) fn optional_text<'o>(object: &'o JsonObject, key: &str, offset: usize) -> Parsed<Option<&'o str>> {
    optional(object, key, "a string", offset, Value::as_str)
}

pub(super) fn required_text<'o>(object: &'o JsonObject, key: &str, offset: usize) -> Parsed<&'o str> {
    let value = object.get(key).ok_or_else(|| missing(key, "a string", offset))?;
    value.as_str().ok_or_else(|| wrong_type(key, "a string", value, offset))
}

/// The string at `key`. Ignores values of other types.
pub(super) fn text(object: &JsonObject, key: &str) -> Option<String> {
    object.get(key)?.as_str().map(|text| text.trim().to_owned())
}

/// The key with which the object says that the work did not pass. The caller reads the key `own` itself.
pub(super) fn denial<'o>(object: &'o JsonObject, own: &str) -> Option<&'o str> {
    object.iter().filter(|(key, _)| *key != own).find(|(key, value)| denies(key, value)).map(|(key, _)| key.as_str())
}

/// The same for an object that is not an answer. Fewer keys count, because such objects often describe the status or
/// errors of other things.
pub(super) fn rejection(object: &JsonObject) -> Option<&str> {
    object.iter().map(|(key, value)| (key.as_str(), value)).find_map(|(key, value)| {
        let is_denied = *value == Value::Bool(false) && REJECTIONS.contains(&key);
        let is_list = || value.as_array().is_some_and(|values| values.iter().any(Value::is_object));
        (is_denied || (PROBLEMS.contains(&key) && is_list())).then_some(key)
    })
}

/// Whether any string of the object is a severity.
pub(super) fn states_severity(object: &JsonObject) -> bool {
    object.values().filter_map(Value::as_str).any(|word| Severity::parse(word).is_some())
}

/// Keys with a yes or no, keys with an outcome, and keys that list or count problems.
const JUDGEMENTS: [&str; 5] = ["passed", "approved", "intentsatisfied", "success", "ok"];
const REJECTIONS: [&str; 3] = ["passed", "approved", "intentSatisfied"];
const OUTCOMES: [&str; 4] = ["verdict", "status", "result", "decision"];
const PROBLEMS: [&str; 7] = ["issues", "findings", "error", "errors", "problems", "blockers", "violations"];

/// Outcomes in favour of the work, or that only say that the review is complete.
const GOOD: &str = "pass passed approved approve ok okay success clean lgtm done complete completed finished \
    reviewed";

fn denies(key: &str, value: &Value) -> bool {
    let key = key.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let is_good = matches!(value, Value::Null | Value::Bool(true));
    let says_nothing = match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.trim().is_empty() || text.trim().eq_ignore_ascii_case("none"),
        Value::Array(values) => values.is_empty(),
        Value::Object(object) => object.is_empty(),
    };
    if JUDGEMENTS.contains(&key.as_str()) {
        !is_good
    } else if OUTCOMES.contains(&key.as_str()) {
        !is_good && !value.as_str().is_some_and(|text| is_listed(text.trim(), GOOD))
    } else {
        PROBLEMS.contains(&key.as_str()) && !says_nothing
    }
}

pub(crate) fn missing(key: &str, expected: &str, offset: usize) -> Violation {
    Violation::new(ViolationCode::MissingKey, offset, format!("`{key}` is missing: {expected} is required"))
}

pub(crate) fn wrong_type(key: &str, expected: &str, found: &Value, offset: usize) -> Violation {
    let message = format!("`{key}` must be {expected}, not {}", type_name(found));
    Violation::new(ViolationCode::WrongType, offset, message)
}

/// The keys that make an object an answer, or that bind it.
const ANSWER_KEYS: [&str; 5] = ["verdict", "issues", "severity", "nonce", "commit"];

/// Information about a JSON text besides its value. Available for truncated texts too.
#[derive(Debug, Default)]
pub(super) struct KeyScan {
    /// The `ANSWER_KEYS` read in the outermost object, with their strings.
    pub keys: BTreeMap<String, Option<String>>,
    pub duplicate: Option<String>,
    is_too_deep: bool,
}

impl KeyScan {
    /// Whether `key`, one of `ANSWER_KEYS`, was read.
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    pub fn text(&self, key: &str) -> Option<String> {
        self.keys.get(key).cloned().flatten()
    }

    /// Returns a violation if a key is duplicated in one object.
    pub fn check_duplicate(&self, offset: usize) -> Parsed<()> {
        let Some(key) = &self.duplicate else { return Ok(()) };
        let message = format!("the key `{}` appears twice in one object", clip(key));
        Err(Violation::new(ViolationCode::DuplicateKey, offset, message))
    }
}

/// The result of parsing JSON from the start of a text.
pub(super) struct ParsedJson {
    pub value: Result<Value, (ViolationCode, serde_json::Error)>,
    /// Number of bytes read.
    pub length: usize,
    pub seen: KeyScan,
}

/// Parses one JSON value from the start of `text`. Ignores the text after it.
pub(super) fn read(text: &str) -> ParsedJson {
    let mut seen = KeyScan::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let result = JsonSeed { depth: 0, seen: &mut seen }.deserialize(&mut deserializer);
    let length = deserializer.into_iter::<IgnoredAny>().byte_offset();
    let value = result.map_err(|error| {
        let code = match (seen.is_too_deep, error.is_eof()) {
            (true, _) => ViolationCode::TooDeep,
            (false, true) => ViolationCode::Truncated,
            (false, false) => ViolationCode::Malformed,
        };
        (code, error)
    });
    ParsedJson { value, length, seen }
}

struct JsonSeed<'s> {
    depth: usize,
    seen: &'s mut KeyScan,
}

impl JsonSeed<'_> {
    fn enter<E: Error>(&mut self) -> Result<(), E> {
        if self.depth >= MAX_DEPTH {
            self.seen.is_too_deep = true;
            return Err(E::custom(format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        Ok(())
    }

    fn inner(&mut self) -> JsonSeed<'_> {
        JsonSeed { depth: self.depth, seen: self.seen }
    }
}

/// The text by which an answer is recognized or bound. A commit that is not a string names none, so it never matches
/// the one under review.
fn key_text(key: &str, value: &Value) -> Option<String> {
    let other = || (key == "commit" && !value.is_null()).then(|| type_name(value));
    value.as_str().map(str::trim).or_else(other).map(str::to_owned)
}

impl<'de> DeserializeSeed<'de> for JsonSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut values = Vec::new();
        while let Some(value) = access.next_element_seed(self.inner())? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let is_outermost = self.depth == 0;
        self.enter()?;
        let mut members = BTreeMap::new();
        while let Some(key) = access.next_key::<String>()? {
            let is_answer_key = is_outermost && ANSWER_KEYS.contains(&key.as_str());
            if is_answer_key {
                self.seen.keys.insert(key.clone(), None);
            }
            let value = access.next_value_seed(self.inner())?;
            if let Some(text) = key_text(&key, &value).filter(|_| is_answer_key) {
                self.seen.keys.insert(key.clone(), Some(text));
            }
            if members.insert(key.clone(), value).is_some() {
                self.seen.duplicate.get_or_insert(key);
            }
        }
        // In the order of the keys, so that an error names the same key whatever their order in the text.
        Ok(Value::Object(members.into_iter().collect()))
    }
}
