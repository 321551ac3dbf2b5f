//! The layers of a configuration: texts with a name, each of which becomes a tree whose values carry their
//! origin, and the merge of such trees.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::file::SettingsFile;
use super::formats::{self, PositionedText};
use super::notify::URL_ENV;
use super::preset::EXCLUSIVE_PHASE_KEYS;
use super::reader::nearest;
use super::rules::file_schema;
use super::values::Sandbox;
use super::{ConfigError, SettingOrigin, key};
use crate::workflow::keys::BOUNDS;

/// Maximum length of a configuration file.
pub const MAX_FILE_BYTES: usize = 1_000_000;

/// A configuration file as the caller read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The origin of the text; its line has no meaning.
    source: SettingOrigin,
    pub(super) text: String,
    /// The origin of each line, if the layer was translated from another format.
    pub(super) origins: Vec<SettingOrigin>,
}

/// A flag of the command line that overrides a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// The name with dashes: `--jobs`.
    pub name: &'static str,
    /// The setting's dotted key.
    pub key: &'static str,
    pub value: String,
}

impl Layer {
    /// The file in a person's home.
    pub fn person(file: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(SettingOrigin::Person { file: file.into(), line: 1 }, text)
    }

    /// The file of the repository.
    pub fn repository(file: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(SettingOrigin::Repository { file: file.into(), line: 1 }, text)
    }

    pub(super) fn new(source: SettingOrigin, text: impl Into<String>) -> Self {
        Self { source, text: text.into(), origins: Vec::new() }
    }

    /// Whether it is a file of the repository.
    pub(super) fn is_in_repository(&self) -> bool {
        matches!(self.source, SettingOrigin::Foreign { .. } | SettingOrigin::Repository { .. })
    }

    /// The TOML of the layer.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn flag(flag: &Flag) -> Self {
        Self::from_value(&SettingOrigin::Flag { name: flag.name.to_owned() }, flag.key, &flag.value)
    }

    /// The layer as a tree. A role that is a mere name becomes a table, so that layers can be merged.
    pub(super) fn tree(&self) -> Result<ConfigNode, ConfigError> {
        let origin = |line| self.origin(line);
        let text = formats::strip_bom(&self.text, || origin(1))?;
        let mut tree = formats::toml(PositionedText { text, origin: &origin })?;
        for role in tree.get_mut(&[key::ROLES]).and_then(ConfigNode::table_mut).into_iter().flatten() {
            let name = role.1;
            if name.text().is_some_and(|text| !text.trim().is_empty()) {
                let (origin, order) = (name.origin.clone(), name.order);
                let table = ConfigData::Table([(key::AGENT.to_owned(), name.clone())].into());
                *name = ConfigNode { origin, order, data: table };
            }
        }
        Ok(tree)
    }

    /// The origin of a line of the text.
    pub(super) fn origin(&self, line: usize) -> SettingOrigin {
        let known = self.origins.get(line.saturating_sub(1)).or(self.origins.last()).cloned();
        known.unwrap_or_else(|| self.source.clone().with_line(line))
    }

    /// A value of a flag or variable. It is parsed as the first type that its key accepts: number, boolean or text.
    fn from_value(source: &SettingOrigin, key: &str, value: &str) -> Self {
        let layer = |value: &str| Self::new(source.clone(), format!("{key} = {value}"));
        let is_plain = |value: &&str| {
            let is_number = value.chars().all(|char| char.is_ascii_digit() || char == '.' || char == '-');
            (is_number || matches!(*value, "true" | "false")) && layer(value).tree().is_ok()
        };
        let switch = match value {
            "1" => Some("true"),
            "0" => Some("false"),
            _ => None,
        };
        let mut layers: Vec<_> = [Some(value).filter(is_plain), switch].into_iter().flatten().map(layer).collect();
        layers.push(layer(&toml::Value::from(value).to_string()));
        let accepted = layers.iter().find(|layer| layer.tree().and_then(|tree| tree.read::<SettingsFile>()).is_ok());
        accepted.or(layers.first()).cloned().unwrap_or_else(|| layer(value))
    }
}

/// An environment variable that sets a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingVariable {
    /// `SIGNOFF_LIMITS_ATTEMPT`.
    pub name: String,
    /// The setting's dotted key: `limits.attempt`.
    pub key: String,
}

/// The tables whose plain values can be set by environment variables.
const TABLES_WITH_VARIABLES: [&[&str]; 4] = [&[], &[key::DEFAULTS], &[key::LIMITS], &[key::LIMITS, "run"]];

static VARIABLES: LazyLock<Vec<SettingVariable>> = LazyLock::new(|| {
    let schema = file_schema();
    TABLES_WITH_VARIABLES.iter().flat_map(|table| variables_of(&schema, table)).collect()
});

/// The variables of a table. Lists, tables and keys of other programs have none.
fn variables_of(schema: &Value, table: &[&str]) -> Vec<SettingVariable> {
    let properties = table.iter().fold(&schema["properties"], |above, key| &above[key]["properties"]);
    let is_plain = |(key, property): &(&String, &Value)| {
        let property = property.to_string();
        !key.contains(char::is_uppercase) && ![":\"array\"", ":\"object\""].iter().any(|kind| property.contains(kind))
    };
    let keys = properties.as_object().into_iter().flatten().filter(is_plain).map(|(key, _)| key.as_str());
    let keys = keys.map(|key| [table, &[key]].concat());
    keys.map(|key| SettingVariable { name: format!("SIGNOFF_{}", key.join("_").to_uppercase()), key: key.join(".") })
        .collect()
}

