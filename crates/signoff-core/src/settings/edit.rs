//! Changes of a configuration file that leave the rest of it as it was: comments, order, blank lines.

mod document;

use document::{EditedDocument, leaves, shown};
use serde::Serialize;
use toml_edit::{Document, Key, Value};

use super::foreign::{ForeignFormat, translate};
use super::values::without_password;
use super::{ConfigError, Layer};

/// A request to set one key.
#[derive(Debug, Clone)]
pub struct KeyChange {
    key: Vec<String>,
    value: Value,
    note: Option<String>,
}

/// What became of a key. Values are as they stand in the file; none: it is not there.
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

/// A value as it may be shown: variables of agents and addresses to post to may be secrets, and that of a database may have
/// a password.
fn shown_value(key: &[&str], value: &Value) -> String {
    match key {
        ["agents", _, "env", ..] | ["notify", "channels", _, "url" | "headers", ..] => HIDDEN.to_owned(),
        ["store"] => without_password(&shown(value)),
        _ => {
            let mut value = value.clone();
            hide(key, &mut value);
            shown(&value)
        }
    }
}

/// The same within a table in one line.
fn hide(key: &[&str], value: &mut Value) {
    if let ["agents", _, "env", _, ..] | ["notify", "channels", _, "url" | "headers", ..] = key {
        let decor = value.decor().clone();
        *value = Value::from(HIDDEN);
        *value.decor_mut() = decor;
        return;
    }
    for (name, inside) in value.as_inline_table_mut().into_iter().flat_map(|table| table.iter_mut()) {
        hide(&[key, &[name.get()]].concat(), inside);
    }
}

/// A file after its changes.
#[derive(Debug, Clone)]
pub struct EditedFile {
    pub text: String,
    /// What is not as it was.
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
}

fn dotted(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().map(|name| Key::new(name.as_str()).display_repr().into_owned()).collect();
    shown.join(".")
}

/// Sets keys of a file. Whether the result makes sense is for [`super::read`] to say.
pub fn set(file: &str, text: &str, changes: &[KeyChange]) -> Result<EditedFile, ConfigError> {
    let mut sheet = EditedDocument::open(file, text)?;
    let changes: Vec<_> = changes.iter().map(|change| sheet.with_phase_name(change)).collect();
    let is_set = |key: &[String]| changes.iter().any(|change| change.key == key);
    for change in &changes {
        sheet.set(change, &is_set).map_err(|message| ConfigError::Given { name: change.key(), message })?;
    }
    Ok(sheet.close(changes.iter().map(|change| change.key.clone()).collect()))
}

/// Removes a table with all that is in it.
pub fn remove(file: &str, text: &str, table: &[&str]) -> Result<EditedFile, ConfigError> {
    let mut sheet = EditedDocument::open(file, text)?;
    sheet.remove(table);
    Ok(sheet.close(Vec::new()))
}

impl EditedFile {
    /// Whether it sets a key, by its dotted name, be it to what it was.
    pub fn sets(&self, key: &str) -> bool {
        self.set.iter().any(|names| dotted(names) == key)
    }

    /// Which of the changes a line of the new text comes from, by its dotted key. Lines are counted from one.
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

impl KeyChange {
    /// Changes as people type them: `KEY=VALUE`. What is no TOML is a text.
    ///
    /// A key may also be one of the file about phases, `phases.5.maxRetries`, which is several here if it speaks of all.
    pub fn typed(words: &str) -> Result<Vec<Self>, String> {
        let wanted = "expected KEY=VALUE, for example jobs=8";
        let (key, value) = split_assignment(words).ok_or_else(|| format!("there is no `=` in `{words}`: {wanted}"))?;
        let (key, value) = (key.trim(), value.trim());
        let names = Key::parse(key)
            .map_err(|_| format!("`{key}` is not a key: write it as in the file, with dots between its tables"))?;
        let names: Vec<_> = names.iter().map(|name| name.get().to_owned()).collect();
        match names.first().map(String::as_str) {
            Some("phases" | "reviewDefaults") => of_phases(&names, value),
            Some(_) | None => Ok(vec![Self { key: names, value: typed_value(value)?, note: None }]),
        }
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

/// What the file about phases would mean if it said only this.
fn of_phases(names: &[String], value: &str) -> Result<Vec<KeyChange>, String> {
    let value = serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::from(value));
    let nested = names.iter().rev().fold(value, |inside, name| serde_json::json!({ name: inside }));
    let mut file = serde_json::json!({ "version": 2 });
    if let (Some(file), Some(said)) = (file.as_object_mut(), nested.as_object()) {
        file.extend(said.clone());
    }
    let translated = translate(ForeignFormat::Iterate, "", &file.to_string());
    let translated = translated.map_err(|error| error.message())?;
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

/// What a translated file of another program says, each with a comment that tells where it stood.
pub fn imported(layer: &Layer) -> Vec<KeyChange> {
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
