//! Reads serde types from a tree of settings. Errors name the key, its value, what was expected, and the place.

use std::cell::RefCell;
use std::fmt::Display;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::tree::{ConfigData, ConfigNode};
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
    pub fn read_or_problem<T: DeserializeOwned>(&self) -> Result<T, Box<ReadProblem>> {
        let reader = ValueReader::new(self);
        T::deserialize(reader).map_err(|error| error.at(reader).into_problem(""))
    }
}

/// What is wrong with a value, and where it is.
#[derive(Debug, Clone)]
pub(crate) struct ReadProblem {
    pub origin: SettingOrigin,
    /// The keys that lead to it: `phases.5.model`, `iterations[0]`; empty for the whole file.
    pub path: String,
    /// The last of these keys.
    key: String,
    pub kind: ProblemKind,
}

#[derive(Debug, Clone)]
pub(crate) enum ProblemKind {
    Value {
        data: ConfigData,
        expected: Expected,
    },
    UnknownKey {
        table: &'static str,
        known: Vec<&'static str>,
    },
    MissingKey(&'static str),
    /// A name that breaks its rule.
    Key(String),
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
    /// The same problem as seen from the table or list around it.
    fn within(mut self: Box<Self>, key: &str) -> Box<Self> {
        if self.key.is_empty() && !key.starts_with('[') {
            self.key = key.to_owned();
        }
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
                format!("`{key}` {verb} {}: expected {expected}", data.described())
            }
            ProblemKind::UnknownKey { table, known } => unknown_key(key, table, known),
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
    known.into_inner().1
}

/// The name of a table and the keys of the structs that are read from it so far.
type KnownKeys = RefCell<(&'static str, Vec<&'static str>)>;

/// A value being read.
#[derive(Clone, Copy)]
struct ValueReader<'de, 'k> {
    key: &'de str,
    node: &'de ConfigNode,
    /// Collects the keys instead of refusing unknown ones.
    known: Option<&'k KnownKeys>,
}

/// Why a value cannot be read.
#[derive(Debug)]
enum ReadError {
    /// The value being read. An outer type may know better what to expect.
    Value { place: Option<Box<ReadProblem>>, expected: Expected },
    /// A key that the table being read must have.
    Missing(&'static str),
    /// A key or value further inside.
    Inside(Box<ReadProblem>),
}

impl ReadError {
    /// Adds the place of the value.
    fn at(self, reader: ValueReader<'_, '_>) -> Self {
        let problem = |kind| reader.problem(kind);
        match self {
            Self::Value { place: None, expected } => {
                let kind = ProblemKind::Value { data: reader.node.data.clone(), expected: expected.clone() };
                Self::Value { place: Some(problem(kind)), expected }
            }
            Self::Missing(key) => Self::Inside(problem(ProblemKind::MissingKey(key))),
            Self::Value { place: Some(_), .. } | Self::Inside(_) => self,
        }
    }

    fn expecting(self, better: Expected) -> Self {
        match self {
            Self::Value { place, .. } => Self::Value { place, expected: better },
            Self::Missing(_) | Self::Inside(_) => self,
        }
    }

    /// The problem as seen from the table around it.
    fn into_problem(self, key: &str) -> Box<ReadProblem> {
        let problem = match self {
            Self::Value { place: Some(mut problem), expected: better } => {
                if let ProblemKind::Value { expected, .. } = &mut problem.kind {
                    *expected = better;
                }
                problem
            }
            Self::Inside(problem) => problem,
            Self::Value { place: None, expected } => Box::new(ReadProblem::new(ProblemKind::Key(expected.to_string()))),
            Self::Missing(key) => Box::new(ReadProblem::new(ProblemKind::MissingKey(key))),
        };
        if key.is_empty() { problem } else { problem.within(key) }
    }

    /// The same error as seen from the list around it.
    fn within(self, index: usize) -> Self {
        match self {
            Self::Value { place, expected } => {
                Self::Value { place: place.map(|problem| problem.within(&format!("[{index}]"))), expected }
            }
            Self::Inside(problem) => Self::Inside(problem.within(&format!("[{index}]"))),
            Self::Missing(_) => self,
        }
    }
}

impl Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for ReadError {}

impl serde::de::Error for ReadError {
    fn custom<T: Display>(message: T) -> Self {
        Self::Value { place: None, expected: Expected::Other(message.to_string()) }
    }

