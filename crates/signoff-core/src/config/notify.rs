//! `[notify]`: who is told of what, and how.

mod address;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

pub use address::Address;

use super::layer::Source;
use super::slot::{Named, Slot, table};
use super::value::{Program, Text};
use super::{ConfigError, Origin, Row, Setting, Settings};
use crate::notify::Occasion;
use crate::redact::is_secret_name;
use crate::workflow::problem::nearest;
use crate::workflow::table::Checked;
use crate::workflow::value::{Value, Written, word_values};
use address::{Headers, VariableName, is_made_up};

table! {
    /// `[notify]`.
    NotifySettings, "[notify]" {
        /// A run is through: the names of the channels that are told.
        done: Setting<Channels> = Setting::built_in(Channels::default()),
        /// A task failed, is stuck, or blocks its group: the names of the channels that are told.
        stuck: Setting<Channels> = Setting::built_in(Channels::bell()),
        /// A person is asked something: the names of the channels that are told.
        question: Setting<Channels> = Setting::built_in(Channels::bell()),
        /// Work is paused because a cap of money, tokens or minutes is reached: the names of the channels that are told.
        budget: Setting<Channels> = Setting::built_in(Channels::bell()),
        /// A table for each channel, beside "bell" and "desktop", which are built in.
        channels: Named<Standing> = Named::default(),
    }
}

table! {
    /// `[notify.channels.NAME]`.
    ChannelSettings, "a channel" {
        /// How it tells.
        kind: Option<Setting<ChannelKind>> = None,
        /// Kind "webhook": the address it posts to, which is a secret and never shown in full.
        url: Option<Setting<Address>> = None,
        /// Kind "webhook": the variable that holds the address, so that no file does.
        url_env: Option<Setting<VariableName>> = None,
        /// Kind "webhook": what is posted, this program's own JSON or what Slack takes.
        format: Option<Setting<Format>> = None,
        /// Kind "webhook": more headers; their values are never shown.
        headers: Headers = Headers::default(),
        /// Kind "command": the program and its arguments, started at the root of the repository with JSON on stdin.
        command: Option<Setting<Program>> = None,
    }
}

/// A channel as all layers together make it. Who says where it tells says all of it: what an earlier layer wrote beside its
/// own address, headers with keys above all, never goes to that of another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Standing {
    holds: ChannelSettings,
    /// What earlier layers had said.
    replaced: Vec<ChannelSettings>,
}

impl Standing {
    /// The keys that say where it tells.
    const ADDRESSES: [&str; 3] = ["url", "url_env", "command"];
}

impl Slot for Standing {
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        let Some(table) = source.inside(key)? else { return Ok(()) };
        if table.table.names().iter().any(|name| Self::ADDRESSES.contains(name)) && self.holds.at.is_some() {
            self.replaced.push(std::mem::take(&mut self.holds));
        }
        self.holds.lay(key, source)
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        self.holds.rows(key, rows);
    }

    fn schema(key: &str) -> Json {
        ChannelSettings::schema(key)
    }
}

/// How a channel tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelKind {
    /// Rings the terminal.
    Bell,
    /// Has the terminal, or else the desktop, show it.
    Desktop,
    /// Posts it.
    Webhook,
    /// Starts a program.
    Command,
}

impl ChannelKind {
    /// Those that need no more than their name.
    const BUILT_IN: [(&str, Self); 2] = [("bell", Self::Bell), ("desktop", Self::Desktop)];

    fn built_in(name: &str) -> Option<Self> {
        Self::BUILT_IN.into_iter().find(|(known, _)| *known == name).map(|(_, kind)| kind)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Bell => "bell",
            Self::Desktop => "desktop",
            Self::Webhook => "webhook",
            Self::Command => "command",
        }
    }
}

/// What a webhook is posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    #[default]
    Json,
    Slack,
}

word_values!(ChannelKind, Format);

/// Names of channels. Which ones there are, all files decide together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub(super) struct Channels(pub Vec<String>);

impl Channels {
    fn bell() -> Self {
        Self(vec!["bell".to_owned()])
    }
}

impl Value for Channels {
    fn expected(_: &str) -> String {
        "a list of names of channels, [\"bell\", \"desktop\"]".to_owned()
    }

    fn schema(key: &str) -> Json {
        json!({ "type": "array", "items": Text::schema(key) })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let list = written.get_ref().as_array().ok_or(written)?;
        let name = |one| Text::read(key, one).map(|name| name.as_str().to_owned());
        list.iter().map(name).collect::<Result<_, _>>().map(Self)
    }
}

