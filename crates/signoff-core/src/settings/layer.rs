//! The layers of a configuration: texts with a name, each of which becomes a tree, and where a value comes from.

use std::fmt;
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::Value;

use super::file::SettingsFile;
use super::formats::{self, PlacedText};
use super::reader::nearest;
use super::rules::file_schema;
use super::tree::{ConfigData, ConfigNode};

/// Maximum length of a configuration file.
pub const MAX_FILE_BYTES: usize = 1_000_000;

/// A configuration file as the caller read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Where it comes from; the line says nothing.
    source: SettingOrigin,
    text: String,
    /// Where each line comes from, if the layer was translated from another format.
    origins: Vec<SettingOrigin>,
}

/// A flag of the command line that overrides a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// As it is written: `--jobs`.
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

    /// The file of another program, translated: each line of the text has its place in that file.
    pub(super) fn foreign(source: SettingOrigin, text: String, origins: Vec<SettingOrigin>) -> Self {
        Self { source, text, origins }
    }

    fn new(source: SettingOrigin, text: impl Into<String>) -> Self {
        Self { source, text: text.into(), origins: Vec::new() }
    }

    /// Whether it is part of the repository.
    pub(super) fn is_of_the_repository(&self) -> bool {
        matches!(self.source, SettingOrigin::Foreign { .. } | SettingOrigin::Repository { .. })
    }

    /// The TOML of the layer.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn flag(flag: &Flag) -> Self {
        Self::given(&SettingOrigin::Flag { name: flag.name.to_owned() }, flag.key, &flag.value)
    }

    /// The layer as a tree. A role that is a mere name becomes a table, so that layers can be merged.
    pub(super) fn tree(&self) -> Result<ConfigNode, ConfigError> {
        let origin = |line| self.origin(line);
        let text = formats::unmarked(&self.text, || origin(1))?;
        let mut tree = formats::toml(PlacedText { text, origin: &origin })?;
        for role in tree.get_mut(&["roles"]).and_then(ConfigNode::table_mut).into_iter().flatten() {
            let name = role.1;
            if name.text().is_some_and(|text| !text.trim().is_empty()) {
                let (origin, order) = (name.origin.clone(), name.order);
                let table = ConfigData::Table([("agent".to_owned(), name.clone())].into());
                *name = ConfigNode { origin, order, data: table };
            }
        }
        Ok(tree)
    }

    /// The origin of a line of the text.
    pub(super) fn origin(&self, line: usize) -> SettingOrigin {
        let known = self.origins.get(line.saturating_sub(1)).or(self.origins.last()).cloned();
        known.unwrap_or_else(|| self.source.clone().on_line(line))
    }

    /// A value from outside of files. It is the first of a number or switch, and a text that its key accepts.
    fn given(source: &SettingOrigin, key: &str, value: &str) -> Self {
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

/// A variable that is a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingVariable {
    /// `SIGNOFF_LIMITS_ATTEMPT`.
    pub name: String,
    /// The setting's dotted key: `limits.attempt`.
    pub key: String,
}

/// The tables whose plain values may differ for one machine or one call.
const TABLES_WITH_VARIABLES: [&[&str]; 4] = [&[], &["defaults"], &["limits"], &["limits", "run"]];

static VARIABLES: LazyLock<Vec<SettingVariable>> = LazyLock::new(|| {
    let schema = file_schema();
    TABLES_WITH_VARIABLES.iter().flat_map(|table| variables_of(&schema, table)).collect()
});

/// The variables of a table. Lists, tables and the keys of another program are set by files alone.
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

/// The variables that are settings.
pub fn variables() -> &'static [SettingVariable] {
    &VARIABLES
}

/// The variables that agents get. If an agent calls the program they come back; they set nothing.
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
                layers.push(Layer::given(&source, &known.key, value));
            }
            None => check_spelling(name)?,
        }
    }
    Ok(layers)
}

fn check_spelling(name: &str) -> Result<(), ConfigError> {
    let known: Vec<_> = VARIABLES.iter().map(|known| known.name.as_str()).collect();
    match nearest(name, &known).filter(|_| !AGENT_VARIABLES.contains(&name)) {
        Some(meant) => Err(ConfigError::Given {
            name: name.to_owned(),
            message: format!("no such setting: did you mean `{meant}`?"),
        }),
        None => Ok(()),
    }
}

/// Where a value comes from. Lines are counted from one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum SettingOrigin {
    /// Built in.
    Default,
    /// The workflow that is shipped under this name.
    Preset { name: String },
    /// The person's own file.
    Person { file: String, line: usize },
    /// A file of another program.
    Foreign { file: String, line: usize },
    /// The repository's file.
    Repository { file: String, line: usize },
    /// A variable of the environment.
    Environment { name: String },
    /// A flag of the command line.
    Flag { name: String },
    /// The task itself.
    Task,
}

impl SettingOrigin {
    /// The same, with another line if it is a file.
    fn on_line(mut self, here: usize) -> Self {
        if let Self::Person { line, .. } | Self::Foreign { line, .. } | Self::Repository { line, .. } = &mut self {
            *line = here;
        }
        self
    }

    /// An error about a value from there.
    pub(crate) fn error(&self, message: impl Into<String>) -> ConfigError {
        let message = message.into();
        match self {
            Self::Person { file, line } | Self::Foreign { file, line } | Self::Repository { file, line } => {
                ConfigError::File { file: file.clone(), line: *line, message }
            }
            Self::Environment { name } | Self::Flag { name } => ConfigError::Given { name: name.clone(), message },
            Self::Default | Self::Preset { .. } | Self::Task => ConfigError::Nowhere { message },
        }
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("built in"),
            Self::Preset { name } => write!(f, "preset {name}"),
            Self::Person { file, line } | Self::Foreign { file, line } | Self::Repository { file, line } => {
                write!(f, "{file}:{line}")
            }
            Self::Environment { name } | Self::Flag { name } => f.write_str(name),
            Self::Task => f.write_str("the task"),
        }
    }
}

impl ConfigError {
    /// The message without its place.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::File { message, .. } | Self::Given { message, .. } | Self::Nowhere { message } => message.clone(),
            Self::UnknownWorkflow { .. } | Self::NoAgent | Self::Unassigned { .. } => self.to_string(),
        }
    }
}

/// A mistake in the configuration, or something it leaves open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// In a file.
    #[error("{file}:{line}: {message}")]
    File { file: String, line: usize, message: String },
    /// In a variable of the environment or a flag.
    #[error("{name}: {message}")]
    Given { name: String, message: String },
    /// In no particular place.
    #[error("{message}")]
    Nowhere { message: String },
    /// A workflow was asked for that is neither a preset nor configured.
    #[error("no workflow is called `{name}`: {expected}")]
    UnknownWorkflow { name: String, expected: String },
    /// No agent can do the work.
    #[error("no agent is configured")]
    NoAgent,
    /// There are several agents, and none of them is chosen for this role.
    #[error("nothing says which agent does `{role}`: `[roles]` could name one of {}", agents.join(", "))]
    Unassigned { role: &'static str, agents: Vec<String> },
}
