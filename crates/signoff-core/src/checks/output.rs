//! An output, read line by line by one reader per family of tools.

use super::eslint::Eslint;
use super::go::Go;
use super::javascript::JavaScript;
use super::libtest::Libtest;
use super::pytest::Pytest;
use super::remark::{Found, Remark};
use super::rust::Rust;
use super::tap::Tap;
use super::traceback::Traceback;
use super::{place, sarif, shell, typescript};

/// The readers, with what they remember of the lines before.
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
    /// Offers a line to each reader in turn. The first that knows it takes it; the ones that need least to go by
    /// come last.
    fn read(&mut self, line: &str, found: &mut Found) {
        let _taken = self.rust.read(line, found)
            || self.libtest.read(line, found)
            || self.pytest.read(line, found)
            || self.traceback.read(line, found)
            || self.eslint.read(line, found)
            || self.go.read(line, found)
            || self.tap.read(line, found)
            || self.javascript.read(line, found)
            || typescript::read(line, found)
            || place::read(line, found)
            || shell::read(line, found);
    }

    /// What was begun and not finished when the output ended.
    fn end(&mut self, found: &mut Found) {
        self.libtest.end(found);
        self.pytest.end(found);
        self.go.end(found);
        self.tap.end(found);
    }
}

/// Everything the tools behind an output say, in order. Total, and linear in the output.
pub(super) fn remarks(output: &str) -> Vec<Remark> {
    let mut found = Found::default();
    let mut readers = Readers::default();
    for piece in sarif::pieces(output) {
        match piece {
            sarif::Piece::Document(document) => document.read(&mut found),
            sarif::Piece::Text(text) => text.lines().for_each(|line| readers.read(line, &mut found)),
        }
    }
    readers.end(&mut found);
    found.remarks
}
