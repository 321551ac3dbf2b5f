//! The values of settings whose rules are stricter than their types.

use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::rules::{TextOrList, key, texts, value, whole};
use crate::policy::TimeSpan;
use crate::workflow::{PRESETS, WORKFLOW_NAMES};

/// Where a reviewer works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReviewWorkspace {
    /// In the loop's worktree, which it must not change.
    Shared,
    /// In a throw-away worktree of the commit.
    Copy,
}

/// How signed-off work joins a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LandingMethod {
    /// With a merge commit.
    #[default]
    Merge,
    /// With the same changes on top.
    Rebase,
}

whole! {
    /// Agents or loops at once, reviews of a task, and refusals in a row.
    SmallCount: 1 to 1000;
    /// Fixes of a task.
    FixCount: 0 to 1000;
    /// Up to a year.
    Minutes: 1 to 525_600;
    /// Researchers of a phase.
    ResearcherCount: 0 to 32;
    /// Attempts or passes of a loop.
    PassCount: 1 to 10_000;
    /// Attempts of a loop.
    AttemptCount: 1 to 4_294_967_295_u32, ": a gate whose own limit is \"unlimited\" ends only by `KEY`";
    /// Passes through a workflow.
    WorkflowPasses: 1 to 4_294_967_295_u32;
    /// A limit that 0 switches off.
    OptionalLimit: 0 to 4_294_967_295_u32, ", 0 to switch it off";
}

impl OptionalLimit {
    /// None: it is off.
    pub fn number(self) -> Option<u32> {
        Some(self.0).filter(|number| *number > 0)
    }
}

impl Minutes {
    pub fn span(self) -> TimeSpan {
        TimeSpan::minutes(self.0.into())
    }
}

/// Tokens, or minutes of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PositiveNumber(pub u64);

value!(
    PositiveNumber,
    "a whole number, at least 1",
    { "type": "integer", "minimum": 1, "maximum": i64::MAX },
    |number: u64| (1..=i64::MAX as u64).contains(&number).then_some(Self(number))
);

/// A wait, which may be none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct WaitTime(pub TimeSpan);

value!(
    WaitTime,
    "a duration such as \"0s\", \"30s\" or \"15m\"",
    { "type": "string", "pattern": "^[0-9]{1,18}[smh]$" },
    |text: String| TimeSpan::parse(&text).map(Self)
);

value!(
    TimeSpan,
    "a duration such as \"90s\", \"30m\" or \"2h\"",
    { "type": "string", "pattern": "^0*[1-9][0-9]{0,17}[smh]$" },
    |text: String| Self::parse(&text).filter(|span| span.seconds > 0)
);

/// An amount of money in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Dollars(#[serde(serialize_with = "as_dollars")] pub u64);

value!(
    Dollars,
    "an amount of dollars such as 20.0, more than 0 and at most 1000000",
    { "type": "number", "exclusiveMinimum": 0, "maximum": 1_000_000 },
    |dollars: f64| {
        let micro = (dollars * 1e6).round();
        (1.0..=1e12).contains(&micro).then_some(Self(micro as u64))
    }
);

/// Serializes millionths of a dollar as dollars.
pub(super) fn as_dollars<S: Serializer>(micro: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*micro as f64 / 1e6)
}

/// A text that can be handed to a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Argument(pub String);

value!(
    Argument,
    "text in quotes, without a NUL",
    { "type": "string" },
    |text: String| (!text.contains('\0')).then_some(Self(text))
);

/// A text that may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretText(#[serde(serialize_with = "hidden")] pub String);

value!(
    SecretText,
    "text in quotes, without a NUL",
    { "type": "string" },
    |text: Argument| Some(Self(text.0))
);

/// Serializes a secret as "(set)".
pub fn hidden<S: Serializer>(_: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("(set)")
}

/// A text that is not blank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NonBlankText(String);

impl NonBlankText {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for NonBlankText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

value!(
    NonBlankText,
    "text in quotes that is not empty",
    { "type": "string", "pattern": "\\S" },
    |text: Argument| (!text.0.trim().is_empty()).then_some(Self(text.0))
);

/// The name of a workflow. Only all layers together define which ones exist.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct WorkflowName(pub String);

value!(
    WorkflowName,
    WORKFLOW_NAMES,
    { "anyOf": [{ "enum": PRESETS }, { "type": "string", "pattern": "\\S" }] },
    |text: NonBlankText| Some(Self(text.0))
);

texts! {
    /// A program and its arguments.
    CommandWords,
    "a program and its arguments, [\"./agent\", \"--fast\"]",
    { "type": "string" },
    |index, word| index > 0 || !word.trim().is_empty(),
    at least 1;

    /// Arguments for a program.
    Arguments,
    "a list of texts, [\"--fast\", \"…\"]",
    { "type": "string" },
    |_, _| true;

    /// Names of variables, or prefixes: `AWS_*`.
    PassedVariables,
    "a list of names of variables, [\"NAME\", \"PREFIX_*\"]",
    { "type": "string", "pattern": "^[^=*\\s]+\\*?$" },
    |_, name| {
        let name = name.strip_suffix('*').unwrap_or(name);
        !name.is_empty() && !name.contains(|char: char| char == '=' || char == '*' || char.is_whitespace())
    };

    /// Files of the repository.
    RepositoryPaths,
    "a list of paths inside the repository, [\".env\"]",
    { "type": "string", "pattern": "\\S" },
    |_, path| !path.trim().is_empty() && !leaves_repository(path);

    /// Names of channels. Only all layers together define which ones exist.
    ChannelNames,
    "a list of names of channels, [\"bell\", \"desktop\"]",
    { "type": "string", "pattern": "\\S" },
    |_, name| !name.trim().is_empty();

    /// Where writers may write besides their worktree.
    WritablePaths,
    "a list of \"caches\" and of paths that begin with / or ~/, [\"caches\", \"~/.gradle\"]",
    { "type": "string", "pattern": "^(caches|~/.+|/.+)$" },
    |_, path| {
        let below = path.strip_prefix("~/").or(path.strip_prefix('/'));
        path == WritablePaths::CACHES || below.is_some_and(|below| !below.is_empty())
    };
}

fn leaves_repository(path: &str) -> bool {
    let absolute = path.starts_with(['/', '\\']) || path.chars().nth(1) == Some(':');
    absolute || path.split(['/', '\\']).any(|part| part == ".." || part == ".git")
}

/// The location of the event log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreLocation {
    #[default]
    Sqlite,
    /// The address of a PostgreSQL database. Shown without its password.
    #[serde(untagged, serialize_with = "hide_password")]
    Postgres(String),
}

