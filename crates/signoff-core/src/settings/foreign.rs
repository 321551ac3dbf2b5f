//! Configuration files of other programs.
//!
//! Each file is translated into a layer of TOML. Every line of the layer keeps the line it came from, so that settings and
//! errors are reported with their location in the original file. Such a layer ranks between the person's file and the
//! repository's. Error messages use the keys of the original file.
//!
//! ```
//! use signoff_core::settings::foreign::{ForeignFormat, translate};
//!
//! let text = "defaults:\n  auto_review: true\n";
//! let format = ForeignFormat::detect("gza.yaml", text).unwrap();
//! let translated = translate(format, "gza.yaml", text)?;
//! assert_eq!(translated.layer.text(), "[defaults]\nauto_review = true\n");
//! # Ok::<(), signoff_core::settings::ConfigError>(())
//! ```

mod iterate;

pub(super) use iterate::phase_key;

use super::file::{SettingsFile, TASK_TYPES};
use super::formats::{self, BYTE_ORDER_MARK, PositionedText};
use super::layer::{ConfigData, ConfigNode};
use super::reader::{Expected, ProblemKind, ReadProblem, did_you_mean, either, keys_of, nearest};
use super::{ConfigError, Layer, SettingOrigin, key};
use crate::text::shortened;

/// The format of a file of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignFormat {
    /// `gza.yaml`: `defaults` and `task_types`.
    Gza,
    /// TOML with keys such as `reviewEnabled`, which are also top-level keys of `signoff.toml`.
    Slots,
    /// `iterate-config.json`: phases and their policies.
    Iterate,
}

impl ForeignFormat {
    /// Detects the format by the file's name, or else by its first character.
    pub fn detect(name: &str, text: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("yaml" | "yml") => Some(Self::Gza),
            Some("toml") => Some(Self::Slots),
            Some("json") => Some(Self::Iterate),
            Some(_) | None => {
                text.trim_start_matches(BYTE_ORDER_MARK).trim_start().starts_with('{').then_some(Self::Iterate)
            }
        }
    }
}

/// The name and text of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignFile<'a> {
    /// Its name in messages.
    pub name: &'a str,
    pub text: &'a str,
}

/// The result of translating a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslatedFile {
    pub layer: Layer,
    /// Notes for people about ignored keys and changed meanings.
    pub notes: Vec<String>,
    /// The file in the current version, if it has an older one.
    pub migrated: Option<String>,
}

/// Translates one file.
pub fn translate(format: ForeignFormat, file: &str, text: &str) -> Result<TranslatedFile, ConfigError> {
    let file = ForeignFile { name: file, text };
    match format {
        ForeignFormat::Gza => gza(file.checked()?),
        ForeignFormat::Slots => slots(file.checked()?),
        ForeignFormat::Iterate => merged(&[file]),
    }
}

