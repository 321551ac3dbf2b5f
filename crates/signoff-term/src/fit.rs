//! Truncates, wraps and pads untrusted text to a number of terminal columns.

use std::fmt::Display;

use jiff::Timestamp;
use signoff_core::merge::render::plain_text::one_line;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Maximum width of a finding, a question or an agent's line within a longer line.
pub const MAX_SENTENCE_WIDTH: usize = 100;

/// Joins the text into one clean line of at most `columns` columns; a truncated line ends with `…`.
pub fn truncate_line(text: &str, columns: usize) -> String {
    // Fast path: most text is plain, and lists are long.
    if text.len() <= columns && is_plain(text) {
        return text.to_owned();
    }
    truncate(one_line(text), columns)
}

/// Whether the text is printable ASCII on one line without double spaces: one column per byte, nothing to clean.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let printable = bytes.iter().all(|byte| (b' '..=b'~').contains(byte));
    printable && !text.contains("  ") && !text.starts_with(' ') && !text.ends_with(' ')
}

/// Truncates text that is already clean and on one line. Keeps double spaces.
pub fn truncate(text: String, columns: usize) -> String {
    if text.width() <= columns {
        return text;
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < columns
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    // Some characters are wider in combination than alone.
    while !kept.is_empty() && kept.width() >= columns {
        kept.pop();
    }
    kept.trim_end().to_owned() + "…"
}

/// Wraps the text between words into at most `lines` lines of `columns` columns; truncated text ends with `…`.
pub fn wrap(text: &str, columns: usize, lines: usize) -> Vec<String> {
    let mut wrapped: Vec<String> = Vec::new();
    for word in one_line(text).split_whitespace() {
        match wrapped.last_mut().filter(|line| self::columns(line) + 1 + self::columns(word) <= columns) {
            Some(line) => *line = format!("{line} {word}"),
            None => wrapped.push(truncate(word.to_owned(), columns)),
        }
    }
    if wrapped.len() > lines {
        wrapped.truncate(lines);
        wrapped.iter_mut().skip(lines.saturating_sub(1)).for_each(|last| {
            *last = truncate(format!("{last} …"), columns);
        });
    }
    wrapped
}

/// The width of the text in terminal columns.
pub fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// Pads with spaces to `columns` columns. Wide characters count as two.
pub fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(self::columns(text));
    let mut padded = String::with_capacity(text.len() + missing);
    padded.push_str(text);
    padded.extend(std::iter::repeat_n(' ', missing));
    padded
}

/// Lays out rows in columns, two spaces apart. `is_number` tells which columns are right-aligned.
pub fn align_rows(rows: &[Vec<String>], is_number: impl Fn(usize) -> bool) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell)).max();
    let widths: Vec<usize> = (0..count).map(|column| wide(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match is_number(column) {
            true => " ".repeat(width.saturating_sub(columns(cell))) + cell,
            false => pad(cell, *width),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// `$0.12`, or `~$0.12` if it is computed from list prices.
pub fn dollars(usd: f64, is_estimated: bool) -> String {
    format!("{}${usd:.2}", if is_estimated { "~" } else { "" })
}

/// `1 cycle`, `2 cycles`.
pub fn count(number: impl Into<u64>, word: &str) -> String {
    match number.into() {
        1 => format!("1 {word}"),
        number => format!("{number} {word}s"),
    }
}

/// `2 open, 1 fixed`: the numbers that are not zero.
pub fn counts<N, W>(counts: impl IntoIterator<Item = (N, W)>) -> String
where
    N: Display + Default + PartialEq,
    W: Display,
{
    let counts = counts.into_iter().filter(|(number, _)| *number != N::default());
    counts.map(|(number, word)| format!("{number} {word}")).collect::<Vec<_>>().join(", ")
}

/// The first names, and the number of the others: `#1, #2 and 3 more`.
pub fn first(names: &[String], max: usize) -> String {
    let more = names.len().saturating_sub(max);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names[..names.len().min(max)].join(", "))
}

/// Joins the parts that are not empty.
pub fn join(parts: impl IntoIterator<Item = String>, between: &str) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(between)
}

/// The text with its first letter in upper case.
pub fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

/// `2026-01-29 10:00:00`, UTC; a text that is no timestamp stays as it is.
pub fn timestamp(text: &str) -> String {
    let time = text.parse::<Timestamp>().map(|time| time.strftime("%Y-%m-%d %H:%M:%S").to_string());
    time.unwrap_or_else(|_| truncate_line(text, 40))
}

/// `450ms`, `20s`, `1m 20s`, `2h 05m`.
pub fn format_duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0 => format!("{milliseconds}ms"),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_text_fits_and_ends_with_an_ellipsis() {
        assert_eq!(truncate_line("Add login", 9), "Add login");
        assert_eq!(truncate_line("Add a login form", 9), "Add a lo…");
        assert_eq!(truncate_line("Add a login form", 7), "Add a…");
        assert_eq!(truncate_line("two\n lines\x1b[31m", 40), "two lines␛[31m");
        assert_eq!(truncate_line(" a  b ", 9), "a b");
        assert_eq!(truncate_line("漢字漢字", 5), "漢字…");
        assert_eq!(truncate_line("❤️❤️❤️❤️", 5), "❤️❤️…");
        assert_eq!(pad("漢字", 6), "漢字  ");
        assert_eq!(wrap("One more fix and review?", 10, 3), ["One more", "fix and", "review?"]);
        assert_eq!(wrap("One more fix and review?", 10, 2), ["One more", "fix and …"]);
        assert_eq!(wrap("漢字漢字漢字\nand", 6, 9), ["漢字…", "and"]);
        assert_eq!(wrap("One more", 10, 0), [""; 0]);
    }
}