/// A way to tell a person something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    pub name: String,
    pub way: Way,
}

/// How a channel tells, with all it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    Bell,
    Desktop,
    Webhook(Webhook),
    /// A program and its arguments.
    Command(Vec<String>),
}

/// Where and what is posted.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    pub at: Where,
    pub format: Format,
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({:?}, {:?}, {} headers)", self.at, self.format, self.headers.len())
    }
}

/// Where the address of a webhook stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    Here(Address),
    /// In this variable.
    Variable(String),
}

impl Settings {
    /// The names of the channels that are told of such a thing.
    pub fn told_of(&self, occasion: Occasion) -> &[String] {
        &self.listed(occasion).value.0
    }

    /// Every channel that is told of something, each once.
    pub fn channels(&self) -> Vec<Channel> {
        let mut names: Vec<&String> = Occasion::ALL.into_iter().flat_map(|one| self.told_of(one)).collect();
        names.sort();
        names.dedup();
        names.into_iter().filter_map(|name| self.channel(name)).collect()
    }

    /// A channel by its name, told of something or not.
    pub fn channel(&self, name: &str) -> Option<Channel> {
        let way = match ChannelKind::built_in(name) {
            Some(kind) => ChannelSettings { kind: Some(Setting::built_in(kind)), ..Default::default() }.way(),
            None => self.written.notify.channels.0.get(name)?.holds.way(),
        };
        way.map(|way| Channel { name: name.to_owned(), way })
    }

    /// The names that channels have, built in and configured.
    pub fn channel_names(&self) -> Vec<&str> {
        let own = self.written.notify.channels.0.keys().map(String::as_str);
        ChannelKind::BUILT_IN.into_iter().map(|(name, _)| name).chain(own).collect()
    }

    /// The variables that hold addresses of channels, told of something or not.
    pub fn channel_variables(&self) -> Vec<&str> {
        let named = self.every_channel().filter_map(|channel| channel.url_env.as_ref());
        named.map(|name| name.value.0.as_str()).collect()
    }

    /// What of all channels nobody is to read, with what `variable` says of those that hold addresses: addresses, and
    /// headers with keys.
    pub fn channel_secrets(&self, variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let held = self.channel_variables().into_iter().filter_map(variable).map(Address::new);
        let here =
            self.every_channel().filter_map(|channel| channel.url.as_ref()).map(|url| url.value.clone());
        let headers = self.every_channel().flat_map(|channel| &channel.headers.0);
        let headers = headers.filter(|(name, value)| is_secret_name(name) || is_made_up(&value.value.0));
        let headers = headers.map(|(_, value)| value.value.0.clone());
        let addresses: Vec<Address> = held.chain(here).collect();
        let addresses = addresses.iter().flat_map(Address::secrets).map(str::to_owned);
        addresses.chain(headers).collect()
    }

    /// Also those that a later layer replaced: what a person wrote stays a secret.
    fn every_channel(&self) -> impl Iterator<Item = &ChannelSettings> {
        let named = self.written.notify.channels.0.values();
        named.flat_map(|channel| std::iter::once(&channel.holds).chain(&channel.replaced))
    }

    fn listed(&self, occasion: Occasion) -> &Setting<Channels> {
        let notify = &self.written.notify;
        match occasion {
            Occasion::Done => &notify.done,
            Occasion::Stuck => &notify.stuck,
            Occasion::Question => &notify.question,
            Occasion::Budget => &notify.budget,
        }
    }

    pub(super) fn check_notify(&self) -> Result<(), ConfigError> {
        for (name, channel) in &self.written.notify.channels.0 {
            channel.holds.check(name)?;
        }
        for occasion in Occasion::ALL {
            let listed = self.listed(occasion);
            let known = self.channel_names();
            let strange = listed.value.0.iter().find(|name| !known.contains(&name.as_str()));
            if let Some(strange) = strange {
                return Err(listed.origin.error(unknown(occasion, strange, &known)));
            }
        }
        Ok(())
    }
}

fn unknown(occasion: Occasion, name: &str, known: &[&str]) -> String {
    let key = occasion.word();
    match nearest(name, known) {
        Some(meant) => format!("`{key}` names the channel {name:?}: did you mean `{meant}`?"),
        None => format!(
            "`{key}` names the channel {name:?}: expected some of {}, or [notify.channels.NAME] for it",
            known.join(", ")
        ),
    }
}