value!(
    StoreLocation,
    "\"sqlite\" or \"postgres://…\"",
    { "anyOf": [{ "enum": ["sqlite"] }, { "type": "string", "pattern": "^postgres(ql)?://" }] },
    |text: String| match text.as_str() {
        "sqlite" => Some(Self::Sqlite),
        url if url.starts_with("postgres://") || url.starts_with("postgresql://") => Some(Self::Postgres(text)),
        _ => None,
    }
);

fn hide_password<S: Serializer>(url: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&without_password(url))
}

pub(super) fn without_password(url: &str) -> String {
    let url = url.split('?').next().unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}:…@{host}")
        }
        None => url.to_owned(),
    }
}

/// Whether agents are sandboxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Sandbox {
    Off,
    /// Agents are sandboxed if the system supports it.
    #[default]
    On,
    /// No agent starts without a sandbox.
    Required,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FlagOrText {
    Flag(bool),
    Text(String),
}

value!(
    Sandbox,
    "true, false or \"required\"",
    { "enum": [true, false, "required"] },
    |written: FlagOrText| match written {
        FlagOrText::Flag(true) => Some(Self::On),
        FlagOrText::Flag(false) => Some(Self::Off),
        FlagOrText::Text(text) => (text == "required").then_some(Self::Required),
    }
);

impl Serialize for Sandbox {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::On => serializer.serialize_bool(true),
            Self::Required => serializer.serialize_str("required"),
        }
    }
}

impl WritablePaths {
    /// The usual caches of build tools.
    pub const CACHES: &str = "caches";

    pub(super) fn caches() -> Self {
        Self(vec![Self::CACHES.to_owned()])
    }
}

/// The network access of sandboxed agents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    #[default]
    Open,
    /// Only these TCP ports.
    #[serde(untagged)]
    Ports(Vec<u16>),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum OpenNetwork {
    Open,
}

value!(
    Network,
    "\"open\" or a list of TCP ports, [443]",
    { "oneOf": [
        { "enum": ["open"] },
        { "type": "array", "items": { "type": "integer", "minimum": 1, "maximum": u16::MAX } },
    ] },
    |network: TextOrList<OpenNetwork, NonZeroU16>| Some(match network {
        TextOrList::Text(OpenNetwork::Open) => Self::Open,
        TextOrList::List(ports) => Self::Ports(ports.into_iter().map(NonZeroU16::get).collect()),
    })
);

impl Network {
    /// Whether `other` allows all connections that it allows.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Open) => true,
            (Self::Open, Self::Ports(_)) => false,
            (Self::Ports(own), Self::Ports(other)) => own.iter().all(|port| other.contains(port)),
        }
    }
}

key! {
    /// A name that can be part of a file name and be printed on terminals.
    PlainName,
    { "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" },
    |name| {
        let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
        name.len() <= 64
            && name.chars().all(plain)
            && name.starts_with(|char: char| char.is_ascii_alphanumeric())
    },
    |name| {
        let shown = if name.len() > 64 { "a name".to_owned() } else { format!("{name:?}") };
        format!("{shown} cannot be a name here: expected letters, digits, `-`, `_` and `.`, at most 64")
    };

    /// The name of a variable that an agent gets.
    EnvironmentKey,
    { "pattern": "^[^=]+$" },
    |name| !name.is_empty() && !name.contains(['=', '\0']),
    |name| format!("{name:?} cannot be the name of a variable: expected one without `=`");

    /// The name of a header.
    HeaderName,
    { "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" },
    |name| {
        let plain = |char: char| char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char);
        !name.is_empty() && name.chars().all(plain)
    },
    |name| format!("{name:?} cannot be the name of a header: expected one like `X-Token`");

    /// The name of a model, which its provider chooses.
    ModelName,
    { "pattern": "^\\S{1,128}$" },
    |name| {
        let odd = |char: char| char.is_whitespace() || char.is_control();
        !name.is_empty() && name.len() <= 128 && !name.contains(odd)
    },
    |_| "a model cannot have that name: expected 1 to 128 characters without spaces".to_owned();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let shown = |url: &str| without_password(url);
        assert_eq!(shown("postgres://me:secret@db/signoff"), "postgres://me:…@db/signoff");
        assert_eq!(shown("postgres://me:s@cret@db/signoff?password=x"), "postgres://me:…@db/signoff");
        assert_eq!(shown("postgres://db/signoff"), "postgres://db/signoff");
    }

    #[test]
    fn copied_files_stay_inside() {
        for path in ["/etc/passwd", "../x", "a/../../x", "C:\\x", ".git/config", "\\\\host\\x"] {
            assert!(leaves_repository(path), "{path}");
        }
        for path in [".env", "config/local.toml", "..env"] {
            assert!(!leaves_repository(path), "{path}");
        }
    }
}
