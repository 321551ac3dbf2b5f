//! Python tracebacks: the last frame in the project's own code, and the exception.

use super::place::{Place, number};
use super::remark::{Found, Remark};

#[derive(Debug, Default)]
pub(super) struct Traceback {
    frame: Option<Place>,
    /// The test that unittest names above its traceback.
    test: Option<String>,
}

impl Traceback {
    pub(super) fn read(&mut self, line: &str, found: &mut Found) -> bool {
        if let Some(frame) = named(line) {
            let better = self.frame.as_ref().is_none_or(|known| known.is_foreign() || !frame.is_foreign());
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

    /// `FAIL: test_add (test_calc.Adding.test_add)`
    fn heading(&mut self, line: &str) -> bool {
        let rest = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "));
        let Some((test, _)) = rest.and_then(|rest| rest.split_once(" (")) else { return false };
        self.test = Some(test.to_owned());
        true
    }

    /// The first line after the frames that is not indented. Source lines and marks below a frame are.
    fn exception(&mut self, line: &str, found: &mut Found) -> bool {
        if self.frame.is_none() || line.starts_with([' ', '\t']) || line.is_empty() {
            return false;
        }
        let Some(place) = self.frame.take() else { return false };
        let message = self.test.take().map_or(line.to_owned(), |test| format!("{test}: {line}"));
        found.push(Remark::error(place, &message));
        true
    }
}

/// `  File "src/a.py", line 3, in add`
pub(super) fn named(line: &str) -> Option<Place> {
    let (file, rest) =
        line.strip_prefix(' ')?.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let (line, _) = number(rest)?;
    Some(Place::of(file, Some(line)))
}
