//! JSON helpers for trackers and planners: line numbers, and detection of duplicate keys.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{SourceError, SourceInput, TaskFormat};

/// An id that is a number in some files and a string in others. Compared as a string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(pub String);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl Visitor<'_> for IdVisitor {
            type Value = Id;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or text")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Id, E> {
                Ok(Id(text.trim().to_owned()))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Id, E> {
                Ok(Id(number.to_string()))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Id, E> {
                Ok(Id(number.to_string()))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Id, E> {
                Ok(Id(number.to_string()))
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}

/// An object with unparsed values. Duplicate keys are an error if `UNIQUE`.
#[derive(Debug)]
pub struct JsonMembers<'a, const UNIQUE: bool = true>(pub Vec<(String, &'a RawValue)>);

impl<'a, const UNIQUE: bool> JsonMembers<'a, UNIQUE> {
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }
}

impl<'de: 'a, 'a, const UNIQUE: bool> Deserialize<'de> for JsonMembers<'a, UNIQUE> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct JsonMembersVisitor<const UNIQUE: bool>;
        impl<'de, const UNIQUE: bool> Visitor<'de> for JsonMembersVisitor<UNIQUE> {
            type Value = Vec<(String, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                let mut seen = HashSet::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    if UNIQUE && !seen.insert(key.clone()) {
                        return Err(A::Error::custom(format!("duplicate key `{}`", super::lines::short(&key))));
                    }
                    members.push((key, value));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(JsonMembersVisitor::<UNIQUE>).map(JsonMembers)
    }
}

/// The first key that an object in a JSON value has twice, at any depth.
pub fn duplicate_key(value: &str) -> Option<String> {
    let parts: Vec<&RawValue> = if value.starts_with('{') {
        let members: JsonMembers<'_, false> = serde_json::from_str(value).ok()?;
        let mut seen = HashSet::new();
        if let Some((key, _)) = members.0.iter().find(|(key, _)| !seen.insert(key)) {
            return Some(super::lines::short(key));
        }
        members.0.into_iter().map(|(_, value)| value).collect()
    } else if value.starts_with('[') {
        serde_json::from_str(value).ok()?
    } else {
        return None;
    };
    parts.into_iter().find_map(|part| duplicate_key(part.get()))
}

/// A file whose parts are read as JSON.
pub struct JsonSource<'s, 'a> {
    pub source: &'s SourceInput<'a>,
    lines: LineIndex,
    format: TaskFormat,
}

impl<'s, 'a> JsonSource<'s, 'a> {
    pub fn new(source: &'s SourceInput<'a>, format: TaskFormat) -> Self {
        Self { source, lines: LineIndex::new(source.text), format }
    }

    /// The line in which `part`, a slice of the source text, begins.
    pub fn line(&self, part: &RawValue) -> u32 {
        self.lines.line_of(self.source.text, part.get())
    }

    /// Parses `part`, which must be a slice of the source text. Errors have the line in the file.
    pub fn read<T: Deserialize<'a>>(&self, part: &'a str, expected: &str) -> Result<T, SourceError> {
        serde_json::from_str(part).map_err(|error| {
            let line = self.lines.line_of_error(self.source.text, part, &error);
            let (problem, format) = (error_message(&error), self.format.name());
            let message = format!("{problem}; formats tried: {format}; expected {expected}");
            self.source.error(line, message)
        })
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

    /// The line in which `part`, a slice of `text`, begins.
    pub fn line_of(&self, text: &str, part: &str) -> u32 {
        let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let newlines = self.0.partition_point(|start| *start as usize <= offset);
        u32::try_from(newlines + 1).unwrap_or(u32::MAX)
    }

    /// The line in `text` of an error in `part`, a slice of it.
    pub fn line_of_error(&self, text: &str, part: &str, error: &serde_json::Error) -> u32 {
        let within = u32::try_from(error.line()).unwrap_or(u32::MAX).max(1) - 1;
        self.line_of(text, part).saturating_add(within)
    }
}
