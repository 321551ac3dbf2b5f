//! The building blocks of values whose rules are stricter than their types, and the JSON Schema of a settings file.
//!
//! A schema sees one file alone: rules between tables and files are checked only by the reader, so the schema accepts
//! some files that the reader refuses, and never the other way round.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::file::SettingsFile;
use super::reader::checked;
use super::values::Argument;
use crate::workflow::keys::phase_schema;

/// Implements `JsonSchema` with a literal schema.
macro_rules! schema {
    ($name:ty, $schema:tt) => {
        impl ::schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!($schema)
            }
        }
    };
}

/// Implements `Deserialize` and `JsonSchema`: what messages expect, the schema, and the conversion from plain data.
macro_rules! value {
    ($name:ty, $expected:expr, $schema:tt, $convert:expr) => {
        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::settings::reader::checked(deserializer, $expected, $convert)
            }
        }

        $crate::settings::rules::schema!($name, $schema);
    };
}

/// Whole numbers within bounds.
macro_rules! whole {
    ($($(#[$about:meta])* $name:ident: $least:literal to $most:literal $(, $more:literal)?;)*) => { $(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
        pub struct $name(pub u32);

        $crate::settings::rules::value!(
            $name,
            concat!("a whole number from ", $least, " to ", $most $(, $more)?),
            { "type": "integer", "minimum": $least, "maximum": $most },
            |number: u32| ($least..=$most).contains(&number).then_some(Self(number))
        );

        impl From<$name> for u32 {
            fn from(number: $name) -> Self {
                number.0
            }
        }
    )* };
}

/// Reads the parts of a table, each with its own keys, from the same table.
macro_rules! parts {
    ($table:ident { $($part:ident),* }) => {
        impl<'de> ::serde::Deserialize<'de> for $table {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                ::serde::Deserialize::deserialize(deserializer).map(|($($part),*)| Self { $($part),* })
            }
        }
    };
}

/// Lists of texts, each of which follows a rule.
macro_rules! texts {
    ($($(#[$about:meta])* $name:ident, $expected:literal, $schema:tt, $rule:expr $(, at least $least:literal)?;)*) => { $(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
        pub struct $name(pub Vec<String>);

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let texts = $crate::settings::rules::texts_by(deserializer, $expected, $rule)?;
                $(if texts.len() < $least {
                    return Err(::serde::de::Error::custom(concat!("expected ", $expected)));
                })?
                Ok(Self(texts))
            }
        }

        $crate::settings::rules::schema!($name, { "type": "array", "items": $schema $(, "minItems": $least)? });
    )* };
}

/// Reads a list of texts; an error names the first one that breaks the rule.
pub(crate) fn texts_by<'de, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
    rule: fn(usize, &str) -> bool,
) -> Result<Vec<String>, D::Error> {
    struct Texts(fn(usize, &str) -> bool);
    struct OneText(fn(usize, &str) -> bool, usize);
    impl<'de> Visitor<'de> for Texts {
        type Value = Vec<String>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }
        fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<String>, D::Error> {
            deserializer.deserialize_seq(self)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
            let mut texts = Vec::new();
            while let Some(text) = list.next_element_seed(OneText(self.0, texts.len()))? {
                texts.push(text);
            }
            Ok(texts)
        }
    }
    impl<'de> DeserializeSeed<'de> for OneText {
        type Value = String;
        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
            checked(deserializer, "text", |text: Argument| (self.0)(self.1, &text.0).then_some(text.0))
        }
    }
    deserializer.deserialize_newtype_struct(expected, Texts(rule))
}

/// A text, or a list.
pub enum TextOrList<T, L> {
    Text(T),
    List(Vec<L>),
}

impl<'de, T: Deserialize<'de>, L: Deserialize<'de>> Deserialize<'de> for TextOrList<T, L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrListVisitor<T, L>(PhantomData<(T, L)>);
        impl<'de, T: Deserialize<'de>, L: Deserialize<'de>> Visitor<'de> for TextOrListVisitor<T, L> {
            type Value = TextOrList<T, L>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                T::deserialize(StrDeserializer::new(text)).map(TextOrList::Text)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(serde::de::value::SeqAccessDeserializer::new(list)).map(TextOrList::List)
            }
        }
        deserializer.deserialize_any(TextOrListVisitor(PhantomData))
    }
}

