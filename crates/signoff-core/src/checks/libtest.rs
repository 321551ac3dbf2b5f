//! Parses `cargo test` and nextest: panics, and tests that return an error.

use super::location::{self, SourceLocation};
use super::remark::{Remark, RemarkLevel, RemarkList};

/// Maximum lines of a panic message.
const LINES: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Libtest {
    panic: Option<TestPanic>,
    test: Option<String>,
}

#[derive(Debug)]
struct TestPanic {
    place: SourceLocation,
    test: String,
    said: Vec<String>,
}

impl Libtest {
    pub(super) fn read(&mut self, line: &str, found: &mut RemarkList) -> bool {
        if let Some(panic) = panic(line) {
            self.end(found);
            self.panic = Some(panic);
            return true;
        }
        self.more(line, found) || self.heading(line) || self.error(line, found)
    }

    pub(super) fn end(&mut self, found: &mut RemarkList) {
        if let Some(TestPanic { place, test, said }) = self.panic.take() {
            let said = if said.is_empty() { "panicked".to_owned() } else { said.join(", ") };
            let message = if test == "main" { said } else { format!("{test}: {said}") };
            found.push(Remark::error(place, &message));
        }
    }

    /// Parses a further line of the panic message. A blank line or a note ends it.
    fn more(&mut self, line: &str, found: &mut RemarkList) -> bool {
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

    /// Parses `---- tests::adds stdout ----`.
    fn heading(&mut self, line: &str) -> bool {
        let name = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        self.test = name.map(str::to_owned).or(self.test.take());
        name.is_some()
    }

    /// Parses the error of a test that returned one, which has no location.
    fn error(&mut self, line: &str, found: &mut RemarkList) -> bool {
        if !line.starts_with("Error: ") {
            return false;
        }
        let Some(test) = self.test.take() else { return false };
        found.push(Remark::new(RemarkLevel::Error, None, &format!("{test}: {line}")));
        true
    }
}

/// Parses `thread 'tests::adds' panicked at src/lib.rs:10:9:`. Depending on the Rust version, it contains the
/// thread id or the message.
fn panic(line: &str) -> Option<TestPanic> {
    let (thread, at) = line.trim_start().strip_prefix("thread '")?.split_once(" panicked at ")?;
    let test = thread.split('\'').next().unwrap_or_default().to_owned();
    if let Some((place, rest)) = location::leading(at) {
        return rest.trim_matches(':').is_empty().then(|| TestPanic { place, test, said: Vec::new() });
    }
    let (said, at) = at.strip_prefix('\'')?.rsplit_once("', ")?;
    let (place, _) = location::leading(at)?;
    Some(TestPanic { place, test, said: vec![said.to_owned()] })
}
