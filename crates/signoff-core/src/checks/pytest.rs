//! pytest: a section per test, `E   ` lines, the place before or behind them, and the summary.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::place::{self, Place};
use super::remark::{Found, Level, Remark};
use super::traceback;

#[derive(Debug, Default)]
pub(super) struct Pytest {
    test: Option<Test>,
    /// What was told with a place: the summary says it again.
    told: BTreeSet<String>,
}

#[derive(Debug)]
struct Test {
    name: String,
    /// The frame above the source, in the short form.
    frame: Option<Place>,
    /// The first `E` line.
    said: Option<String>,
}

impl Pytest {
    pub(super) fn read(&mut self, line: &str, found: &mut Found) -> bool {
        if let Some(name) = heading(line) {
            self.end(found);
            self.test = Some(Test { name: name.to_owned(), frame: None, said: None });
            return true;
        }
        if line.starts_with("====") {
            self.end(found);
            return false;
        }
        self.summary(line, found) || self.explanation(line, found) || self.location(line, found)
    }

    /// A test that said what is wrong and not where.
    pub(super) fn end(&mut self, found: &mut Found) {
        if let Some(Test { name, said: Some(said), .. }) = self.test.take() {
            found.push(Remark::of(Level::Error, None, &format!("{name}: {said}")));
            self.told.insert(said);
        }
    }

    /// `E       assert 3 == 4`
    fn explanation(&mut self, line: &str, found: &mut Found) -> bool {
        let (Some(test), Some(said)) = (&mut self.test, line.strip_prefix("E  ")) else { return false };
        if let Some(place) = traceback::named(said) {
            test.frame = Some(place);
            return true;
        }
        // Below a frame the source is repeated, further to the right than what is said about it.
        let source = said.strip_prefix(' ').is_none_or(|said| said.starts_with(' '));
        let said = said.trim();
        if let Some(place) = test.frame.take_if(|_| !source) {
            found.push(Remark::error(place, &format!("{}: {said}", test.name)));
            self.told.insert(said.to_owned());
        } else if test.frame.is_none() {
            test.said.get_or_insert_with(|| said.to_owned());
        }
        true
    }

    /// `tests/test_calc.py:5: AssertionError`, or `tests/test_calc.py:5: in test_add` above the source.
    fn location(&mut self, line: &str, found: &mut Found) -> bool {
        let (Some(test), Some((place, rest))) = (&mut self.test, place::leading(line)) else { return false };
        let Some(exception) = rest.strip_prefix(':').map(str::trim) else { return false };
        if exception.starts_with("in ") {
            test.frame = Some(place);
        } else if let Some(said) = test.said.take() {
            let repeats = exception.is_empty() || said.starts_with(exception);
            let what = if repeats { said.clone() } else { format!("{exception}: {said}") };
            found.push(Remark::error(place, &format!("{}: {what}", test.name)));
            self.told.insert(said);
        }
        true
    }

    /// `FAILED tests/test_calc.py::test_add - assert 3 == 4`
    fn summary(&mut self, line: &str, found: &mut Found) -> bool {
        let rest = ["FAILED ", "ERROR "].into_iter().find_map(|word| line.strip_prefix(word));
        let Some(rest) = rest else { return false };
        let (node, said) = rest.split_once(" - ").unwrap_or((rest, ""));
        let (file, test) = node.split_once("::").unwrap_or((node, ""));
        if !place::is_path(file) {
            return false;
        }
        if !self.knows(said.trim_end_matches("...")) {
            let message =
                [test, said].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
            let message = if message.is_empty() { "failed".to_owned() } else { message };
            found.push(Remark::error(Place::of(file, None), &message));
        }
        true
    }

    /// The summary cuts long lines, so a beginning is enough.
    fn knows(&self, beginning: &str) -> bool {
        let mut from = self.told.range::<str, _>((Bound::Included(beginning), Bound::Unbounded));
        !beginning.is_empty() && from.next().is_some_and(|told| told.starts_with(beginning))
    }
}

/// `_______ test_add _______`
fn heading(line: &str) -> Option<&str> {
    let name = line.trim_matches('_');
    let lines = line.starts_with("__") && line.ends_with("__");
    let name = name.strip_prefix(' ')?.strip_suffix(' ')?;
    (lines && name.contains(char::is_alphanumeric)).then_some(name)
}
