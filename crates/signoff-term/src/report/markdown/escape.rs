//! Text of agents as Markdown that GitHub makes nothing of. Text that Markdown would read stands in code, so that it is
//! the agent's own, character by character, also in the source.

use signoff_core::merge::render::plain_text::{one_line, visible};

use crate::fit::shorten;

/// Keeps what stands before it and what follows it apart without being seen. Escaping does not help against mentions and
/// references: they are looked for in what is shown.
const APART: char = '\u{200b}';

/// One line of at most so many columns, outside of tables.
pub fn line(text: &str, columns: usize) -> String {
    plain_or_code(&shorten(one_line(text), columns), str::to_owned)
}

/// The same in a cell of a table, where a bar must be escaped also in code.
pub fn cell(text: &str, columns: usize) -> String {
    let text = shorten(one_line(text), columns);
    // Readers disagree about a backslash before such a bar.
    if text.contains("\\|") { escaped(&text) } else { plain_or_code(&text, |code| code.replace('|', "\\|")) }
}

/// The text itself where Markdown makes nothing of it, else as code.
fn plain_or_code(text: &str, in_code: impl Fn(&str) -> String) -> String {
    let text = text.trim();
    if text.is_empty() || is_plain(text) { text.to_owned() } else { in_code(&span(text)) }
}

fn is_plain(text: &str) -> bool {
    escaped(text) == text
}

/// A code span that the text cannot end.
fn span(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// One line of ours, in which commands stand between backticks; all else in it is data.
pub fn ours(text: &str, columns: usize) -> String {
    let text = shorten(one_line(text), columns);
    let parts: Vec<&str> = text.split('`').collect();
    // A pair that was cut apart makes no code.
    if parts.len().is_multiple_of(2) {
        return escaped(&text);
    }
    let part = |(at, part): (usize, &&str)| if at.is_multiple_of(2) { escaped(part) } else { code(part) };
    parts.iter().enumerate().map(part).collect()
}

/// Paragraphs as they were written, at most so many bytes of them, each line behind the same indent: as they are where
/// each is one line that Markdown makes nothing of, else in a block of code.
pub fn paragraphs(text: &str, most: usize, indent: &str) -> String {
    let text = visible(text);
    let text = cut_to(text.trim_matches('\n').trim_end(), most);
    let is_block = |block: &str| block.trim() == block && !block.contains('\n') && is_plain(block);
    if text.trim().is_empty() {
        return String::new();
    }
    let shown = if text.split("\n\n").all(is_block) { text + "\n" } else { fenced(&text) };
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("{indent}{line}\n") };
    shown.lines().map(line).collect()
}

/// At most so many bytes of a text; what is cut off is marked.
fn cut_to(text: &str, most: usize) -> String {
    let kept = text.char_indices().take_while(|(at, _)| *at < most).map(|(_, c)| c).collect::<String>();
    if kept.len() < text.len() { kept + "…" } else { kept }
}

/// A place, as code.
pub fn code(place: &str) -> String {
    let place = shorten(one_line(place), 200);
    let place = place.trim();
    if place.is_empty() { String::new() } else { span(place) }
}

/// The same in a cell of a table.
pub fn code_cell(place: &str) -> String {
    let is_odd = place.contains("\\|");
    if is_odd { escaped(&shorten(one_line(place), 200)) } else { code(place).replace('|', "\\|") }
}

/// Within an element of ours, where Markdown is not read.
pub fn in_html(text: &str, columns: usize) -> String {
    let text = shorten(one_line(text), columns);
    let mut out = String::with_capacity(text.len());
    for (c, before, next) in neighbours(&text) {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            _ => unlinked(&mut out, c, before, next),
        }
    }
    out
}

/// Lines in a block of code whose fence none of them can close.
pub fn fenced(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", visible(text).trim_end())
}

fn escaped(text: &str) -> String {
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let mut out = String::with_capacity(text.len() + 8);
    for (at, (c, before, next)) in neighbours(text).enumerate() {
        let is_within_word = ends_alphanumeric(before) && next.is_some_and(char::is_alphanumeric);
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '_' if is_within_word => out.push('_'),
            '!' if next != Some('[') => out.push('!'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' | '^' | '{' | '}' | '!' => {
                out.extend(['\\', c])
            }
            // A slash that begins a line gives GitLab an order: `/merge`.
            '-' | '+' | '=' | ':' | '/' if at == 0 => out.extend(['\\', c]),
            '.' | ')' if digits > 0 && at == digits => out.extend(['\\', c]),
            '#' => {
                out.push('\\');
                unlinked(&mut out, c, before, next);
            }
            _ => unlinked(&mut out, c, before, next),
        }
    }
    out
}

/// Adds a character so that nobody is called, and nothing linked: `@name`, `#12`, `GH-12`, `https://…`, `www.…`.
fn unlinked(out: &mut String, c: char, before: &str, next: Option<char>) {
    let is_number = next.is_some_and(|next| next.is_ascii_digit());
    let follows = |word: &str| {
        let start = before.len().checked_sub(word.len()).and_then(|start| before.get(start..));
        start.is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    if c == '.' && follows("www") {
        out.push(APART);
    }
    out.push(c);
    let links = match c {
        '@' => true,
        '#' => is_number,
        '-' => is_number && follows("gh"),
        ':' => next == Some('/'),
        _ => false,
    };
    if links {
        out.push(APART);
    }
}

/// Each character with the text before it and the one after it.
fn neighbours(text: &str) -> impl Iterator<Item = (char, &str, Option<char>)> {
    text.char_indices().map(|(at, c)| (c, &text[..at], text[at + c.len_utf8()..].chars().next()))
}

fn ends_alphanumeric(text: &str) -> bool {
    text.chars().next_back().is_some_and(char::is_alphanumeric)
}
