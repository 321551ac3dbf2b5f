//! What is wrong with a workflow, where, and what was expected.

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
        WorkflowError { file: self.file.to_owned(), line: self.line(offset), message: message.into() }
    }

    /// What the TOML reader says, with its line.
    pub fn unreadable(&self, error: &toml::de::Error) -> WorkflowError {
        let offset = error.span().map_or(0, |span| span.start);
        let mut said = error.message().trim().replace(", expected literal string", "");
        for (jargon, plain) in [("array", "list"), ("basic string", "text"), ("string values", "texts")] {
            said = said.replace(jargon, plain);
        }
        let twice = error.span().filter(|_| said == "duplicate key").and_then(|span| self.text.get(span));
        let key = twice.map(|key| format!(" `{}`", key.trim())).unwrap_or_default();
        self.at(offset, format!("this is not TOML: {said}{key}"))
    }

    /// The end of a file that ends with a newline still belongs to its last line.
    fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        line.min(self.text.lines().count().max(1))
    }
}

/// The word that somebody who wrote `written` may have meant.
pub fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let allowed = if written.chars().count() < 5 { 1 } else { 2 };
    let candidates = known.iter().map(|word| (distance(written, word), *word));
    candidates.filter(|(edits, _)| *edits <= allowed).min().map(|(_, word)| word)
}

/// How many letters have to be changed, added or left out. A key is short; a long text is near to nothing.
fn distance(left: &str, right: &str) -> usize {
    if left.len() > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=right.chars().count()).collect();
    for (at, a) in left.chars().enumerate() {
        let mut previous = vec![at + 1];
        for (column, (b, pair)) in right.chars().zip(row.windows(2)).enumerate() {
            let (diagonal, above) = (pair[0], pair[1]);
            let beside = previous[column];
            previous.push((diagonal + usize::from(a != b)).min(above + 1).min(beside + 1));
        }
        row = previous;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

/// `a, b or c`.
pub fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
