//! YAML with its lines.
//!
//! Events are read one by one. Aliases are followed, but what they stand for counts each time, so that a small file
//! cannot become a large one.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::super::ConfigError;
use super::ForeignFile;
use super::node::{ForeignData, ForeignNode, shown};

/// Deeper than any such file, and shallow enough for every parser.
const DEEPEST: usize = 16;

const KEY: &str = "a key that is not plain text: expected a word";

/// More values than any such file has, aliases written out.
const MOST: usize = 10_000;

/// Reads a whole file. One without any value is as good as null.
pub fn read(file: ForeignFile<'_>) -> Result<ForeignNode, ConfigError> {
    let mut reading = YamlNodeReader { file, open: Vec::new(), anchors: HashMap::new(), nodes: 0, whole: None };
    for event in Parser::new_from_str(file.text) {
        let (event, span) = event.map_err(|error| {
            let last = file.text.lines().count().max(1);
            file.error(error.marker().line().clamp(1, last), format!("this is not YAML: {}", error.info()))
        })?;
        reading.apply(event, span.start.line().max(1))?;
    }
    Ok(reading.whole.unwrap_or(ForeignNode { line: 1, data: ForeignData::Null }))
}

struct YamlNodeReader<'a> {
    file: ForeignFile<'a>,
    /// What has begun and not ended.
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, ForeignNode>,
    nodes: usize,
    whole: Option<ForeignNode>,
}

/// A mapping or list that has not ended.
struct OpenCollection {
    line: usize,
    anchor: usize,
    /// None in a list, whose members are not read.
    members: Option<Vec<(String, ForeignNode)>>,
    /// The key whose value comes next.
    key: Option<(String, usize)>,
}

impl YamlNodeReader<'_> {
    fn apply(&mut self, event: Event<'_>, line: usize) -> Result<(), ConfigError> {
        match event {
            Event::DocumentStart(_) if self.whole.is_some() => {
                Err(self.file.error(line, "a second document begins here: expected one"))
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                Ok(())
            }
            Event::MappingStart(anchor, _) => self.begin(anchor, line, Some(Vec::new())),
            Event::SequenceStart(anchor, _) => self.begin(anchor, line, None),
            Event::MappingEnd | Event::SequenceEnd => self.end(),
            Event::Scalar(text, style, anchor, _) => {
                self.put(ForeignNode { line, data: scalar(&text, style) }, anchor, Some(&text))
            }
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                let node =
                    known.ok_or_else(|| self.file.error(line, "an alias of what it stands in: expected a value"))?;
                self.put(ForeignNode { line, ..node }, 0, None)
            }
        }
    }

    fn begin(
        &mut self,
        anchor: usize,
        line: usize,
        members: Option<Vec<(String, ForeignNode)>>,
    ) -> Result<(), ConfigError> {
        if self.open.len() == DEEPEST {
            return Err(self.file.error(line, format!("nested too deep: expected at most {DEEPEST} levels")));
        }
        let no_key = self.open.last().is_some_and(|open| open.members.is_some() && open.key.is_none());
        if no_key {
            return Err(self.file.error(line, KEY));
        }
        self.open.push(OpenCollection { line, anchor, members, key: None });
        Ok(())
    }

    fn end(&mut self) -> Result<(), ConfigError> {
        let Some(OpenCollection { line, anchor, members, key: _ }) = self.open.pop() else { return Ok(()) };
        self.put(ForeignNode { line, data: members.map_or(ForeignData::List, ForeignData::Map) }, anchor, None)
    }

    /// Puts a value where it belongs. `text` is what a key may be.
    fn put(&mut self, node: ForeignNode, anchor: usize, text: Option<&str>) -> Result<(), ConfigError> {
        self.nodes += size(&node);
        if self.nodes > MOST {
            return Err(self
                .file
                .error(node.line, format!("too many values: expected at most {MOST}, aliases written out")));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.whole = Some(node);
            return Ok(());
        };
        let Some(members) = &mut open.members else { return Ok(()) };
        match (open.key.take(), text) {
            (Some((key, line)), _) if members.iter().any(|(known, _)| *known == key) => {
                Err(self.file.error(line, format!("this key is there twice: {}; expected it once", shown(&key))))
            }
            (Some((key, line)), _) => {
                members.push((key, ForeignNode { line, ..node }));
                Ok(())
            }
            (None, Some(key)) => {
                open.key = Some((key.to_owned(), node.line));
                Ok(())
            }
            (None, None) => Err(self.file.error(node.line, KEY)),
        }
    }
}

fn size(node: &ForeignNode) -> usize {
    match &node.data {
        ForeignData::Map(members) => 1 + members.iter().map(|(_, member)| size(member)).sum::<usize>(),
        ForeignData::Null
        | ForeignData::Flag(_)
        | ForeignData::Number(_)
        | ForeignData::Text(_)
        | ForeignData::List => 1,
    }
}

/// What a text without quotes means, in the words that YAML has had for it.
fn scalar(text: &str, style: ScalarStyle) -> ForeignData {
    if style != ScalarStyle::Plain {
        return ForeignData::Text(text.to_owned());
    }
    match text.to_ascii_lowercase().as_str() {
        "" | "~" | "null" => ForeignData::Null,
        "true" | "yes" | "on" => ForeignData::Flag(true),
        "false" | "no" | "off" => ForeignData::Flag(false),
        _ if text.parse::<f64>().is_ok_and(f64::is_finite) => ForeignData::Number(text.to_owned()),
        _ => ForeignData::Text(text.to_owned()),
    }
}
