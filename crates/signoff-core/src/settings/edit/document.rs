//! A configuration file during an edit.
//!
//! `toml_edit` attaches every comment to the item after it. A comment that an empty line separates from the next header
//! belongs to the table before it, so it stays there.

use toml_edit::{Decor, DocumentMut, InlineTable, Item, Key, Table, Value};

use super::super::layer::excluded_by;
use super::super::preset::are_same;
use super::super::{ConfigError, Layer, key};
use super::{ChangedKey, EditedFile, KeyChange, dotted};
use crate::workflow;

/// A configuration file during an edit.
pub struct EditedDocument {
    document: DocumentMut,
    changed: Vec<ChangedKey>,
    ending: &'static str,
    mark: &'static str,
}

impl EditedDocument {
    pub fn open(file: &str, text: &str) -> Result<Self, ConfigError> {
        Layer::repository(file, text).tree()?;
        let (mark, text) = text.strip_prefix('\u{feff}').map_or(("", text), |text| ("\u{feff}", text));
        let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut text = text.replace("\r\n", "\n");
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let document = text.parse().map_err(|_| ConfigError::File {
            file: file.to_owned(),
            line: 1,
            message: "`signoff configure` cannot edit this file: edit it by hand".to_owned(),
        })?;
        Ok(Self { document, changed: Vec::new(), ending, mark })
    }

    pub fn close(self, set: Vec<Vec<String>>) -> EditedFile {
        let text = self.document.to_string();
        let text = text.trim_start_matches('\n').replace('\n', self.ending);
        EditedFile { text: format!("{}{text}", self.mark), changed: self.changed, set }
    }

    pub fn set(&mut self, change: &KeyChange, is_set: &dyn Fn(&[String]) -> bool) -> Result<(), String> {
        let Some((name, path)) = change.key.split_last() else { return Err("the key is empty".to_owned()) };
        let known = path.iter().try_fold(self.document.as_item(), |item, name| item.as_table_like()?.get(name));
        let is_new = known.is_none();
        let parent = table_at(self.document.as_item_mut(), path)?;
        let Some(table) = parent.as_table_like_mut() else { return Ok(()) };
        let names: Vec<_> = path.iter().map(String::as_str).collect();
        let replaced = excluded_by(&names, name).filter(|other| {
            let sibling: Vec<_> = path.iter().cloned().chain([(*other).to_owned()]).collect();
            !is_set(&sibling)
        });
        let replaced = replaced.and_then(|other| Some((other, table.key(other)?.clone(), table.remove(other)?)));
        let mut value = change.value.clone();
        let mut key = Key::new(name.as_str());
        let old = match table.get_mut(name) {
            Some(Item::Value(old)) => {
                let before = old.clone();
                value.decor_mut().clone_from(old.decor());
                note(&mut value, change.note.as_deref());
                *old = value.clone();
                Some(before)
            }
            Some(Item::Table(_) | Item::ArrayOfTables(_)) => {
                return Err(format!("`{}` is a table: set one of its keys", change.key()));
            }
            Some(Item::None) | None => {
                if let Some((_, old_key, Item::Value(old))) = &replaced {
                    value.decor_mut().clone_from(old.decor());
                    key.leaf_decor_mut().clone_from(old_key.leaf_decor());
                }
                note(&mut value, change.note.as_deref());
                insert(parent, &key, value.clone());
                None
            }
        };
        if let Some((other, _, Item::Value(old))) = replaced {
            let key: Vec<_> = path.iter().cloned().chain([other.to_owned()]).collect();
            self.changed.push(ChangedKey::new(&key, Some(&old), None));
        }
        if old.as_ref().map(display_value).as_ref() != Some(&display_value(&value)) {
            self.changed.push(ChangedKey::new(&change.key, old.as_ref(), Some(&value)));
        }
        place_new_table(&mut self.document, path, is_new);
        Ok(())
    }

    /// The change with the name or number by which the file refers to its phase.
    pub fn with_phase_name(&self, change: &KeyChange) -> KeyChange {
        let phase_name = || {
            let [presets, preset, phase, word, ..] = change.key.as_slice() else { return None };
            let workflow = workflow::preset(preset).filter(|_| presets == key::PRESETS && phase == key::PHASE)?;
            let tables = self.document.get(presets)?.get(preset)?.get(phase)?.as_table_like()?;
            let mut words = tables.iter().map(|(name, _)| name);
            words.find(|name| are_same(&workflow, name, word)).map(str::to_owned)
        };
        let Some(word) = phase_name() else { return change.clone() };
        let mut key = change.key.clone();
        key.splice(3..4, [word]);
        KeyChange { key, ..change.clone() }
    }

