//! The building blocks of Markdown documents: code spans, fences, and the characters that Markdown interprets.

use super::plain_text::visible;

/// A character of a line with its surroundings.
pub struct LineChar<'a> {
    pub c: char,
    pub before: &'a str,
    pub next: Option<char>,
    /// Whether every Markdown renderer interprets the character here: as emphasis, link, HTML, code or list.
    pub is_syntax: bool,
}

/// The characters of a line that starts a block.
pub fn line_chars(line: &str) -> impl Iterator<Item = LineChar<'_>> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    line.char_indices().map(move |(at, c)| {
        let (before, next) = (&line[..at], line[at + c.len_utf8()..].chars().next());
        let is_within_word = || {
            let follows_word = before.chars().next_back().is_some_and(char::is_alphanumeric);
            follows_word && next.is_some_and(char::is_alphanumeric)
        };
        let is_syntax = match c {
            '<' | '&' | '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '$' => true,
            '_' => !is_within_word(),
            '-' | '+' | '=' | ':' => at == 0,
            '.' | ')' => digits > 0 && at == digits,
            _ => false,
        };
        LineChar { c, before, next, is_syntax }
    })
}

/// Formats a line as code, with more backticks around it than any run of backticks in it.
pub fn code_span(line: &str) -> String {
    let ticks = "`".repeat(longest_ticks(line) + 1);
    let gap = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    if line.is_empty() { String::new() } else { format!("{ticks}{gap}{line}{gap}{ticks}") }
}

/// A code block whose fence is longer than any in the text.
pub fn fenced(text: &str) -> String {
    let fence = fence(text);
    format!("{fence}text\n{}\n{fence}\n", visible(text).trim_end())
}

/// The text itself if it is plain, otherwise as code.
pub fn plain_or_code(text: &str, is_plain: impl Fn(&str) -> bool) -> String {
    if is_plain(text) { text.to_owned() } else { code_span(text) }
}

/// The line that opens and closes a code block with this text: longer than any run of backticks in it.
pub fn fence(text: &str) -> String {
    "`".repeat(longest_ticks(text).max(2) + 1)
}

/// The length of the longest run of backticks.
fn longest_ticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
