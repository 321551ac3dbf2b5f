//! A regular expression, as scripts have them.

use regex::Regex;
use serde::Deserialize;

/// A pattern in which `.` is any character, newlines too.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(Regex);

impl Pattern {
    /// # Panics
    /// If it is no regular expression.
    pub fn new(pattern: &str) -> Self {
        Self::read(pattern).expect("a regular expression")
    }

    fn read(pattern: &str) -> Result<Self, regex::Error> {
        regex::RegexBuilder::new(pattern).dot_matches_new_line(true).build().map(Self)
    }

    /// The first group of the first match; the whole match where there are no groups.
    pub(super) fn first<'t>(&self, text: &'t str) -> Option<&'t str> {
        let found = self.0.captures(text)?;
        found.get(1).or_else(|| found.get(0)).map(|group| group.as_str())
    }

    /// The named groups of the first match.
    pub(super) fn groups(&self, text: &str) -> Option<Vec<(String, String)>> {
        let found = self.0.captures(text)?;
        let names = self.0.capture_names().flatten();
        Some(
            names.filter_map(|name| Some((name.to_owned(), found.name(name)?.as_str().to_owned()))).collect(),
        )
    }
}

impl TryFrom<String> for Pattern {
    type Error = regex::Error;

    fn try_from(pattern: String) -> Result<Self, Self::Error> {
        Self::read(&pattern)
    }
}
