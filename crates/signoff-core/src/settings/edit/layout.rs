//! Where new tables stand, and what becomes of the comments between tables.
//!
//! A TOML writer hangs every comment on whatever follows it. A comment that is set off from the next header by an
//! empty line belongs to the table before, so it stays there.

use toml_edit::{Decor, DocumentMut, Item, Table};

/// How many of these tables are there already.
pub fn deepest(document: &DocumentMut, path: &[String]) -> usize {
    let mut item = document.as_item();
    for (depth, name) in path.iter().enumerate() {
        match item.as_table_like().and_then(|table| table.get(name)) {
            Some(inside) => item = inside,
            None => return depth,
        }
    }
    path.len()
}

/// Gives a table that was made just now its place between the others.
pub fn settle(document: &mut DocumentMut, path: &[String], known: usize) {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    if known == path.len() {
        if path.is_empty() {
            below_the_heading(document);
        }
        return;
    }
    let Some(before) = position_before(document, &names) else { return };
    let above = take(document, before);
    let is_first = before.is_none() && document.as_table().get_values().is_empty() && above.is_empty();
    let gap = if is_first { "" } else { "\n" };
    if let Some(table) = table_mut(document, &names) {
        table.decor_mut().set_prefix(format!("{above}{gap}"));
    }
}

/// The first key of a file that began with a table stands below the words about the whole file.
fn below_the_heading(document: &mut DocumentMut) {
    let values = document.as_table().get_values();
    let [(keys, _)] = values.as_slice() else { return };
    let (Some(key), 1) = (keys.last(), keys.len()) else { return };
    if key.leaf_decor().prefix().is_some() {
        return;
    }
    let name = key.get().to_owned();
    let above = take(document, None);
    let next = next_decor(document, None);
    let next = next.filter(|decor| !prefix(decor).starts_with('\n'));
    if let Some(decor) = next {
        let said = prefix(decor).to_owned();
        decor.set_prefix(format!("\n{said}"));
    }
    if let Some(mut key) = document.key_mut(&name) {
        let gap = if above.is_empty() { "" } else { "\n" };
        key.leaf_decor_mut().set_prefix(format!("{above}{gap}"));
    }
}

/// The position of the table that is written before this one. Outer none: there is no such table as this.
fn position_before(document: &DocumentMut, path: &[&str]) -> Option<Option<isize>> {
    let mut last = None;
    let mut found = None;
    walk(document.as_table(), &mut Vec::new(), &mut |here, table| {
        if here == path {
            found = found.or(Some(last));
        }
        last = table.position().filter(|_| !here.is_empty()).or(last);
    });
    found
}

/// Visits every table in the order in which it is written where nothing else is said.
fn walk<'t>(table: &'t Table, path: &mut Vec<&'t str>, visit: &mut dyn FnMut(&[&str], &'t Table)) {
    visit(path, table);
    for (name, item) in table.iter() {
        path.push(name);
        match item {
            Item::Table(inside) => walk(inside, path, visit),
            Item::ArrayOfTables(list) => list.iter().for_each(|inside| walk(inside, path, visit)),
            Item::Value(_) | Item::None => {}
        }
        path.pop();
    }
}

/// The position of the table behind another one.
fn next_position(document: &DocumentMut, after: Option<isize>) -> Option<isize> {
    let mut next: Option<isize> = None;
    walk(document.as_table(), &mut Vec::new(), &mut |path, table| {
        let position = table.position().filter(|position| after.is_none_or(|after| *position > after));
        let Some(position) = position.filter(|_| !path.is_empty()) else { return };
        next = Some(next.map_or(position, |known| known.min(position)));
    });
    next
}

fn next_decor(document: &mut DocumentMut, after: Option<isize>) -> Option<&mut Decor> {
    let next = next_position(document, after)?;
    at_position(document.as_table_mut(), next, true).map(Table::decor_mut)
}

fn at_position(table: &mut Table, position: isize, is_root: bool) -> Option<&mut Table> {
    if !is_root && table.position() == Some(position) {
        return Some(table);
    }
    table.iter_mut().find_map(|(_, item)| match item {
        Item::Table(inside) => at_position(inside, position, false),
        Item::ArrayOfTables(list) => list.iter_mut().find_map(|inside| at_position(inside, position, false)),
        Item::Value(_) | Item::None => None,
    })
}

fn table_mut<'d>(document: &'d mut DocumentMut, path: &[&str]) -> Option<&'d mut Table> {
    path.iter().try_fold(document.as_table_mut(), |table, name| table.get_mut(name)?.as_table_mut())
}

fn prefix(decor: &Decor) -> &str {
    decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default()
}

/// The comments of the table before, and those of the one that follows.
fn divided(said: &str) -> (&str, &str) {
    said.rfind("\n\n").map_or(("", said), |at| said.split_at(at + 1))
}

/// Takes away the comments that stand behind a table but hang on the next one, or on the end of the file.
fn take(document: &mut DocumentMut, after: Option<isize>) -> String {
    match next_decor(document, after) {
        Some(decor) => {
            let said = prefix(decor).to_owned();
            let (above, own) = divided(&said);
            decor.set_prefix(own);
            above.to_owned()
        }
        None => {
            let said = document.trailing().as_str().unwrap_or_default().to_owned();
            document.set_trailing("");
            said
        }
    }
}

/// Hangs comments on what stands behind a table.
pub fn give(document: &mut DocumentMut, after: isize, comments: &str) {
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

/// The comments above the tables below a path that belong to what stands before, with the last of their positions.
pub fn kept_comments(document: &DocumentMut, path: &[&str]) -> Option<(isize, String)> {
    let mut found: Vec<(isize, String)> = Vec::new();
    walk(document.as_table(), &mut Vec::new(), &mut |here, table| {
        if let Some(position) = table.position().filter(|_| here.starts_with(path)) {
            found.push((position, divided(prefix(table.decor())).0.to_owned()));
        }
    });
    found.sort();
    let last = found.last()?.0;
    Some((last, found.into_iter().map(|(_, comments)| comments).collect()))
}