    pub fn remove(&mut self, path: &[&str]) {
        let Some((last, parents)) = path.split_last() else { return };
        let kept = kept_comments(&self.document, path);
        let mut item = self.document.as_item_mut();
        for name in parents {
            let Some(inside) = item.as_table_like_mut().and_then(|table| table.get_mut(name)) else { return };
            item = inside;
        }
        let Some(removed) = item.as_table_like_mut().and_then(|table| table.remove(last)) else { return };
        let mut key: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
        let changed = &mut self.changed;
        leaves(&removed, &mut key, &mut |key, value| changed.push(ChangedKey::new(key, Some(value), None)));
        if let Some((position, comments)) = kept {
            attach_comments(&mut self.document, position, &comments);
        }
    }
}

/// The table at a path. Missing tables are created.
fn table_at<'d>(mut item: &'d mut Item, path: &[String]) -> Result<&'d mut Item, String> {
    for (depth, name) in path.iter().enumerate() {
        let inline = item.is_inline_table();
        if let Some(table) = item.as_inline_table_mut().filter(|table| !table.contains_key(name)) {
            clear_trailing_space(table);
        }
        let table = item.as_table_like_mut().ok_or_else(|| no_table(path.get(..depth)))?;
        let fresh = || if inline { Item::Value(InlineTable::new().into()) } else { implicit() };
        item = table.entry(name).or_insert_with(fresh);
    }
    if item.is_table_like() { Ok(item) } else { Err(no_table(Some(path))) }
}

fn no_table(path: Option<&[String]>) -> String {
    format!("`{}` is not a table here: change it in the file", dotted(path.unwrap_or_default()))
}

/// A table whose header is written only if the table has keys.
fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn insert(parent: &mut Item, key: &Key, value: Value) {
    match parent {
        Item::Table(table) => drop(table.insert_formatted(key, Item::Value(value))),
        Item::Value(Value::InlineTable(table)) => {
            clear_trailing_space(table);
            table.insert(key.get(), without_decor(value));
        }
        Item::Value(_) | Item::ArrayOfTables(_) | Item::None => {}
    }
}

/// Removes the space before the closing brace: a comma would follow it.
fn clear_trailing_space(table: &mut InlineTable) {
    if let Some((_, last)) = table.iter_mut().last() {
        last.decor_mut().set_suffix("");
    }
}

/// The value without comments and whitespace around it.
fn without_decor(mut value: Value) -> Value {
    value.decor_mut().clear();
    value
}

/// Adds a comment after a value, unless a person has written one there.
fn note(value: &mut Value, note: Option<&str>) {
    let comment = value.decor().suffix().and_then(|suffix| suffix.as_str()).unwrap_or_default().trim();
    let is_by_person = comment.contains('#') && !is_note(comment);
    if let Some(note) = note.filter(|_| !is_by_person) {
        value.decor_mut().set_suffix(format!(" # {note}"));
    }
}

/// Whether a comment is the location of an imported value.
fn is_note(comment: &str) -> bool {
    let location = comment.strip_prefix("# ").and_then(|location| location.rsplit_once(':'));
    location.is_some_and(|(file, line)| !file.contains([' ', '#']) && line.parse::<usize>().is_ok())
}

pub fn display_value(value: &Value) -> String {
    without_decor(value.clone()).to_string().trim().to_owned()
}

/// Visits every value below a key.
pub fn leaves(item: &Item, key: &mut Vec<String>, visit: &mut dyn FnMut(&[String], &Value)) {
    if let Item::Value(value) = item
        && !value.is_inline_table()
    {
        return visit(key, value);
    }
    let tables = item.as_table_like().into_iter().flat_map(|table| table.iter());
    for (name, inside) in tables {
        key.push(name.to_owned());
        leaves(inside, key, visit);
        key.pop();
    }
}

/// Places a new table after the comments of the table before it.
fn place_new_table(document: &mut DocumentMut, path: &[String], is_new: bool) {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    if path.is_empty() {
        move_first_key_below_heading(document);
    }
    if !is_new {
        return;
    }
    let Some(before) = position_before(document, &names) else { return };
    let above = detach_comments(document, before);
    let is_first = before.is_none() && document.as_table().get_values().is_empty() && above.is_empty();
    let gap = if is_first { "" } else { "\n" };
    if let Some(table) = table_mut(document, &names) {
        table.decor_mut().set_prefix(format!("{above}{gap}"));
    }
}

/// Moves the first key of a file below the comment about the whole file.
fn move_first_key_below_heading(document: &mut DocumentMut) {
    let values = document.as_table().get_values();
    let [(keys, _)] = values.as_slice() else { return };
    let (Some(key), 1) = (keys.last(), keys.len()) else { return };
    if key.leaf_decor().prefix().is_some() {
        return;
    }
    let name = key.get().to_owned();
    let above = detach_comments(document, None);
    let next = next_decor(document, None);
    let next = next.filter(|decor| !prefix(decor).starts_with('\n'));
    if let Some(decor) = next {
        let comment = prefix(decor).to_owned();
        decor.set_prefix(format!("\n{comment}"));
    }
    if let Some(mut key) = document.key_mut(&name) {
        let gap = if above.is_empty() { "" } else { "\n" };
        key.leaf_decor_mut().set_prefix(format!("{above}{gap}"));
    }
}

