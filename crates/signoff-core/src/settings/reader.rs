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
    /// Reads a table.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        let reader = ValueReader { key: "the file", node: self, in_list: false, known: None };
        T::deserialize(reader).map_err(|error| error.at(reader).into_error())
    }

    /// Reads the value of a key, if it is set.
    pub fn read_key<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ConfigError> {
        let Some(node) = self.get(&[key]) else { return Ok(None) };
        let reader = ValueReader { key, node, in_list: false, known: None };
        T::deserialize(reader).map(Some).map_err(|error| error.at(reader).into_error())
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
    let reader = ValueReader { key: "", node: &node, in_list: false, known: Some(&known) };
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
    in_list: bool,
    /// Collects the keys instead of refusing unknown ones.
    known: Option<&'k KnownKeys>,
}

/// Why a value cannot be read.
#[derive(Debug)]
enum ReadError {
    /// The value of the key being read. An outer type may know better what to expect.
    Value { place: Option<(SettingOrigin, String)>, expected: String },
    /// A key or value further inside.
    Inside(ConfigError),
}

impl ReadError {
    /// Adds the place of the value.
    fn at(self, reader: ValueReader<'_, '_>) -> Self {
        match self {
            Self::Value { place: None, expected } => {
                let verb = if reader.in_list { "has" } else { "is" };
                let value = format!("`{}` {verb} {}", reader.key, reader.node.described());
                Self::Value { place: Some((reader.node.origin.clone(), value)), expected }
            }
            Self::Value { place: Some(_), .. } | Self::Inside(_) => self,
        }
    }

    fn expecting(self, better: &str) -> Self {
        match self {
            Self::Value { place, .. } => Self::Value { place, expected: format!("expected {better}") },
            Self::Inside(_) => self,
        }
    }

    fn into_error(self) -> ConfigError {
        match self {
            Self::Value { place: Some((origin, value)), expected } => origin.error(format!("{value}: {expected}")),
            Self::Value { place: None, expected } => SettingOrigin::Default.error(expected),
            Self::Inside(error) => error,
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
        Self::Value { place: None, expected: message.to_string() }
    }
}

impl<'de> ValueReader<'de, '_> {
    fn wrong<T>(self, expected: &str) -> Result<T, ReadError> {
        Err(serde::de::Error::custom(format_args!("expected {expected}"))).map_err(|e: ReadError| e.at(self))
    }

    /// Reads a whole number up to `most`.
    fn whole<V: Visitor<'de>>(self, most: u64, visitor: V) -> Result<V::Value, ReadError> {
        if let ConfigData::Whole(_, Some(number)) = self.node.data
            && number <= most
        {
            return visitor.visit_u64(number).map_err(|error: ReadError| error.at(self));
        }
        self.wrong(&format!("a whole number from 0 to {most}"))
    }

    /// Reads a table, or only these keys of it.
    fn table<V: Visitor<'de>>(self, only: Option<&[&str]>, visitor: V) -> Result<V::Value, ReadError> {
        if self.node.table().is_none() {
            return self.wrong("a table");
        }
        let mut entries = self.node.entries();
        entries.retain(|(key, _)| only.is_none_or(|only| only.contains(key)));
        entries.reverse();
        visitor.visit_map(TableReader { entries, value: None })
    }
}

/// Refuses the first key of a table that is not known.
pub(crate) fn check_keys(table: &ConfigNode, what: &str, known: &[&str]) -> Result<(), ConfigError> {
    let unknown = table.entries().into_iter().find(|(key, _)| !known.contains(key));
    let Some((key, node)) = unknown else { return Ok(()) };
    let expected = did_you_mean(key, known, || format!("expected some of {}", known.join(", ")));
    Err(node.origin.error(format!("unknown key `{key}` in {what}: {expected}")))
}

impl<'de> Deserializer<'de> for ValueReader<'de, '_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let read = match &self.node.data {
            ConfigData::Flag(flag) => visitor.visit_bool(*flag),
            ConfigData::Whole(_, Some(number)) => visitor.visit_u64(*number),
            ConfigData::Float(_, number) => visitor.visit_f64(*number),
            ConfigData::Text(text) => visitor.visit_borrowed_str(text),
            ConfigData::Whole(_, None) | ConfigData::Date => self.wrong("another value"),
            ConfigData::List(list) => visitor.visit_seq(ListReader { key: self.key, list: list.iter() }),
            ConfigData::Table(_) => self.table(None, visitor),
        };
        read.map_err(|error| error.at(self))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if let ConfigData::Flag(flag) = self.node.data { visitor.visit_bool(flag) } else { self.wrong("true or false") }
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
        match (&self.node.data, self.node.described().parse()) {
            (ConfigData::Float(_, number), _) => visitor.visit_f64(*number),
            (ConfigData::Whole(..), Ok(number)) => visitor.visit_f64(number),
            (_, _) => self.wrong("a number"),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.node.text() {
            Some(text) => visitor.visit_borrowed_str(text).map_err(|error: ReadError| error.at(self)),
            None => self.wrong("text in quotes"),
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
        visitor.visit_newtype_struct(self).map_err(|error| error.at(self).expecting(&expected.replace("KEY", self.key)))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if let ConfigData::List(_) = self.node.data {
            self.deserialize_any(visitor).map_err(|error| error.expecting(NAMES))
        } else {
            self.wrong(NAMES)
        }
    }

    /// Several structs whose keys are in one table, which has the name of the first one.
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        let known = KnownKeys::default();
        let read = visitor.visit_seq(PartsReader(ValueReader { known: Some(&known), ..self }))?;
        let (what, keys) = known.into_inner();
        if !what.is_empty() {
            check_keys(self.node, what, &keys).map_err(ReadError::Inside)?;
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
            None => check_keys(self.node, what, keys).map_err(ReadError::Inside)?,
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
            Some(_) | None => self.wrong(&either(words)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u128 f32 char bytes byte_buf unit unit_struct tuple_struct identifier
    }
}

/// What is expected of a plain list.
const NAMES: &str = "a list of names, [\"…\", \"…\"]";

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
        self.value = Some(ValueReader { key, node, in_list: false, known: None });
        let read = seed.deserialize(StrDeserializer::<ReadError>::new(key)).map(Some);
        read.map_err(|error| match error {
            ReadError::Value { expected, .. } => ReadError::Inside(node.origin.error(expected)),
            ReadError::Inside(_) => error,
        })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ReadError> {
        let reader = self.value.take().ok_or_else(|| serde::de::Error::custom("expected a value"))?;
        seed.deserialize(reader).map_err(|error| ReadError::Inside(error.at(reader).into_error()))
    }
}

/// The values of a list.
struct ListReader<'de> {
    key: &'de str,
    list: std::slice::Iter<'de, ConfigNode>,
}

impl<'de> SeqAccess<'de> for ListReader<'de> {
    type Error = ReadError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        let Some(node) = self.list.next() else { return Ok(None) };
        let reader = ValueReader { key: self.key, node, in_list: true, known: None };
        seed.deserialize(reader).map(Some).map_err(|error| error.at(reader))
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
