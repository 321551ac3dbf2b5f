//! Parses tools of Rust: rustc, clippy, rustfmt and tools that print like them, and failing tests of libtest and nextest.

use super::remark::{Remark, RemarkLevel, RemarkList, SourceLocation, clipped, leading};

#[derive(Debug, Default)]
pub(super) struct Rust {
    headline: Option<Headline>,
    /// Whether the last remark came from this parser, so that help for it may follow.
    open: bool,
    /// The previous line, if it may be a headline.
    before: Option<String>,
}

#[derive(Debug)]
struct Headline {
    level: RemarkLevel,
    message: String,
}

impl Rust {
    pub(super) fn read(&mut self, line: &str, found: &mut RemarkList) -> bool {
        if line.is_empty() {
            *self = Self::default();
        }
        let taken = self.headline(line) || self.arrow(line, found) || self.help(line, found);
        // ruff's headlines contain only the rule.
        self.before = (!taken && !line.starts_with(' ')).then(|| clipped(line));
        taken || unformatted(line, found)
    }

    /// Parses `error[E0308]: mismatched types`, `warning: unused variable`, `note: …`.
    fn headline(&mut self, line: &str) -> bool {
        const WORDS: [(&str, RemarkLevel); 4] = [
            ("error", RemarkLevel::Error),
            ("warning", RemarkLevel::Warning),
            ("note", RemarkLevel::Note),
            ("help", RemarkLevel::Note),
        ];
        let Some((word, level)) = WORDS.into_iter().find(|(word, _)| line.starts_with(word)) else {
            return false;
        };
        let rest = &line[word.len()..];
        let Some((code, said)) = rest.split_once(": ").filter(|(code, _)| is_code(code)) else {
            return false;
        };
        if word == "help" && self.open {
            return false;
        }
        let code = code.trim_matches(['[', ']']);
        let message = if code.is_empty() { said.to_owned() } else { format!("{said} ({code})") };
        self.headline = Some(Headline { level, message: clipped(&message) });
        self.open &= level == RemarkLevel::Note;
        true
    }

    fn arrow(&mut self, line: &str, found: &mut RemarkList) -> bool {
        let Some(place) = line.trim_start().strip_prefix("--> ").and_then(bare_location) else {
            return false;
        };
        let before = self.before.take().filter(|before| !before.is_empty() && !self.open);
        let unstated = before.map(|message| Headline { level: RemarkLevel::Unstated, message });
        match self.headline.take().or(unstated) {
            // A note belongs to the remark before it.
            None | Some(Headline { level: RemarkLevel::Note, .. }) => {}
            Some(Headline { level, message }) => {
                found.push(Remark::new(level, Some(place), &message));
                self.open = true;
            }
        }
        true
    }

    /// Parses `= help: …`, `help: …`, or `^^^ help: …` beside the source.
    fn help(&mut self, line: &str, found: &mut RemarkList) -> bool {
        let Some((before, help)) = line.split_once("help: ").filter(|_| self.open) else { return false };
        if !before.trim_end().ends_with(['=', '^', '-']) && !before.is_empty() {
            return false;
        }
        // Skips how to silence a lint and links to its documentation.
        let useful = !help.contains("https://") && !help.starts_with("to override");
        if let Some(last) = found.remarks.last_mut().filter(|_| useful) {
            last.suggestion.get_or_insert_with(|| clipped(help));
        }
        true
    }
}

fn is_code(code: &str) -> bool {
    code.is_empty() || (code.starts_with('[') && code.ends_with(']') && !code.contains(' '))
}

/// Parses a location without any text after it.
fn bare_location(text: &str) -> Option<SourceLocation> {
    leading(text.trim_end()).filter(|(_, rest)| rest.is_empty()).map(|(place, _)| place)
}

/// Parses `Diff in src/main.rs:1:` of rustfmt.
fn unformatted(line: &str, found: &mut RemarkList) -> bool {
    let Some(place) = line.strip_prefix("Diff in ").and_then(|rest| bare_location(rest.trim_end_matches(':'))) else {
        return false;
    };
    found.push(Remark::error(place, "not formatted as rustfmt formats it"));
    true
}

/// Maximum lines of a panic message.
const PANIC_LINES: usize = 8;

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
        if !over && panic.said.len() < PANIC_LINES {
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
    if let Some((place, rest)) = leading(at) {
        return rest.trim_matches(':').is_empty().then(|| TestPanic { place, test, said: Vec::new() });
    }
    let (said, at) = at.strip_prefix('\'')?.rsplit_once("', ")?;
    let (place, _) = leading(at)?;
    Some(TestPanic { place, test, said: vec![said.to_owned()] })
}
