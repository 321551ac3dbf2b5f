//! What is wrong with a workflow, where, and what was expected.

use std::ops::Range;

/// An error in a workflow file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct WorkflowError {
    pub file: String,
    /// Counted from one.
    pub line: usize,
    pub message: String,
}

/// The text an error points into.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Place<'_> {
    /// An error at a byte offset.
    pub fn at(&self, offset: usize, message: impl Into<String>) -> WorkflowError {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        WorkflowError { file: self.file.to_owned(), line, message: message.into() }
    }

    /// An error at a key's line within a table, or at the table where the key is not written.
    pub fn at_key(&self, table: &Range<usize>, key: &str, message: impl Into<String>) -> WorkflowError {
        self.at(self.offset_of(table, key).unwrap_or(table.start), message)
    }

    /// What the TOML reader says, with its line.
    pub fn unreadable(&self, error: &toml::de::Error) -> WorkflowError {
        let offset = error.span().map_or(0, |span| span.start);
        self.at(offset, error.message().trim().to_owned())
    }

    fn offset_of(&self, table: &Range<usize>, key: &str) -> Option<usize> {
        let end = self.end_of(table);
        let text = self.text.get(table.start..end)?;
        let starts_key = |at: usize| {
            let before = text.get(..at).unwrap_or("").trim_end_matches([' ', '\t']);
            let after = text.get(at + key.len()..).unwrap_or("").trim_start_matches([' ', '\t']);
            (before.is_empty() || before.ends_with(['\n', '{', ','])) && after.starts_with('=')
        };
        text.match_indices(key).map(|(at, _)| at).find(|at| starts_key(*at)).map(|at| table.start + at)
    }

    /// A `[[phases]]` header's span may cover the header alone: its keys run on to the next header.
    fn end_of(&self, table: &Range<usize>) -> usize {
        let rest = self.text.get(table.end..).unwrap_or("");
        let header = self.text.get(table.clone()).is_some_and(|text| text.starts_with('['));
        if header { rest.find("\n[").map_or(self.text.len(), |at| table.end + at) } else { table.end }
    }
}
