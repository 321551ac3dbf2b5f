//! TOML with `reviewEnabled` and the like. `signoff.toml` has the same keys.

use super::super::file::SettingsFile;
use super::super::reader::{keys_of, nearest};
use super::super::tree::{ConfigNode, TomlSource};
use super::super::values::{FixCount, Text};
use super::super::{ConfigError, SettingOrigin};
use super::draft::{TomlDraft, quoted};
use super::{ForeignFile, TranslatedFile};

const KEYS: [&str; 4] = ["reviewEnabled", "reviewMaxFixAttempts", "developerPromptPath", "reviewerPromptPath"];

pub fn translate(file: ForeignFile<'_>) -> Result<TranslatedFile, ConfigError> {
    let origin = |line| SettingOrigin::Foreign { file: file.name.to_owned(), line };
    let root = TomlSource { text: file.text, origin: &origin }.parse()?;
    let (mut draft, mut notes) = (TomlDraft::default(), Vec::new());
    for (key, node) in root.entries() {
        match (value(&root, key)?, &node.origin) {
            (Some(value), SettingOrigin::Foreign { line, .. }) => draft.set(key, &value, file.spot(*line)),
            (Some(_) | None, _) => notes.push(left_out(node, key)?),
        }
    }
    Ok(TranslatedFile { layer: draft.layer(file.name), notes, migrated: None })
}

/// The value of a key, if it is one of ours.
fn value(root: &ConfigNode, key: &str) -> Result<Option<String>, ConfigError> {
    Ok(match key {
        "reviewEnabled" => root.read_key::<bool>(key)?.map(|flag| flag.to_string()),
        "reviewMaxFixAttempts" => root.read_key::<FixCount>(key)?.map(|number| number.0.to_string()),
        "developerPromptPath" | "reviewerPromptPath" => root.read_key::<Text>(key)?.map(|path| quoted(path.as_str())),
        _ => None,
    })
}

/// Other keys of such files are ignored, unless they look misspelt.
fn left_out(node: &ConfigNode, key: &str) -> Result<String, ConfigError> {
    match nearest(key, &KEYS) {
        Some(meant) => Err(node.origin.error(format!("unknown key `{key}`: did you mean `{meant}`?"))),
        None if keys_of::<SettingsFile>().contains(&key) => {
            Ok(format!("`{key}` is left out: it is a key of signoff.toml itself, which `signoff configure --set` sets"))
        }
        None => Ok(format!("`{key}` has no meaning here and is left out")),
    }
}
