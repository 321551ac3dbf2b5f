//! A diagnostic: one message of a tool with its level and location, and the formats that most tools share:
//! `file:line: message`, and the errors of scripts.

use crate::text::shortened;

/// The severity that a tool gives a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiagnosticLevel {
    Error,
    /// No severity word. It is an error if the command failed.
    Unstated,
    Warning,
    Note,
}

/// The severity words of tools, before a message.
const SEVERITY_WORDS: [(DiagnosticLevel, &str); 3] = [
    (DiagnosticLevel::Error, "fatal error|internal compiler error|syntax error|error|fatal|panic"),
    (DiagnosticLevel::Warning, "warning|warn"),
    (DiagnosticLevel::Note, "style|note|remark|info|information|help|hint|suggestion"),
];

impl DiagnosticLevel {
    /// Parses `error: message` and `error TS2322: message` into the level and the message. Text that is not a
    /// severity word stays in the message.
    pub(super) fn parse(text: &str) -> (Self, &str) {
        let text = text.trim_start_matches([':', ' ', '-']).trim_start();
        let matches = |words: &str| words.split('|').find_map(|word| after(text, word));
        SEVERITY_WORDS
            .iter()
            .find_map(|(level, words)| Some((*level, matches(words)?)))
            .unwrap_or((Self::Unstated, text))
    }
}

/// The text after the word and its `:`. After a word and a code, the code is included.
fn after<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let (head, rest) = text.split_at_checked(word.len())?;
    if !head.eq_ignore_ascii_case(word) {
        return None;
    }
    let coded = rest.strip_prefix(' ').filter(|rest| {
        let code = rest.split(':').next().unwrap_or_default();
        code.len() < rest.len() && code.len() <= 12 && code.ends_with(|c: char| c.is_ascii_digit())
    });
    rest.strip_prefix(':').or(coded).map(str::trim_start)
}

/// One message of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Diagnostic {
    pub level: DiagnosticLevel,
    pub location: Option<SourceLocation>,
    pub message: String,
    pub suggestion: Option<String>,
}

impl Diagnostic {
    pub(super) fn new(level: DiagnosticLevel, location: Option<SourceLocation>, message: &str) -> Self {
        let message = if message.trim().is_empty() { "no message" } else { message };
        Self { level, location, message: clipped(message), suggestion: None }
    }

    pub(super) fn error(location: SourceLocation, message: &str) -> Self {
        Self::new(DiagnosticLevel::Error, Some(location), message)
    }

    /// An error without a location.
    pub(super) fn without_location(message: &str) -> Self {
        Self::new(DiagnosticLevel::Error, None, message)
    }

    pub(super) fn file_and_line(&self) -> (Option<String>, Option<u32>) {
        self.location.clone().map_or((None, None), |location| (Some(location.file), location.line))
    }
}

/// Adds a diagnostic if there is one. Returns whether there is.
pub(super) fn push_if_some(diagnostic: Option<Diagnostic>, found: &mut Vec<Diagnostic>) -> bool {
    let is_found = diagnostic.is_some();
    found.extend(diagnostic);
    is_found
}

/// Maximum characters of a message. A minified file can be one line of a megabyte.
const MAX_MESSAGE_CHARS: usize = 1_000;

pub(super) fn clipped(text: &str) -> String {
    shortened(text.trim(), MAX_MESSAGE_CHARS)
}

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
    pub(super) fn is_third_party(&self) -> bool {
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
const LONGEST_PATH: usize = 1024;
/// Files without an extension that tools report.
const NAMES_WITHOUT_EXTENSION: [&str; 5] = ["Makefile", "makefile", "GNUmakefile", "Dockerfile", "Justfile"];

/// Parses `file:line` or `file:line:column` at the start of the text. Returns the location and the text after it.
pub(super) fn parse_location_prefix(text: &str) -> Option<(SourceLocation, &str)> {
    let drive = text.get(1..3).is_some_and(|drive| matches!(drive, ":\\" | ":/"));
    let scheme = if text.starts_with("file://") { "file://".len() } else { 0 };
    let from = if drive { 2 } else { scheme };
    let colon = from + text.bytes().skip(from).take(LONGEST_PATH).position(|byte| byte == b':')?;
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
    let named = ending || directory || NAMES_WITHOUT_EXTENSION.contains(&name);
    word.len() <= LONGEST_PATH && !word.contains(strange) && !word.contains("://") && named
}

/// Parses a line that begins with a location, as compilers, linters and most other tools print it.
pub(super) fn read_located(line: &str, found: &mut Vec<Diagnostic>) -> bool {
    let Some((location, rest)) = parse_location_prefix(line.trim_start()) else { return false };
    if !rest.starts_with([':', ' ']) {
        return false;
    }
    let (level, message) = DiagnosticLevel::parse(rest);
    if !message.is_empty() {
        found.push(Diagnostic::new(level, Some(location), message));
    }
    true
}

/// Parses `script: 3: message` of dash and `script: line 3: message` of bash.
pub(super) fn shell(line: &str) -> Option<Diagnostic> {
    let (file, rest) = line.split_once(": ")?;
    let (at, rest) = number(rest.strip_prefix("line ").unwrap_or(rest))?;
    let message = rest.strip_prefix(": ").filter(|_| is_path(file))?;
    Some(Diagnostic::error(SourceLocation::new(file, Some(at)), message))
}

/// Parses `message at script line 3.`, optionally followed by `, near "…"`.
pub(super) fn perl(line: &str) -> Option<Diagnostic> {
    let (head, rest) = line.rsplit_once(" line ")?;
    let (message, file) = head.rsplit_once(" at ")?;
    let (at, rest) = number(rest)?;
    let location = rest.starts_with(['.', ',']) && is_path(file);
    location.then(|| Diagnostic::error(SourceLocation::new(file, Some(at)), message))
}
