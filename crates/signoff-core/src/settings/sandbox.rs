//! The sandbox settings, which a repository may only tighten.

use serde::{Deserialize, Serialize, Serializer};

use super::file::SettingsFile;
use super::rules::{texts, value};
use super::tree::{ConfigData, ConfigNode};
use super::values::Network;
use super::{ConfigError, SettingOrigin};

/// Whether agents are kept from writing where they need not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Sandbox {
    Off,
    /// If the system supports it.
    #[default]
    On,
    /// Nothing is started without one.
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

texts!(
    /// Where writers may write besides their worktree.
    Writable,
    "a list of \"caches\" and of paths that begin with / or ~/, [\"caches\", \"~/.gradle\"]",
    { "type": "string", "pattern": "^(caches|~/.+|/.+)$" },
    |_, path| {
        let below = path.strip_prefix("~/").or(path.strip_prefix('/'));
        path == Writable::CACHES || below.is_some_and(|below| !below.is_empty())
    }
);

impl Writable {
    /// The usual caches of build tools.
    pub const CACHES: &str = "caches";

    pub(super) fn caches() -> Self {
        Self(vec![Self::CACHES.to_owned()])
    }
}

impl Network {
    /// Whether it allows nothing that `other` does not.
    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Open) => true,
            (Self::Open, Self::Ports(_)) => false,
            (Self::Ports(own), Self::Ports(other)) => own.iter().all(|port| other.contains(port)),
        }
    }
}

/// Removes from a layer of the repository what would loosen the sandbox that the person configured: the repository may
/// be untrusted. `before` are the layers below it.
pub(super) fn keep_strict(layer: &mut ConfigNode, file: &SettingsFile, before: &ConfigNode) -> Result<(), ConfigError> {
    let by_person = before.get(&["sandbox"]).is_some_and(|set| matches!(set.origin, SettingOrigin::Person { .. }));
    let Some(layer) = layer.table_mut().filter(|_| by_person) else { return Ok(()) };
    let before: SettingsFile = before.read()?;
    if file.sandbox < before.sandbox {
        layer.remove("sandbox");
    }
    if before.sandbox != Sandbox::Required {
        return Ok(());
    }
    if before.sandbox_writers && !file.sandbox_writers {
        layer.remove("sandbox_writers");
    }
    if !file.sandbox_network.is_within(&before.sandbox_network) {
        layer.remove("sandbox_network");
    }
    if let Some(ConfigData::List(paths)) = layer.get_mut("sandbox_write").map(|node| &mut node.data) {
        let count = paths.len();
        paths.retain(|path| path.text().is_some_and(|path| before.sandbox_write.0.iter().any(|known| known == path)));
        if paths.len() < count && paths.len() == before.sandbox_write.0.len() {
            layer.remove("sandbox_write");
        }
    }
    Ok(())
}
