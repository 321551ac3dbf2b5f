//! Edits a configuration file. Comments, order and blank lines stay as they are.

mod document;

use document::{EditedDocument, display_value, leaves};
use serde::Serialize;
use toml_edit::{Document, Key, Value};

use super::foreign::{ForeignFormat, translate};
use super::values::without_password;
use super::{ConfigError, Layer, key};

/// A request to set one key.
#[derive(Debug, Clone)]
pub struct KeyChange {
    key: Vec<String>,
    value: Value,
    note: Option<String>,
}

/// A key that an edit changed. Values are as the file has them; none: the key is not set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ChangedKey {
    /// The dotted key.
    pub key: String,
    pub old: Option<String>,
    pub new: Option<String>,
}

impl ChangedKey {
    fn new(key: &[String], old: Option<&Value>, new: Option<&Value>) -> Self {
        let names: Vec<_> = key.iter().map(String::as_str).collect();
        let show = |value: Option<&Value>| value.map(|value| shown_value(&names, value));
        Self { key: dotted(key), old: show(old), new: show(new) }
    }
}

const HIDDEN: &str = "(hidden)";

/// A value for people. Variables of agents and addresses of webhooks may be secrets, and the address of a database may
/// contain a password.
fn shown_value(key: &[&str], value: &Value) -> String {
    match key {
        [key::AGENTS, _, key::ENV, ..] | [key::NOTIFY, key::CHANNELS, _, key::URL | key::HEADERS, ..] => {
            HIDDEN.to_owned()
        }
        [key::STORE] => without_password(&display_value(value)),
        _ => {
            let mut value = value.clone();
            hide(key, &mut value);
            display_value(&value)
        }
    }
}

/// Hides secrets inside an inline table.
fn hide(key: &[&str], value: &mut Value) {
    if let [key::AGENTS, _, key::ENV, _, ..] | [key::NOTIFY, key::CHANNELS, _, key::URL | key::HEADERS, ..] = key {
        let decor = value.decor().clone();
        *value = Value::from(HIDDEN);
        *value.decor_mut() = decor;
        return;
    }
    for (name, inside) in value.as_inline_table_mut().into_iter().flat_map(|table| table.iter_mut()) {
        hide(&[key, &[name.get()]].concat(), inside);
    }
}

/// A file after an edit.
#[derive(Debug, Clone)]
pub struct EditedFile {
    pub text: String,
    /// The keys whose values changed.
    pub changed: Vec<ChangedKey>,
    set: Vec<Vec<String>>,
}

impl KeyChange {
    /// Sets the key under these names.
    pub fn new(key: &[&str], value: impl Into<Value>) -> Self {
        let key = key.iter().map(|name| (*name).to_owned()).collect();
        Self { key, value: value.into(), note: None }
    }

    /// The dotted key.
    pub fn key(&self) -> String {
        dotted(&self.key)
    }

    /// Parses `KEY=VALUE`. A value that is not TOML is a text.
    ///
    /// A key of `iterate-config.json`, such as `phases.5.maxRetries`, is translated; it may become several changes.
    pub fn parse(words: &str) -> Result<Vec<Self>, String> {
        let wanted = "expected KEY=VALUE, for example jobs=8";
        let (key, value) = split_assignment(words).ok_or_else(|| format!("there is no `=` in `{words}`: {wanted}"))?;
        let (key, value) = (key.trim(), value.trim());
        let names = Key::parse(key)
            .map_err(|_| format!("`{key}` is not a key: write it as in the file, with dots between its tables"))?;
        let names: Vec<_> = names.iter().map(|name| name.get().to_owned()).collect();
        match names.first().map(String::as_str) {
            Some(key::PHASES | "reviewDefaults") => parse_phase_change(&names, value),
            Some(_) | None => Ok(vec![Self { key: names, value: parse_value(value)?, note: None }]),
        }
    }
}

fn dotted(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().map(|name| Key::new(name.as_str()).display_repr().into_owned()).collect();
    shown.join(".")
}

