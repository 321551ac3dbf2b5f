//! Parses pytest and the tracebacks of Python.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::diagnostic::{Diagnostic, SourceLocation, is_path, number, parse_location_prefix};

#[derive(Debug, Default)]
pub(super) struct Pytest {
    test: Option<PytestCase>,
    /// The messages already reported and their files. The summary repeats them.
    reported: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct PytestCase {
    name: String,
    /// The last frame in the project's own code, above the message in the short format.
    above: Option<SourceLocation>,
    /// The same in the long format, where the last frame follows the message.
    own: Option<SourceLocation>,
    /// The first `E` line.
    text: Option<String>,
    is_reported: bool,
}

impl Pytest {
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        if let Some(name) = heading(line) {
            self.end(found);
            self.test = Some(PytestCase { name: name.to_owned(), ..PytestCase::default() });
            return true;
        }
        if line.starts_with("====") {
            self.end(found);
            return false;
        }
        self.summary(line, found) || self.explanation(line, found) || self.location(line, found)
    }

    /// Reports a test that has a message but no location.
    pub(super) fn end(&mut self, found: &mut Vec<Diagnostic>) {
        if let Some(PytestCase { name, text: Some(text), .. }) = self.test.take() {
            found.push(Diagnostic::without_location(&format!("{name}: {text}")));
            self.reported.insert(text);
        }
    }

    /// Parses `E       assert 3 == 4`.
    fn explanation(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        let (Some(test), Some(text)) = (&mut self.test, line.strip_prefix("E  ")) else { return false };
        if let Some(location) = parse_frame(text) {
            test.above = Some(location);
            return true;
        }
        // Below a frame the source is repeated, indented deeper than the message.
        let source = text.strip_prefix(' ').is_none_or(|text| text.starts_with(' '));
        let text = text.trim();
        if let Some(location) = test.above.take_if(|_| !source) {
            self.reported.extend([text.to_owned(), location.file.clone()]);
            found.push(Diagnostic::error(location, &format!("{}: {text}", test.name)));
            test.is_reported = true;
        } else if test.above.is_none() && !test.is_reported {
            test.text.get_or_insert_with(|| text.to_owned());
        }
        true
    }

    /// Parses `tests/test_calc.py:5: AssertionError`, or `tests/test_calc.py:5: in test_add` above the source.
    fn location(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        let Some((location, rest)) = parse_location_prefix(line) else { return false };
        let Some(exception) = rest.strip_prefix(':').map(str::trim) else { return false };
        let Some(test) = &mut self.test else {
            // The shortest format has one such line per test. Another parser reads it.
            self.reported.insert(exception.to_owned());
            return false;
        };
        if exception.is_empty() {
            store_frame(&mut test.own, location);
        } else if exception.starts_with("in ") {
            store_frame(&mut test.above, location);
        } else if let Some(text) = test.text.take() {
            let what = if text.starts_with(exception) { text.clone() } else { format!("{exception}: {text}") };
            let location = test.own.take().filter(|_| location.is_third_party()).unwrap_or(location);
            found.push(Diagnostic::error(location, &format!("{}: {what}", test.name)));
            self.reported.insert(text);
        }
        true
    }

    /// Parses `FAILED tests/test_calc.py::test_add - assert 3 == 4`.
    fn summary(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        let rest = ["FAILED ", "ERROR "].into_iter().find_map(|word| line.strip_prefix(word));
        let Some(rest) = rest else { return false };
        let (node, text) = rest.split_once(" - ").unwrap_or((rest, ""));
        let (file, test) = node.split_once("::").unwrap_or((node, ""));
        if !is_path(file) {
            return false;
        }
        if !self.was_reported(text.trim_end_matches("...")) {
            let message = [test, text].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
            let message = if message.is_empty() { "failed".to_owned() } else { message };
            found.push(Diagnostic::error(SourceLocation::new(file, None), &message));
        }
        true
    }

    /// Whether a message was already reported. The summary truncates long lines, so a prefix is enough.
    fn was_reported(&self, text: &str) -> bool {
        let beginning = text.trim_end_matches("...");
        let mut from = self.reported.range::<str, _>((Bound::Included(beginning), Bound::Unbounded));
        from.next().is_some_and(|message| message.starts_with(beginning))
    }
}

/// Stores the frame, unless it leads from the project's own code into a library.
fn store_frame(known: &mut Option<SourceLocation>, frame: SourceLocation) {
    if known.is_none() || !frame.is_third_party() {
        *known = Some(frame);
    }
}

/// Parses `_______ test_add _______`.
fn heading(line: &str) -> Option<&str> {
    let name = line.trim_matches('_');
    let lines = line.starts_with("__") && line.ends_with("__");
    let name = name.strip_prefix(' ')?.strip_suffix(' ')?;
    (lines && name.contains(char::is_alphanumeric)).then_some(name)
}

#[derive(Debug, Default)]
pub(super) struct Traceback {
    frame: Option<SourceLocation>,
    /// The test that unittest names above its traceback.
    test: Option<String>,
}

impl Traceback {
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        if let Some(frame) = parse_frame(line) {
            let better = self.frame.as_ref().is_none_or(|known| known.is_third_party() || !frame.is_third_party());
            if better {
                self.frame = Some(frame);
            }
            return true;
        }
        self.begins(line) || self.heading(line) || self.exception(line, found)
    }

    fn begins(&mut self, line: &str) -> bool {
        let begins = line.trim_start().starts_with("Traceback (most recent call last)");
        if begins {
            self.frame = None;
        }
        begins
    }

    /// Parses `FAIL: test_add (test_calc.Adding.test_add)`.
    fn heading(&mut self, line: &str) -> bool {
        let rest = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "));
        let Some((test, _)) = rest.and_then(|rest| rest.split_once(" (")) else { return false };
        self.test = Some(test.to_owned());
        true
    }

    /// Parses the exception: the first line after the frames that is not indented, unlike source lines and marks.
    fn exception(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        if self.frame.is_none() || line.starts_with([' ', '\t']) || line.is_empty() {
            return false;
        }
        let Some(location) = self.frame.take() else { return false };
        let message = self.test.take().map_or(line.to_owned(), |test| format!("{test}: {line}"));
        found.push(Diagnostic::error(location, &message));
        true
    }
}

/// Parses `  File "src/a.py", line 3, in add`.
pub(super) fn parse_frame(line: &str) -> Option<SourceLocation> {
    let (file, rest) = line.strip_prefix(' ')?.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let (line, _) = number(rest)?;
    Some(SourceLocation::new(file, Some(line)))
}
