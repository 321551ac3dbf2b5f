//! Parses Python tracebacks: the last frame in the project's own code, and the exception.

use super::location::{SourceLocation, number};
use super::remark::{Remark, RemarkList};

#[derive(Debug, Default)]
pub(super) struct Traceback {
    frame: Option<SourceLocation>,
    /// The test that unittest names above its traceback.
    test: Option<String>,
}

impl Traceback {
    pub(super) fn read(&mut self, line: &str, found: &mut RemarkList) -> bool {
        if let Some(frame) = parse_frame(line) {
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

    /// Parses `FAIL: test_add (test_calc.Adding.test_add)`.
    fn heading(&mut self, line: &str) -> bool {
        let rest = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "));
        let Some((test, _)) = rest.and_then(|rest| rest.split_once(" (")) else { return false };
        self.test = Some(test.to_owned());
        true
    }

    /// Parses the exception: the first line after the frames that is not indented, unlike source lines and marks.
    fn exception(&mut self, line: &str, found: &mut RemarkList) -> bool {
        if self.frame.is_none() || line.starts_with([' ', '\t']) || line.is_empty() {
            return false;
        }
        let Some(place) = self.frame.take() else { return false };
        let message = self.test.take().map_or(line.to_owned(), |test| format!("{test}: {line}"));
        found.push(Remark::error(place, &message));
        true
    }
}

/// Parses `  File "src/a.py", line 3, in add`.
pub(super) fn parse_frame(line: &str) -> Option<SourceLocation> {
    let (file, rest) = line.strip_prefix(' ')?.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let (line, _) = number(rest)?;
    Some(SourceLocation::new(file, Some(line)))
}
