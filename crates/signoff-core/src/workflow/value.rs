//! The values a key may have, and how to say what was expected instead.

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde_json::{Value as Json, json};
use toml::Spanned;
use toml::de::DeValue;

use super::problem::either;
use super::words::KindWord;
use super::{Arrangement, Completion, Landing, Role};
use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::policy::{Count, ExhaustedAs, Ladder, OnExhausted, OnFailure, Rereview, Rung, Span};
use crate::prompt::Depth;
use crate::review::{Bar, ReviewerKind};

/// A value as it stands in the file.
pub type Written<'i> = Spanned<DeValue<'i>>;

/// What can be written after a key. The key matters for ladders only.
pub trait Value: Sized {
    fn expected(key: &str) -> String;

    /// The same for editors, as JSON Schema.
    fn schema(key: &str) -> Json;

    /// The value, or the part of it that is wrong.
    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>>;
}

/// Numbers of which zero means never.
const SWITCHES: [&str; 3] = ["checkpoint_interval", "max_same_finding", "max_noop_fixes"];

/// The bound that holds where others are lifted.
const ALWAYS_BOUNDED: &str = "max_attempts";

/// Bounds that leave room for one.
const AT_LEAST_ONE: [&str; 2] = ["max_attempts", "max_cycles"];

fn least(key: &str) -> u32 {
    u32::from(AT_LEAST_ONE.contains(&key))
}

/// The value as people would name it.
pub fn described(written: &Written<'_>) -> String {
    match written.get_ref() {
        DeValue::String(text) if text.chars().count() > 40 => "a long text".to_owned(),
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(list) if list.is_empty() => "an empty list".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

impl Value for bool {
    fn expected(_: &str) -> String {
        "true or false".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "boolean" })
    }

    fn read<'v, 'i>(_: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        written.get_ref().as_bool().ok_or(written)
    }
}

impl Value for u32 {
    fn expected(key: &str) -> String {
        let off = if SWITCHES.contains(&key) { ", 0 to switch it off" } else { "" };
        format!("a whole number from 0 to {}{off}", Self::MAX)
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "integer", "minimum": 0, "maximum": Self::MAX })
    }

    fn read<'v, 'i>(_: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let number = written.get_ref().as_integer().ok_or(written)?;
        Self::from_str_radix(number.as_str(), number.radix()).map_err(|_| written)
    }
}

impl Value for Count {
    fn expected(key: &str) -> String {
        let unlimited = if key == ALWAYS_BOUNDED { "" } else { " or \"unlimited\"" };
        let least = least(key);
        format!("a whole number from {least} to {}{unlimited}", u32::MAX)
    }

    fn schema(key: &str) -> Json {
        let least = least(key);
        let number = json!({ "type": "integer", "minimum": least, "maximum": u32::MAX });
        if key == ALWAYS_BOUNDED {
            return number;
        }
        json!({ "anyOf": [number, { "enum": ["unlimited"] }] })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        if written.get_ref().as_str() == Some("unlimited") {
            return Ok(Self::Unlimited);
        }
        u32::read(key, written).map(Self::Of)
    }
}

impl Value for Span {
    fn expected(_: &str) -> String {
        "a duration such as \"90s\", \"30m\" or \"2h\"".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "string", "pattern": "^0*[1-9][0-9]{0,17}[smh]$" })
    }

    fn read<'v, 'i>(_: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let span = written.get_ref().as_str().and_then(Self::from_text);
        span.filter(|span| span.seconds > 0).ok_or(written)
    }
}

impl Value for String {
    fn expected(_: &str) -> String {
        "text in quotes".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "string" })
    }

    fn read<'v, 'i>(_: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        written.get_ref().as_str().map(str::to_owned).ok_or(written)
    }
}

impl Value for ReviewerName {
    fn expected(key: &str) -> String {
        String::expected(key)
    }

    fn schema(key: &str) -> Json {
        String::schema(key)
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        String::read(key, written).map(|name| name.as_str().into())
    }
}

