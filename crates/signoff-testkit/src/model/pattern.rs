//! Regular expressions in scripts.

use regex::Regex;
use serde::Deserialize;

/// A regular expression in which `.` also matches newlines.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(Regex);

impl Pattern {
    /// # Panics
    /// If it is not a valid regular expression.
    pub fn new(pattern: &str) -> Self {
        Self::parse(pattern).expect("a regular expression")
    }

    fn parse(pattern: &str) -> Result<Self, regex::Error> {
        regex::RegexBuilder::new(pattern).dot_matches_new_line(true).build().map(Self)
    }

    /// The first group of the first match, or the whole match if there are no groups.
    pub(super) fn first<'t>(&self, text: &'t str) -> Option<&'t str> {
        let found = self.0.captures(text)?;
        found.get(1).or_else(|| found.get(0)).map(|group| group.as_str())
    }

    /// The named groups of the first match.
    pub(super) fn groups(&self, text: &str) -> Option<Vec<(String, String)>> {
        let found = self.0.captures(text)?;
        let names = self.0.capture_names().flatten();
        Some(names.filter_map(|name| Some((name.to_owned(), found.name(name)?.as_str().to_owned()))).collect())
    }
}

impl TryFrom<String> for Pattern {
    type Error = regex::Error;

    fn try_from(pattern: String) -> Result<Self, Self::Error> {
        Self::parse(&pattern)
    }
}
