//! Reads serde types from a tree of settings. Errors name the key, its value, what was expected, and the location.

use std::cell::RefCell;
use std::fmt::Display;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Unexpected, Visitor};

use super::layer::{ConfigData, ConfigNode};
use super::{ConfigError, SettingOrigin};

impl ConfigNode {
    /// Reads a table of a settings file.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        self.read_or_problem().map_err(|problem| problem.config_error("the file"))
    }

    /// Reads the value of a key of a settings file, if it is set.
    pub fn read_key<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ConfigError> {
        let Some(node) = self.get(&[key]) else { return Ok(None) };
        node.read_or_problem().map(Some).map_err(|problem| problem.config_error(key))
    }

    /// Reads a value of any file.
    pub fn read_or_problem<T: DeserializeOwned>(&self) -> ReadResult<T> {
        let reader = ValueReader::new(self);
        T::deserialize(reader).map_err(|problem| problem.at(reader))
    }
}

type ReadResult<T> = Result<T, Box<ReadProblem>>;

/// What is wrong with a value, and where it is.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{path}: {kind:?}")]
pub(crate) struct ReadProblem {
    pub origin: SettingOrigin,
    /// The keys that lead to it: `phases.5.model`, `iterations[0]`; empty for the whole file.
    pub path: String,
    /// The last of these keys.
    key: String,
    pub kind: ProblemKind,
    place: ProblemPlace,
}

#[derive(Debug, Clone)]
pub(crate) enum ProblemKind {
    Value {
        data: ConfigData,
        expected: Expected,
    },
    UnknownKey {
        table: String,
        known: Vec<&'static str>,
    },
    MissingKey(&'static str),
    /// A name that breaks its rule.
    Key(String),
}

/// Where a problem is, as seen from the value being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProblemPlace {
    /// Here, and its origin is not set yet.
    New,
    /// Here, or in an element of the list. An outer type may replace the expectation by a more precise one.
    Here,
    /// In a key or value further inside.
    Inside,
}

/// What is expected instead of a value.
#[derive(Debug, Clone)]
pub(crate) enum Expected {
    /// A table with these keys.
    Table(&'static [&'static str]),
    List,
    Text,
    /// One of these words.
    OneOf(&'static [&'static str]),
    Other(String),
}

impl Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Table(_) => f.write_str("a table"),
            Self::List => f.write_str("a list of names, [\"…\", \"…\"]"),
            Self::Text => f.write_str("text in quotes"),
            Self::OneOf(words) => f.write_str(&either(words)),
            Self::Other(expected) => f.write_str(expected.strip_prefix("expected ").unwrap_or(expected)),
        }
    }
}

impl ReadProblem {
    fn new(kind: ProblemKind) -> Box<Self> {
        let (path, key) = (String::new(), String::new());
        Box::new(Self { origin: SettingOrigin::Default, path, key, kind, place: ProblemPlace::New })
    }

    fn value(expected: Expected) -> Box<Self> {
        Self::new(ProblemKind::Value { data: ConfigData::Null, expected })
    }

    /// Adds the location of the value being read.
    fn at(mut self: Box<Self>, reader: ValueReader<'_, '_>) -> Box<Self> {
        if self.place == ProblemPlace::New {
            self.origin = reader.node.origin.clone();
            self.place = ProblemPlace::Inside;
            if let ProblemKind::Value { data, .. } = &mut self.kind {
                data.clone_from(&reader.node.data);
                self.place = ProblemPlace::Here;
            }
        }
        self
    }

    fn expecting(mut self: Box<Self>, better: Expected) -> Box<Self> {
        if let ProblemKind::Value { expected, .. } = &mut self.kind
            && self.place != ProblemPlace::Inside
        {
            *expected = better;
        }
        self
    }

    /// The same problem as seen from the table around it.
    fn within(mut self: Box<Self>, key: &str) -> Box<Self> {
        if self.key.is_empty() {
            self.key = key.to_owned();
        }
        self.place = ProblemPlace::Inside;
        self.below(key)
    }

    /// The same problem with one more key before its path.
    fn below(mut self: Box<Self>, key: &str) -> Box<Self> {
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{key}{separator}{}", self.path);
        self
    }

    /// The error about a settings file. `top` is how its message calls the value that was read.
    fn config_error(self, top: &str) -> ConfigError {
        let key = if self.key.is_empty() { top } else { &self.key };
        self.origin.error(match &self.kind {
            ProblemKind::Value { data, expected } => {
                let verb = if self.path.ends_with(']') { "has" } else { "is" };
                format!("`{key}` {verb} {}: expected {expected}", data.describe())
            }
            ProblemKind::UnknownKey { table, known } => {
                let expected = did_you_mean(key, known, || format!("expected some of {}", known.join(", ")));
                format!("unknown key `{key}` in {table}: {expected}")
            }
            ProblemKind::MissingKey(key) => format!("`{key}` is missing"),
            ProblemKind::Key(problem) => problem.clone(),
        })
    }
}