impl<T: Value> Value for Vec<T> {
    fn expected(_: &str) -> String {
        "a list of names, [\"…\", \"…\"]".to_owned()
    }

    fn schema(key: &str) -> Json {
        let least = u32::from(key == "reviewers");
        json!({ "type": "array", "items": T::schema(key), "minItems": least, "uniqueItems": true })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let list = written.get_ref().as_array().ok_or(written)?;
        list.iter().map(|one| T::read(key, one)).collect()
    }
}

impl Value for Ladder {
    fn expected(key: &str) -> String {
        let words: Vec<_> = rungs(key).iter().map(|rung| rung.word()).collect();
        format!("{}, or a list of these to be tried in turn", either(&words))
    }

    fn schema(key: &str) -> Json {
        let words: Vec<_> = rungs(key).iter().map(|rung| rung.word()).collect();
        let one = json!({ "enum": words });
        json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let one = |written: &'v Written<'i>| {
            let rung = Rung::read(key, written)?;
            rungs(key).contains(&rung).then_some(rung).ok_or(written)
        };
        match written.get_ref().as_array() {
            None => one(written).map(|rung| Self::of(&[rung])),
            Some(list) if list.is_empty() => Err(written),
            Some(list) => list.iter().map(one).collect::<Result<Vec<_>, _>>().map(|rungs| Self::of(&rungs)),
        }
    }
}

/// A word that means nothing where it stands is an error, not a surprise at night.
fn rungs(key: &str) -> &'static [Rung] {
    match key {
        "on_unclear" | "on_discussion" => {
            &[Rung::Retry, Rung::RequestChanges, Rung::NotPassed, Rung::Ask, Rung::Stop, Rung::Fail]
        }
        "on_reviewer_failure" => &[Rung::Retry, Rung::NotPassed, Rung::Ask, Rung::Stop, Rung::Fail],
        "on_fixer_failure" | "on_implementer_failure" => {
            &[Rung::Retry, Rung::NextAttempt, Rung::Ask, Rung::Stop, Rung::Fail]
        }
        _ => &Rung::ALL,
    }
}

/// Enums that are written as one of their words.
macro_rules! word_values {
    ($($kind:ty),*) => {
        $(impl $crate::workflow::value::Value for $kind {
            fn expected(_: &str) -> String {
                $crate::workflow::problem::either($crate::workflow::value::words_of::<Self>())
            }

            fn schema(_: &str) -> serde_json::Value {
                serde_json::json!({ "enum": $crate::workflow::value::words_of::<Self>() })
            }

            fn read<'v, 'i>(
                _: &str,
                written: &'v $crate::workflow::value::Written<'i>,
            ) -> Result<Self, &'v $crate::workflow::value::Written<'i>> {
                $crate::workflow::value::one_word(written)
            }
        })*
    };
}

pub(crate) use word_values;

word_values!(OnFailure, OnExhausted, ExhaustedAs, Rereview, Rung, Depth, Bar);
word_values!(Completion, Landing, Arrangement, Role, KindWord, ReviewerKind, Contract);

/// The words of an enum.
pub fn words_of<'w, T: Deserialize<'w>>() -> &'static [&'static str] {
    read_word::<T>("").err().map_or(&[], |known| known.0)
}

/// The enum that a word stands for.
pub fn one_word<'v, 'i, T: Deserialize<'v>>(written: &'v Written<'i>) -> Result<T, &'v Written<'i>> {
    written.get_ref().as_str().and_then(|word| read_word(word).ok()).ok_or(written)
}

fn read_word<'w, T: Deserialize<'w>>(word: &'w str) -> Result<T, Known> {
    T::deserialize(StrDeserializer::new(word))
}

/// The words of an enum, as its reader lists them when it meets one it does not know.
#[derive(Debug)]
struct Known(&'static [&'static str]);

impl std::fmt::Display for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&either(self.0))
    }
}

impl std::error::Error for Known {}

impl serde::de::Error for Known {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self(&[])
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self(expected)
    }
}
