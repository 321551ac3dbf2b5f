//! Places for values: what a layer says is laid over what earlier layers said.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::layer::Source;
use super::{Origin, Row, Setting};
use crate::workflow::table::Checked;
use crate::workflow::value::Value;

/// What can stand under a key.
pub(super) trait Slot {
    /// Takes what a layer says under the key, if it says anything.
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()>;

    /// Everything that is known here, for people.
    fn rows(&self, key: &str, rows: &mut Vec<Row>);

    /// What can be written there, as JSON Schema.
    fn schema(key: &str) -> Json;
}

fn read<T: Value>(key: &str, source: &Source<'_>) -> Checked<Option<Setting<T>>> {
    let value: Option<T> = source.table.get(key)?;
    Ok(value.map(|value| Setting { value, origin: source.origin(key) }))
}

/// The row of one value. A value that cannot be shown does not exist: all of them are plain data.
pub(super) fn row(key: &str, value: &impl Serialize, origin: &Origin) -> Row {
    let value = serde_json::to_value(value).unwrap_or_default();
    Row { key: key.to_owned(), value, origin: origin.clone() }
}

impl<T: Value + Serialize> Slot for Setting<T> {
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        if let Some(setting) = read(key, source)? {
            *self = setting;
        }
        Ok(())
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        rows.push(row(key, &self.value, &self.origin));
    }

    fn schema(key: &str) -> Json {
        T::schema(key)
    }
}

impl<T: Value + Serialize> Slot for Option<Setting<T>> {
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        *self = read(key, source)?.or(self.take());
        Ok(())
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        rows.extend(self.as_ref().map(|setting| row(key, &setting.value, &setting.origin)));
    }

    fn schema(key: &str) -> Json {
        T::schema(key)
    }
}

/// Tables of one kind under names of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named<T>(pub BTreeMap<String, T>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Slot + Default> Slot for Named<T> {
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        let Some(tables) = source.inside(key)? else { return Ok(()) };
        for name in tables.table.names() {
            check_name(name, &tables)?;
            self.0.entry(name.to_owned()).or_default().lay(name, &tables)?;
        }
        Ok(())
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        for (name, table) in &self.0 {
            table.rows(&format!("{key}.{name}"), rows);
        }
    }

    fn schema(key: &str) -> Json {
        named_schema(T::schema(key))
    }
}

/// A table of things under names of their own.
pub(super) fn named_schema(one: Json) -> Json {
    json!({
        "type": "object",
        "propertyNames": { "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" },
        "additionalProperties": one,
    })
}

/// Names stand in file names and on terminals.
pub(super) fn check_name(name: &str, source: &Source<'_>) -> Checked<()> {
    let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    if name.chars().all(plain)
        && name.starts_with(|char: char| char.is_ascii_alphanumeric())
        && name.len() <= 64
    {
        return Ok(());
    }
    let shown = if name.len() > 64 { "a name".to_owned() } else { format!("{name:?}") };
    let message =
        format!("{shown} cannot be a name here: expected letters, digits, `-`, `_` and `.`, at most 64");
    Err(source.table.error(name, message))
}

/// A table whose keys are known. `at` is where the table was last written.
macro_rules! table {
    ($(#[$about:meta])* $name:ident, $what:literal {
        $($(#[doc = $doc:literal])+ $key:ident: $slot:ty = $start:expr,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(super) struct $name {
            pub at: Option<$crate::config::Origin>,
            $($(#[doc = $doc])+ pub $key: $slot,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { at: None, $($key: $start,)* }
            }
        }

        impl $name {
            pub const KEYS: &'static [&'static str] = &[$(stringify!($key)),*];

            /// Takes the keys of a table, and does not look at others.
            pub fn take(&mut self, source: &$crate::config::layer::Source<'_>) -> $crate::workflow::table::Checked<()> {
                self.at = Some(source.start());
                $($crate::config::slot::Slot::lay(&mut self.$key, stringify!($key), source)?;)*
                Ok(())
            }

            /// What every key holds. `prefix` ends with a dot, or is empty.
            pub fn list(&self, prefix: &str, rows: &mut Vec<$crate::config::Row>) {
                $($crate::config::slot::Slot::rows(&self.$key, &format!("{prefix}{}", stringify!($key)), rows);)*
            }

            /// Every key with what can be written after it, what it is for, and what holds without it.
            pub fn properties() -> $crate::workflow::schema::Properties {
                let mut rows = Vec::new();
                Self::default().list("", &mut rows);
                let mut known = $crate::workflow::schema::Properties::default();
                $({
                    let key = stringify!($key);
                    let default = rows.iter().find(|row| row.key == key).map(|row| row.value.clone());
                    let schema = <$slot as $crate::config::slot::Slot>::schema(key);
                    known.add(key, schema, concat!($($doc),+), default);
                })*
                known
            }
        }

        impl $crate::config::slot::Slot for $name {
            fn lay(&mut self, key: &str, source: &$crate::config::layer::Source<'_>) -> $crate::workflow::table::Checked<()> {
                let Some(table) = source.inside(key)? else { return Ok(()) };
                table.table.only($what, Self::KEYS)?;
                self.take(&table)
            }

            fn rows(&self, key: &str, rows: &mut Vec<$crate::config::Row>) {
                self.list(&format!("{key}."), rows);
            }

            fn schema(_: &str) -> serde_json::Value {
                Self::properties().closed()
            }
        }
    };
}

pub(super) use table;