/// Reads plain data and converts it. `expected` is what messages ask for if the data or the conversion fails.
pub(crate) fn checked<'de, D: Deserializer<'de>, P: Deserialize<'de>, T>(
    deserializer: D,
    expected: &'static str,
    convert: impl FnOnce(P) -> Option<T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_newtype_struct(expected, Convert { expected, convert, plain: PhantomData })
}

struct Convert<P, F> {
    expected: &'static str,
    convert: F,
    plain: PhantomData<P>,
}

impl<'de, P: Deserialize<'de>, T, F: FnOnce(P) -> Option<T>> Visitor<'de> for Convert<P, F> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        let plain = P::deserialize(deserializer)?;
        (self.convert)(plain).ok_or_else(|| serde::de::Error::custom(format_args!("expected {}", self.expected)))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        self.visit_newtype_struct(StrDeserializer::new(text))
    }
}

/// The keys of a struct.
pub(crate) fn keys_of<T: DeserializeOwned>() -> Vec<&'static str> {
    let (known, node) = (RefCell::default(), ConfigNode::empty());
    let reader = ValueReader { known: Some(&known), ..ValueReader::new(&node) };
    let _ = T::deserialize(reader);
    known.into_inner().keys
}

/// The name of a table, and the keys of the structs that have been read from it.
#[derive(Default)]
struct KnownKeys {
    table: &'static str,
    keys: Vec<&'static str>,
}

/// A value being read.
#[derive(Clone, Copy)]
struct ValueReader<'de, 'k> {
    key: &'de str,
    node: &'de ConfigNode,
    /// Collects the keys instead of refusing unknown ones.
    known: Option<&'k RefCell<KnownKeys>>,
}

impl serde::de::Error for Box<ReadProblem> {
    fn custom<T: Display>(message: T) -> Self {
        ReadProblem::value(Expected::Other(message.to_string()))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        ReadProblem::value(match expected.to_string().as_str() {
            "a string" => Expected::Text,
            "a sequence" => Expected::List,
            "a map" => Expected::Table(&[]),
            "a boolean" => Expected::Other("true or false".to_owned()),
            "u32" => Expected::Other(format!("a whole number from 0 to {}", u32::MAX)),
            other => Expected::Other(other.to_owned()),
        })
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn missing_field(key: &'static str) -> Self {
        ReadProblem::new(ProblemKind::MissingKey(key))
    }
}

impl<'de> ValueReader<'de, '_> {
    fn new(node: &'de ConfigNode) -> Self {
        Self { key: "", node, known: None }
    }

    /// Reads a table, or only these keys of it.
    fn table<V: Visitor<'de>>(self, only: Option<&'static [&'static str]>, visitor: V) -> ReadResult<V::Value> {
        if self.node.table().is_none() {
            return Err(ReadProblem::value(Expected::Table(only.unwrap_or_default())).at(self));
        }
        let mut entries = self.node.entries();
        entries.retain(|(key, _)| only.is_none_or(|only| only.contains(key)));
        entries.reverse();
        visitor.visit_map(TableReader { entries, value: None }).map_err(|problem: Box<ReadProblem>| problem.at(self))
    }

    /// Refuses the first key that is not known.
    fn check_keys(self, table: &str, known: &[&'static str]) -> ReadResult<()> {
        let unknown = self.node.entries().into_iter().find(|(key, _)| !known.contains(key));
        let Some((key, node)) = unknown else { return Ok(()) };
        let problem =
            ReadProblem::new(ProblemKind::UnknownKey { table: table.replace("KEY", self.key), known: known.to_vec() });
        Err(problem.at(ValueReader::new(node)).within(key))
    }
}

/// Refuses the first key of a table that is not known.
pub(crate) fn check_keys(table: &ConfigNode, what: &'static str, known: &[&'static str]) -> Result<(), ConfigError> {
    ValueReader::new(table).check_keys(what, known).map_err(|problem| problem.config_error(what))
}