/// Tables or values under names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent, bound(deserialize = "K: Deserialize<'de> + Ord, T: Deserialize<'de>"))]
pub(crate) struct NamedTable<K, T>(pub BTreeMap<K, T>);

impl<K, T> Default for NamedTable<K, T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K, T> Deref for NamedTable<K, T> {
    type Target = BTreeMap<K, T>;

    fn deref(&self) -> &BTreeMap<K, T> {
        &self.0
    }
}

impl<K: JsonSchema, T: JsonSchema> JsonSchema for NamedTable<K, T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}_by_{}", T::schema_name(), K::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "object",
            "propertyNames": generator.subschema_for::<K>(),
            "additionalProperties": generator.subschema_for::<T>(),
        })
    }
}

/// Keys with a rule for their text.
macro_rules! key {
    ($($(#[$about:meta])* $name:ident, $schema:tt, $rule:expr, $problem:expr;)*) => { $(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(pub String);

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                let (rule, problem): (fn(&str) -> bool, fn(&str) -> String) = ($rule, $problem);
                if rule(&text) { Ok(Self(text)) } else { Err(problem(&text)) }
            }
        }

        impl ::std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl ::std::ops::Deref for $name {
            type Target = String;

            fn deref(&self) -> &String {
                &self.0
            }
        }

        $crate::settings::rules::schema!($name, $schema);
    )* };
}

/// The name of a key, which is a field of its table: the compiler checks that there is one.
macro_rules! key_name {
    ($table:ty, [$($key:ident),* $(,)?]) => {
        [$($crate::settings::rules::key_name!($table, $key)),*]
    };
    ($table:ty, $key:ident) => {{
        const _: usize = ::std::mem::offset_of!($table, $key);
        stringify!($key)
    }};
}

pub(crate) use {key, key_name, parts, schema, texts, value, whole};

/// The schema of a `signoff.toml`, in draft 7, which all editors support.
pub fn file_schema() -> Value {
    let mut generator = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true).into_generator();
    let mut file = SettingsFile::json_schema(&mut generator).to_value();
    file["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    file["title"] = json!("signoff.toml");
    file["description"] = json!("How work is done and signed off in a repository");
    file["definitions"] = json!({ "phase": phase_schema(&mut generator).to_value() });
    tidy(&mut file);
    file
}

/// Closes every table and removes what TOML does not have: null values, and defaults of whole tables.
fn tidy(schema: &mut Value) {
    if let Value::Object(object) = schema {
        tidy_object(object);
    }
    match schema {
        Value::Object(object) => object.values_mut().for_each(tidy),
        Value::Array(list) => list.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn tidy_object(object: &mut Map<String, Value>) {
    if let Some(Value::String(about)) = object.get_mut("description") {
        *about = about.replace('\n', " ");
    }
    if object.get("default").is_some_and(|default| default.is_null() || default.is_object()) {
        object.remove("default");
    }
    if object.get("properties").is_some_and(Value::is_object) && !object.contains_key("additionalProperties") {
        object.insert("additionalProperties".to_owned(), json!(false));
    }
    if object.get("format") == Some(&json!("uint32")) {
        object.remove("format");
        object.insert("maximum".to_owned(), json!(u32::MAX));
    }
    for word in ["type", "enum"] {
        if let Some(Value::Array(kinds)) = object.get_mut(word) {
            kinds.retain(|kind| *kind != json!("null") && !kind.is_null());
            if let ("type", [kind]) = (word, kinds.as_slice()) {
                let kind = kind.clone();
                object.insert("type".to_owned(), kind);
            }
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| *choice != json!({ "type": "null" }));
        if let [Value::Object(choice)] = choices.as_slice() {
            let choice = choice.clone();
            object.remove("anyOf");
            for (word, value) in choice {
                object.entry(word).or_insert(value);
            }
        }
    }
}
