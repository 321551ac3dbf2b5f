//! The address of a webhook, most of which is secret.

use std::fmt;

use serde::{Serialize, Serializer};
use url::Url;

use crate::settings::rules::value;
use crate::settings::values::Argument;

/// Shorter texts may well be words.
const SHORTEST_KEY: usize = 16;

/// The address of a webhook. Only its host is shown: the rest is what allows to post there.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookAddress(String);

impl WebhookAddress {
    /// An address, valid or not.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The whole of it, to post there.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether it is a valid address.
    pub fn is_valid(&self) -> bool {
        self.place().is_some()
    }

    /// The name of its host, with the port if there is one; nothing of an invalid address.
    pub fn host(&self) -> &str {
        self.place().unwrap_or("…")
    }

    /// Whether there is a user name before the host, perhaps with a password.
    pub fn has_user(&self) -> bool {
        Url::parse(&self.0).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
            || self.authority().is_some_and(|authority| authority.contains('@'))
    }

    /// The secrets in it: the whole, and parts that look random.
    pub(in crate::settings) fn secrets(&self) -> Vec<&str> {
        let parts = self.0.split(['/', '?', '&', '=', '#', '@', ':']).filter(|part| is_made_up(part));
        std::iter::once(self.0.trim()).chain(parts).collect()
    }

    /// Its host and port, if they are written so that every reader understands them in the same way.
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

/// Whether a text looks like a generated key.
pub(in crate::settings) fn is_made_up(text: &str) -> bool {
    text.len() >= SHORTEST_KEY && text.contains(|char: char| char.is_ascii_digit())
}

impl fmt::Display for WebhookAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.split_once("://").map_or("", |(scheme, _)| scheme);
        if self.is_valid() { write!(f, "{scheme}://{}/…", self.host()) } else { f.write_str("…") }
    }
}

impl fmt::Debug for WebhookAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl Serialize for WebhookAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

// Any text is accepted here, so that the message about a bad one need not show it.
value!(
    WebhookAddress,
    "an address in quotes, \"https://…\"",
    { "type": "string", "pattern": "^https?://[^\\s/?#@]+([/?#]\\S*)?$" },
    |text: String| Some(Self(text))
);

/// The name of a variable. It is often mistaken for the address, so a bad one is not shown either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(in crate::settings) struct VariableName(pub String);

impl VariableName {
    pub fn is_valid(&self) -> bool {
        let plain = |char: char| char.is_ascii_alphanumeric() || char == '_';
        self.0.chars().all(plain) && self.0.starts_with(|char: char| !char.is_ascii_digit())
    }
}

value!(
    VariableName,
    "the name of a variable, \"SLACK_URL\"",
    { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
    |text: String| Some(Self(text))
);

/// The value of a header, which may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::settings) struct HeaderValue(pub String);

value!(
    HeaderValue,
    "text in quotes, without a NUL",
    { "type": "string", "pattern": "^[^\\u0000-\\u001f\\u007f]*$" },
    |text: Argument| Some(Self(text.0))
);

impl Serialize for HeaderValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("(set)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_only_the_host_is_shown() {
        let shown = |text: &str| format!("{} {:?}", WebhookAddress::new(text), WebhookAddress::new(text));
        let secret = "https://hooks.example.com/services/T0/B0/s3cret?token=s3cret#s3cret";
        assert_eq!(shown(secret), "https://hooks.example.com/… Address(https://hooks.example.com/…)");
        assert_eq!(WebhookAddress::new("http://127.0.0.1:8080?s3cret").to_string(), "http://127.0.0.1:8080/…");
        assert_eq!(WebhookAddress::new("https://[::1]:443/s3cret").host(), "[::1]:443");
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
            assert!(!WebhookAddress::new(odd).is_valid(), "{odd}");
            assert_eq!(WebhookAddress::new(odd).to_string(), "…");
            assert_eq!(WebhookAddress::new(odd).host(), "…");
        }
    }
}
