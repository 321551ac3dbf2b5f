//! Text of agents as Markdown that shows it as it is, and that GitHub makes nothing of.

use signoff_core::merge::render::plain_text::{one_line, visible};

use crate::fit::shorten;

/// Keeps what stands before it and what follows it apart without being seen. Escaping does not help against mentions and
/// references: they are looked for in what is shown.
const APART: char = '\u{200b}';

/// One line of at most so many columns.
pub fn line(text: &str, columns: usize) -> String {
    escaped(&shorten(one_line(text), columns))
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

/// Paragraphs as they were written, at most so many bytes of them, each line behind the same indent.
pub fn paragraphs(text: &str, most: usize, indent: &str) -> String {
    let (mut out, mut is_apart) = (String::new(), true);
    for line in visible(text).lines().map(str::trim) {
        if line.is_empty() {
            is_apart = true;
            continue;
        }
        let room = most.saturating_sub(out.len());
        let kept: String = line.char_indices().take_while(|(at, _)| *at < room).map(|(_, c)| c).collect();
        // Each line of an agent stays one; two spaces at its end would do the same unseen.
        let before = match (out.is_empty(), is_apart) {
            (true, _) => "",
            (false, true) => "\n\n",
            (false, false) => "\\\n",
        };
        let is_cut = kept.len() < line.len();
        out.push_str(&format!("{before}{indent}{}{}", escaped(&kept), if is_cut { "…" } else { "" }));
        if is_cut {
            break;
        }
        is_apart = false;
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// A place as code where it is a plain one.
pub fn code(place: &str) -> String {
    let place = shorten(one_line(place), 200);
    let is_plain = |c: char| c.is_alphanumeric() || " /._-:+()".contains(c);
    let links = place.contains("://") || place.to_lowercase().contains("www.");
    if !place.is_empty() && place.chars().all(is_plain) && !links {
        format!("`{place}`")
    } else {
        escaped(&place)
    }
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
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
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
