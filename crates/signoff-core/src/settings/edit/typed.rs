//! Changes as people type them.

use toml_edit::{Key, Value};

use super::super::ConfigError;
use super::super::foreign::{ForeignFormat, translate};
use super::KeyChange;
use super::imported::imported;

impl KeyChange {
    /// Changes as people type them: `KEY=VALUE`. What is no TOML is a text.
    ///
    /// A key may also be one of the file about phases, `phases.5.maxRetries`, which is several here if it speaks of all.
    pub fn typed(words: &str) -> Result<Vec<Self>, String> {
        let wanted = "expected KEY=VALUE, for example jobs=8";
        let (key, value) = split(words).ok_or_else(|| format!("there is no `=` in `{words}`: {wanted}"))?;
        let (key, value) = (key.trim(), value.trim());
        let names = Key::parse(key).map_err(|_| {
            format!("`{key}` is not a key: write it as it stands in the file, with dots between its tables")
        })?;
        let names: Vec<_> = names.iter().map(|name| name.get().to_owned()).collect();
        match names.first().map(String::as_str) {
            Some("phases" | "reviewDefaults") => of_phases(&names, value),
            Some(_) | None => Ok(vec![Self { key: names, value: typed_value(value)?, note: None }]),
        }
    }
}

/// The key ends at the first `=` that is not within quotes.
fn split(words: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, char) in words.char_indices() {
        match (quote, char) {
            (None, '=') => return Some((words.get(..at)?, words.get(at + 1..)?)),
            (None, '"' | '\'') => quote = Some(char),
            (Some(open), _) if open == char => quote = None,
            (Some(_) | None, _) => {}
        }
    }
    None
}

/// What the file about phases would mean if it said only this.
fn of_phases(names: &[String], value: &str) -> Result<Vec<KeyChange>, String> {
    let value = serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::from(value));
    let nested = names.iter().rev().fold(value, |inside, name| serde_json::json!({ name: inside }));
    let mut file = serde_json::json!({ "version": 2 });
    if let (Some(file), Some(said)) = (file.as_object_mut(), nested.as_object()) {
        file.extend(said.clone());
    }
    let translated = translate(ForeignFormat::Iterate, "", &file.to_string());
    let translated = translated.map_err(|error| match &error {
        ConfigError::File { message, .. } => message.clone(),
        ConfigError::Given { .. }
        | ConfigError::Nowhere { .. }
        | ConfigError::UnknownWorkflow { .. }
        | ConfigError::NoAgent
        | ConfigError::Unassigned { .. } => error.to_string(),
    })?;
    let without_note = |change| KeyChange { note: None, ..change };
    Ok(imported(&translated.layer).into_iter().map(without_note).collect())
}

fn typed_value(text: &str) -> Result<Value, String> {
    let read = text.parse::<Value>();
    let is_begun = text.starts_with(['"', '\'', '[', '{']);
    match read {
        Ok(value) => Ok(value),
        Err(_) if is_begun => Err(format!("`{text}` is not TOML: a quote or a bracket is missing")),
        Err(_) => Ok(Value::from(text)),
    }
}
