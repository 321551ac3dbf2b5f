//! JSON as trackers and planners write it: with its lines, and without keys that are there twice.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Format, Source, SourceError};

/// An id that is a number in some files and text in others. It is compared as text.
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

/// An object whose values are not looked at yet. No key is there twice.
#[derive(Debug)]
pub struct Members<'a>(pub Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Vec<(String, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                let mut seen = HashSet::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    if !seen.insert(key.clone()) {
                        return Err(A::Error::custom(format!("{TWICE}{}", super::lines::short(&key))));
                    }
                    members.push((key, value));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(MembersVisitor).map(Members)
    }
}

/// A value, and the first key that is there twice in it, at any depth.
#[derive(Debug, Clone, PartialEq)]
pub struct Strict {
    pub value: Value,
    pub twice: Option<String>,
}

/// What the message about a key that is there twice begins with.
const TWICE: &str = "this key is there twice: ";

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let twice = RefCell::new(None);
        let value = StrictSeed { twice: &twice }.deserialize(deserializer)?;
        Ok(Self { value, twice: twice.into_inner() })
    }
}

#[derive(Clone, Copy)]
struct StrictSeed<'t> {
    twice: &'t RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for StrictSeed<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(value.into())
    }
    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(value.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(items.into())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = serde_json::Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(self)?;
            if members.contains_key(&key) {
                self.twice.borrow_mut().get_or_insert_with(|| super::lines::short(&key));
            }
            members.insert(key, value);
        }
        Ok(members.into())
    }
}

/// What a file should have been, for the error that says it is not.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub format: Format,
    pub shape: &'static str,
}

/// Reads `part`, which must be a piece of the source's text, with errors that carry the file's lines.
pub fn read<'a, T: Deserialize<'a>>(
    source: &Source<'a>,
    lines: &LineIndex,
    part: &'a str,
    wanted: Wanted,
) -> Result<T, SourceError> {
    serde_json::from_str(part).map_err(|error| {
        let first = lines.line_of(source.text, part);
        let within = u32::try_from(error.line()).unwrap_or(u32::MAX).max(1) - 1;
        let Wanted { format, shape } = wanted;
        let message = format!("{}; formats tried: {}; expected {shape}", explained(&error), format.name());
        source.error(first.saturating_add(within), message)
    })
}

/// What serde says, without the place it counts from the start of the part.
pub fn explained(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let bare = said.rsplit_once(" at line ").map_or(said.as_str(), |(bare, _)| bare);
    super::lines::short(bare)
}

/// Where the lines of a text begin.
pub struct LineIndex(Vec<u32>);

impl LineIndex {
    pub fn of(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let newlines = newlines.map(|start| u32::try_from(start).unwrap_or(u32::MAX));
        Self(newlines.collect())
    }

    /// The line in which `part` begins, a piece of `text`.
    pub fn line_of(&self, text: &str, part: &str) -> u32 {
        let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let newlines = self.0.partition_point(|start| *start as usize <= offset);
        u32::try_from(newlines + 1).unwrap_or(u32::MAX)
    }
}
