//! Reads the output of a command line by line with the parsers of all tools, after removing colours and the working
//! directory.

use super::go::Go;
use super::javascript::{Eslint, JavaScript, Tap};
use super::python::{Pytest, Traceback};
use super::remark::{Remark, RemarkList};
use super::rust::{Libtest, Rust};
use super::{javascript, remark, sarif};

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
    fn read(&mut self, line: &str, found: &mut RemarkList) {
        let _taken = self.rust.read(line, found)
            || self.libtest.read(line, found)
            || self.pytest.read(line, found)
            || self.traceback.read(line, found)
            || self.eslint.read(line, found)
            || self.go.read(line, found)
            || self.tap.read(line, found)
            || self.javascript.read(line, found)
            || javascript::read_compiler_error(line, found)
            || remark::read_located(line, found)
            || remark::read_script(line, found);
    }

    /// Finishes remarks that were incomplete at the end of the output.
    fn end(&mut self, found: &mut RemarkList) {
        self.libtest.end(found);
        self.pytest.end(found);
        self.go.end(found);
        self.tap.end(found);
    }
}

/// All remarks in an output, in order. Accepts any output and takes linear time.
pub(super) fn remarks(output: &str) -> Vec<Remark> {
    let mut found = RemarkList::default();
    let mut readers = Readers::default();
    for piece in sarif::pieces(output) {
        match piece {
            sarif::OutputPiece::Document(document) => document.read(&mut found),
            sarif::OutputPiece::Text(text) => text.lines().for_each(|line| readers.read(line, &mut found)),
        }
    }
    readers.end(&mut found);
    found.remarks
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
