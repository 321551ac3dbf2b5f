//! Changes of a configuration file that leave the rest of it as it was: comments, order, blank lines.

mod layout;

use serde::Serialize;
use toml_edit::{Document, DocumentMut, InlineTable, Item, Key, Table, Value};

use super::foreign::{Format, translate};
use super::gate::other_bound;
use super::layer::Reading;
use super::value::without_password;
use super::{ConfigError, Layer};

/// A wish to set one key.
#[derive(Debug, Clone)]
pub struct Change {
    key: Vec<String>,
    value: Value,
    note: Option<String>,
}

/// What became of a key. Values are as they stand in the file; none: it is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Changed {
    /// The dotted key.
    pub key: String,
    pub old: Option<String>,
    pub new: Option<String>,
}

impl Changed {
    fn of(key: &[String], old: Option<String>, new: Option<String>) -> Self {
        let told = |value: Option<String>| value.map(|value| told(key, value));
        Self { key: dotted(key), old: told(old), new: told(new) }
    }
}

/// A value as it may be shown: variables of agents may be secrets, and an address may have a password.
fn told(key: &[String], value: String) -> String {
    let names: Vec<_> = key.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["agents", _, "env", ..] => "(hidden)".to_owned(),
        ["store"] => without_password(&value),
        _ => value,
    }
}

/// A file after its changes.
#[derive(Debug, Clone)]
pub struct Edited {
    pub text: String,
    /// What is not as it was.
    pub changed: Vec<Changed>,
    set: Vec<Vec<String>>,
}

impl Change {
    /// Sets the key under these names.
    pub fn new(key: &[&str], value: impl Into<Value>) -> Self {
        let key = key.iter().map(|name| (*name).to_owned()).collect();
        Self { key, value: value.into(), note: None }
    }

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

