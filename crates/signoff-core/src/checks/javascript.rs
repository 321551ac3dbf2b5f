//! JavaScript: an error or a failing test, and the first frame of its stack in the project's own code.

use super::place::{self, Place};
use super::remark::{Found, Remark};

#[derive(Debug, Default)]
pub(super) struct JavaScript {
    said: Option<String>,
}

impl JavaScript {
    pub(super) fn read(&mut self, line: &str, found: &mut Found) -> bool {
        let line = line.trim_start();
        if let Some(place) = frame(line) {
            if let Some(said) = self.said.take_if(|_| !is_foreign(&place)) {
                found.push(Remark::error(place, &said));
            }
            return true;
        }
        // jest names the test, not the kind of error.
        let said = line.strip_prefix("● ").or_else(|| is_error(line).then_some(line));
        self.said = said.map(str::to_owned).or(self.said.take());
        said.is_some()
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

fn is_foreign(place: &Place) -> bool {
    place.file.starts_with("node:") || place.file.contains("node_modules/")
}
