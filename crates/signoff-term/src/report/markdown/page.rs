//! A Markdown page that stays below GitHub's size limit and lists what it had to omit, and the escaping of text from
//! agents in it: text with Markdown syntax becomes code, so that it stays unchanged even in the source.

use signoff_core::merge::render::plain_text::{one_line, visible};

use crate::fit::shorten;

/// Maximum size of the body of a pull request. GitHub counts characters; we count bytes, which are never fewer.
pub const LIMIT: usize = 65_536;

/// Bytes reserved for the end of the page.
const RESERVED: usize = 1_000;

/// A Markdown page with a size limit.
#[derive(Default)]
pub struct MarkdownPage {
    text: String,
    /// The end of the page, which is never omitted.
    last: String,
    omitted: Vec<(&'static str, usize)>,
}

impl MarkdownPage {
    /// An empty page that ends with the text of `last`.
    pub fn with_ending(last: Self) -> Self {
        Self { last: last.text, ..Self::default() }
    }

    fn has_room(&self, more: usize) -> bool {
        self.text.len() + more + self.last.len() + RESERVED <= LIMIT
    }

    /// Appends a short text, if there is room.
    pub fn push(&mut self, text: &str) {
        if self.has_room(text.len()) {
            self.text.push_str(text);
        }
    }

    /// Appends as many items as fit, between a head and a foot; nothing if there are none. Each item has the page
    /// size up to which it may be added.
    pub fn list(
        &mut self,
        what: &'static str,
        head: &str,
        foot: &str,
        items: impl IntoIterator<Item = (usize, String)>,
    ) {
        let mut put = 0;
        let mut left = 0;
        for (until, item) in items {
            let head = if put == 0 { head } else { "" };
            let more = head.len() + item.len() + foot.len();
            if left == 0 && self.has_room(more) && self.text.len() + more <= until {
                self.text.push_str(head);
                self.text.push_str(&item);
                put += 1;
            } else {
                left += 1;
            }
        }
        if put > 0 {
            self.text.push_str(foot);
        }
        if left > 0 {
            self.omitted.push((what, left));
        }
    }

    /// A list in a collapsed section with a title.
    pub fn collapsed(&mut self, what: &'static str, title: &str, items: impl IntoIterator<Item = String>) {
        self.collapsed_table(what, title, "", items);
    }

    /// A table in a collapsed section with a title.
    pub fn collapsed_table(
        &mut self,
        what: &'static str,
        title: &str,
        table: &str,
        items: impl IntoIterator<Item = String>,
    ) {
        let title = in_html(title, 200);
        let head = format!("<details><summary>{title}</summary>\n\n{table}");
        let items = items.into_iter().map(|item| (LIMIT, item));
        self.list(what, &head, "\n</details>\n\n", items);
    }

