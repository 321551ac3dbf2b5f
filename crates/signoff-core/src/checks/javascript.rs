//! Parses JavaScript errors and failing tests, with the first stack frame in the project's own code.

use super::location::{self, SourceLocation};
use super::remark::{Remark, RemarkList};

#[derive(Debug, Default)]
pub(super) struct JavaScript {
    said: Option<String>,
    /// Whether only the name of the test was printed so far.
    named: bool,
}

impl JavaScript {
    pub(super) fn read(&mut self, line: &str, found: &mut RemarkList) -> bool {
        let line = line.trim();
        if let Some(place) = frame(line) {
            if let Some(said) = self.said.take_if(|_| !place.is_foreign()) {
                found.push(Remark::error(place, &said));
            }
            return true;
        }
        // jest prints the name of the test, and the error below it.
        let test = line.strip_prefix("● ");
        let error = is_error(line);
        match (&self.said, test) {
            (_, Some(test)) => self.said = Some(test.to_owned()),
            (Some(test), None) if self.named && !line.is_empty() => self.said = Some(format!("{test}: {line}")),
            (_, None) if error => self.said = Some(line.to_owned()),
            (_, None) => return false,
        }
        self.named = test.is_some();
        true
    }
}

/// Whether the line is an error: `TypeError: x is not a function`, `AssertionError [ERR_ASSERTION]: …`, also after
/// `Uncaught `.
fn is_error(line: &str) -> bool {
    let line = line.strip_prefix("Uncaught ").unwrap_or(line);
    let Some((name, _)) = line.split_once(':') else { return false };
    let name = name.split(" [").next().unwrap_or_default();
    name.ends_with("Error") && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Parses `at add (src/a.js:3:9)` or `at src/a.js:3:9`.
fn frame(line: &str) -> Option<SourceLocation> {
    let at = line.strip_prefix("at ")?;
    let inner = at.strip_suffix(')').and_then(|at| at.rsplit_once('(')).map_or(at, |(_, inner)| inner);
    let inner = inner.strip_prefix("async ").unwrap_or(inner);
    let (place, rest) = location::leading(inner)?;
    rest.is_empty().then_some(place)
}