/// The position of the table before the one at a path, if there is one. The outer `None`: there is no table at the path.
fn position_before(document: &DocumentMut, path: &[&str]) -> Option<Option<isize>> {
    let mut tables = Vec::new();
    collect_tables(document.as_table(), &[], &mut tables);
    let here = tables.iter().position(|(known, _)| known == path)?;
    Some(tables.iter().take(here).rev().find_map(|(_, table)| table.position()))
}

/// Collects all tables inside a table with their paths, in the default order of `toml_edit`.
fn collect_tables<'d>(table: &'d Table, above: &[&'d str], tables: &mut Vec<(Vec<&'d str>, &'d Table)>) {
    for (name, item) in table.iter() {
        let path = [above, &[name]].concat();
        let inside: Vec<&Table> = match item {
            Item::Table(inside) => vec![inside],
            Item::ArrayOfTables(list) => list.iter().collect(),
            Item::Value(_) | Item::None => Vec::new(),
        };
        for table in inside {
            tables.push((path.clone(), table));
            collect_tables(table, &path, tables);
        }
    }
}

fn next_decor(document: &mut DocumentMut, after: Option<isize>) -> Option<&mut Decor> {
    let mut tables = Vec::new();
    collect_tables(document.as_table(), &[], &mut tables);
    let positions = tables.into_iter().filter_map(|(_, table)| table.position());
    let next = positions.filter(|position| after.is_none_or(|after| *position > after)).min()?;
    document.iter_mut().find_map(|(_, item)| decor_at(item, next))
}

/// The decor of the table at a position.
fn decor_at(item: &mut Item, position: isize) -> Option<&mut Decor> {
    let tables: Vec<&mut Table> = match item {
        Item::Table(table) => vec![table],
        Item::ArrayOfTables(list) => list.iter_mut().collect(),
        Item::Value(_) | Item::None => Vec::new(),
    };
    tables.into_iter().find_map(|table| match table.position() {
        Some(here) if here == position => Some(table.decor_mut()),
        Some(_) | None => table.iter_mut().find_map(|(_, item)| decor_at(item, position)),
    })
}

fn table_mut<'d>(document: &'d mut DocumentMut, path: &[&str]) -> Option<&'d mut Table> {
    path.iter().try_fold(document.as_table_mut(), |table, name| table.get_mut(name)?.as_table_mut())
}

fn prefix(decor: &Decor) -> &str {
    decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default()
}

/// Splits comments into those of the table before and those of the next one.
fn split_comments(comment: &str) -> (&str, &str) {
    comment.rfind("\n\n").map_or(("", comment), |at| comment.split_at(at + 1))
}

/// Removes the comments after a table, which are attached to the next table or the end of the file.
fn detach_comments(document: &mut DocumentMut, after: Option<isize>) -> String {
    match next_decor(document, after) {
        Some(decor) => {
            let comment = prefix(decor).to_owned();
            let (above, own) = split_comments(&comment);
            decor.set_prefix(own);
            above.to_owned()
        }
        None => {
            let comment = document.trailing().as_str().unwrap_or_default().to_owned();
            document.set_trailing("");
            comment
        }
    }
}

/// Attaches comments to the next table or the end of the file.
fn attach_comments(document: &mut DocumentMut, after: isize, comments: &str) {
    match next_decor(document, Some(after)) {
        Some(decor) => {
            let own = prefix(decor).to_owned();
            decor.set_prefix(format!("{comments}{own}"));
        }
        None => {
            let own = document.trailing().as_str().unwrap_or_default().to_owned();
            document.set_trailing(format!("{comments}{own}"));
        }
    }
}

/// The comments above the tables at and below a path that belong to the table before, with the last of their positions.
fn kept_comments(document: &DocumentMut, path: &[&str]) -> Option<(isize, String)> {
    let mut tables = Vec::new();
    collect_tables(document.as_table(), &[], &mut tables);
    let below = tables.into_iter().filter(|(known, _)| known.starts_with(path));
    let comments = |table: &Table| Some((table.position()?, split_comments(prefix(table.decor())).0.to_owned()));
    let mut found: Vec<(isize, String)> = below.filter_map(|(_, table)| comments(table)).collect();
    found.sort();
    let last = found.last()?.0;
    Some((last, found.into_iter().map(|(_, comments)| comments).collect()))
}
