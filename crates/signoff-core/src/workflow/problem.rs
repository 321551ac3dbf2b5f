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
        let offset = error.span().map_or_else(|| self.most_nested(), |span| span.start);
        let mut said = error.message().trim().replace(", expected literal string", "");
        for (jargon, plain) in [
            ("array", "list"),
            ("basic string", "text"),
            ("string values", "texts"),
            ("recursion limit", "nested too deeply"),
        ] {
            said = said.replace(jargon, plain);
        }
        let twice = error.span().filter(|_| said == "duplicate key").and_then(|span| self.text.get(span));
        if let Some(char) = self.control_character(offset) {
            said = format!("a control character, U+{:04X}; expected text without it", u32::from(char));
        } else if let Some(key) = twice {
            said = format!("duplicate key `{}`, write it once", key.trim());
        } else if !said.contains("expected") {
            said = format!("{said}; expected lines such as jobs = 4, preset = \"task\" or [gate]");
        }
        self.at(offset, format!("this is not TOML: {said}"))
    }

    /// What people do not see in the line where a reader stumbles.
    fn control_character(&self, offset: usize) -> Option<char> {
        let line = self.text.lines().nth(self.line(offset) - 1)?;
        line.chars().find(|char| char.is_control() && !matches!(char, '\t' | '\r'))
    }

    /// Where the reader gives up without saying where: only what is nested too deeply makes it do so.
    fn most_nested(&self) -> usize {
        let depth = |line: &str| line.bytes().filter(|byte| b"[{.".contains(byte)).count();
        let deepest = self.text.lines().max_by_key(|line| depth(line));
        deepest.and_then(|line| self.text.find(line)).unwrap_or(0)
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

/// How many letters have to be changed, added, left out or swapped with their neighbour. A key is short; a long
/// text is near to nothing.
fn distance(left: &str, right: &str) -> usize {
    if left.len() > 64 {
        return usize::MAX;
    }
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for (at, a) in left.iter().enumerate() {
        let mut row = vec![at + 1];
        for (column, b) in right.iter().enumerate() {
            let changed = rows[at][column] + usize::from(a != b);
            let best = changed.min(rows[at][column + 1] + 1).min(row[column] + 1);
            let swaps = at > 0 && column > 0 && left[at - 1] == *b && right[column - 1] == *a;
            row.push(if swaps { best.min(rows[at - 1][column - 1] + 1) } else { best });
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

/// `a, b or c`.
pub fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