/// Sets keys of a file. [`super::read`] checks whether the result is valid.
pub fn set(file: &str, text: &str, changes: &[KeyChange]) -> Result<EditedFile, ConfigError> {
    let mut document = EditedDocument::open(file, text)?;
    let changes: Vec<_> = changes.iter().map(|change| document.with_phase_name(change)).collect();
    let is_set = |key: &[String]| changes.iter().any(|change| change.key == key);
    for change in &changes {
        document
            .set(change, &is_set)
            .map_err(|message| ConfigError::InFlagOrVariable { name: change.key(), message })?;
    }
    Ok(document.close(changes.iter().map(|change| change.key.clone()).collect()))
}

/// Removes a table and everything in it.
pub fn remove(file: &str, text: &str, table: &[&str]) -> Result<EditedFile, ConfigError> {
    let mut document = EditedDocument::open(file, text)?;
    document.remove(table);
    Ok(document.close(Vec::new()))
}

impl EditedFile {
    /// Whether the edit sets a dotted key, even to its old value.
    pub fn sets(&self, key: &str) -> bool {
        self.set.iter().any(|names| dotted(names) == key)
    }

    /// The dotted key of the change that wrote a line of the new text. Lines are counted from one.
    pub fn key_at(&self, line: usize) -> Option<String> {
        let document = Document::parse(self.text.as_str()).ok()?;
        let line_of = |offset: usize| self.text.get(..offset).map(|before| before.matches('\n').count() + 1);
        let here = |key: &&Vec<String>| {
            let mut item = document.as_item();
            key.iter().any(|name| {
                let Some((key, inside)) = item.as_table_like().and_then(|table| table.get_key_value(name)) else {
                    return false;
                };
                item = inside;
                let end = inside.as_value().and_then(Value::span).or(key.span()).map(|span| span.end);
                let range = key.span().and_then(|span| line_of(span.start)).zip(end.and_then(line_of));
                range.is_some_and(|(first, last)| (first..=last).contains(&line))
            })
        };
        self.set.iter().find(here).map(|key| dotted(key))
    }
}

/// The key ends at the first `=` that is not within quotes.
fn split_assignment(words: &str) -> Option<(&str, &str)> {
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

/// Parses a change of a key of `iterate-config.json`.
fn parse_phase_change(names: &[String], value: &str) -> Result<Vec<KeyChange>, String> {
    let value = serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::from(value));
    let nested = names.iter().rev().fold(value, |inside, name| serde_json::json!({ name: inside }));
    let mut file = serde_json::json!({ "version": 2 });
    if let (Some(file), Some(nested_table)) = (file.as_object_mut(), nested.as_object()) {
        file.extend(nested_table.clone());
    }
    let translated = translate(ForeignFormat::Iterate, "", &file.to_string());
    let translated = translated.map_err(|error| error.message())?;
    let without_note = |change| KeyChange { note: None, ..change };
    Ok(changes_from_layer(&translated.layer).into_iter().map(without_note).collect())
}

fn parse_value(text: &str) -> Result<Value, String> {
    let read = text.parse::<Value>();
    let is_begun = text.starts_with(['"', '\'', '[', '{']);
    match read {
        Ok(value) => Ok(value),
        Err(_) if is_begun => Err(format!("`{text}` is not TOML: a quote or a bracket is missing")),
        Err(_) => Ok(Value::from(text)),
    }
}

/// The changes that a translated file of another program makes, each with its original location as a comment.
pub fn changes_from_layer(layer: &Layer) -> Vec<KeyChange> {
    let Ok(document) = Document::parse(layer.text()) else { return Vec::new() };
    let mut changes = Vec::new();
    leaves(document.as_item(), &mut Vec::new(), &mut |key, value| {
        let offset = value.span().map_or(0, |span| span.start);
        let origin = layer.origin(layer.text().get(..offset).unwrap_or_default().matches('\n').count() + 1);
        let note = Some(origin.to_string());
        let text = value.span().and_then(|span| layer.text().get(span)).unwrap_or_default();
        changes.extend(text.parse().ok().map(|value| KeyChange { key: key.to_vec(), value, note }));
    });
    changes
}
