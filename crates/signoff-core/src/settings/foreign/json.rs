//! JSON with its lines.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::super::ConfigError;
use super::ForeignFile;
use super::node::{ForeignData, ForeignNode, shown};
use crate::source::json::{LineIndex, error_message};

/// Deeper than anything here that has a meaning.
const DEEPEST: usize = 4;

/// Reads a whole file.
pub fn read(file: ForeignFile<'_>) -> Result<ForeignNode, ConfigError> {
    if file.text.trim().is_empty() {
        return Err(file.error(1, "the file is empty: expected { \"version\": 2, \"phases\": { … } }"));
    }
    let reading = JsonNodeReader { file, lines: LineIndex::new(file.text) };
    // The whole file must be JSON, also the parts that are not read.
    let text = file.text.trim();
    reading.part::<serde_json::Value>(text)?;
    reading.node(text, 0)
}

/// The same object with a member set, and everything else as it was.
pub fn with(file: ForeignFile<'_>, key: &str, value: &str) -> Result<String, ConfigError> {
    let reading = JsonNodeReader { file, lines: LineIndex::new(file.text) };
    let members: RawMembers<'_> = reading.part(file.text.trim())?;
    let begin = file.text.find('{').map_or(0, |brace| brace + 1);
    let (start, end, text) = match members.0.iter().find(|(known, _)| known == key) {
        Some((_, old)) => {
            let start = (old.get().as_ptr() as usize).saturating_sub(file.text.as_ptr() as usize);
            (start, start + old.get().len(), value.to_owned())
        }
        None if members.0.is_empty() => (begin, begin, format!(" \"{key}\": {value} ")),
        None => (begin, begin, format!("{}\"{key}\": {value},", indent(&file.text[begin..]))),
    };
    Ok([&file.text[..start], &text, &file.text[end..]].concat())
}

/// The blank space before the first member.
fn indent(members: &str) -> &str {
    &members[..members.len() - members.trim_start().len()]
}

struct JsonNodeReader<'a> {
    file: ForeignFile<'a>,
    lines: LineIndex,
}

impl<'a> JsonNodeReader<'a> {
    fn part<T: Deserialize<'a>>(&self, part: &'a str) -> Result<T, ConfigError> {
        serde_json::from_str(part).map_err(|error| {
            let line = self.line(part) + error.line().max(1) - 1;
            self.file.error(line, format!("this is not JSON: {}", self.problem(&error, line)))
        })
    }

    /// What the reader says, in words for people.
    fn problem(&self, error: &serde_json::Error, line: usize) -> String {
        let text = self.file.text.lines().nth(line - 1).unwrap_or_default();
        if error.is_eof() {
            "it ends in the middle".to_owned()
        } else if ["//", "/*", "#"].iter().any(|mark| text.trim_start().starts_with(mark)) {
            "expected no comments".to_owned()
        } else {
            error_message(error)
        }
    }

    fn line(&self, part: &str) -> usize {
        self.lines.line_of(self.file.text, part) as usize
    }

    /// What a piece of the text says, which is JSON.
    fn node(&self, part: &'a str, depth: usize) -> Result<ForeignNode, ConfigError> {
        let data = match part.as_bytes().first() {
            Some(b'n') => ForeignData::Null,
            Some(b't') => ForeignData::Flag(true),
            Some(b'f') => ForeignData::Flag(false),
            Some(b'"') => ForeignData::Text(self.part(part)?),
            Some(b'[') => ForeignData::List,
            Some(b'{') if depth == DEEPEST => ForeignData::Map(Vec::new()),
            Some(b'{') => ForeignData::Map(self.members(part, depth)?),
            Some(_) | None => ForeignData::Number(part.to_owned()),
        };
        Ok(ForeignNode { line: self.line(part), data })
    }

    fn members(&self, part: &'a str, depth: usize) -> Result<Vec<(String, ForeignNode)>, ConfigError> {
        let members: RawMembers<'a> = self.part(part)?;
        let mut seen = HashSet::new();
        if let Some((key, value)) = members.0.iter().find(|(key, _)| !seen.insert(key)) {
            let message = format!("this key is there twice: {}; expected it once", shown(key));
            return Err(self.file.error(self.line(value.get()), message));
        }
        members.0.into_iter().map(|(key, value)| Ok((key, self.node(value.get(), depth + 1)?))).collect()
    }
}

/// An object whose values are not looked at yet.
struct RawMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for RawMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Vec<(String, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(MembersVisitor).map(RawMembers)
    }
}
