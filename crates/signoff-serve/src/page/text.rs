//! Renders untrusted text: it cannot contain markup, control characters, or reorder the text around it.

use maud::{Markup, PreEscaped, html};
use signoff_core::merge::render::plain_text::visible;
use signoff_term::fit::{count, truncate_line};

/// Maximum size of a text that is shown expanded.
const EXPANDED_BYTES: usize = 1_200;

/// Maximum size of the collapsed rest.
const COLLAPSED_BYTES: usize = 64 * 1024;

/// Maximum width of a single line.
const MAX_LINE_WIDTH: usize = 300;

/// One line, isolated from text in the other writing direction.
pub fn line(text: &str) -> Markup {
    html! { bdi { (truncate_line(text, MAX_LINE_WIDTH)) } }
}

/// One line in a monospaced font: a path, a branch, a commit.
pub fn code(text: &str) -> Markup {
    html! { code { bdi { (truncate_line(text, MAX_LINE_WIDTH)) } } }
}

/// The first characters of a commit.
pub fn commit(text: &str) -> Markup {
    let short: String = text.chars().take(10).collect();
    code(&short)
}

/// A text with its line breaks. The rest of a long text is collapsed behind "Show all", and cut at a maximum. The id
/// keeps it expanded across updates, so it must not depend on the position in a list.
pub fn prose(text: &str, id: &str) -> Markup {
    let text = visible(text.trim_end());
    let (first, rest) = split_at_char(&text, EXPANDED_BYTES);
    let (rest, left_out) = split_at_char(rest, COLLAPSED_BYTES);
    html! {
        p.prose dir="auto" { (first) @if !rest.is_empty() { "…" } }
        @if !rest.is_empty() {
            details.more id=(id) {
                summary { "Show all" }
                p.prose dir="auto" { "…" (rest) }
                (left_out_note(left_out.len() as u64))
            }
        }
    }
}

/// The note that some bytes are left out.
pub fn left_out_note(left_out: u64) -> Markup {
    if left_out == 0 {
        return PreEscaped(String::new());
    }
    html! { p.hint { "… " (count(left_out, "more byte")) " left out" } }
}

/// Splits at the first character boundary at or after `at`.
pub fn split_at_char(text: &str, at: usize) -> (&str, &str) {
    let end = (at..text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(text.len());
    text.split_at(end.min(text.len()))
}

/// The last `bytes` bytes, starting at a character boundary, and the number of bytes before them.
pub fn tail(text: &str, bytes: usize) -> (u64, &str) {
    let (before, last) = split_at_char(text, text.len().saturating_sub(bytes));
    (before.len() as u64, last)
}

/// Replaces underscores with spaces.
pub fn spaced(text: &str) -> String {
    text.replace('_', " ")
}

/// Percent-encodes a text as one path segment.
pub fn segment(text: &str) -> String {
    let mut path = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path
}