    fn missing_field(key: &'static str) -> Self {
        Self::Missing(key)
    }
}

impl<'de> ValueReader<'de, '_> {
    fn new(node: &'de ConfigNode) -> Self {
        Self { key: "", node, known: None }
    }

    fn problem(self, kind: ProblemKind) -> Box<ReadProblem> {
        Box::new(ReadProblem { origin: self.node.origin.clone(), ..ReadProblem::new(kind) })
    }

    fn wrong<T>(self, expected: Expected) -> Result<T, ReadError> {
        Err(ReadError::Value { place: None, expected }.at(self))
    }

    fn expected<T>(self, expected: &str) -> Result<T, ReadError> {
        self.wrong(Expected::Other(expected.to_owned()))
    }

    /// Reads a whole number up to `most`.
    fn whole<V: Visitor<'de>>(self, most: u64, visitor: V) -> Result<V::Value, ReadError> {
        if let ConfigData::Whole(_, Some(number)) = self.node.data
            && number <= most
        {
            return visitor.visit_u64(number).map_err(|error: ReadError| error.at(self));
        }
        self.expected(&format!("a whole number from 0 to {most}"))
    }

    /// Reads a table, or only these keys of it.
    fn table<V: Visitor<'de>>(self, only: Option<&'static [&'static str]>, visitor: V) -> Result<V::Value, ReadError> {
        if self.node.table().is_none() {
            return self.wrong(Expected::Table(only.unwrap_or_default()));
        }
        let mut entries = self.node.entries();
        entries.retain(|(key, _)| only.is_none_or(|only| only.contains(key)));
        entries.reverse();
        visitor.visit_map(TableReader { entries, value: None }).map_err(|error| error.at(self))
    }

    /// Refuses the first key that is not known.
    fn check_keys(self, table: &'static str, known: &[&'static str]) -> Result<(), ReadError> {
        let unknown = self.node.entries().into_iter().find(|(key, _)| !known.contains(key));
        let Some((key, node)) = unknown else { return Ok(()) };
        let kind = ProblemKind::UnknownKey { table, known: known.to_vec() };
        Err(ReadError::Inside(ValueReader::new(node).problem(kind).within(key)))
    }
}

impl ReadProblem {
    fn new(kind: ProblemKind) -> Self {
        Self { origin: SettingOrigin::Default, path: String::new(), key: String::new(), kind }
    }
}

/// Refuses the first key of a table that is not known.
pub(crate) fn check_keys(table: &ConfigNode, what: &str, known: &[&str]) -> Result<(), ConfigError> {
    let unknown = table.entries().into_iter().find(|(key, _)| !known.contains(key));
    unknown.map_or(Ok(()), |(key, node)| Err(node.origin.error(unknown_key(key, what, known))))
}

fn unknown_key(key: &str, table: &str, known: &[&str]) -> String {
    let expected = did_you_mean(key, known, || format!("expected some of {}", known.join(", ")));
    format!("unknown key `{key}` in {table}: {expected}")
}