    /// Finishes the page: lists what was omitted, and the command that prints everything.
    pub fn finish(mut self, command: &str) -> String {
        self.text.push_str(&self.last);
        if !self.omitted.is_empty() {
            let mut sums: Vec<(&str, usize)> = Vec::new();
            for (what, number) in &self.omitted {
                match sums.iter_mut().find(|(known, _)| known == what) {
                    Some((_, sum)) => *sum += number,
                    None => sums.push((what, *number)),
                }
            }
            let missing: Vec<_> = sums.iter().map(|(what, number)| format!("{what} ({number})")).collect();
            self.text.push_str(&format!(
                "**Left out**, because a pull request holds 65,536 characters: {}. `{command} --format json` has all.\n\n",
                missing.join(", ")
            ));
        }
        self.text.push_str("<sub>Written by signoff.</sub>\n");
        self.text
    }
}

/// A zero-width space, which breaks mentions and references. Escaping does not help against these, because GitHub
/// searches the rendered text for them.
const ZERO_WIDTH_SPACE: char = '\u{200b}';

/// One line of at most `columns` columns, outside of tables.
pub fn line(text: &str, columns: usize) -> String {
    plain_or_code(&shorten(one_line(text), columns), str::to_owned)
}

/// One line in a table cell, where `|` must be escaped even in code.
pub fn cell(text: &str, columns: usize) -> String {
    let text = shorten(one_line(text), columns);
    // Markdown parsers disagree about a backslash before an escaped `|`.
    if text.contains("\\|") { escaped(&text) } else { plain_or_code(&text, |code| code.replace('|', "\\|")) }
}

/// The text itself if it has no Markdown syntax, otherwise as code.
fn plain_or_code(text: &str, in_code: impl Fn(&str) -> String) -> String {
    let text = text.trim();
    if text.is_empty() || is_plain(text) { text.to_owned() } else { in_code(&span(text)) }
}

fn is_plain(text: &str) -> bool {
    escaped(text) == text
}

/// A code span with enough backticks that the text cannot close it.
fn span(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// One line of our own text, in which only commands between backticks are Markdown.
pub fn own_line(text: &str, columns: usize) -> String {
    let text = shorten(one_line(text), columns);
    let parts: Vec<&str> = text.split('`').collect();
    // Truncation removed a closing backtick.
    if parts.len().is_multiple_of(2) {
        return escaped(&text);
    }
    let part = |(at, part): (usize, &&str)| if at.is_multiple_of(2) { escaped(part) } else { code(part) };
    parts.iter().enumerate().map(part).collect()
}

/// Indented paragraphs of at most `most` bytes: unchanged if each is one line without Markdown syntax, otherwise as a
/// code block.
pub fn paragraphs(text: &str, max_bytes: usize, indent: &str) -> String {
    let text = visible(text);
    let text = truncate_bytes(text.trim_matches('\n').trim_end(), max_bytes);
    let is_block = |block: &str| block.trim() == block && !block.contains('\n') && is_plain(block);
    if text.trim().is_empty() {
        return String::new();
    }
    let shown = if text.split("\n\n").all(is_block) { text + "\n" } else { fenced(&text) };
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("{indent}{line}\n") };
    shown.lines().map(line).collect()
}

/// The first `most` bytes of a text; a truncated text ends with `…`.
fn truncate_bytes(text: &str, max_bytes: usize) -> String {
    let kept = text.char_indices().take_while(|(at, _)| *at < max_bytes).map(|(_, c)| c).collect::<String>();
    if kept.len() < text.len() { kept + "…" } else { kept }
}

/// A source location, as code.
pub fn code(place: &str) -> String {
    let place = shorten(one_line(place), 200);
    let place = place.trim();
    if place.is_empty() { String::new() } else { span(place) }
}

/// A source location in a table cell.
pub fn code_cell(place: &str) -> String {
    let is_odd = place.contains("\\|");
    if is_odd { escaped(&shorten(one_line(place), 200)) } else { code(place).replace('|', "\\|") }
}

/// One line within an HTML element, where Markdown is not parsed.
pub fn in_html(text: &str, columns: usize) -> String {
    let text = shorten(one_line(text), columns);
    let mut out = String::with_capacity(text.len());
    for (c, before, next) in neighbours(&text) {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            _ => push_unlinked(&mut out, c, before, next),
        }
    }
    out
}

/// A code block whose fence is longer than any in the text.
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
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' | '^' | '{' | '}' | '!' => out.extend(['\\', c]),
            // GitLab runs a line that starts with a slash as a command: `/merge`.
            '-' | '+' | '=' | ':' | '/' if at == 0 => out.extend(['\\', c]),
            '.' | ')' if digits > 0 && at == digits => out.extend(['\\', c]),
            '#' => {
                out.push('\\');
                push_unlinked(&mut out, c, before, next);
            }
            _ => push_unlinked(&mut out, c, before, next),
        }
    }
    out
}

/// Appends a character so that no mention or link results: `@name`, `#12`, `GH-12`, `https://…`, `www.…`.
fn push_unlinked(out: &mut String, c: char, before: &str, next: Option<char>) {
    let is_number = next.is_some_and(|next| next.is_ascii_digit());
    let follows = |word: &str| {
        let start = before.len().checked_sub(word.len()).and_then(|start| before.get(start..));
        start.is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    if c == '.' && follows("www") {
        out.push(ZERO_WIDTH_SPACE);
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
        out.push(ZERO_WIDTH_SPACE);
    }
}

/// Each character with the text before it and the character after it.
fn neighbours(text: &str) -> impl Iterator<Item = (char, &str, Option<char>)> {
    text.char_indices().map(|(at, c)| (c, &text[..at], text[at + c.len_utf8()..].chars().next()))
}

fn ends_alphanumeric(text: &str) -> bool {
    text.chars().next_back().is_some_and(char::is_alphanumeric)
}
