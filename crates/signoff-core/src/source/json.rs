//! JSON helpers for trackers and planners: line numbers, and detection of duplicate keys.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{SourceError, SourceInput, TaskFormat};
use crate::text::shortened;

/// An id that is a number in some files and a string in others. Compared as a string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JsonId(pub String);

impl<'de> Deserialize<'de> for JsonId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl Visitor<'_> for IdVisitor {
            type Value = JsonId;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or text")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<JsonId, E> {
                Ok(JsonId(text.trim().to_owned()))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<JsonId, E> {
                Ok(JsonId(number.to_string()))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<JsonId, E> {
                Ok(JsonId(number.to_string()))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<JsonId, E> {
                Ok(JsonId(number.to_string()))
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}

/// An object with unparsed values.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct JsonMembers<'a>(#[serde(borrow, deserialize_with = "in_order")] pub Vec<(String, &'a RawValue)>);

impl<'a> JsonMembers<'a> {
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }
}

/// Reads a map as pairs in their order.
pub fn in_order<'de, K, V, D>(deserializer: D) -> Result<Vec<(K, V)>, D::Error>
where
    K: Deserialize<'de>,
    V: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct InOrder<K, V>(PhantomData<(K, V)>);
    impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for InOrder<K, V> {
        type Value = Vec<(K, V)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table or an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            std::iter::from_fn(|| map.next_entry().transpose()).collect()
        }
    }
    deserializer.deserialize_map(InOrder(PhantomData))
}

/// A JSON text whose parts, which are slices of it, are read with their lines.
pub struct PositionedJson<'a> {
    pub text: &'a str,
    lines: LineIndex,
}

/// An error in a JSON text.
pub struct JsonError {
    pub line: u32,
    pub kind: JsonErrorKind,
    pub message: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum JsonErrorKind {
    /// The text is truncated.
    Truncated,
    Malformed,
    DuplicateKey,
}

impl<'a> PositionedJson<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, lines: LineIndex::new(text) }
    }

    /// The line in which a part begins.
    pub fn line(&self, part: &str) -> u32 {
        self.lines.line_at((part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize))
    }

    /// Parses a part.
    pub fn read<T: Deserialize<'a>>(&self, part: &'a str) -> Result<T, JsonError> {
        serde_json::from_str(part).map_err(|error: serde_json::Error| {
            let within = u32::try_from(error.line()).unwrap_or(u32::MAX).max(1) - 1;
            let kind = if error.is_eof() { JsonErrorKind::Truncated } else { JsonErrorKind::Malformed };
            JsonError { line: self.line(part).saturating_add(within), kind, message: error_message(&error) }
        })
    }

    /// Parses a part that is an object. A duplicate key is an error.
    pub fn members(&self, part: &'a str) -> Result<JsonMembers<'a>, JsonError> {
        let members: JsonMembers<'a> = self.read(part)?;
        let mut seen = HashSet::new();
        match members.0.iter().find(|(key, _)| !seen.insert(key)) {
            Some((key, value)) => {
                let message = format!("duplicate key `{}`", shortened(key, 80));
                Err(JsonError { line: self.line(value.get()), kind: JsonErrorKind::DuplicateKey, message })
            }
            None => Ok(members),
        }
    }
}

/// A file whose parts are read as JSON.
pub struct JsonSource<'s, 'a> {
    pub source: &'s SourceInput<'a>,
    json: PositionedJson<'a>,
    format: TaskFormat,
}

impl<'s, 'a> JsonSource<'s, 'a> {
    pub fn new(source: &'s SourceInput<'a>, format: TaskFormat) -> Self {
        Self { source, json: PositionedJson::new(source.text), format }
    }

    /// The line in which a part begins.
    pub fn line(&self, part: &RawValue) -> u32 {
        self.json.line(part.get())
    }

    /// Parses a part. Errors have the line in the file.
    pub fn read<T: Deserialize<'a>>(&self, part: &'a str, expected: &str) -> Result<T, SourceError> {
        self.json.read(part).map_err(|error| self.error(&error, expected))
    }

    /// Parses a part that is an object.
    pub fn members(&self, part: &'a str, expected: &str) -> Result<JsonMembers<'a>, SourceError> {
        self.json.members(part).map_err(|error| self.error(&error, expected))
    }

    fn error(&self, error: &JsonError, expected: &str) -> SourceError {
        let message = format!("{}; formats tried: {}; expected {expected}", error.message, self.format.name());
        self.source.error(error.line, message)
    }
}

/// The message of serde without the position, which is relative to the part.
pub fn error_message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let bare = message.rsplit_once(" at line ").map_or(message.as_str(), |(bare, _)| bare);
    super::lines::short(bare)
}

/// The offsets of the line starts of a text.
pub struct LineIndex(Vec<u32>);

impl LineIndex {
    pub fn new(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let newlines = newlines.map(|start| u32::try_from(start).unwrap_or(u32::MAX));
        Self(newlines.collect())
    }

    /// The line of a byte.
    pub fn line_at(&self, offset: usize) -> u32 {
        let newlines = self.0.partition_point(|start| *start as usize <= offset);
        u32::try_from(newlines + 1).unwrap_or(u32::MAX)
    }
}
