//! TOML, JSON and YAML as trees whose values carry their line.

use std::collections::{BTreeMap, HashMap};

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::value::RawValue;
use toml::de::{DeTable, DeValue};

use super::layer::{ConfigData, ConfigNode};
use super::{ConfigError, MAX_FILE_BYTES, SettingOrigin};
use crate::source::json::{JsonError, LineIndex, PositionedJson};
use crate::text::shortened;

/// Maximum nesting depth. Deeper values are ignored in JSON and rejected in YAML.
const MAX_DEPTH: usize = 16;

/// Maximum number of values in YAML, with aliases written out.
const MAX_VALUES: usize = 10_000;

/// A text and the origin of its lines, counted from one.
#[derive(Clone, Copy)]
pub(crate) struct PositionedText<'a> {
    pub text: &'a str,
    pub origin: &'a dyn Fn(usize) -> SettingOrigin,
}

/// The byte order mark that some editors put before a text.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text of a file without a byte order mark. Fails if it is too long.
pub(super) fn strip_bom(text: &str, start: impl FnOnce() -> SettingOrigin) -> Result<&str, ConfigError> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    if text.len() > MAX_FILE_BYTES {
        let message = format!("the file has {} bytes: expected at most {MAX_FILE_BYTES}", text.len());
        return Err(start().error(message));
    }
    Ok(text)
}

/// Reads a whole TOML text. A value has the line of its key or, in a list, its own line.
pub(crate) fn toml(source: PositionedText<'_>) -> Result<ConfigNode, ConfigError> {
    let table = DeTable::parse(source.text).map_err(|error| toml_syntax(source, &error))?;
    let lines = LineIndex::new(source.text);
    let origin = |offset: usize| (source.origin)(lines.line_at(offset) as usize);
    Ok(toml_node(&DeValue::Table(table.into_inner()), 0, &origin))
}

fn toml_node(value: &DeValue<'_>, offset: usize, origin: &dyn Fn(usize) -> SettingOrigin) -> ConfigNode {
    let data = match value {
        DeValue::String(text) => ConfigData::Text(text.to_string()),
        DeValue::Integer(number) => {
            ConfigData::Whole(number.to_string(), u64::from_str_radix(number.as_str(), number.radix()).ok())
        }
        DeValue::Float(number) => ConfigData::Float(number.to_string(), number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => ConfigData::Flag(*flag),
        DeValue::Datetime(_) => ConfigData::Date,
        DeValue::Array(list) => {
            ConfigData::List(list.iter().map(|one| toml_node(one.get_ref(), one.span().start, origin)).collect())
        }
        DeValue::Table(table) => {
            let mut nodes = BTreeMap::new();
            for (key, value) in table {
                nodes.insert(key.get_ref().to_string(), toml_node(value.get_ref(), key.span().start, origin));
            }
            ConfigData::Table(nodes)
        }
    };
    ConfigNode { origin: origin(offset), order: offset, data }
}

/// The error of the TOML parser, with its line.
fn toml_syntax(source: PositionedText<'_>, error: &toml::de::Error) -> ConfigError {
    let offset = error.span().map_or_else(|| most_nested(source.text), |span| span.start);
    let before = source.text.as_bytes().get(..offset).unwrap_or(source.text.as_bytes());
    // The end of a file that ends with a newline belongs to its last line.
    let last = source.text.lines().count().max(1);
    let line = (before.iter().filter(|byte| **byte == b'\n').count() + 1).min(last);
    let mut message = error.message().trim().replace(", expected literal string", "");
    for (jargon, plain) in [
        ("array", "list"),
        ("basic string", "text"),
        ("string values", "texts"),
        ("recursion limit", "nested too deeply"),
    ] {
        message = message.replace(jargon, plain);
    }
    let duplicate = error.span().filter(|_| message == "duplicate key").and_then(|span| source.text.get(span));
    let invisible = |char: &char| char.is_control() && !matches!(char, '\t' | '\r');
    let invisible = source.text.lines().nth(line - 1).and_then(|line| line.chars().find(invisible));
    if let Some(char) = invisible {
        message = format!("a control character, U+{:04X}; expected text without it", u32::from(char));
    } else if let Some(key) = duplicate {
        message = format!("duplicate key `{}`, write it once", key.trim());
    } else if !message.contains("expected") {
        message = format!("{message}; expected lines such as jobs = 4, preset = \"task\" or [gate]");
    }
    (source.origin)(line).error(format!("this is not TOML: {message}"))
}

/// The parser gives no location only for text that is nested too deeply.
fn most_nested(text: &str) -> usize {
    let depth = |line: &str| line.bytes().filter(|byte| b"[{.".contains(byte)).count();
    let deepest = text.lines().max_by_key(|line| depth(line));
    deepest.and_then(|line| text.find(line)).unwrap_or(0)
}

/// An error in a JSON text, with the path of the object in which it is if a key is duplicated.
pub(crate) struct JsonProblem {
    pub path: String,
    pub error: JsonError,
}

impl From<JsonError> for JsonProblem {
    fn from(error: JsonError) -> Self {
        Self { path: String::new(), error }
    }
}

/// Reads a whole JSON text. A value has the line on which it begins.
pub(crate) fn json(source: PositionedText<'_>) -> Result<ConfigNode, JsonProblem> {
    let reader = JsonNodeReader { json: PositionedJson::new(source.text), origin: source.origin };
    let text = source.text.trim();
    // The whole text must be JSON, including ignored parts.
    reader.json.read::<serde_json::Value>(text)?;
    reader.node(text, &mut Vec::new())
}

struct JsonNodeReader<'a> {
    json: PositionedJson<'a>,
    origin: &'a dyn Fn(usize) -> SettingOrigin,
}

