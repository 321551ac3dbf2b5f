//! `go test`: failing tests with the places they log, and panics with their frames.

use super::place;
use super::remark::{Found, Level, Remark};

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
            self.test = Some(Test { name: name.to_owned(), placed: false });
            return true;
        }
        self.logged(line, found) || self.panicked(line) || self.frame(line, found) || self.over(line, found)
    }

    pub(super) fn end(&mut self, found: &mut Found) {
        if let Some(Test { name, placed: false }) = self.test.take() {
            found.push(Remark::of(Level::Error, None, &format!("{name} failed")));
        }
    }

    /// `    calc_test.go:8: got 3, want 4` below the test.
    fn logged(&mut self, line: &str, found: &mut Found) -> bool {
        let Some(test) = &mut self.test else { return false };
        let Some((place, rest)) = line.strip_prefix(' ').and_then(|line| place::leading(line.trim_start()))
        else {
            return false;
        };
        let Some(said) = rest.strip_prefix(':') else { return false };
        found.push(Remark::error(place, &format!("{}: {}", test.name, said.trim())));
        test.placed = true;
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
        const FOREIGN: [&str; 3] = ["/src/runtime/", "/src/testing/", "/pkg/mod/"];
        let Some((place, rest)) = line.strip_prefix('\t').and_then(place::leading) else { return false };
        let foreign = FOREIGN.iter().any(|part| place.file.contains(part));
        if !rest.starts_with(" +0x") || self.panic.is_none() || foreign {
            return false;
        }
        let panic = self.panic.take().unwrap_or_default();
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

    /// `FAIL`, `ok  	example.com/calc` and the like end a test's lines.
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