/// Translates several [`ForeignFormat::Iterate`] files into one layer. Later ones win, key by key; only then do phases take from
/// `reviewDefaults` what none of the files sets for them.
pub fn merged(files: &[ForeignFile<'_>]) -> Result<TranslatedFile, ConfigError> {
    let files = files.iter().map(ForeignFile::checked).collect::<Result<Vec<_>, _>>()?;
    iterate::translate(&files)
}

impl<'a> ForeignFile<'a> {
    /// The file without a byte order mark. Fails if it is too long.
    fn checked(&self) -> Result<Self, ConfigError> {
        let text = formats::strip_bom(self.text, || self.origin(1))?;
        Ok(Self { text, ..*self })
    }

    fn error(&self, line: usize, message: impl Into<String>) -> ConfigError {
        self.origin(line).error(message)
    }

    fn origin(&self, line: usize) -> SettingOrigin {
        SettingOrigin::Foreign { file: self.name.to_owned(), line }
    }
}

/// A layer is written line by line, each with its origin.
impl Layer {
    fn translated(file: &str) -> Self {
        Self::new(SettingOrigin::Foreign { file: file.to_owned(), line: 1 }, "")
    }

    /// Begins a table.
    fn table(&mut self, name: &str, origin: &SettingOrigin) {
        if !self.text.is_empty() {
            self.line("", origin);
        }
        self.line(&format!("[{name}]"), origin);
    }

    /// Sets a key to a plain value.
    fn set(&mut self, key: &str, value: &serde_json::Value, origin: &SettingOrigin) {
        // JSON's way to write a text in one line is one of TOML's.
        let value = value.to_string().replace('\u{7f}', "\\u007f");
        self.line(&format!("{key} = {value}"), origin);
    }

    /// Sets a key as it is in the foreign file.
    fn copy(&mut self, key: &str, node: &ConfigNode) {
        match (&node.data, node.text()) {
            (_, Some(text)) => self.set(key, &text.into(), &node.origin),
            (ConfigData::Whole(_, Some(number)), _) => self.set(key, &(*number).into(), &node.origin),
            (data, None) => self.line(&format!("{key} = {}", data.describe()), &node.origin),
        }
    }

    fn line(&mut self, text: &str, origin: &SettingOrigin) {
        self.text.push_str(text);
        self.text.push('\n');
        self.origins.push(origin.clone());
    }
}

impl ReadProblem {
    /// How messages about a foreign file name the value.
    fn name(&self) -> String {
        if self.path.is_empty() { "the file".to_owned() } else { format!("`{}`", shortened(&self.path, 80)) }
    }

    /// The error about a foreign file. `expected` says what belongs there in the words of that file.
    fn foreign_error(&self, expected: impl Fn(&Expected) -> String) -> ConfigError {
        self.origin.error(match &self.kind {
            ProblemKind::Value { data, expected: known } => {
                format!("{} is {}: expected {}", self.name(), data.describe(), expected(known))
            }
            ProblemKind::UnknownKey { known, .. } => {
                let key = self.path.rsplit('.').next().unwrap_or_default();
                let expected = did_you_mean(key, known, || format!("expected {}", either(known)));
                format!("unknown key {}: {expected}", self.name())
            }
            ProblemKind::MissingKey(key) => format!("`{key}` is missing"),
            ProblemKind::Key(problem) => problem.clone(),
        })
    }
}

/// Translates `gza.yaml`. Its `defaults` and `task_types` have the keys of `signoff.toml`; other keys are ignored.
fn gza(file: ForeignFile<'_>) -> Result<TranslatedFile, ConfigError> {
    let mut root = formats::yaml(PositionedText { text: file.text, origin: &|line| file.origin(line) })?;
    empty_if_null(&mut root, 3);
    let is_ours = |key: &str| matches!(key, key::DEFAULTS | TASK_TYPES);
    let others = root.entries().into_iter().filter(|(key, _)| !is_ours(key));
    let notes = others.map(|(key, _)| format!("`{key}` is ignored: not a signoff setting")).collect();
    if let Some(table) = root.table_mut() {
        table.retain(|key, _| is_ours(key));
    }
    root.read_or_problem::<SettingsFile>().map_err(|problem| {
        problem.foreign_error(|expected| match (expected, problem.path.as_str()) {
            (Expected::Table(_), "") => "keys such as `defaults:` and `task_types:`".to_owned(),
            (Expected::Table(_), TASK_TYPES) => "types of tasks, each with keys of its own".to_owned(),
            (Expected::Table(_), _) => "keys with values".to_owned(),
            // Every text in a `gza.yaml` is the name of a model.
            (Expected::Other(text), path) if path.ends_with(key::MODEL) && text.starts_with("text") => {
                "the name of a model".to_owned()
            }
            (Expected::List | Expected::Text | Expected::OneOf(_) | Expected::Other(_), _) => expected.to_string(),
        })
    })?;
    let mut layer = Layer::translated(file.name);
    for (name, table) in root.entries() {
        let kinds = table.entries().into_iter().filter(|(_, node)| name == TASK_TYPES && node.table().is_some());
        let tables = kinds.map(|(kind, node)| (format!("{name}.{kind}"), node));
        for (name, table) in tables.chain((name == key::DEFAULTS).then(|| (name.to_owned(), table))) {
            layer.table(&name, &table.origin);
            table.entries().into_iter().for_each(|(key, node)| layer.copy(key, node));
        }
    }
    Ok(TranslatedFile { layer, notes, migrated: None })
}

/// Replaces null by an empty table, down to a depth.
fn empty_if_null(node: &mut ConfigNode, depth: usize) {
    if matches!(node.data, ConfigData::Null) && depth > 0 {
        node.data = ConfigNode::empty().data;
    }
    if depth > 1 {
        node.table_mut().into_iter().flatten().for_each(|(_, inside)| empty_if_null(inside, depth - 1));
    }
}

/// Translates TOML with the keys of the preset `slots`, which are those of `signoff.toml` in camel case. Other keys of
/// such files are ignored, unless they look misspelt.
fn slots(file: ForeignFile<'_>) -> Result<TranslatedFile, ConfigError> {
    let mut root = formats::toml(PositionedText { text: file.text, origin: &|line| file.origin(line) })?;
    let own = keys_of::<SettingsFile>();
    let known: Vec<_> = own.iter().copied().filter(|key| key.contains(char::is_uppercase)).collect();
    let (mut layer, mut notes) = (Layer::translated(file.name), Vec::new());
    for (key, node) in root.entries() {
        if known.contains(&key) {
            layer.copy(key, node);
        } else if let Some(meant) = nearest(key, &known) {
            return Err(node.origin.error(format!("unknown key `{key}`: did you mean `{meant}`?")));
        } else if own.contains(&key) {
            notes.push(format!(
                "`{key}` is left out: it is a key of signoff.toml itself, which `signoff configure --set` sets"
            ));
        } else {
            notes.push(format!("`{key}` is ignored: not a signoff setting"));
        }
    }
    if let Some(table) = root.table_mut() {
        table.retain(|key, _| known.contains(&key.as_str()));
    }
    root.read::<SettingsFile>()?;
    Ok(TranslatedFile { layer, notes, migrated: None })
}