impl<'a> JsonNodeReader<'a> {
    fn node(&self, part: &'a str, path: &mut Vec<String>) -> Result<ConfigNode, JsonProblem> {
        let data = match part.as_bytes().first() {
            Some(b'n') => ConfigData::Null,
            Some(b't') => ConfigData::Flag(true),
            Some(b'f') => ConfigData::Flag(false),
            Some(b'"') => ConfigData::Text(self.json.read(part)?),
            Some(b'[') => ConfigData::List(self.elements(part, path)?),
            Some(b'{') => ConfigData::Table(self.members(part, path)?),
            Some(_) | None => ConfigData::number(part),
        };
        Ok(ConfigNode { origin: (self.origin)(self.json.line(part) as usize), order: 0, data })
    }

    fn elements(&self, part: &'a str, path: &mut Vec<String>) -> Result<Vec<ConfigNode>, JsonProblem> {
        if path.len() == MAX_DEPTH {
            return Ok(Vec::new());
        }
        let elements: Vec<&'a RawValue> = self.json.read(part)?;
        let one = |(index, element): (usize, &'a RawValue)| {
            path.push(format!("[{index}]"));
            let node = self.node(element.get(), path);
            path.pop();
            node
        };
        elements.into_iter().enumerate().map(one).collect()
    }

    fn members(&self, part: &'a str, path: &mut Vec<String>) -> Result<BTreeMap<String, ConfigNode>, JsonProblem> {
        if path.len() == MAX_DEPTH {
            return Ok(BTreeMap::new());
        }
        let located = |error| JsonProblem { path: path.join(".").replace(".[", "["), error };
        let members = self.json.members(part).map_err(located)?;
        let one = |(order, (key, value)): (usize, (String, &'a RawValue))| {
            path.push(key.clone());
            let node = self.node(value.get(), path);
            path.pop();
            Ok((key, ConfigNode { order, ..node? }))
        };
        members.0.into_iter().enumerate().map(one).collect()
    }
}

impl ConfigData {
    /// A number as it is written.
    fn number(text: &str) -> Self {
        if text.contains(['.', 'e', 'E']) {
            Self::Float(text.to_owned(), text.parse().unwrap_or(f64::NAN))
        } else {
            Self::Whole(text.to_owned(), text.parse().ok())
        }
    }
}

/// Reads a whole YAML text. A value has the line of its key. A text without any value is null.
///
/// Aliases are expanded, and each expansion counts against the maximum number of values, so that a small file cannot
/// become a large one.
pub(crate) fn yaml(source: PositionedText<'_>) -> Result<ConfigNode, ConfigError> {
    let mut reader =
        YamlReader { source, parser: Parser::new_from_str(source.text), anchors: HashMap::new(), count: 0 };
    let mut whole = None;
    while let Some((event, line)) = reader.next()? {
        match event {
            Event::DocumentStart(_) if whole.is_some() => {
                return reader.error(line, "a second YAML document starts here: expected only one");
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {}
            Event::SequenceEnd | Event::MappingEnd => {}
            value @ (Event::Alias(_) | Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..)) => {
                whole = Some(reader.node(value, line, 0)?);
            }
        }
    }
    Ok(whole.unwrap_or_else(|| ConfigNode { origin: (source.origin)(1), order: 0, data: ConfigData::Null }))
}

struct YamlReader<'a> {
    source: PositionedText<'a>,
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, ConfigData>,
    count: usize,
}

