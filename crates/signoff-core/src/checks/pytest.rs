//! pytest: a section per test, `E   ` lines, the place before or behind them, and the summary.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::place::{self, Place};
use super::remark::{Found, Level, Remark};
use super::traceback;

#[derive(Debug, Default)]
pub(super) struct Pytest {
    test: Option<Test>,
    /// What was told, and files it was told of: the summary says it again.
    told: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Test {
    name: String,
    /// The last frame of the project's own code, above what is said in the short form.
    above: Option<Place>,
    /// The same in the long form, where the last frame of all comes behind what is said.
    own: Option<Place>,
    /// The first `E` line.
    said: Option<String>,
    is_told: bool,
}

impl Pytest {
    pub(super) fn read(&mut self, line: &str, found: &mut Found) -> bool {
        if let Some(name) = heading(line) {
            self.end(found);
            self.test = Some(Test { name: name.to_owned(), ..Test::default() });
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
            test.above = Some(place);
            return true;
        }
        // Below a frame the source is repeated, further to the right than what is said about it.
        let source = said.strip_prefix(' ').is_none_or(|said| said.starts_with(' '));
        let said = said.trim();
        if let Some(place) = test.above.take_if(|_| !source) {
            self.told.extend([said.to_owned(), place.file.clone()]);
            found.push(Remark::error(place, &format!("{}: {said}", test.name)));
            test.is_told = true;
        } else if test.above.is_none() && !test.is_told {
            test.said.get_or_insert_with(|| said.to_owned());
        }
        true
    }

    /// `tests/test_calc.py:5: AssertionError`, or `tests/test_calc.py:5: in test_add` above the source.
    fn location(&mut self, line: &str, found: &mut Found) -> bool {
        let Some((place, rest)) = place::leading(line) else { return false };
        let Some(exception) = rest.strip_prefix(':').map(str::trim) else { return false };
        let Some(test) = &mut self.test else {
            // The shortest form, which is left to others, is one such line for each test.
            self.told.insert(exception.to_owned());
            return false;
        };
        if exception.is_empty() {
            own(&mut test.own, place);
        } else if exception.starts_with("in ") {
            own(&mut test.above, place);
        } else if let Some(said) = test.said.take() {
            let what =
                if said.starts_with(exception) { said.clone() } else { format!("{exception}: {said}") };
            let place = test.own.take().filter(|_| place.is_foreign()).unwrap_or(place);
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
    fn knows(&self, said: &str) -> bool {
        let beginning = said.trim_end_matches("...");
        let mut from = self.told.range::<str, _>((Bound::Included(beginning), Bound::Unbounded));
        from.next().is_some_and(|told| told.starts_with(beginning))
    }
}

/// Takes the frame, unless it leads from the project's own code into a library.
fn own(known: &mut Option<Place>, frame: Place) {
    if known.is_none() || !frame.is_foreign() {
        *known = Some(frame);
    }
}

/// `_______ test_add _______`
fn heading(line: &str) -> Option<&str> {
    let name = line.trim_matches('_');
    let lines = line.starts_with("__") && line.ends_with("__");
    let name = name.strip_prefix(' ')?.strip_suffix(' ')?;
    (lines && name.contains(char::is_alphanumeric)).then_some(name)
}