impl<'de> Deserializer<'de> for ValueReader<'de, '_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let read = match &self.node.data {
            ConfigData::Flag(flag) => visitor.visit_bool(*flag),
            ConfigData::Whole(_, Some(number)) => visitor.visit_u64(*number),
            ConfigData::Float(_, number) => visitor.visit_f64(*number),
            ConfigData::Text(text) => visitor.visit_borrowed_str(text),
            ConfigData::Null => visitor.visit_unit(),
            ConfigData::Whole(_, None) | ConfigData::Date => self.expected("another value"),
            ConfigData::List(list) => visitor.visit_seq(ListReader(list.iter().enumerate())),
            ConfigData::Table(_) => self.table(None, visitor),
        };
        read.map_err(|error| error.at(self))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if let ConfigData::Flag(flag) = self.node.data {
            visitor.visit_bool(flag)
        } else {
            self.expected("true or false")
        }
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.whole(u16::MAX.into(), visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.whole(u32::MAX.into(), visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.whole(u64::MAX, visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match (&self.node.data, self.node.data.described().parse()) {
            (ConfigData::Float(_, number), _) => visitor.visit_f64(*number),
            (ConfigData::Whole(..), Ok(number)) => visitor.visit_f64(number),
            (_, _) => self.expected("a number"),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.node.text() {
            Some(text) => visitor.visit_borrowed_str(text).map_err(|error: ReadError| error.at(self)),
            None => self.wrong(Expected::Text),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    /// The name is what [`checked`] expects.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        expected: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let expected = Expected::Other(expected.replace("KEY", self.key));
        visitor.visit_newtype_struct(self).map_err(|error| error.at(self).expecting(expected))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if let ConfigData::List(_) = self.node.data {
            self.deserialize_any(visitor).map_err(|error| error.expecting(Expected::List))
        } else {
            self.wrong(Expected::List)
        }
    }

    /// Several structs whose keys are in one table, which has the name of the first one.
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        let known = KnownKeys::default();
        let read = visitor.visit_seq(PartsReader(ValueReader { known: Some(&known), ..self }))?;
        let (what, keys) = known.into_inner();
        if !what.is_empty() {
            self.check_keys(what, &keys)?;
        }
        Ok(read)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.table(None, visitor)
    }

    /// The name is how messages call the table.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        what: &'static str,
        keys: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.known {
            Some(known) => {
                let (name, known) = &mut *known.borrow_mut();
                if known.is_empty() {
                    *name = what;
                }
                known.extend(keys);
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
    ) -> Result<V::Value, ReadError> {
        match self.node.text() {
            Some(word) if words.contains(&word) => visitor.visit_enum(StrDeserializer::new(word)),
            Some(_) | None => self.wrong(Expected::OneOf(words)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u128 f32 char bytes byte_buf unit unit_struct tuple_struct identifier
    }
}

/// The values of a table.
struct TableReader<'de> {
    /// Those that are not read yet, the next one last.
    entries: Vec<(&'de str, &'de ConfigNode)>,
    value: Option<ValueReader<'de, 'static>>,
}

impl<'de> MapAccess<'de> for TableReader<'de> {
    type Error = ReadError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        let Some((key, node)) = self.entries.pop() else { return Ok(None) };
        self.value = Some(ValueReader { key, ..ValueReader::new(node) });
        let read = seed.deserialize(StrDeserializer::<ReadError>::new(key)).map(Some);
        read.map_err(|error| match error {
            ReadError::Value { expected: Expected::Other(problem), .. } => {
                ReadError::Inside(ValueReader::new(node).problem(ProblemKind::Key(problem)).within(key))
            }
            other @ (ReadError::Value { .. } | ReadError::Missing(_) | ReadError::Inside(_)) => other,
        })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ReadError> {
        let reader = self.value.take().ok_or_else(|| serde::de::Error::custom("expected a value"))?;
        seed.deserialize(reader).map_err(|error| ReadError::Inside(error.at(reader).into_problem(reader.key)))
    }
}

/// The values of a list.
struct ListReader<'de>(std::iter::Enumerate<std::slice::Iter<'de, ConfigNode>>);

impl<'de> SeqAccess<'de> for ListReader<'de> {
    type Error = ReadError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        let Some((index, node)) = self.0.next() else { return Ok(None) };
        let reader = ValueReader::new(node);
        seed.deserialize(reader).map(Some).map_err(|error| error.at(reader).within(index))
    }
}

/// The same table for each struct that has some of its keys.
struct PartsReader<'de, 'k>(ValueReader<'de, 'k>);

impl<'de> SeqAccess<'de> for PartsReader<'de, '_> {
    type Error = ReadError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        seed.deserialize(self.0).map(Some)
    }
}

/// `did you mean ...?` if a known word is near, or else what was expected.
pub(crate) fn did_you_mean(word: &str, known: &[&str], expected: impl FnOnce() -> String) -> String {
    nearest(word, known).map_or_else(expected, |meant| format!("did you mean `{meant}`?"))
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
