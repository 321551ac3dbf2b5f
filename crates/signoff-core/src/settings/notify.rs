//! `[notify]`: channels, and the occasions on which they are notified.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::layer::ConfigNode;
use super::reader::did_you_mean;
use super::rules::{NamedTable, key_name, value};
use super::values::{Argument, ChannelNames, CommandWords, HeaderName, PlainName, hidden};
use super::{ConfigError, Settings, key};
use crate::notify::NotificationKind;
use crate::redact::is_secret_name;

/// `[notify]`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "[notify]")]
pub(super) struct NotifyTable {
    /// A run is finished: the names of the channels that are notified.
    pub done: ChannelNames,
    /// A task failed, is stuck, or blocks its group: the names of the channels that are notified.
    pub stuck: ChannelNames,
    /// A question waits for a person: the names of the channels that are notified.
    pub question: ChannelNames,
    /// Work is paused because a cap of money, tokens or minutes is reached: the names of the channels that are notified.
    pub budget: ChannelNames,
    /// A table for each channel, beside "bell" and "desktop", which are built in.
    pub channels: NamedTable<PlainName, ChannelTable>,
}

pub(super) const URL_ENV: &str = key_name!(ChannelTable, url_env);

impl Default for NotifyTable {
    fn default() -> Self {
        let bell = || ChannelNames(vec!["bell".to_owned()]);
        let (done, channels) = (ChannelNames::default(), NamedTable::default());
        Self { done, stuck: bell(), question: bell(), budget: bell(), channels }
    }
}

/// `[notify.channels.NAME]`. A later layer that sets its address replaces all of it: headers with keys that were written
/// for one address must not be sent to another.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "a channel")]
pub(super) struct ChannelTable {
    /// How it notifies.
    pub kind: Option<ChannelKind>,
    /// Kind "webhook": the address it posts to, which is a secret and never shown in full.
    pub url: Option<WebhookAddress>,
    /// Kind "webhook": the variable that holds the address, so that no file does.
    pub url_env: Option<VariableName>,
    /// Kind "webhook": the format of the message, this program's own JSON or that of Slack.
    pub format: Option<WebhookFormat>,
    /// Kind "webhook": more headers; their values are never shown.
    pub headers: NamedTable<HeaderName, HeaderValue>,
    /// Kind "command": the program and its arguments, started at the root of the repository with JSON on stdin.
    pub command: Option<CommandWords>,
}

/// How a channel notifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(const_into_str, serialize_all = "lowercase")]
pub(super) enum ChannelKind {
    /// Rings the terminal.
    Bell,
    /// Shows it by the terminal, or else by the desktop.
    Desktop,
    /// Posts it.
    Webhook,
    /// Starts a program.
    Command,
}

impl ChannelKind {
    /// The kinds that need no more than their name.
    const BUILT_IN: [(&str, Self); 2] = [("bell", Self::Bell), ("desktop", Self::Desktop)];

    fn built_in(name: &str) -> Option<Self> {
        Self::BUILT_IN.into_iter().find(|(known, _)| *known == name).map(|(_, kind)| kind)
    }
}

/// The format of a webhook's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookFormat {
    #[default]
    Json,
    Slack,
}

/// A channel of notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    pub name: String,
    pub target: ChannelTarget,
}

/// The target of a channel's notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelTarget {
    Bell,
    Desktop,
    Webhook(Webhook),
    /// A program and its arguments.
    Command(Vec<String>),
}

/// The address and the message of a webhook.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    pub address: AddressSource,
    pub format: WebhookFormat,
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({:?}, {:?}, {} headers)", self.address, self.format, self.headers.len())
    }
}

/// The source of a webhook's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressSource {
    /// In the configuration itself.
    Inline(WebhookAddress),
    /// In an environment variable.
    Variable(String),
}

impl Settings {
    /// The names of the channels that are notified on an occasion.
    pub fn channels_for(&self, occasion: NotificationKind) -> &[String] {
        let notify = &self.file.notify;
        match occasion {
            NotificationKind::Done => &notify.done.0,
            NotificationKind::Stuck => &notify.stuck.0,
            NotificationKind::Question => &notify.question.0,
            NotificationKind::Budget => &notify.budget.0,
        }
    }