/// The environment variables that set keys.
pub fn variables() -> &'static [SettingVariable] {
    &VARIABLES
}

/// The variables that agents get. They set no key if an agent calls the program.
pub const AGENT_VARIABLES: [&str; 17] = [
    "SIGNOFF_ROLE",
    "SIGNOFF_PHASE",
    "SIGNOFF_REVIEWER",
    "SIGNOFF_REVIEW_KIND",
    "SIGNOFF_TASK_ID",
    "SIGNOFF_LOOP_ID",
    "SIGNOFF_RUN_ID",
    "SIGNOFF_ATTEMPT",
    "SIGNOFF_CYCLE",
    "SIGNOFF_BASE",
    "SIGNOFF_COMMIT",
    "SIGNOFF_MODEL",
    "SIGNOFF_NONCE",
    "SIGNOFF_MCP_URL",
    "SIGNOFF_MCP_TOKEN",
    "SIGNOFF_USAGE_FILE",
    "SIGNOFF_KEEPER",
];

/// The settings of an environment. Empty variables set nothing; unknown ones are errors only if they look misspelt.
pub(super) fn environment(variables: &[(String, String)]) -> Result<Vec<Layer>, ConfigError> {
    let mut layers = Vec::new();
    let is_set = |(name, value): &&(String, String)| name.starts_with("SIGNOFF_") && !value.is_empty();
    for (name, value) in variables.iter().filter(is_set) {
        match VARIABLES.iter().find(|known| known.name == *name) {
            Some(known) => {
                let source = SettingOrigin::Environment { name: name.clone() };
                layers.push(Layer::from_value(&source, &known.key, value));
            }
            None => check_spelling(name)?,
        }
    }
    Ok(layers)
}

fn check_spelling(name: &str) -> Result<(), ConfigError> {
    let known: Vec<_> = VARIABLES.iter().map(|known| known.name.as_str()).collect();
    match nearest(name, &known).filter(|_| !AGENT_VARIABLES.contains(&name)) {
        Some(meant) => Err(ConfigError::InFlagOrVariable {
            name: name.to_owned(),
            message: format!("no such setting: did you mean `{meant}`?"),
        }),
        None => Ok(()),
    }
}

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
    /// The value for messages.
    pub fn describe(&self) -> String {
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
        for keys in exclusive(path) {
            check_exclusive(later, *keys)?;
            if keys.iter().any(|key| table.contains_key(*key)) {
                keys.iter().for_each(|key| drop(known.remove(*key)));
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
pub(crate) fn check_exclusive(table: &ConfigNode, keys: [&str; 2]) -> Result<(), ConfigError> {
    let [Some(first), Some(second)] = keys.map(|key| table.get(&[key])) else { return Ok(()) };
    let later = if first.order > second.order { first } else { second };
    let why = if keys == BOUNDS { "a gate has one limit: " } else { "" };
    let [one, other] = keys;
    Err(later.origin.error(format!("{why}write `{one}` or `{other}`, not both")))
}

/// The pairs of keys of a table that exclude each other: a later layer that sets one removes the other.
fn exclusive(path: &[&str]) -> &'static [[&'static str; 2]] {
    match path {
        [key::GATE] | [key::PRESETS, _] | [key::PRESETS, _, key::GATES, _] => &[BOUNDS],
        [key::PRESETS, _, key::PHASE, _] => &EXCLUSIVE_PHASE_KEYS,
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
        [key::WORKFLOWS, _] => true,
        [key::ROLES, _] => sets(&[key::AGENT]),
        [key::NOTIFY, key::CHANNELS, _] => sets(&[key::URL, URL_ENV, key::COMMAND]),
        _ => false,
    }
}

/// Removes the keys of a repository's layer that would loosen the person's sandbox: the repository may be untrusted.
/// `before` are the merged layers below it.
pub(super) fn keep_sandbox_strict(
    layer: &mut ConfigNode,
    file: &SettingsFile,
    before: &ConfigNode,
) -> Result<(), ConfigError> {
    let by_person = before.get(&[key::SANDBOX]).is_some_and(|set| matches!(set.origin, SettingOrigin::Person { .. }));
    let Some(layer) = layer.table_mut().filter(|_| by_person) else { return Ok(()) };
    let before: SettingsFile = before.read()?;
    if file.sandbox < before.sandbox {
        layer.remove(key::SANDBOX);
    }
    if before.sandbox != Sandbox::Required {
        return Ok(());
    }
    if before.sandbox_writers && !file.sandbox_writers {
        layer.remove(key::SANDBOX_WRITERS);
    }
    if !file.sandbox_network.is_within(&before.sandbox_network) {
        layer.remove(key::SANDBOX_NETWORK);
    }
    if let Some(ConfigData::List(paths)) = layer.get_mut(key::SANDBOX_WRITE).map(|node| &mut node.data) {
        let count = paths.len();
        paths.retain(|path| path.text().is_some_and(|path| before.sandbox_write.0.iter().any(|known| known == path)));
        if paths.len() < count && paths.len() == before.sandbox_write.0.len() {
            layer.remove(key::SANDBOX_WRITE);
        }
    }
    Ok(())
}
