//! A TOML table being read, with the place of everything in it.

use toml::de::DeTable;

use super::problem::{Place, WorkflowError, nearest};
use super::value::{Value, Written, described};

pub type Checked<T> = Result<T, WorkflowError>;

/// One table: what it says, and where it begins.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a> {
    place: Place<'a>,
    entries: &'a DeTable<'a>,
    start: usize,
}

impl<'a> Table<'a> {
    /// The file itself.
    pub fn whole(place: Place<'a>, entries: &'a DeTable<'a>) -> Self {
        Self { place, entries, start: 0 }
    }

    /// An error at a key, or at the table where the key is not written.
    pub fn error(&self, key: &str, message: impl Into<String>) -> WorkflowError {
        self.place.at(self.offset(key).unwrap_or(self.start), message)
    }

    /// Where a key is written, if it is.
    pub fn offset(&self, key: &str) -> Option<usize> {
        self.entries.get_key_value(key).map(|(key, _)| key.span().start)
    }

    /// Where the table itself begins.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The keys of the table, in the order of the file.
    pub fn names(&self) -> Vec<&'a str> {
        let mut names: Vec<_> = self.entries.keys().collect();
        names.sort_by_key(|name| name.span().start);
        names.into_iter().map(|name| name.get_ref().as_ref()).collect()
    }

    /// The first key in the file that is none of these.
    pub fn stranger(&self, known: &[&str]) -> Option<&'a str> {
        let strange = self.entries.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        strange.min_by_key(|key| key.span().start).map(|key| key.get_ref().as_ref())
    }

    /// Refuses a key that is none of these.
    pub fn only(&self, what: &str, known: &[&str]) -> Checked<()> {
        let Some(key) = self.stranger(known) else { return Ok(()) };
        Err(self.error(key, unknown_key(what, key, known)))
    }

    /// The value of a key, if it is written.
    pub fn get<T: Value>(&self, key: &str) -> Checked<Option<T>> {
        let Some(written) = self.entries.get(key) else { return Ok(None) };
        let wrong = match T::read(key, written) {
            Ok(value) => return Ok(Some(value)),
            Err(wrong) => wrong,
        };
        let (said, expected) = (described(wrong), T::expected(key));
        Err(if std::ptr::eq(wrong, written) {
            self.error(key, format!("`{key}` is {said}: expected {expected}"))
        } else {
            self.place.at(wrong.span().start, format!("`{key}` has {said}: expected {expected}"))
        })
    }

    /// The text under a key, if there is one.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.entries.get(key).and_then(|written| written.get_ref().as_str())
    }

    /// Whether a table stands under a key.
    pub fn holds_table(&self, key: &str) -> bool {
        self.entries.get(key).is_some_and(|written| written.get_ref().is_table())
    }

    /// The table under a key, if it is written.
    pub fn table(&self, key: &str) -> Checked<Option<Self>> {
        let Some((name, written)) = self.entries.get_key_value(key) else { return Ok(None) };
        let Some(entries) = written.get_ref().as_table() else {
            return Err(self.error(key, format!("`{key}` is {}: expected a table", described(written))));
        };
        Ok(Some(Self { entries, start: name.span().start, ..*self }))
    }

    /// The tables in this one with their names, in the order of the file.
    pub fn children(&self) -> Checked<Vec<(&'a str, Self)>> {
        let child = |name: &'a str| Ok(self.table(name)?.map(|table| (name, table)));
        self.names().into_iter().filter_map(|name| child(name).transpose()).collect()
    }

    /// The list of tables under a key.
    pub fn tables(&self, key: &str) -> Checked<Vec<Self>> {
        let Some(written) = self.entries.get(key) else { return Ok(Vec::new()) };
        let expected = format!("expected a list of tables, each under [[{key}]]");
        let Some(list) = written.get_ref().as_array() else {
            return Err(self.error(key, format!("`{key}` is {}: {expected}", described(written))));
        };
        let one = |element: &'a Written<'a>| {
            let start = element.span().start;
            let entries = element.get_ref().as_table().ok_or_else(|| {
                self.place.at(start, format!("`{key}` has {}: {expected}", described(element)))
            })?;
            Ok(Self { entries, start, ..*self })
        };
        list.iter().map(one).collect()
    }
}

fn unknown_key(what: &str, key: &str, known: &[&str]) -> String {
    match nearest(key, known) {
        Some(meant) => format!("unknown key `{key}` in {what}: did you mean `{meant}`?"),
        None => format!("unknown key `{key}` in {what}: expected some of {}", known.join(", ")),
    }
}
