//! Reads a command's output line by line with the parsers of all tools.

use super::eslint::Eslint;
use super::go::Go;
use super::javascript::JavaScript;
use super::libtest::Libtest;
use super::pytest::Pytest;
use super::remark::{Remark, RemarkList};
use super::rust::Rust;
use super::tap::Tap;
use super::traceback::Traceback;
use super::{location, sarif, shell, typescript};

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
            || typescript::read(line, found)
            || location::read(line, found)
            || shell::read(line, found);
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
