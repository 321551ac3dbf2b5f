//! A Markdown page that stays below GitHub's size limit and lists what it had to omit, and the escaping of text from
//! agents in it: text with Markdown syntax becomes code, so that it stays unchanged even in the source.

use signoff_core::merge::render::markdown_text::{LineChar, code_span, fenced, line_chars, plain_or_code};
use signoff_core::merge::render::plain_text::{one_line, visible};

use crate::fit::truncate;

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
        let mut shown = 0;
        let mut omitted = 0;
        for (until, item) in items {
            let head = if shown == 0 { head } else { "" };
            let more = head.len() + item.len() + foot.len();
            if omitted == 0 && self.has_room(more) && self.text.len() + more <= until {
                self.text.push_str(head);
                self.text.push_str(&item);
                shown += 1;
            } else {
                omitted += 1;
            }
        }
        if shown > 0 {
            self.text.push_str(foot);
        }
        if omitted > 0 {
            self.omitted.push((what, omitted));
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
                match sums.iter_mut().find(|(other, _)| other == what) {
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
    plain_or_code(truncate(one_line(text), columns).trim(), is_plain)
}

/// One line in a table cell, where `|` must be escaped even in code.
pub fn cell(text: &str, columns: usize) -> String {
    let text = truncate(one_line(text), columns);
    // Markdown parsers disagree about a backslash before an escaped `|`.
    if text.contains("\\|") { escaped(&text) } else { plain_or_code(text.trim(), is_plain).replace('|', "\\|") }
}

fn is_plain(text: &str) -> bool {
    escaped(text) == text
}

/// One line of our own text, in which only commands between backticks are Markdown.
pub fn own_line(text: &str, columns: usize) -> String {
    let text = truncate(one_line(text), columns);
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
pub fn code(location: &str) -> String {
    code_span(truncate(one_line(location), 200).trim())
}

/// A source location in a table cell.
pub fn code_cell(location: &str) -> String {
    let is_odd = location.contains("\\|");
    if is_odd { escaped(&truncate(one_line(location), 200)) } else { code(location).replace('|', "\\|") }
}

/// One line within an HTML element, where Markdown is not parsed.
pub fn in_html(text: &str, columns: usize) -> String {
    let text = truncate(one_line(text), columns);
    let mut out = String::with_capacity(text.len());
    for line_char in line_chars(&text) {
        match html_entity(line_char.c) {
            Some(entity) => out.push_str(entity),
            None => push_unlinked(&mut out, &line_char),
        }
    }
    out
}

fn html_entity(c: char) -> Option<&'static str> {
    match c {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        _ => None,
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for line_char in line_chars(text) {
        if let Some(entity) = html_entity(line_char.c) {
            out.push_str(entity);
            continue;
        }
        let is_special = match line_char.c {
            '^' | '{' | '}' | '#' => true,
            '!' => line_char.next == Some('['),
            // GitLab runs a line that starts with a slash as a command: `/merge`.
            '/' => line_char.before.is_empty(),
            _ => line_char.is_syntax,
        };
        if is_special {
            out.push('\\');
        }
        if is_special && line_char.c != '#' {
            out.push(line_char.c);
        } else {
            push_unlinked(&mut out, &line_char);
        }
    }
    out
}

/// Appends a character so that no mention or link results: `@name`, `#12`, `GH-12`, `https://…`, `www.…`.
fn push_unlinked(out: &mut String, line_char: &LineChar<'_>) {
    let is_number = line_char.next.is_some_and(|next| next.is_ascii_digit());
    let follows = |word: &str| {
        let start = line_char.before.len().checked_sub(word.len()).and_then(|start| line_char.before.get(start..));
        start.is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    if line_char.c == '.' && follows("www") {
        out.push(ZERO_WIDTH_SPACE);
    }
    out.push(line_char.c);
    let links = match line_char.c {
        '@' => true,
        '#' => is_number,
        '-' => is_number && follows("gh"),
        ':' => line_char.next == Some('/'),
        _ => false,
    };
    if links {
        out.push(ZERO_WIDTH_SPACE);
    }
}
