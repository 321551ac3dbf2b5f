//! `file:line` as tools print it, and any line that begins with one.

use super::remark::{Found, Level, Remark};

/// A place in the code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub file: String,
    pub line: Option<u32>,
}

impl Place {
    pub(super) fn of(file: &str, line: Option<u32>) -> Self {
        let file = file.strip_prefix("file://").unwrap_or(file);
        Self { file: file.trim_start_matches("./").to_owned(), line }
    }

    /// Whether it is in a library or a tool: an error that shows there is caused elsewhere.
    pub(super) fn is_foreign(&self) -> bool {
        self.file.starts_with("node:") || FOREIGN.iter().any(|part| self.file.contains(part))
    }
}

/// Directories of installed code, and what interpreters print instead of a file.
const FOREIGN: [&str; 8] = [
    "site-packages/",
    "dist-packages/",
    "/lib/python",
    "<",
    "node_modules/",
    "/src/runtime/",
    "/src/testing/",
    "/pkg/mod/",
];
/// Longer words are no paths.
const LONGEST: usize = 1024;
/// Files without an ending that tools complain about.
const BARE: [&str; 5] = ["Makefile", "makefile", "GNUmakefile", "Dockerfile", "Justfile"];

/// Reads `file:line` or `file:line:column` at the start of the text; gives the place and the text behind it.
pub(super) fn leading(text: &str) -> Option<(Place, &str)> {
    let drive = text.get(1..3).is_some_and(|drive| matches!(drive, ":\\" | ":/"));
    let scheme = if text.starts_with("file://") { "file://".len() } else { 0 };
    let from = if drive { 2 } else { scheme };
    let colon = from + text.bytes().skip(from).take(LONGEST).position(|byte| byte == b':')?;
    let (file, behind) = (&text[..colon], &text[colon + 1..]);
    let (line, rest) = number(behind)?;
    let rest = rest.strip_prefix(':').and_then(number).map_or(rest, |(_, rest)| rest);
    (is_path(file) && ends(rest)).then(|| (Place::of(file, Some(line)), rest))
}

/// A number must not be the start of something else: `a.rs:3rd`, `img.png:3/4`.
fn ends(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_'))
}

/// The digits at the start of the text, if they are a number of a line.
pub(super) fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

/// Whether a word is the name of a file: it has a directory or an ending, and is no address, time or host.
pub(super) fn is_path(word: &str) -> bool {
    let word = word.strip_prefix("file://").unwrap_or(word);
    let strange =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '<' | '>' | '|' | '*' | '?');
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let ending = name.rsplit_once('.').is_some_and(|(_, end)| end.starts_with(char::is_alphabetic));
    let directory = word.contains(['/', '\\']) && name.contains(char::is_alphanumeric);
    let named = ending || directory || BARE.contains(&name);
    word.len() <= LONGEST && !word.contains(strange) && !word.contains("://") && named
}

/// A line that begins with a place: compilers, linters, and nearly everything else.
pub(super) fn read(line: &str, found: &mut Found) -> bool {
    let Some((place, rest)) = leading(line.trim_start()) else { return false };
    if !rest.starts_with([':', ' ']) {
        return false;
    }
    let (level, message) = Level::said(rest);
    if !message.is_empty() {
        found.push(Remark::of(level, Some(place), message));
    }
    true
}