    /// Every channel that is notified on some occasion, each once.
    pub fn channels(&self) -> Vec<Channel> {
        let mut names: Vec<&String> =
            NotificationKind::ALL.iter().copied().flat_map(|one| self.channels_for(one)).collect();
        names.sort();
        names.dedup();
        names.into_iter().filter_map(|name| self.channel(name)).collect()
    }

    /// A channel by its name, in use or not.
    pub fn channel(&self, name: &str) -> Option<Channel> {
        let target = match ChannelKind::built_in(name) {
            Some(kind) => ChannelTable { kind: Some(kind), ..ChannelTable::default() }.target(),
            None => self.file.notify.channels.get(name)?.target(),
        };
        target.map(|target| Channel { name: name.to_owned(), target })
    }

    /// The names of all channels, built in and configured.
    pub fn channel_names(&self) -> Vec<&str> {
        let own = self.file.notify.channels.keys().map(|name| name.as_str());
        ChannelKind::BUILT_IN.into_iter().map(|(name, _)| name).chain(own).collect()
    }

    /// The variables that hold addresses of channels, in use or not.
    pub fn channel_variables(&self) -> Vec<&str> {
        let named = self.channels.iter().filter_map(|channel| channel.url_env.as_ref());
        named.map(|name| name.0.as_str()).collect()
    }

    /// The secrets of all channels: addresses, also those in variables, and headers with keys.
    pub fn channel_secrets(&self, variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let in_variables = self.channel_variables().into_iter().filter_map(variable).map(WebhookAddress::new);
        let in_files = self.channels.iter().filter_map(|channel| channel.url.clone());
        let addresses: Vec<WebhookAddress> = in_variables.chain(in_files).collect();
        let headers = self.channels.iter().flat_map(|channel| channel.headers.iter());
        let headers = headers.filter(|(name, value)| is_secret_name(name.as_str()) || looks_generated(&value.0));
        let headers = headers.map(|(_, value)| value.0.clone());
        addresses.iter().flat_map(WebhookAddress::secrets).map(str::to_owned).chain(headers).collect()
    }

    pub(super) fn check_notify(&self) -> Result<(), ConfigError> {
        for (name, channel) in self.file.notify.channels.iter() {
            let path = [key::NOTIFY, key::CHANNELS, name.as_str()];
            if let Some(table) = self.tree.get(&path) {
                channel.check(name.as_str(), table)?;
            }
        }
        for &occasion in NotificationKind::ALL {
            let known = self.channel_names();
            let unknown = self.channels_for(occasion).iter().find(|name| !known.contains(&name.as_str()));
            if let Some(name) = unknown {
                let key = occasion.into_str();
                let expected = did_you_mean(name, &known, || {
                    format!("expected some of {}, or [notify.channels.NAME] for it", known.join(", "))
                });
                let message = format!("`{key}` names the channel {name:?}: {expected}");
                return Err(self.error(&[key::NOTIFY, key], message));
            }
        }
        Ok(())
    }
}

impl ChannelTable {
    fn target(&self) -> Option<ChannelTarget> {
        Some(match self.kind? {
            ChannelKind::Bell => ChannelTarget::Bell,
            ChannelKind::Desktop => ChannelTarget::Desktop,
            ChannelKind::Webhook => ChannelTarget::Webhook(self.webhook()?),
            ChannelKind::Command => ChannelTarget::Command(self.command.as_ref()?.0.clone()),
        })
    }

    fn webhook(&self) -> Option<Webhook> {
        let inline = self.url.clone().map(AddressSource::Inline);
        let address = inline.or_else(|| Some(AddressSource::Variable(self.url_env.as_ref()?.0.clone())))?;
        let headers = self.headers.iter().map(|(name, value)| (name.0.clone(), value.0.clone())).collect();
        Some(Webhook { address, format: self.format.unwrap_or_default(), headers })
    }

