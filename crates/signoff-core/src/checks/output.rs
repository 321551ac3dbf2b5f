//! Reads the output of a command line by line with the parsers of all tools, after removing colours and the working
//! directory. A document in SARIF 2.1.0 may be the whole output, or start at one of its lines.

use std::collections::BTreeMap;

use serde_json::Value;

use super::diagnostic::{self, Diagnostic, DiagnosticLevel, SourceLocation, push_if_some};
use super::go::Go;
use super::javascript;
use super::javascript::{Eslint, JavaScript, Tap};
use super::python::{Pytest, Traceback};
use super::rust::{Libtest, Rust};

/// The parsers, with their state.
#[derive(Default)]
struct Readers {
    rust: Rust,
    libtest: Libtest,
    pytest: Pytest,
    traceback: Traceback,
    eslint: Eslint,
    go: Go,
    javascript: JavaScript,
    tap: Tap,
}

impl Readers {
    /// Offers a line to each parser in turn until one accepts it. The least specific parsers come last.
    fn read(&mut self, line: &str, found: &mut Vec<Diagnostic>) {
        let _taken = self.rust.read(line, found)
            || self.libtest.read(line, found)
            || self.pytest.read(line, found)
            || self.traceback.read(line, found)
            || self.eslint.read(line, found)
            || self.go.read(line, found)
            || self.tap.read(line, found)
            || self.javascript.read(line, found)
            || push_if_some(javascript::compiler_error(line), found)
            || diagnostic::read_located(line, found)
            || push_if_some(diagnostic::shell(line).or_else(|| diagnostic::perl(line)), found);
    }

    /// Finishes diagnostics that were incomplete at the end of the output.
    fn end(&mut self, found: &mut Vec<Diagnostic>) {
        self.libtest.end(found);
        self.pytest.end(found);
        self.go.end(found);
        self.tap.end(found);
    }
}

/// All diagnostics in an output, in order. Accepts any output and takes linear time.
pub(super) fn diagnostics(output: &str) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut readers = Readers::default();
    for (text, document) in pieces(output) {
        text.lines().for_each(|line| readers.read(line, &mut found));
        found.extend(document.iter().flat_map(sarif_diagnostics));
    }
    readers.end(&mut found);
    found
}

/// Maximum number of texts that look like the start of a document but are not. Each one is parsed as far as
/// possible.
const FALSE_STARTS: usize = 16;

/// Splits an output into texts, each with the SARIF document that follows it.
fn pieces(output: &str) -> Vec<(&str, Option<Value>)> {
    let mut pieces = Vec::new();
    let (mut text_from, mut at, mut false_starts) = (0, 0, 0);
    if !output.contains("\"runs\"") {
        at = output.len();
    }
    while at < output.len() && false_starts < FALSE_STARTS {
        let rest = &output[at..];
        let line_end = rest.find('\n').map_or(output.len(), |end| at + end + 1);
        if !rest.trim_start_matches([' ', '\t']).starts_with('{') {
            at = line_end;
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(document)) if is_sarif(&document) => {
                pieces.push((&output[text_from..at], Some(document)));
                at += values.byte_offset();
                text_from = at;
            }
            Some(Ok(_)) => at = line_end.max(at + values.byte_offset()),
            Some(Err(_)) | None => {
                false_starts += 1;
                at = line_end;
            }
        }
    }
    pieces.push((&output[text_from..], None));
    pieces
}

/// The value at a JSON pointer, if it is a text.
fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}

/// The elements at a JSON pointer; none if there is no list.
fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether a document is SARIF of which all results can be read. Otherwise it is shown as text, so that none of them is
/// lost.
fn is_sarif(document: &Value) -> bool {
    let is_result_list =
        |results: &Value| results.is_null() || results.as_array().is_some_and(|all| all.iter().all(Value::is_object));
    let is_run = |run: &Value| run.is_object() && is_result_list(&run["results"]);
    document["runs"].as_array().is_some_and(|runs| runs.iter().all(is_run))
        && text(document, "/version").is_some_and(|version| version.starts_with("2."))
}

fn sarif_diagnostics(document: &Value) -> Vec<Diagnostic> {
    let of_run = |run| {
        let rules = list(run, "/tool/driver/rules").iter();
        let level = |rule| Some((text(rule, "/id")?, text(rule, "/defaultConfiguration/level")?));
        let levels = rules.filter_map(level).collect();
        let results = list(run, "/results").iter().filter(|result| counts(result));
        results.map(|result| sarif_diagnostic(result, &levels)).collect::<Vec<_>>()
    };
    list(document, "/runs").iter().flat_map(of_run).collect()
}

/// Whether a result is a failure of this version that is not suppressed.
fn counts(result: &Value) -> bool {
    let fails = text(result, "/kind").is_none_or(|kind| matches!(kind, "fail" | "review" | "open"));
    fails && list(result, "/suppressions").is_empty() && text(result, "/baselineState") != Some("absent")
}

