//! How far agents are kept from writing, as it is configured.

use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::origin::{Origin, Setting};
use super::tables::Written;
use super::value::Text;
use crate::workflow::value::{Value, Written as Read};

/// Whether agents are kept from writing where they have no business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sandbox {
    Off,
    /// Where the system can.
    On,
    /// And where it cannot, nothing is started.
    Required,
}

/// What holds before a file of the repository is laid over it. Whoever works on a repository that they do not trust is not
/// to be let loose by it: the stricter of both holds.
#[derive(Debug, Clone)]
pub(super) struct Demanded {
    sandbox: Setting<Sandbox>,
    writers: Setting<bool>,
    write: Setting<Writable>,
    network: Setting<Network>,
}

impl Demanded {
    pub fn of(written: &Written) -> Self {
        let (sandbox, writers) = (written.sandbox.clone(), written.sandbox_writers.clone());
        let (write, network) = (written.sandbox_write.clone(), written.sandbox_network.clone());
        Self { sandbox, writers, write, network }
    }

    /// Undoes what a file of the repository loosened of what the person wrote.
    pub fn uphold(self, written: &mut Written) {
        let Self { sandbox, writers, write, network } = self;
        if !matches!(sandbox.origin, Origin::Person { .. }) {
            return;
        }
        let required = sandbox.value == Sandbox::Required;
        if written.sandbox.value < sandbox.value {
            written.sandbox = sandbox;
        }
        if !required {
            return;
        }
        if writers.value && !written.sandbox_writers.value {
            written.sandbox_writers = writers;
        }
        if !written.sandbox_network.value.is_within(&network.value) {
            written.sandbox_network = network;
        }
        let is_new = |path: &String| !write.value.0.contains(path);
        if written.sandbox_write.value.0.iter().any(is_new) {
            written.sandbox_write.value.0.retain(|path| !is_new(path));
            if written.sandbox_write.value.0.len() == write.value.0.len() {
                written.sandbox_write = write;
            }
        }
    }
}

impl Value for Sandbox {
    fn expected(_: &str) -> String {
        "true, false or \"required\"".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "enum": [true, false, "required"] })
    }

    fn read<'v, 'i>(_: &str, written: &'v Read<'i>) -> Result<Self, &'v Read<'i>> {
        match (written.get_ref().as_bool(), written.get_ref().as_str()) {
            (Some(true), _) => Ok(Self::On),
            (Some(false), _) => Ok(Self::Off),
            (None, Some("required")) => Ok(Self::Required),
            (None, _) => Err(written),
        }
    }
}

impl Serialize for Sandbox {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::On => serializer.serialize_bool(true),
            Self::Required => serializer.serialize_str("required"),
        }
    }
}

/// Where writers may write besides their worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Writable(pub Vec<String>);

impl Writable {
    /// Stands for the caches that build tools usually have.
    pub const CACHES: &str = "caches";
}

impl Default for Writable {
    fn default() -> Self {
        Self(vec![Self::CACHES.to_owned()])
    }
}

impl Value for Writable {
    fn expected(_: &str) -> String {
        "a list of \"caches\" and of paths that begin with / or ~/, [\"caches\", \"~/.gradle\"]".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "array", "items": { "type": "string", "pattern": "^(caches|~/.+|/.+)$" } })
    }

    fn read<'v, 'i>(key: &str, written: &'v Read<'i>) -> Result<Self, &'v Read<'i>> {
        let list = written.get_ref().as_array().ok_or(written)?;
        let one = |written: &'v Read<'i>| {
            let path = Text::read(key, written)?.as_str().to_owned();
            let below = path.strip_prefix("~/").or(path.strip_prefix('/'));
            let is_one = path == Self::CACHES || below.is_some_and(|below| !below.is_empty());
            if is_one { Ok(path) } else { Err(written) }
        };
        list.iter().map(one).collect::<Result<_, _>>().map(Self)
    }
}

/// What held agents may connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    Open,
    /// These TCP ports alone.
    Ports(Vec<u16>),
}

impl Network {
    const OPEN: &str = "open";

    /// Whether it allows nothing that `other` does not.
    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Open) => true,
            (Self::Open, Self::Ports(_)) => false,
            (Self::Ports(own), Self::Ports(other)) => own.iter().all(|port| other.contains(port)),
        }
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Open => serializer.serialize_str(Self::OPEN),
            Self::Ports(ports) => ports.serialize(serializer),
        }
    }
}

impl Value for Network {
    fn expected(_: &str) -> String {
        "\"open\" or a list of TCP ports, [443]".to_owned()
    }

    fn schema(_: &str) -> Json {
        let port = json!({ "type": "integer", "minimum": 1, "maximum": u16::MAX });
        json!({ "oneOf": [{ "enum": [Self::OPEN] }, { "type": "array", "items": port }] })
    }

    fn read<'v, 'i>(_: &str, written: &'v Read<'i>) -> Result<Self, &'v Read<'i>> {
        if written.get_ref().as_str() == Some(Self::OPEN) {
            return Ok(Self::Open);
        }
        let list = written.get_ref().as_array().ok_or(written)?;
        let port = |one: &'v Read<'i>| {
            let number = one.get_ref().as_integer().and_then(|number| number.as_str().parse::<u16>().ok());
            number.filter(|port| *port > 0).ok_or(one)
        };
        list.iter().map(port).collect::<Result<_, _>>().map(Self::Ports)
    }
}
