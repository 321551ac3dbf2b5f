//! Where a webhook is, and what it is told besides: secrets, most of it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};
use url::Url;

use crate::config::layer::Source;
use crate::config::slot::{Slot, row};
use crate::config::value::Argument;
use crate::config::{Row, Setting};
use crate::workflow::table::Checked;
use crate::workflow::value::{Value, Written};

/// What is shorter may well be a word.
const SHORTEST_KEY: usize = 16;

/// The address of a webhook. Whoever knows it can post there, so it is shown without all but its host.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// An address as it was given, whatever it is.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The whole of it, for whoever posts there.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether one could post there.
    pub fn is_one(&self) -> bool {
        self.place().is_some()
    }

    /// The name of its host, with the port where there is one; nothing of what is no address.
    pub fn host(&self) -> &str {
        self.place().unwrap_or("…")
    }

    /// Whether somebody is named before the host, perhaps with a password.
    pub fn names_somebody(&self) -> bool {
        Url::parse(&self.0).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
            || self.authority().is_some_and(|authority| authority.contains('@'))
    }

    /// What of it is a secret: the whole, and what looks made up within.
    pub(in crate::config) fn secrets(&self) -> Vec<&str> {
        let parts = self.0.split(['/', '?', '&', '=', '#', '@', ':']).filter(|part| is_made_up(part));
        std::iter::once(self.0.trim()).chain(parts).collect()
    }

    /// Its host and port, if they are written so that whoever posts there can only read them in the same way.
    fn place(&self) -> Option<&str> {
        let plain = !self.0.contains(|char: char| char.is_whitespace() || char.is_control());
        let (authority, url) = (self.authority().filter(|_| plain)?, Url::parse(&self.0).ok()?);
        let host = url.host_str()?;
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        let same = |text: &str| authority.eq_ignore_ascii_case(text);
        (url.port().is_none() && same(host) || with_port.is_some_and(|text| same(&text))).then_some(authority)
    }

    fn authority(&self) -> Option<&str> {
        let rest = self.0.strip_prefix("https://").or_else(|| self.0.strip_prefix("http://"))?;
        rest.split(['/', '?', '#']).next()
    }
}

/// Whether nobody would write such a thing but as a key.
pub(in crate::config) fn is_made_up(text: &str) -> bool {
    text.len() >= SHORTEST_KEY && text.contains(|char: char| char.is_ascii_digit())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.split_once("://").map_or("", |(scheme, _)| scheme);
        if self.is_one() { write!(f, "{scheme}://{}/…", self.host()) } else { f.write_str("…") }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Any text is read, so that a message about a bad one need not quote it.
impl Value for Address {
    fn expected(_: &str) -> String {
        "an address in quotes, \"https://…\"".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "string", "pattern": "^https?://[^\\s/?#@]+([/?#]\\S*)?$" })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        String::read(key, written).map(Self)
    }
}

/// The name of a variable. People mistake it for the address, so a bad one is not quoted either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(in crate::config) struct VariableName(pub String);

impl VariableName {
    pub fn is_one(&self) -> bool {
        let plain = |char: char| char.is_ascii_alphanumeric() || char == '_';
        self.0.chars().all(plain) && self.0.starts_with(|char: char| !char.is_ascii_digit())
    }
}

impl Value for VariableName {
    fn expected(_: &str) -> String {
        "the name of a variable, \"SLACK_URL\"".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        String::read(key, written).map(Self)
    }
}

/// Headers of a webhook. They may be secrets, so they are not shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::config) struct Headers(pub BTreeMap<String, Setting<Argument>>);

/// Characters of the name of a header, beside letters and digits.
const OF_HEADERS: &str = "!#$%&'*+-.^_`|~";

impl Slot for Headers {
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        let Some(table) = source.inside(key)? else { return Ok(()) };
        for name in table.table.names() {
            let plain = |char: char| char.is_ascii_alphanumeric() || OF_HEADERS.contains(char);
            if name.is_empty() || !name.chars().all(plain) {
                let message = format!("{name:?} cannot be the name of a header: expected one like `X-Token`");
                return Err(table.table.error(name, message));
            }
            let mut value: Option<Setting<Argument>> = None;
            value.lay(name, &table)?;
            if value.as_ref().is_some_and(|value| value.value.0.contains(char::is_control)) {
                let message = format!("the header `{name}` goes over a line: expected text on one line");
                return Err(table.table.error(name, message));
            }
            self.0.extend(value.map(|value| (name.to_owned(), value)));
        }
        Ok(())
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        for (name, value) in &self.0 {
            rows.push(row(&format!("{key}.{name}"), &"(set)", &value.origin));
        }
    }

    fn schema(_: &str) -> Json {
        let names = json!({ "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" });
        let value = json!({ "type": "string", "pattern": "^[^\\u0000-\\u001f\\u007f]*$" });
        json!({ "type": "object", "propertyNames": names, "additionalProperties": value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_only_the_host_is_shown() {
        let shown = |text: &str| format!("{} {:?}", Address::new(text), Address::new(text));
        let secret = "https://hooks.example.com/services/T0/B0/s3cret?token=s3cret#s3cret";
        assert_eq!(shown(secret), "https://hooks.example.com/… Address(https://hooks.example.com/…)");
        assert_eq!(Address::new("http://127.0.0.1:8080?s3cret").to_string(), "http://127.0.0.1:8080/…");
        assert_eq!(Address::new("https://[::1]:443/s3cret").host(), "[::1]:443");
        for odd in [
            "s3cret",
            "ftp://s3cret/x",
            "https:///s3cret",
            "https://a b/s3cret",
            "http://me:s3cret@127.0.0.1:8080/x",
            "http://s3cret@127.0.0.1/x",
            "http://u:s3cret/pw@127.0.0.1:1/x",
            "http://127.0.0.1:18101;s3cret/x",
            "http://127.0.0.1:s3cret/x",
            "http://a\\@s3cret/x",
            "http:s3cret",
            "",
        ] {
            assert!(!Address::new(odd).is_one(), "{odd}");
            assert_eq!(Address::new(odd).to_string(), "…");
            assert_eq!(Address::new(odd).host(), "…");
        }
    }
}
