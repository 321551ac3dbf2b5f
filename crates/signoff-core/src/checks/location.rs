//! Parses `file:line` as tools print it, and any line that begins with one.

use super::remark::{Remark, RemarkLevel, RemarkList};

/// A location in the code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SourceLocation {
    pub file: String,
    pub line: Option<u32>,
}

impl SourceLocation {
    pub(super) fn new(file: &str, line: Option<u32>) -> Self {
        let file = file.strip_prefix("file://").unwrap_or(file);
        Self { file: file.trim_start_matches("./").to_owned(), line }
    }

    /// Whether it is in a library or a tool. The cause of the error is elsewhere then.
    pub(super) fn is_foreign(&self) -> bool {
        self.file.starts_with("node:") || FOREIGN.iter().any(|part| self.file.contains(part))
    }
}

/// Directories of installed code, and names that interpreters print instead of a file.
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
/// Maximum length of a path.
const LONGEST: usize = 1024;
/// Files without an extension that tools report.
const BARE: [&str; 5] = ["Makefile", "makefile", "GNUmakefile", "Dockerfile", "Justfile"];

/// Parses `file:line` or `file:line:column` at the start of the text. Returns the location and the text after it.
pub(super) fn leading(text: &str) -> Option<(SourceLocation, &str)> {
    let drive = text.get(1..3).is_some_and(|drive| matches!(drive, ":\\" | ":/"));
    let scheme = if text.starts_with("file://") { "file://".len() } else { 0 };
    let from = if drive { 2 } else { scheme };
    let colon = from + text.bytes().skip(from).take(LONGEST).position(|byte| byte == b':')?;
    let (file, behind) = (&text[..colon], &text[colon + 1..]);
    let (line, rest) = number(behind)?;
    let rest = rest.strip_prefix(':').and_then(number).map_or(rest, |(_, rest)| rest);
    (is_path(file) && ends(rest)).then(|| (SourceLocation::new(file, Some(line)), rest))
}

/// Whether the number ends there, unlike in `a.rs:3rd` or `img.png:3/4`.
fn ends(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_'))
}

/// Parses a line number at the start of the text.
pub(super) fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

/// Whether a word is a file name: it has a directory or an extension and is not a URL, time or host.
pub(super) fn is_path(word: &str) -> bool {
    let word = word.strip_prefix("file://").unwrap_or(word);
    let strange = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '<' | '>' | '|' | '*' | '?');
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let ending = name.rsplit_once('.').is_some_and(|(_, end)| end.starts_with(char::is_alphabetic));
    let directory = word.contains(['/', '\\']) && name.contains(char::is_alphanumeric);
    let named = ending || directory || BARE.contains(&name);
    word.len() <= LONGEST && !word.contains(strange) && !word.contains("://") && named
}

/// Parses a line that begins with a location, as compilers, linters and most other tools print it.
pub(super) fn read(line: &str, found: &mut RemarkList) -> bool {
    let Some((place, rest)) = leading(line.trim_start()) else { return false };
    if !rest.starts_with([':', ' ']) {
        return false;
    }
    let (level, message) = RemarkLevel::parse(rest);
    if !message.is_empty() {
        found.push(Remark::new(level, Some(place), message));
    }
    true
}