/// The diagnostic of a result. `levels` are those of the rules, by id.
fn sarif_diagnostic(result: &Value, levels: &BTreeMap<&str, &str>) -> Diagnostic {
    let message = text(result, "/message/text").or_else(|| text(result, "/message/markdown")).unwrap_or_default();
    let rule = text(result, "/ruleId");
    let message = rule.map_or_else(|| message.to_owned(), |rule| format!("{message} ({rule})"));
    let level = match text(result, "/level").or_else(|| levels.get(rule?).copied()) {
        Some("error") => DiagnosticLevel::Error,
        Some("note" | "none") => DiagnosticLevel::Note,
        _ => DiagnosticLevel::Warning,
    };
    let location = text(result, "/locations/0/physicalLocation/artifactLocation/uri").map(|uri| {
        let line = result.pointer("/locations/0/physicalLocation/region/startLine").and_then(Value::as_u64);
        SourceLocation::new(&decoded(uri), line.and_then(|line| u32::try_from(line).ok()))
    });
    Diagnostic::new(level, location, &message)
}

/// Decodes the `%20` escapes of a path.
fn decoded(uri: &str) -> String {
    let mut parts = uri.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(byte.unwrap_or(b'%'));
        bytes.extend(part.bytes().skip(if byte.is_some() { 2 } else { 0 }));
    }
    String::from_utf8(bytes).unwrap_or_else(|_| uri.to_owned())
}

/// Removes escape sequences. Of a line that was overwritten several times, keeps the last version.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut line_start = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\u{1b}' => rest = after_escape(rest),
            '\r' if rest.starts_with('\n') || rest.is_empty() => {}
            '\r' => out.truncate(line_start),
            '\n' => {
                out.push(c);
                line_start = out.len();
            }
            '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Skips an escape sequence whose first character was already read. A sequence ends with its line, so that a
/// truncated one does not swallow the next lines.
fn after_escape(rest: &str) -> &str {
    let behind = |end: usize, length: usize| &rest[(end + length).min(rest.len())..];
    match rest.as_bytes().first() {
        Some(b'[') => {
            let end = rest[1..].find(|c: char| !(' '..='?').contains(&c)).map_or(rest.len(), |at| at + 1);
            behind(end, usize::from(rest[end..].starts_with(|c: char| ('@'..='~').contains(&c))))
        }
        Some(b']') => match rest.find(['\u{7}', '\u{1b}', '\n']) {
            Some(end) if rest[end..].starts_with('\u{7}') => behind(end, 1),
            Some(end) if rest[end..].starts_with("\u{1b}\\") => behind(end, 2),
            Some(end) => behind(end, 0),
            None => "",
        },
        Some(b' '..=b'~') => behind(0, 1),
        _ => rest,
    }
}

/// Makes every path below `directory` relative to it, because the path of a worktree is meaningless elsewhere.
pub fn relative_paths(output: &str, directory: &str) -> String {
    let directory = directory.trim_end_matches('/');
    if directory.is_empty() {
        return output.to_owned();
    }
    let prefix = format!("{directory}/");
    let mut out = String::with_capacity(output.len());
    let mut copied = 0;
    for (at, _) in output.match_indices(&prefix) {
        let before = &output[..at];
        let inside = before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
        if !inside || before.ends_with("file://") {
            out += &output[copied..at];
            copied = at + prefix.len();
        }
    }
    out + &output[copied..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_progress_bars_are_removed() {
        let text = "\u{1b}[1;31merror\u{1b}[0m: bad\r\n 10%\r 50%\r100%\ndone\u{1b}]0;title\u{7}!\u{1b}[31";
        insta::assert_snapshot!(plain(text), @r"
        error: bad
        100%
        done!
        ");
    }

    #[test]
    fn a_truncated_escape_sequence_removes_no_line() {
        assert_eq!(plain("\u{1b}]0;title\nsrc/a.rs:1: bad\u{1b}"), "\nsrc/a.rs:1: bad");
        assert_eq!(plain("\u{1b}[31\nsrc/a.rs:1: bad"), "\nsrc/a.rs:1: bad");
    }

    #[test]
    fn paths_are_relative_to_the_working_directory() {
        let relative_to_shop = |text| relative_paths(text, "/home/ada/shop");
        assert_eq!(relative_to_shop("/home/ada/shop/src/a.rs:3 and \"/home/ada/shop/b\""), "src/a.rs:3 and \"b\"");
        assert_eq!(relative_to_shop("file:///home/ada/shop/a.js:3"), "file://a.js:3");
        assert_eq!(
            relative_to_shop("/home/ada/shopping/a.rs:3 /mnt/home/ada/shop/a.rs"),
            "/home/ada/shopping/a.rs:3 /mnt/home/ada/shop/a.rs"
        );
        assert_eq!(relative_paths("/a.rs:3", "/"), "/a.rs:3");
    }
}
