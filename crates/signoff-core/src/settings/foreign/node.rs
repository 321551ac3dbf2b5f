//! What JSON and YAML say, with the line of everything.

use super::super::ConfigError;
use super::ForeignFile;
use crate::settings::reader::{either, nearest};

/// A value and where people would look for it: at its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignNode {
    pub line: usize,
    pub data: ForeignData,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForeignData {
    Null,
    Flag(bool),
    /// As it is written.
    Number(String),
    Text(String),
    List,
    Map(Vec<(String, ForeignNode)>),
}

/// A value on its way from the top of a file.
#[derive(Debug, Clone)]
pub struct ForeignValue<'a> {
    pub file: ForeignFile<'a>,
    /// `phases.5.failOnSeverity`; empty for the whole file.
    path: String,
    pub key: &'a str,
    pub node: &'a ForeignNode,
}

/// Up to this many letters of a text are repeated in a message.
const SHOWN: usize = 40;

impl<'a> ForeignValue<'a> {
    pub fn whole(file: ForeignFile<'a>, node: &'a ForeignNode) -> Self {
        Self { file, path: String::new(), key: "", node }
    }

    /// An error about what is written here.
    pub fn error(&self, message: impl Into<String>) -> ConfigError {
        self.file.error(self.node.line, message)
    }

    /// How messages name it.
    pub fn name(&self) -> String {
        if self.path.is_empty() { "the file".to_owned() } else { format!("`{}`", shown(&self.path)) }
    }

    pub fn wrong(&self, expected: &str) -> ConfigError {
        self.error(format!("{} is {}: expected {expected}", self.name(), self.said()))
    }

    /// An error about a key that is not known here.
    pub fn unknown(&self, known: &[&str]) -> ConfigError {
        let expected = match nearest(self.key, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("expected {}", either(known)),
        };
        self.error(format!("unknown key {}: {expected}", self.name()))
    }

    fn said(&self) -> String {
        match &self.node.data {
            ForeignData::Null => "null".to_owned(),
            ForeignData::Flag(flag) => flag.to_string(),
            ForeignData::Number(number) => shown(number),
            ForeignData::Text(text) if text.chars().count() > SHOWN => "a long text".to_owned(),
            ForeignData::Text(text) => format!("{text:?}"),
            ForeignData::List => "a list".to_owned(),
            ForeignData::Map(_) => "a group of keys".to_owned(),
        }
    }

    /// What stands below, in the order of the file.
    pub fn members(&self, expected: &str) -> Result<Vec<Self>, ConfigError> {
        let ForeignData::Map(members) = &self.node.data else { return Err(self.wrong(expected)) };
        let below = |(key, node): &'a (String, ForeignNode)| {
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            Self { file: self.file, path, key, node }
        };
        Ok(members.iter().map(below).collect())
    }

    pub fn is_null(&self) -> bool {
        self.node.data == ForeignData::Null
    }

    pub fn flag(&self) -> Result<bool, ConfigError> {
        match &self.node.data {
            ForeignData::Flag(flag) => Ok(*flag),
            ForeignData::Null
            | ForeignData::Number(_)
            | ForeignData::Text(_)
            | ForeignData::List
            | ForeignData::Map(_) => Err(self.wrong("true or false")),
        }
    }

    /// One of these words.
    pub fn word(&self, known: &[&str]) -> Result<&'a str, ConfigError> {
        self.plain().filter(|word| known.contains(word)).ok_or_else(|| self.wrong(&either(known)))
    }

    /// A whole number within bounds. `or` says what else may stand here.
    pub fn whole_number(&self, least: u32, most: u32, or: &str) -> Result<u32, ConfigError> {
        let number = match &self.node.data {
            ForeignData::Number(number) => number.parse().ok(),
            ForeignData::Null
            | ForeignData::Flag(_)
            | ForeignData::Text(_)
            | ForeignData::List
            | ForeignData::Map(_) => None,
        };
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.wrong(&format!("a whole number from {least} to {most}{or}")))
    }

    /// A text of one line that says something.
    pub fn text(&self, expected: &str) -> Result<&'a str, ConfigError> {
        let says = |text: &&str| !text.trim().is_empty() && !text.contains(char::is_control);
        self.plain().filter(says).ok_or_else(|| self.wrong(expected))
    }

    fn plain(&self) -> Option<&'a str> {
        match &self.node.data {
            ForeignData::Text(text) => Some(text),
            ForeignData::Null
            | ForeignData::Flag(_)
            | ForeignData::Number(_)
            | ForeignData::List
            | ForeignData::Map(_) => None,
        }
    }
}

/// The beginning of what may be long.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(2 * SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
