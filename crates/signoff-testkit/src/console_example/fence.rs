//! Splits a Markdown document into lines and fenced blocks.

/// One block of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkdownBlock<'a> {
    /// A line outside any fence.
    Line(&'a str),
    /// A fenced block.
    Fence(MarkdownFence<'a>),
}

/// A fenced block with its delimiters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownFence<'a> {
    /// The opening line.
    pub opening: &'a str,
    /// The info string: a language, and optionally `file=NAME`.
    pub info: &'a str,
    /// The lines inside.
    pub body: Vec<&'a str>,
    /// The closing line; `None` if the document ends before it.
    pub closing: Option<&'a str>,
}

impl<'a> MarkdownFence<'a> {
    /// The first word of the info string.
    pub fn language(&self) -> &'a str {
        self.info.split_whitespace().next().unwrap_or("")
    }

    /// The name of the file that the block is written to.
    pub fn file(&self) -> Option<&'a str> {
        self.info.split_whitespace().find_map(|word| word.strip_prefix("file="))
    }
}

/// All blocks of the document, in order. Fences inside HTML comments count, too.
pub fn blocks(document: &str) -> Vec<MarkdownBlock<'_>> {
    let mut blocks = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        blocks.push(match fence_delimiter(line) {
            Some((row, info)) => MarkdownBlock::Fence(parse_fence(line, row, info, &mut lines)),
            None => MarkdownBlock::Line(line),
        });
    }
    blocks
}

fn parse_fence<'a>(
    opening: &'a str,
    delimiter: &str,
    info: &'a str,
    lines: &mut impl Iterator<Item = &'a str>,
) -> MarkdownFence<'a> {
    let mut body = Vec::new();
    for line in lines {
        if line.trim_end() == delimiter {
            return MarkdownFence { opening, info, body, closing: Some(line) };
        }
        body.push(line);
    }
    MarkdownFence { opening, info, body, closing: None }
}

/// The backticks at the start of a line, and the info string.
fn fence_delimiter(line: &str) -> Option<(&str, &str)> {
    let info = line.trim_start_matches('`');
    let row = line.strip_suffix(info)?;
    (row.len() >= 3).then_some((row, info))
}