    fn check(&self, name: &str, table: &ConfigNode) -> Result<(), ConfigError> {
        if ChannelKind::built_in(name).is_some() {
            return Err(
                table.error("", format!("the channel `{name}` is built in: write another name for one of your own"))
            );
        }
        let Some(kind) = self.kind else {
            let message = format!("the channel `{name}` has no `kind`: expected bell, desktop, webhook or command");
            return Err(table.origin.error(message));
        };
        let keys = [
            (key::URL, ChannelKind::Webhook, self.url.is_some()),
            (URL_ENV, ChannelKind::Webhook, self.url_env.is_some()),
            (key::FORMAT, ChannelKind::Webhook, self.format.is_some()),
            (key::HEADERS, ChannelKind::Webhook, !self.headers.is_empty()),
            (key::COMMAND, ChannelKind::Command, self.command.is_some()),
        ];
        let of_kind = format!("the channel `{name}` is of kind \"{}\"", kind.into_str());
        if let Some((key, ..)) = keys.into_iter().find(|(_, owner, is_set)| *is_set && *owner != kind) {
            return Err(table.error(key, format!("{of_kind}: expected no `{key}` in it")));
        }
        let multiline = self.headers.iter().find(|(_, value)| value.0.contains(char::is_control));
        if let Some((header, _)) = multiline {
            let message = format!("the header `{}` contains a line break: expected text on one line", header.as_str());
            return Err(table.error(key::HEADERS, message));
        }
        match kind {
            ChannelKind::Bell | ChannelKind::Desktop => Ok(()),
            ChannelKind::Command if self.command.is_some() => Ok(()),
            ChannelKind::Command => Err(table.origin.error(format!("{of_kind}: write `command = [\"./notify.sh\"]`"))),
            ChannelKind::Webhook => self.check_address(name, table, &of_kind),
        }
    }

    fn check_address(&self, name: &str, table: &ConfigNode, of_kind: &str) -> Result<(), ConfigError> {
        let secret = "(value hidden: it may be a secret)";
        Err(match (&self.url, &self.url_env) {
            (Some(_), Some(_)) => {
                let expected = "write only one; use `url_env` if other people can read the file";
                table.error(URL_ENV, format!("the channel `{name}` has `url` and `url_env`: {expected}"))
            }
            (Some(url), None) if url.has_user() => {
                let expected = "write it in `headers`, { Authorization = \"Basic …\" }";
                table.error(key::URL, format!("`url` has a name or a password before its host: {expected} {secret}"))
            }
            (Some(url), None) if !url.is_valid() => {
                table.error(key::URL, format!("`url` is not a URL: expected \"https://HOST/…\" {secret}"))
            }
            (None, Some(named)) if !named.is_valid() => {
                let expected = "expected one such as \"SLACK_URL\"";
                table.error(URL_ENV, format!("`url_env` is not a name of a variable: {expected}"))
            }
            (Some(_), None) | (None, Some(_)) => return Ok(()),
            (None, None) => {
                let expected = "`url_env = \"SLACK_URL\"`, the variable with its address, or `url`";
                table.origin.error(format!("{of_kind}: write {expected}"))
            }
        })
    }
}

/// Shorter texts may be words.
const SHORTEST_KEY: usize = 16;

/// The address of a webhook. Only its host is shown: the rest of the URL is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookAddress(String);

impl WebhookAddress {
    /// An address, valid or not.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The whole address, for the request.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether it is a valid address.
    pub fn is_valid(&self) -> bool {
        self.host_and_port().is_some()
    }

    /// The name of its host, with the port if there is one; nothing of an invalid address.
    pub fn host(&self) -> &str {
        self.host_and_port().unwrap_or("…")
    }

    /// Whether the address has a user name or password before the host.
    pub fn has_user(&self) -> bool {
        Url::parse(&self.0).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
            || self.authority().is_some_and(|authority| authority.contains('@'))
    }

    /// The secrets in it: the whole, and parts that look random.
    pub(super) fn secrets(&self) -> Vec<&str> {
        let parts = self.0.split(['/', '?', '&', '=', '#', '@', ':']).filter(|part| looks_generated(part));
        std::iter::once(self.0.trim()).chain(parts).collect()
    }

    /// Its host and port, if all URL parsers agree on them.
    fn host_and_port(&self) -> Option<&str> {
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
pub(super) fn looks_generated(text: &str) -> bool {
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
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
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
pub(super) struct VariableName(pub String);

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct HeaderValue(#[serde(serialize_with = "hidden")] pub String);

value!(
    HeaderValue,
    "text in quotes, without a NUL",
    { "type": "string", "pattern": "^[^\\u0000-\\u001f\\u007f]*$" },
    |text: Argument| Some(Self(text.0))
);

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
