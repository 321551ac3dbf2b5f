//! `cargo test` and nextest: panics, and tests that return an error.

use super::place::{self, Place};
use super::remark::{Found, Level, Remark};

/// Lines of a panic's message that are kept.
const LINES: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Libtest {
    panic: Option<Panic>,
    test: Option<String>,
}

#[derive(Debug)]
struct Panic {
    place: Place,
    test: String,
    said: Vec<String>,
}

impl Libtest {
    pub(super) fn read(&mut self, line: &str, found: &mut Found) -> bool {
        if let Some(panic) = panic(line) {
            self.end(found);
            self.panic = Some(panic);
            return true;
        }
        self.more(line, found) || self.heading(line) || self.error(line, found)
    }

    pub(super) fn end(&mut self, found: &mut Found) {
        if let Some(Panic { place, test, said }) = self.panic.take() {
            let said = if said.is_empty() { "panicked".to_owned() } else { said.join(", ") };
            let message = if test == "main" { said } else { format!("{test}: {said}") };
            found.push(Remark::error(place, &message));
        }
    }

    /// A further line of the panic's message. A blank one or a note ends it.
    fn more(&mut self, line: &str, found: &mut Found) -> bool {
        let Some(panic) = &mut self.panic else { return false };
        let line = line.trim();
        let over = line.is_empty() || line.starts_with("note: ") || line == "stack backtrace:";
        if !over && panic.said.len() < LINES {
            panic.said.push(line.to_owned());
            return true;
        }
        self.end(found);
        true
    }

    /// `---- tests::adds stdout ----`
    fn heading(&mut self, line: &str) -> bool {
        let name = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        self.test = name.map(str::to_owned).or(self.test.take());
        name.is_some()
    }

    /// A test that returned an error prints it without a place.
    fn error(&mut self, line: &str, found: &mut Found) -> bool {
        if !line.starts_with("Error: ") {
            return false;
        }
        let Some(test) = self.test.take() else { return false };
        found.push(Remark::of(Level::Error, None, &format!("{test}: {line}")));
        true
    }
}

/// `thread 'tests::adds' panicked at src/lib.rs:10:9:`, with the thread's id or the message in it by version.
fn panic(line: &str) -> Option<Panic> {
    let (thread, at) = line.trim_start().strip_prefix("thread '")?.split_once(" panicked at ")?;
    let test = thread.split('\'').next().unwrap_or_default().to_owned();
    if let Some((place, rest)) = place::leading(at) {
        return rest.trim_matches(':').is_empty().then(|| Panic { place, test, said: Vec::new() });
    }
    let (said, at) = at.strip_prefix('\'')?.rsplit_once("', ")?;
    let (place, _) = place::leading(at)?;
    Some(Panic { place, test, said: vec![said.to_owned()] })
}
