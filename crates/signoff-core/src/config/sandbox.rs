//! How far agents are kept from writing, as it is configured.

use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::value::Text;
use crate::workflow::value::{Value, Written};

/// Whether agents are kept from writing where they have no business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    Off,
    /// Where the system can.
    On,
    /// And where it cannot, nothing is started.
    Required,
}

impl Value for Sandbox {
    fn expected(_: &str) -> String {
        "true, false or \"required\"".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "enum": [true, false, "required"] })
    }

    fn read<'v, 'i>(_: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
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

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let list = written.get_ref().as_array().ok_or(written)?;
        let one = |written: &'v Written<'i>| {
            let path = Text::read(key, written)?.as_str().to_owned();
            let below = path.strip_prefix("~/").or(path.strip_prefix('/'));
            let is_one = path == Self::CACHES || below.is_some_and(|below| !below.is_empty());
            if is_one { Ok(path) } else { Err(written) }
        };
        list.iter().map(one).collect::<Result<_, _>>().map(Self)
    }
}
