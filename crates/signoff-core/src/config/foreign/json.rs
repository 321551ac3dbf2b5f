//! JSON with its lines.

use serde::Deserialize;

use super::super::ConfigError;
use super::File;
use super::node::{Data, Node};
use crate::source::json::{LineIndex, Members, explained};

/// Deeper than anything here that has a meaning.
const DEEPEST: usize = 4;

/// Reads a whole file.
pub fn read(file: File<'_>) -> Result<Node, ConfigError> {
    if file.text.trim().is_empty() {
        return Err(file.error(1, "the file is empty: expected { \"version\": 2, \"phases\": { … } }"));
    }
    let reading = Reading { file, lines: LineIndex::of(file.text) };
    // The whole must be JSON, also what nobody looks at.
    let text = file.text.trim();
    reading.part::<serde::de::IgnoredAny>(text)?;
    reading.node(text, 0)
}

struct Reading<'a> {
    file: File<'a>,
    lines: LineIndex,
}

impl<'a> Reading<'a> {
    fn part<T: Deserialize<'a>>(&self, part: &'a str) -> Result<T, ConfigError> {
        serde_json::from_str(part).map_err(|error| {
            let line = self.line(part) + error.line().max(1) - 1;
            let said = explained(&error);
            // A key that is there twice is JSON all the same.
            self.file.error(line, if error.is_data() { said } else { format!("this is not JSON: {said}") })
        })
    }

    fn line(&self, part: &str) -> usize {
        self.lines.line_of(self.file.text, part) as usize
    }

    /// What a piece of the text says, which is JSON.
    fn node(&self, part: &'a str, depth: usize) -> Result<Node, ConfigError> {
        let data = match part.as_bytes().first() {
            Some(b'n') => Data::Null,
            Some(b't') => Data::Flag(true),
            Some(b'f') => Data::Flag(false),
            Some(b'"') => Data::Text(self.part(part)?),
            Some(b'[') => Data::List,
            Some(b'{') if depth == DEEPEST => Data::Map(Vec::new()),
            Some(b'{') => Data::Map(self.members(part, depth)?),
            Some(_) | None => Data::Number(part.to_owned()),
        };
        Ok(Node { line: self.line(part), data })
    }

    fn members(&self, part: &'a str, depth: usize) -> Result<Vec<(String, Node)>, ConfigError> {
        let members: Members<'a> = self.part(part)?;
        members.0.into_iter().map(|(key, value)| Ok((key, self.node(value.get(), depth + 1)?))).collect()
    }
}

/// The same object with a member set, and everything else as it was.
pub fn with(file: File<'_>, key: &str, value: &str) -> Result<String, ConfigError> {
    let reading = Reading { file, lines: LineIndex::of(file.text) };
    let members: Members<'_> = reading.part(file.text.trim())?;
    let begin = file.text.find('{').map_or(0, |brace| brace + 1);
    let (start, end, text) = match members.get(key) {
        Some(old) => {
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
