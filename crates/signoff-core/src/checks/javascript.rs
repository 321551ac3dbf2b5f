//! JavaScript: an error or a failing test, and the first frame of its stack in the project's own code.

use super::place::{self, Place};
use super::remark::{Found, Remark};

#[derive(Debug, Default)]
pub(super) struct JavaScript {
    said: Option<String>,
    /// Whether only the test's name was said.
    named: bool,
}

impl JavaScript {
    pub(super) fn read(&mut self, line: &str, found: &mut Found) -> bool {
        let line = line.trim();
        if let Some(place) = frame(line) {
            if let Some(said) = self.said.take_if(|_| !place.is_foreign()) {
                found.push(Remark::error(place, &said));
            }
            return true;
        }
        // jest names the test, and says what is wrong below it.
        let test = line.strip_prefix("● ");
        let error = is_error(line);
        match (&self.said, test) {
            (_, Some(test)) => self.said = Some(test.to_owned()),
            (Some(test), None) if self.named && !line.is_empty() => {
                self.said = Some(format!("{test}: {line}"))
            }
            (_, None) if error => self.said = Some(line.to_owned()),
            (_, None) => return false,
        }
        self.named = test.is_some();
        true
    }
}

/// `TypeError: x is not a function`, `AssertionError [ERR_ASSERTION]: …`, also behind `Uncaught `.
fn is_error(line: &str) -> bool {
    let line = line.strip_prefix("Uncaught ").unwrap_or(line);
    let Some((name, _)) = line.split_once(':') else { return false };
    let name = name.split(" [").next().unwrap_or_default();
    name.ends_with("Error") && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// `at add (src/a.js:3:9)`, `at src/a.js:3:9`.
fn frame(line: &str) -> Option<Place> {
    let at = line.strip_prefix("at ")?;
    let inner = at.strip_suffix(')').and_then(|at| at.rsplit_once('(')).map_or(at, |(_, inner)| inner);
    let inner = inner.strip_prefix("async ").unwrap_or(inner);
    let (place, rest) = place::leading(inner)?;
    rest.is_empty().then_some(place)
}