    /// The dotted key.
    pub fn key(&self) -> String {
        dotted(&self.key)
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
fn of_phases(names: &[String], value: &str) -> Result<Vec<Change>, String> {
    let value = serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::from(value));
    let nested = names.iter().rev().fold(value, |inside, name| serde_json::json!({ name: inside }));
    let mut file = serde_json::json!({ "version": 2 });
    if let (Some(file), Some(said)) = (file.as_object_mut(), nested.as_object()) {
        file.extend(said.clone());
    }
    let translated = translate(Format::Iterate, "", &file.to_string());
    let translated = translated.map_err(|error| match &error {
        ConfigError::File { message, .. } => message.clone(),
        ConfigError::Given { .. }
        | ConfigError::Nowhere { .. }
        | ConfigError::UnknownWorkflow { .. }
        | ConfigError::NoAgent
        | ConfigError::Unassigned { .. } => error.to_string(),
    })?;
    let without_note = |change| Change { note: None, ..change };
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

fn dotted(names: &[String]) -> String {
    let shown: Vec<_> =
        names.iter().map(|name| Key::new(name.as_str()).display_repr().into_owned()).collect();
    shown.join(".")
}

/// Sets keys of a file. Whether the result makes sense is for [`super::read`] to say.
pub fn set(file: &str, text: &str, changes: &[Change]) -> Result<Edited, ConfigError> {
    let mut sheet = Sheet::open(file, text)?;
    let is_set = |key: &[String]| changes.iter().any(|change| change.key == key);
    for change in changes {
        sheet.set(change, &is_set).map_err(|message| ConfigError::Given { name: change.key(), message })?;
    }
    Ok(sheet.close(changes.iter().map(|change| change.key.clone()).collect()))
}

/// What a translated file of another program says, each with a comment that tells where it stood.
pub fn imported(layer: &Layer) -> Vec<Change> {
    let Ok(document) = Document::parse(layer.text()) else { return Vec::new() };
    let mut changes = Vec::new();
    gather(document.as_item(), &mut Vec::new(), layer, &mut changes);
    changes
}

fn gather(item: &Item, key: &mut Vec<String>, layer: &Layer, changes: &mut Vec<Change>) {
    if let Item::Value(value) = item
        && !value.is_inline_table()
    {
        let offset = value.span().map_or(0, |span| span.start);
        let spot = layer.spot(layer.text().get(..offset).unwrap_or_default().matches('\n').count() + 1);
        let note = Some(format!("{}:{}", spot.file, spot.line));
        let text = value.span().and_then(|span| layer.text().get(span)).unwrap_or_default();
        changes.extend(text.parse().ok().map(|value| Change { key: key.clone(), value, note }));
        return;
    }
    for (name, inside) in item.as_table_like().into_iter().flat_map(|table| table.iter()) {
        key.push(name.to_owned());
        gather(inside, key, layer, changes);
        key.pop();
    }
}

/// Removes a table with all that is in it.
pub fn remove(file: &str, text: &str, table: &[&str]) -> Result<Edited, ConfigError> {
    let mut sheet = Sheet::open(file, text)?;
    sheet.remove(table);
    Ok(sheet.close(Vec::new()))
}

impl Edited {
    /// Which of the changes a line of the new text comes from, by its dotted key. Lines are counted from one.
    pub fn key_at(&self, line: usize) -> Option<String> {
        let document = Document::parse(self.text.as_str()).ok()?;
        let line_of = |offset: usize| self.text.get(..offset).map(|before| before.matches('\n').count() + 1);
        let here = |key: &&Vec<String>| {
            let mut item = document.as_item();
            key.iter().any(|name| {
                let Some((key, inside)) = item.as_table_like().and_then(|table| table.get_key_value(name))
                else {
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

/// A file being changed.
struct Sheet {
    document: DocumentMut,
    changed: Vec<Changed>,
    ending: &'static str,
    mark: &'static str,
}

impl Sheet {
    fn open(file: &str, text: &str) -> Result<Self, ConfigError> {
        let layer = Layer::repository(file, text);
        Reading::new(&layer).parse()?;
        let (mark, text) = text.strip_prefix('\u{feff}').map_or(("", text), |text| ("\u{feff}", text));
        let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut text = text.replace("\r\n", "\n");
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let document = text.parse().map_err(|_| ConfigError::File {
            file: file.to_owned(),
            line: 1,
            message: "this file cannot be changed by a program: change it by hand".to_owned(),
        })?;
        Ok(Self { document, changed: Vec::new(), ending, mark })
    }

    fn close(self, set: Vec<Vec<String>>) -> Edited {
        let text = self.document.to_string();
        let text = text.trim_start_matches('\n').replace('\n', self.ending);
        Edited { text: format!("{}{text}", self.mark), changed: self.changed, set }
    }

    fn set(&mut self, change: &Change, is_set: &dyn Fn(&[String]) -> bool) -> Result<(), String> {
        let Some((name, path)) = change.key.split_last() else { return Err("the key is empty".to_owned()) };
        let known = layout::deepest(&self.document, path);
        let place = table_at(self.document.as_item_mut(), path)?;
        let Some(table) = place.as_table_like_mut() else { return Ok(()) };
        let replaced = rival(path, name).filter(|other| {
            let sibling: Vec<_> = path.iter().cloned().chain([(*other).to_owned()]).collect();
            !is_set(&sibling)
        });
        let replaced =
            replaced.and_then(|other| Some((other, table.key(other)?.clone(), table.remove(other)?)));
        let mut value = change.value.clone();
        let mut key = Key::new(name.as_str());
        let old = match table.get_mut(name) {
            Some(Item::Value(old)) => {
                let before = shown(old);
                value.decor_mut().clone_from(old.decor());
                note(&mut value, change.note.as_deref());
                *old = value.clone();
                Some(before)
            }
            Some(Item::Table(_) | Item::ArrayOfTables(_)) => {
                return Err(format!("`{}` is a table: set one of its keys", change.key()));
            }
            Some(Item::None) | None => {
                if let Some((_, theirs, Item::Value(said))) = &replaced {
                    value.decor_mut().clone_from(said.decor());
                    key.leaf_decor_mut().clone_from(theirs.leaf_decor());
                }
                note(&mut value, change.note.as_deref());
                insert(place, &key, value.clone());
                None
            }
        };
        if let Some((other, _, Item::Value(said))) = replaced {
            let key: Vec<_> = path.iter().cloned().chain([other.to_owned()]).collect();
            self.changed.push(Changed::of(&key, Some(shown(&said)), None));
        }
        let new = Some(shown(&value));
        if old != new {
            self.changed.push(Changed::of(&change.key, old, new));
        }
        layout::settle(&mut self.document, path, known);
        Ok(())
    }

    fn remove(&mut self, path: &[&str]) {
        let Some((last, parents)) = path.split_last() else { return };
        let kept = layout::kept_comments(&self.document, path);
        let mut item = self.document.as_item_mut();
        for name in parents {
            let Some(inside) = item.as_table_like_mut().and_then(|table| table.get_mut(name)) else { return };
            item = inside;
        }
        let Some(removed) = item.as_table_like_mut().and_then(|table| table.remove(last)) else { return };
        let mut key: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
        leaves(&removed, &mut key, &mut self.changed);
        if let Some((position, comments)) = kept {
            layout::give(&mut self.document, position, &comments);
        }
    }
}

/// The key beside this one that cannot stand with it.
fn rival(path: &[String], key: &str) -> Option<&'static str> {
    let of_a_phase = path.first().is_some_and(|first| first == "presets")
        && path.get(2).is_some_and(|third| third == "phase");
    match key {
        "agent" if of_a_phase => Some("tool"),
        "tool" if of_a_phase => Some("agent"),
        "parallel" if of_a_phase => Some("researchers"),
        "researchers" if of_a_phase => Some("parallel"),
        _ => other_bound(key),
    }
}

/// The table under these names, made where it is missing.
fn table_at<'d>(mut item: &'d mut Item, path: &[String]) -> Result<&'d mut Item, String> {
    for (depth, name) in path.iter().enumerate() {
        let inline = item.is_inline_table();
        let table = item.as_table_like_mut().ok_or_else(|| no_table(path.get(..depth)))?;
        let fresh = || if inline { Item::Value(InlineTable::new().into()) } else { implicit() };
        item = table.entry(name).or_insert_with(fresh);
    }
    if item.is_table_like() { Ok(item) } else { Err(no_table(Some(path))) }
}

fn no_table(path: Option<&[String]>) -> String {
    format!("`{}` is not a table here: change it in the file", dotted(path.unwrap_or_default()))
}

/// A table whose header is written only if something stands in it.
fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn insert(place: &mut Item, key: &Key, value: Value) {
    match place {
        Item::Table(table) => drop(table.insert_formatted(key, Item::Value(value))),
        Item::Value(Value::InlineTable(table)) => {
            if let Some((_, last)) = table.iter_mut().last() {
                last.decor_mut().set_suffix("");
            }
            let mut value = bare(value);
            value.decor_mut().set_suffix(" ");
            table.insert(key.get(), value);
        }
        Item::Value(_) | Item::ArrayOfTables(_) | Item::None => {}
    }
}

/// Without its comments and gaps.
fn bare(mut value: Value) -> Value {
    value.decor_mut().clear();
    value
}

/// A comment behind a value, unless there is one.
fn note(value: &mut Value, note: Option<&str>) {
    let has_one =
        value.decor().suffix().and_then(|suffix| suffix.as_str()).is_some_and(|said| said.contains('#'));
    if let Some(note) = note.filter(|_| !has_one) {
        value.decor_mut().set_suffix(format!(" # {note}"));
    }
}

fn shown(value: &Value) -> String {
    bare(value.clone()).to_string().trim().to_owned()
}

/// Everything that stands in what was removed.
fn leaves(item: &Item, key: &mut Vec<String>, changed: &mut Vec<Changed>) {
    if let Item::Value(value) = item
        && !value.is_inline_table()
    {
        changed.push(Changed::of(key, Some(shown(value)), None));
        return;
    }
    let tables = item.as_table_like().into_iter().flat_map(|table| table.iter());
    for (name, inside) in tables {
        key.push(name.to_owned());
        leaves(inside, key, changed);
        key.pop();
    }
}