impl<'de> Deserializer<'de> for ValueReader<'de, '_> {
    type Error = Box<ReadProblem>;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        let read = match &self.node.data {
            ConfigData::Flag(flag) => visitor.visit_bool(*flag),
            ConfigData::Whole(_, Some(number)) => visitor.visit_u64(*number),
            ConfigData::Float(_, number) => visitor.visit_f64(*number),
            ConfigData::Text(text) => visitor.visit_borrowed_str(text),
            ConfigData::Null => visitor.visit_unit(),
            ConfigData::Whole(_, None) | ConfigData::Date => {
                Err(serde::de::Error::invalid_type(Unexpected::Other("a value of no type here"), &visitor))
            }
            ConfigData::List(list) => visitor.visit_seq(ListReader(list.iter().enumerate())),
            ConfigData::Table(_) => self.table(None, visitor),
        };
        read.map_err(|problem| problem.at(self))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        visitor.visit_some(self)
    }

    /// The name is what [`checked`] expects; `KEY` in it is the key of the value.
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, expected: &'static str, visitor: V) -> ReadResult<V::Value> {
        let expected = Expected::Other(expected.replace("KEY", self.key));
        visitor.visit_newtype_struct(self).map_err(|problem| problem.at(self).expecting(expected))
    }

    /// Several structs whose keys are in one table, which has the name of the first one.
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> ReadResult<V::Value> {
        let known = RefCell::default();
        let read = visitor.visit_seq(PartsReader(ValueReader { known: Some(&known), ..self }))?;
        let KnownKeys { table, keys } = known.into_inner();
        if !table.is_empty() {
            self.check_keys(table, &keys)?;
        }
        Ok(read)
    }

    /// The name is how messages call the table; `KEY` in it is the key of the table.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        what: &'static str,
        keys: &'static [&'static str],
        visitor: V,
    ) -> ReadResult<V::Value> {
        match self.known {
            Some(known) => {
                let known = &mut *known.borrow_mut();
                if known.keys.is_empty() {
                    known.table = what;
                }
                known.keys.extend(keys);
            }
            None => self.check_keys(what, keys)?,
        }
        self.table(Some(keys), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> ReadResult<V::Value> {
        match self.node.text() {
            Some(word) if words.contains(&word) => visitor.visit_enum(StrDeserializer::new(word)),
            Some(_) | None => Err(ReadProblem::value(Expected::OneOf(words)).at(self)),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        map tuple_struct identifier ignored_any
    }
}

/// The values of a table.
struct TableReader<'de> {
    /// Those that are not read yet, the next one last.
    entries: Vec<(&'de str, &'de ConfigNode)>,
    value: Option<ValueReader<'de, 'static>>,
}

impl<'de> MapAccess<'de> for TableReader<'de> {
    type Error = Box<ReadProblem>;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> ReadResult<Option<S::Value>> {
        let Some((key, node)) = self.entries.pop() else { return Ok(None) };
        let reader = ValueReader { key, ..ValueReader::new(node) };
        self.value = Some(reader);
        let read = seed.deserialize(StrDeserializer::<Self::Error>::new(key));
        read.map(Some).map_err(|mut problem| {
            if let ProblemKind::Value { expected, .. } = &problem.kind {
                problem.kind = ProblemKind::Key(expected.to_string());
            }
            problem.at(reader).within(key)
        })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> ReadResult<S::Value> {
        let reader = self.value.take().ok_or_else(|| ReadProblem::value(Expected::Other("a value".to_owned())))?;
        seed.deserialize(reader).map_err(|problem: Self::Error| problem.at(reader).within(reader.key))
    }
}

/// The values of a list.
struct ListReader<'de>(std::iter::Enumerate<std::slice::Iter<'de, ConfigNode>>);

impl<'de> SeqAccess<'de> for ListReader<'de> {
    type Error = Box<ReadProblem>;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> ReadResult<Option<S::Value>> {
        let Some((index, node)) = self.0.next() else { return Ok(None) };
        let reader = ValueReader::new(node);
        seed.deserialize(reader)
            .map(Some)
            .map_err(|problem: Self::Error| problem.at(reader).expecting(Expected::List).below(&format!("[{index}]")))
    }
}

/// The same table for each struct that has some of its keys.
struct PartsReader<'de, 'k>(ValueReader<'de, 'k>);

impl<'de> SeqAccess<'de> for PartsReader<'de, '_> {
    type Error = Box<ReadProblem>;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> ReadResult<Option<S::Value>> {
        seed.deserialize(self.0).map(Some)
    }
}

/// `did you mean ...?` if a known word is near or has more parts, or else what was expected.
pub(crate) fn did_you_mean(word: &str, known: &[&str], expected: impl FnOnce() -> String) -> String {
    let has_more_parts = |known: &&str| known.strip_prefix(word).is_some_and(|rest| rest.starts_with('_'));
    let meant = nearest(word, known).or_else(|| known.iter().copied().find(has_more_parts));
    meant.map_or_else(expected, |meant| format!("did you mean `{meant}`?"))
}

/// The known word that a misspelt one probably means.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let allowed = if word.chars().count() < 5 { 1 } else { 2 };
    let candidates = known.iter().map(|known| (distance(word, known), *known));
    candidates.filter(|(edits, _)| *edits <= allowed).min().map(|(_, word)| word)
}

/// The number of letters to change, add, leave out or swap with their neighbour. Keys are short: a long text is near
/// to nothing.
fn distance(left: &str, right: &str) -> usize {
    if left.len() > 64 {
        return usize::MAX;
    }
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for (at, a) in left.iter().enumerate() {
        let mut row = vec![at + 1];
        for (column, b) in right.iter().enumerate() {
            let changed = rows[at][column] + usize::from(a != b);
            let best = changed.min(rows[at][column + 1] + 1).min(row[column] + 1);
            let swaps = at > 0 && column > 0 && left[at - 1] == *b && right[column - 1] == *a;
            row.push(if swaps { best.min(rows[at - 1][column - 1] + 1) } else { best });
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

/// `a, b or c`.
pub(crate) fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
