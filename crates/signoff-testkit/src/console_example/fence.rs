//! A document as its lines and its fences.

/// One stretch of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block<'a> {
    /// A line outside of all fences.
    Line(&'a str),
    /// What stands between two rows of backticks.
    Fence(Fence<'a>),
}

/// Lines between two rows of backticks, with the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence<'a> {
    /// The first row, as it stands.
    pub opening: &'a str,
    /// What follows the backticks there: a language, and perhaps `file=NAME`.
    pub info: &'a str,
    /// The lines within.
    pub body: Vec<&'a str>,
    /// The last row; none if the document ends before it.
    pub closing: Option<&'a str>,
}

impl<'a> Fence<'a> {
    /// The first word behind the backticks.
    pub fn language(&self) -> &'a str {
        self.info.split_whitespace().next().unwrap_or("")
    }

    /// The file that it is written to before the examples go on.
    pub fn file(&self) -> Option<&'a str> {
        self.info.split_whitespace().find_map(|word| word.strip_prefix("file="))
    }
}

/// The document in its order, nothing left out. Fences within HTML comments are fences, too.
pub fn blocks(document: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        blocks.push(match row(line) {
            Some((row, info)) => Block::Fence(rest_of_fence(line, row, info, &mut lines)),
            None => Block::Line(line),
        });
    }
    blocks
}

fn rest_of_fence<'a>(
    opening: &'a str,
    row: &str,
    info: &'a str,
    lines: &mut impl Iterator<Item = &'a str>,
) -> Fence<'a> {
    let mut body = Vec::new();
    for line in lines {
        if line.trim_end() == row {
            return Fence { opening, info, body, closing: Some(line) };
        }
        body.push(line);
    }
    Fence { opening, info, body, closing: None }
}

/// The backticks of a fence at the start of a line, and what follows them.
fn row(line: &str) -> Option<(&str, &str)> {
    let info = line.trim_start_matches('`');
    let row = line.strip_suffix(info)?;
    (row.len() >= 3).then_some((row, info))
}
