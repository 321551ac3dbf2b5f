//! `go test`: failing tests with the places they log, and panics with their frames.

use super::place;
use super::remark::{Found, Level, Remark, clipped};

#[derive(Debug, Default)]
pub(super) struct Go {
    /// A failing test that has named no place yet, or its name for the places it names.
    test: Option<Test>,
    panic: Option<String>,
}

#[derive(Debug)]
struct Test {
    name: String,
    placed: bool,
    /// Whether its last place came without a message: testify tells it further down.
    told_below: bool,
}

impl Go {
    pub(super) fn read(&mut self, line: &str, found: &mut Found) -> bool {
        if let Some(name) = failed(line) {
            let outer = self.test.as_ref().is_some_and(|test| is_part(name, &test.name));
            if outer {
                self.test = None;
            }
            self.end(found);
            self.panic = None;
            self.test = Some(Test { name: name.to_owned(), placed: false, told_below: false });
            return true;
        }
        let vetted = line.strip_prefix("vet: ").is_some_and(|line| place::read(line, found));
        vetted
            || self.logged(line, found)
            || self.panicked(line)
            || self.frame(line, found)
            || self.over(line, found)
    }

    pub(super) fn end(&mut self, found: &mut Found) {
        if let Some(Test { name, placed: false, .. }) = self.test.take() {
            found.push(Remark::of(Level::Error, None, &format!("{name} failed")));
        }
    }

    /// `    calc_test.go:8: got 3, want 4` below the test.
    fn logged(&mut self, line: &str, found: &mut Found) -> bool {
        let Some(test) = &mut self.test else { return false };
        let Some(line) = line.strip_prefix(' ').map(str::trim) else { return false };
        if let Some(error) = line.strip_prefix("Error:").filter(|_| test.told_below) {
            if let Some(last) = found.remarks.last_mut() {
                last.message = clipped(&format!("{}: {}", test.name, error.trim()));
            }
            test.told_below = false;
            return true;
        }
        let Some((place, rest)) = place::leading(line) else { return false };
        let Some(said) = rest.strip_prefix(':') else { return false };
        test.placed = true;
        test.told_below = said.is_empty();
        let message = if said.is_empty() { " failed".to_owned() } else { format!(":{said}") };
        found.push(Remark::error(place, &format!("{}{message}", test.name)));
        true
    }

    fn panicked(&mut self, line: &str) -> bool {
        let panics = line.starts_with("panic: ");
        if panics && self.panic.is_none() {
            self.panic = Some(line.to_owned());
        }
        panics
    }

    /// `\t/home/ada/calc/calc.go:4 +0x1d`: the first one outside Go's own library.
    fn frame(&mut self, line: &str, found: &mut Found) -> bool {
        let Some((place, rest)) = line.strip_prefix('\t').and_then(place::leading) else { return false };
        if !rest.is_empty() && !rest.starts_with(" +0x") {
            return false;
        }
        let Some(panic) = self.panic.take_if(|_| !place.is_foreign()) else { return true };
        let message = match &mut self.test {
            Some(test) => {
                test.placed = true;
                format!("{}: {panic}", test.name)
            }
            None => panic,
        };
        found.push(Remark::error(place, &message));
        true
    }

    /// `FAIL` and the like end a test's lines.
    fn over(&mut self, line: &str, found: &mut Found) -> bool {
        let over = self.panic.is_none() && (line.starts_with("FAIL") || line.starts_with("--- "));
        if over && self.test.is_some() {
            self.end(found);
            return true;
        }
        false
    }
}

/// `--- FAIL: TestAdd (0.00s)`, indented for a part of a test.
fn failed(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("--- FAIL: ")?.split_whitespace().next()
}

fn is_part(name: &str, of: &str) -> bool {
    name.strip_prefix(of).is_some_and(|rest| rest.starts_with('/'))
}