impl<'a> YamlReader<'a> {
    fn error<T>(&self, line: usize, message: impl Into<String>) -> Result<T, ConfigError> {
        Err((self.source.origin)(line).error(message))
    }

    /// The next event with its line.
    fn next(&mut self) -> Result<Option<(Event<'a>, usize)>, ConfigError> {
        let Some(read) = self.parser.next() else { return Ok(None) };
        match read {
            Ok((event, span)) => Ok(Some((event, span.start.line().max(1)))),
            Err(error) => {
                let line = error.marker().line().clamp(1, self.source.text.lines().count().max(1));
                self.error(line, format!("this is not YAML: {}", error.info()))
            }
        }
    }

    /// Reads the value that begins with an event, inside of `depth` others.
    fn node(&mut self, event: Event<'a>, line: usize, depth: usize) -> Result<ConfigNode, ConfigError> {
        let is_collection = matches!(event, Event::MappingStart(..) | Event::SequenceStart(..));
        if is_collection && depth == MAX_DEPTH {
            return self.error(line, format!("nested too deep: expected at most {MAX_DEPTH} levels"));
        }
        let (data, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => (scalar(&text, style), anchor),
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(data) => (data.clone(), 0),
                None => return self.error(line, "an alias of its own parent: expected a value"),
            },
            Event::MappingStart(anchor, _) => (ConfigData::Table(self.entries(depth + 1)?), anchor),
            Event::SequenceStart(anchor, _) => {
                let mut list = Vec::new();
                while let Some((event, line)) = self.next()?.filter(|(event, _)| *event != Event::SequenceEnd) {
                    list.push(self.node(event, line, depth + 1)?);
                }
                (ConfigData::List(list), anchor)
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => (ConfigData::Null, 0),
            Event::DocumentEnd | Event::SequenceEnd | Event::MappingEnd => (ConfigData::Null, 0),
        };
        self.count += size(&data);
        if self.count > MAX_VALUES {
            return self.error(line, format!("too many values: expected at most {MAX_VALUES}, aliases written out"));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, data.clone());
        }
        Ok(ConfigNode { origin: (self.source.origin)(line), order: 0, data })
    }

    fn entries(&mut self, depth: usize) -> Result<BTreeMap<String, ConfigNode>, ConfigError> {
        let mut table = BTreeMap::new();
        while let Some((event, line)) = self.next()?.filter(|(event, _)| *event != Event::MappingEnd) {
            let Event::Scalar(key, style, anchor, _) = event else {
                return self.error(line, "a key that is not plain text: expected a word");
            };
            self.count += 1;
            self.anchors.insert(anchor, scalar(&key, style));
            let Some((event, begin)) = self.next()? else { break };
            let node = self.node(event, begin, depth)?;
            if table.contains_key(key.as_ref()) {
                return self.error(line, format!("duplicate key `{}`: write it once", shortened(&key, 80)));
            }
            let (origin, order) = ((self.source.origin)(line), table.len());
            table.insert(key.into_owned(), ConfigNode { origin, order, ..node });
        }
        Ok(table)
    }
}

/// The number of values.
fn size(data: &ConfigData) -> usize {
    let inside: usize = if let ConfigData::Table(table) = data {
        table.values().map(|node| size(&node.data)).sum()
    } else if let ConfigData::List(list) = data {
        list.iter().map(|node| size(&node.data)).sum()
    } else {
        0
    };
    1 + inside
}

/// The value of a YAML scalar. Without quotes, the boolean words of YAML 1.1 count.
fn scalar(text: &str, style: ScalarStyle) -> ConfigData {
    if style != ScalarStyle::Plain {
        return ConfigData::Text(text.to_owned());
    }
    match text.to_ascii_lowercase().as_str() {
        "" | "~" | "null" => ConfigData::Null,
        "true" | "yes" | "on" => ConfigData::Flag(true),
        "false" | "no" | "off" => ConfigData::Flag(false),
        _ if text.parse::<f64>().is_ok_and(f64::is_finite) => ConfigData::number(text),
        _ => ConfigData::Text(text.to_owned()),
    }
}
