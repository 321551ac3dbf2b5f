//! Parses `go test`: failing tests with the locations they log, and panics with their frames.

use super::diagnostic::{Diagnostic, clipped, parse_location_prefix, read_located};

#[derive(Debug, Default)]
pub(super) struct Go {
    /// The current failing test.
    test: Option<GoTest>,
    panic: Option<String>,
}

#[derive(Debug)]
struct GoTest {
    name: String,
    placed: bool,
    /// Whether its last location had no message. testify prints the message on a later line.
    message_follows: bool,
}

impl Go {
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        if let Some(name) = failed(line) {
            // A test fails with its subtest.
            let rest = |test: &GoTest| name.strip_prefix(test.name.as_str());
            self.test.take_if(|test| rest(test).is_some_and(|rest| rest.starts_with('/')));
            self.end(found);
            self.panic = None;
            self.test = Some(GoTest { name: name.to_owned(), placed: false, message_follows: false });
            return true;
        }
        let vetted = line.strip_prefix("vet: ").is_some_and(|line| read_located(line, found));
        vetted
            || self.logged(line, found)
            || self.panicked(line)
            || self.frame(line, found)
            || self.end_of_test(line, found)
    }

    pub(super) fn end(&mut self, found: &mut Vec<Diagnostic>) {
        if let Some(GoTest { name, placed: false, .. }) = self.test.take() {
            found.push(Diagnostic::without_location(&format!("{name} failed")));
        }
    }

    /// Parses `    calc_test.go:8: got 3, want 4` below the test.
    fn logged(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        let Some(test) = &mut self.test else { return false };
        let Some(line) = line.strip_prefix(' ').map(str::trim) else { return false };
        if let Some(error) = line.strip_prefix("Error:").filter(|_| test.message_follows) {
            if let Some(last) = found.last_mut() {
                last.message = clipped(&format!("{}: {}", test.name, error.trim()));
            }
            test.message_follows = false;
            return true;
        }
        let Some((location, rest)) = parse_location_prefix(line) else { return false };
        let Some(text) = rest.strip_prefix(':') else { return false };
        test.placed = true;
        test.message_follows = text.is_empty();
        let message = if text.is_empty() { " failed".to_owned() } else { format!(":{text}") };
        found.push(Diagnostic::error(location, &format!("{}{message}", test.name)));
        true
    }

    fn panicked(&mut self, line: &str) -> bool {
        let panics = line.starts_with("panic: ");
        if panics && self.panic.is_none() {
            self.panic = Some(line.to_owned());
        }
        panics
    }

    /// Parses a frame: `\t/home/ada/calc/calc.go:4 +0x1d`. Uses the first one outside Go's standard library.
    fn frame(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        let Some((location, rest)) = line.strip_prefix('\t').and_then(parse_location_prefix) else { return false };
        if !rest.is_empty() && !rest.starts_with(" +0x") {
            return false;
        }
        let Some(panic) = self.panic.take_if(|_| !location.is_third_party()) else { return true };
        let message = match &mut self.test {
            Some(test) => {
                test.placed = true;
                format!("{}: {panic}", test.name)
            }
            None => panic,
        };
        found.push(Diagnostic::error(location, &message));
        true
    }

    /// `FAIL` and similar lines end the lines of a test.
    fn end_of_test(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        let ends = self.panic.is_none() && (line.starts_with("FAIL") || line.starts_with("--- "));
        let is_over = ends && self.test.is_some();
        if is_over {
            self.end(found);
        }
        is_over
    }
}

/// Parses `--- FAIL: TestAdd (0.00s)`, which is indented for a subtest.
fn failed(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("--- FAIL: ")?.split_whitespace().next()
}
