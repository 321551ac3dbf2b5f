//! Parses tools of Rust: rustc, clippy, rustfmt and tools that print like them, and failing tests of libtest and nextest.

use super::remark::{Remark, RemarkLevel, SourceLocation, clipped, leading, report};

#[derive(Debug, Default)]
pub(super) struct Rust {
    /// The remark that a headline begins. Its location follows.
    headline: Option<Remark>,
    /// Whether the last remark came from this parser, so that help for it may follow.
    open: bool,
    /// The previous line, if it may be a headline.
    before: Option<String>,
}

impl Rust {
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Remark>) -> bool {
        if line.is_empty() {
            *self = Self::default();
        }
        let taken = self.headline(line) || self.arrow(line, found) || self.help(line, found);
        // ruff's headlines contain only the rule.
        self.before = (!taken && !line.starts_with(' ')).then(|| clipped(line));
        taken || report(unformatted(line), found)
    }

    /// Parses `error[E0308]: mismatched types`, `warning: unused variable`, `note: …`.
    fn headline(&mut self, line: &str) -> bool {
        let Some((head, said)) = line.split_once(": ") else { return false };
        let (word, code) = head.split_at(head.find('[').unwrap_or(head.len()));
        let level = match word {
            "error" => RemarkLevel::Error,
            "warning" => RemarkLevel::Warning,
            "note" => RemarkLevel::Note,
            "help" if !self.open => RemarkLevel::Note,
            _ => return false,
        };
        if !code.is_empty() && (!code.ends_with(']') || code.contains(' ')) {
            return false;
        }
        let code = code.trim_matches(['[', ']']);
        let message = if code.is_empty() { said.to_owned() } else { format!("{said} ({code})") };
        self.headline = Some(Remark::new(level, None, &message));
        self.open &= level == RemarkLevel::Note;
        true
    }

    fn arrow(&mut self, line: &str, found: &mut Vec<Remark>) -> bool {
        let Some(place) = line.trim_start().strip_prefix("--> ").and_then(bare_location) else {
            return false;
        };
        let before = self.before.take().filter(|before| !before.is_empty() && !self.open);
        let unstated = before.map(|message| Remark::new(RemarkLevel::Unstated, None, &message));
        // A note belongs to the remark before it.
        let remark = self.headline.take().or(unstated).filter(|remark| remark.level != RemarkLevel::Note);
        self.open |= report(remark.map(|remark| Remark { place: Some(place), ..remark }), found);
        true
    }

    /// Parses `= help: …`, `help: …`, or `^^^ help: …` beside the source.
    fn help(&mut self, line: &str, found: &mut [Remark]) -> bool {
        let Some((before, help)) = line.split_once("help: ").filter(|_| self.open) else { return false };
        if !before.trim_end().ends_with(['=', '^', '-']) && !before.is_empty() {
            return false;
        }
        // Skips how to silence a lint and links to its documentation.
        let useful = !help.contains("https://") && !help.starts_with("to override");
        if let Some(last) = found.last_mut().filter(|_| useful) {
            last.suggestion.get_or_insert_with(|| clipped(help));
        }
        true
    }
}

/// Parses a location without any text after it.
fn bare_location(text: &str) -> Option<SourceLocation> {
    leading(text.trim_end()).filter(|(_, rest)| rest.is_empty()).map(|(place, _)| place)
}

/// Parses `Diff in src/main.rs:1:` of rustfmt.
fn unformatted(line: &str) -> Option<Remark> {
    let place = bare_location(line.strip_prefix("Diff in ")?.trim_end_matches(':'))?;
    Some(Remark::error(place, "not formatted as rustfmt formats it"))
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
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Remark>) -> bool {
        if let Some(panic) = panic(line) {
            self.end(found);
            self.panic = Some(panic);
            return true;
        }
        self.more(line, found) || self.heading(line) || self.error(line, found)
    }

    pub(super) fn end(&mut self, found: &mut Vec<Remark>) {
        if let Some(TestPanic { place, test, said }) = self.panic.take() {
            let said = if said.is_empty() { "panicked".to_owned() } else { said.join(", ") };
            let message = if test == "main" { said } else { format!("{test}: {said}") };
            found.push(Remark::error(place, &message));
        }
    }

    /// Parses a further line of the panic message. A blank line or a note ends it.
    fn more(&mut self, line: &str, found: &mut Vec<Remark>) -> bool {
        let Some(panic) = &mut self.panic else { return false };
        let line = line.trim();
        let over = line.is_empty() || line.starts_with("note: ") || line == "stack backtrace:";
        if over || panic.said.len() >= PANIC_LINES {
            self.end(found);
        } else {
            panic.said.push(line.to_owned());
        }
        true
    }

    /// Parses `---- tests::adds stdout ----`.
    fn heading(&mut self, line: &str) -> bool {
        let name = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        self.test = name.map(str::to_owned).or(self.test.take());
        name.is_some()
    }

    /// Parses the error of a test that returned one, which has no location.
    fn error(&mut self, line: &str, found: &mut Vec<Remark>) -> bool {
        if !line.starts_with("Error: ") {
            return false;
        }
        let Some(test) = self.test.take() else { return false };
        found.push(Remark::unplaced(&format!("{test}: {line}")));
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
