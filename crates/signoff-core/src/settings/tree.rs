//! A layer of settings as a tree in which every value knows its origin, and the merge of such trees.

use std::collections::BTreeMap;

use super::{ConfigError, SettingOrigin};

/// A value with its origin: the line of its key or, in a list, its own line.
#[derive(Debug, Clone)]
pub(crate) struct ConfigNode {
    pub origin: SettingOrigin,
    /// The position among the values of its table. An override keeps the position of the first value.
    pub order: usize,
    pub data: ConfigData,
}

/// Plain data. Numbers keep their spelling for messages.
#[derive(Debug, Clone)]
pub(crate) enum ConfigData {
    Flag(bool),
    Whole(String, Option<u64>),
    Float(String, f64),
    Text(String),
    Date,
    /// In JSON and YAML.
    Null,
    List(Vec<ConfigNode>),
    Table(BTreeMap<String, ConfigNode>),
}

impl ConfigData {
    /// How messages call the value.
    pub fn described(&self) -> String {
        match self {
            Self::Text(text) if text.chars().count() > 40 => "a long text".to_owned(),
            Self::Text(text) => format!("{text:?}"),
            Self::Whole(shown, _) | Self::Float(shown, _) => shown.clone(),
            Self::Flag(flag) => flag.to_string(),
            Self::Null => "null".to_owned(),
            Self::Date => "a date or time".to_owned(),
            Self::List(list) if list.is_empty() => "an empty list".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Table(table) if table.is_empty() => "an empty table".to_owned(),
            Self::Table(_) => "a table".to_owned(),
        }
    }
}

impl ConfigNode {
    pub fn empty() -> Self {
        Self { origin: SettingOrigin::Default, order: 0, data: ConfigData::Table(BTreeMap::new()) }
    }

    pub fn table(&self) -> Option<&BTreeMap<String, Self>> {
        if let ConfigData::Table(table) = &self.data { Some(table) } else { None }
    }

    pub fn table_mut(&mut self) -> Option<&mut BTreeMap<String, Self>> {
        if let ConfigData::Table(table) = &mut self.data { Some(table) } else { None }
    }

    pub fn list(&self) -> &[Self] {
        if let ConfigData::List(list) = &self.data { list } else { &[] }
    }

    pub fn text(&self) -> Option<&str> {
        if let ConfigData::Text(text) = &self.data { Some(text) } else { None }
    }

    /// The node at a path of keys.
    pub fn get(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.table()?.get(*key))
    }

    pub fn get_mut(&mut self, path: &[&str]) -> Option<&mut Self> {
        path.iter().try_fold(self, |node, key| node.table_mut()?.get_mut(*key))
    }

    /// The entries of a table in the order of the file.
    pub fn entries(&self) -> Vec<(&str, &Self)> {
        let mut entries: Vec<_> = self.table().into_iter().flatten().map(|(key, node)| (key.as_str(), node)).collect();
        entries.sort_by_key(|(_, node)| node.order);
        entries
    }

    /// An error at a key of this table, or at the table if the key is not set.
    pub fn error(&self, key: &str, message: impl Into<String>) -> ConfigError {
        self.get(&[key]).unwrap_or(self).origin.error(message)
    }

    /// Merges a later layer into this one, key by key. Fails if the layer sets two keys that exclude each other.
    pub fn merge(&mut self, later: &Self) -> Result<(), ConfigError> {
        self.merge_at(later, &mut Vec::new())
    }

    fn merge_at<'n>(&mut self, later: &'n Self, path: &mut Vec<&'n str>) -> Result<(), ConfigError> {
        let replaced = replaces(path, later);
        let ConfigNode { origin, order: _, data } = self;
        let (ConfigData::Table(known), Some(table), false) = (data, later.table(), replaced) else {
            *self = Self { order: self.order, ..later.clone() };
            return Ok(());
        };
        for [one, other] in exclusive(path) {
            check_exclusive(later, one, other)?;
            if table.contains_key(*one) || table.contains_key(*other) {
                known.remove(*one);
                known.remove(*other);
            }
        }
        *origin = later.origin.clone();
        let first = known.values().map(|node| node.order + 1).max().unwrap_or(0);
        for (key, node) in later.entries() {
            path.push(key);
            let fresh = Self { order: first + node.order, ..Self::empty() };
            known.entry(key.to_owned()).or_insert(fresh).merge_at(node, path)?;
            path.pop();
        }
        Ok(())
    }
}

/// Fails if a table sets both keys.
pub(crate) fn check_exclusive(table: &ConfigNode, one: &str, other: &str) -> Result<(), ConfigError> {
    let (Some(first), Some(second)) = (table.get(&[one]), table.get(&[other])) else { return Ok(()) };
    let later = if first.order > second.order { first } else { second };
    let why = if one == "max_cycles" { "a gate has one bound: " } else { "" };
    Err(later.origin.error(format!("{why}write `{one}` or `{other}`, not both")))
}

/// The pairs of keys of a table that exclude each other: a later layer that sets one removes the other.
fn exclusive(path: &[&str]) -> &'static [[&'static str; 2]] {
    match path {
        ["gate"] | ["presets", _] | ["presets", _, "gates", _] => &[["max_cycles", "max_fixes"]],
        ["presets", _, "phase", _] => &[["agent", "tool"], ["parallel", "researchers"]],
        _ => &[],
    }
}

/// The key that a key of this table excludes.
pub(super) fn excluded_by(path: &[&str], key: &str) -> Option<&'static str> {
    exclusive(path).iter().find_map(|[one, other]| match key {
        key if key == *one => Some(*other),
        key if key == *other => Some(*one),
        _ => None,
    })
}

/// Whether a table replaces that of earlier layers as a whole. A role that names an agent drops the model of another
/// one; a channel with an address drops the headers that were meant for another address.
fn replaces(path: &[&str], table: &ConfigNode) -> bool {
    let sets = |keys: &[&str]| keys.iter().any(|key| table.get(&[key]).is_some());
    match path {
        ["workflows", _] => true,
        ["roles", _] => sets(&["agent"]),
        ["notify", "channels", _] => sets(&["url", "url_env", "command"]),
        _ => false,
    }
}
