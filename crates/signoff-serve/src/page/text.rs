//! Text of unknown origin on a page: nothing in it is markup, steers anything or reorders what stands beside it.

use maud::{Markup, PreEscaped, html};
use signoff_core::merge::render::plain_text::visible;
use signoff_term::fit::{count, cut};

/// How much of a long text is shown before somebody asks for the rest.
const AT_ONCE: usize = 1_200;

/// How much of it a page holds at all.
const AT_ALL: usize = 64 * 1024;

/// How wide one line within others may be.
const LINE: usize = 300;

/// One line, set apart from what is written in the other direction.
pub fn line(text: &str) -> Markup {
    html! { bdi { (cut(text, LINE)) } }
}

/// A path, a branch, a commit: one line in letters of one width.
pub fn code(text: &str) -> Markup {
    html! { code { bdi { (cut(text, LINE)) } } }
}

/// The first characters of a commit.
pub fn commit(text: &str) -> Markup {
    let short: String = text.chars().take(10).collect();
    code(&short)
}

/// A text with its line breaks; what is long is behind "show all", what is endless is left out. Whoever has unfolded it
/// finds it so after an update: by its id, which belongs to the place and not to its number in a list.
pub fn prose(text: &str, id: &str) -> Markup {
    let text = visible(text.trim_end());
    let (first, rest) = split(&text, AT_ONCE);
    let (rest, left_out) = split(rest, AT_ALL);
    html! {
        p.prose dir="auto" { (first) @if !rest.is_empty() { "…" } }
        @if !rest.is_empty() {
            details.more id=(id) {
                summary { "Show all" }
                p.prose dir="auto" { "…" (rest) }
                (more(left_out.len() as u64))
            }
        }
    }
}

/// Says how much is not there.
pub fn more(left_out: u64) -> Markup {
    if left_out == 0 {
        return PreEscaped(String::new());
    }
    html! { p.hint { "… " (count(left_out, "more byte")) " left out" } }
}

/// After so many bytes, at the next end of a character.
pub fn split(text: &str, at: usize) -> (&str, &str) {
    let end = (at..text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(text.len());
    text.split_at(end.min(text.len()))
}

/// The last so many bytes, from the beginning of a character on, and how many come before them.
pub fn tail(text: &str, bytes: usize) -> (u64, &str) {
    let (before, last) = split(text, text.len().saturating_sub(bytes));
    (before.len() as u64, last)
}

/// A word of ours with its underscores as spaces.
pub fn spaced(word: &str) -> String {
    word.replace('_', " ")
}

/// Some text as one segment of a path.
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