impl ChannelSettings {
    fn way(&self) -> Option<Way> {
        Some(match self.kind.as_ref()?.value {
            ChannelKind::Bell => Way::Bell,
            ChannelKind::Desktop => Way::Desktop,
            ChannelKind::Webhook => Way::Webhook(self.webhook()?),
            ChannelKind::Command => Way::Command(self.command.as_ref()?.value.0.clone()),
        })
    }

    fn webhook(&self) -> Option<Webhook> {
        let here = self.url.as_ref().map(|url| Where::Here(url.value.clone()));
        let at = here.or_else(|| Some(Where::Variable(self.url_env.as_ref()?.value.0.clone())))?;
        let format = self.format.as_ref().map(|format| format.value).unwrap_or_default();
        let headers =
            self.headers.0.iter().map(|(name, value)| (name.clone(), value.value.0.clone())).collect();
        Some(Webhook { at, format, headers })
    }

    fn check(&self, name: &str) -> Result<(), ConfigError> {
        let place = self.at.clone().unwrap_or(Origin::Default);
        if ChannelKind::built_in(name).is_some() {
            return Err(place
                .error(format!("the channel `{name}` is built in: write another name for one of your own")));
        }
        let Some(kind) = &self.kind else {
            return Err(place.error(format!(
                "the channel `{name}` has no `kind`: expected bell, desktop, webhook or command"
            )));
        };
        let kind = kind.value;
        if let Some((key, origin)) = self.misplaced(kind) {
            let message =
                format!("the channel `{name}` is of kind \"{}\": expected no `{key}` in it", kind.word());
            return Err(origin.error(message));
        }
        self.check_needed(name, kind, &place)
    }

    /// What the kind cannot do without.
    fn check_needed(&self, name: &str, kind: ChannelKind, place: &Origin) -> Result<(), ConfigError> {
        let missing = match kind {
            ChannelKind::Bell | ChannelKind::Desktop => None,
            ChannelKind::Command if self.command.is_some() => None,
            ChannelKind::Command => Some("`command = [\"./tell.sh\"]`"),
            ChannelKind::Webhook => match (&self.url, &self.url_env) {
                (Some(_), Some(named)) => {
                    let message = format!(
                        "the channel `{name}` has `url` and `url_env`: expected one of them, `url_env` where others see the file"
                    );
                    return Err(named.origin.error(message));
                }
                (Some(url), None) if url.value.names_somebody() => {
                    let message = "`url` has a name or a password before its host: write it in `headers`, { Authorization = \"Basic …\" } (what it is may be a secret, and is not shown)";
                    return Err(url.origin.error(message));
                }
                (Some(url), None) if !url.value.is_one() => {
                    let message = "`url` is no address: expected \"https://HOST/…\" (what it is may be a secret, and is not shown)";
                    return Err(url.origin.error(message));
                }
                (None, Some(named)) if !named.value.is_one() => {
                    let message = "`url_env` is no name of a variable: expected one such as \"SLACK_URL\"";
                    return Err(named.origin.error(message));
                }
                (Some(_), None) | (None, Some(_)) => None,
                (None, None) => Some("`url_env = \"SLACK_URL\"`, the variable with its address, or `url`"),
            },
        };
        let error = |missing| {
            place.error(format!("the channel `{name}` is of kind \"{}\": write {missing}", kind.word()))
        };
        missing.map_or(Ok(()), |missing| Err(error(missing)))
    }

    /// A key that means nothing for this kind.
    fn misplaced(&self, kind: ChannelKind) -> Option<(&'static str, Origin)> {
        fn origin<T>(setting: &Option<Setting<T>>) -> Option<Origin> {
            setting.as_ref().map(|setting| setting.origin.clone())
        }
        let of_webhooks = || {
            let headers = self.headers.0.values().next().map(|value| value.origin.clone());
            [
                ("url", origin(&self.url)),
                ("url_env", origin(&self.url_env)),
                ("format", origin(&self.format)),
                ("headers", headers),
            ]
        };
        let of_commands = || [("command", origin(&self.command))];
        let keys: Vec<_> = match kind {
            ChannelKind::Bell | ChannelKind::Desktop => {
                of_webhooks().into_iter().chain(of_commands()).collect()
            }
            ChannelKind::Webhook => of_commands().into(),
            ChannelKind::Command => of_webhooks().into(),
        };
        keys.into_iter().find_map(|(key, origin)| Some((key, origin?)))
    }
}
