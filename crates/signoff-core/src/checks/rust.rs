//! Parses tools of Rust: rustc, clippy, rustfmt and tools that print like them, and failing tests of libtest and nextest.

use super::diagnostic::{Diagnostic, DiagnosticLevel, SourceLocation, clipped, parse_location_prefix, push_if_some};

#[derive(Debug, Default)]
pub(super) struct Rust {
    /// The diagnostic that a headline begins. Its location follows.
    headline: Option<Diagnostic>,
    /// Whether the last diagnostic came from this parser, so that help for it may follow.
    open: bool,
    /// The previous line, if it may be a headline.
    before: Option<String>,
}

impl Rust {
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        if line.is_empty() {
            *self = Self::default();
        }
        let taken = self.headline(line) || self.arrow(line, found) || self.help(line, found);
        // ruff's headlines contain only the rule.
        self.before = (!taken && !line.starts_with(' ')).then(|| clipped(line));
        taken || push_if_some(unformatted(line), found)
    }

    /// Parses `error[E0308]: mismatched types`, `warning: unused variable`, `note: …`.
    fn headline(&mut self, line: &str) -> bool {
        let Some((head, text)) = line.split_once(": ") else { return false };
        let (word, code) = head.split_at(head.find('[').unwrap_or(head.len()));
        let level = match word {
            "error" => DiagnosticLevel::Error,
            "warning" => DiagnosticLevel::Warning,
            "note" => DiagnosticLevel::Note,
            "help" if !self.open => DiagnosticLevel::Note,
            _ => return false,
        };
        if !code.is_empty() && (!code.ends_with(']') || code.contains(' ')) {
            return false;
        }
        let code = code.trim_matches(['[', ']']);
        let message = if code.is_empty() { text.to_owned() } else { format!("{text} ({code})") };
        self.headline = Some(Diagnostic::new(level, None, &message));
        self.open &= level == DiagnosticLevel::Note;
        true
    }

    fn arrow(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        let Some(location) = line.trim_start().strip_prefix("--> ").and_then(bare_location) else {
            return false;
        };
        let before = self.before.take().filter(|before| !before.is_empty() && !self.open);
        let unstated = before.map(|message| Diagnostic::new(DiagnosticLevel::Unstated, None, &message));
        // A note belongs to the diagnostic before it.
        let diagnostic =
            self.headline.take().or(unstated).filter(|diagnostic| diagnostic.level != DiagnosticLevel::Note);
        self.open |=
            push_if_some(diagnostic.map(|diagnostic| Diagnostic { location: Some(location), ..diagnostic }), found);
        true
    }

    /// Parses `= help: …`, `help: …`, or `^^^ help: …` beside the source.
    fn help(&mut self, line: &str, found: &mut [Diagnostic]) -> bool {
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
    parse_location_prefix(text.trim_end()).filter(|(_, rest)| rest.is_empty()).map(|(location, _)| location)
}

/// Parses `Diff in src/main.rs:1:` of rustfmt.
fn unformatted(line: &str) -> Option<Diagnostic> {
    let location = bare_location(line.strip_prefix("Diff in ")?.trim_end_matches(':'))?;
    Some(Diagnostic::error(location, "not formatted as rustfmt formats it"))
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
    location: SourceLocation,
    test: String,
    text: Vec<String>,
}

impl Libtest {
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        if let Some(panic) = panic(line) {
            self.end(found);
            self.panic = Some(panic);
            return true;
        }
        self.more(line, found) || self.heading(line) || self.error(line, found)
    }

    pub(super) fn end(&mut self, found: &mut Vec<Diagnostic>) {
        if let Some(TestPanic { location, test, text }) = self.panic.take() {
            let text = if text.is_empty() { "panicked".to_owned() } else { text.join(", ") };
            let message = if test == "main" { text } else { format!("{test}: {text}") };
            found.push(Diagnostic::error(location, &message));
        }
    }

    /// Parses a further line of the panic message. A blank line or a note ends it.
    fn more(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        let Some(panic) = &mut self.panic else { return false };
        let line = line.trim();
        let over = line.is_empty() || line.starts_with("note: ") || line == "stack backtrace:";
        if over || panic.text.len() >= PANIC_LINES {
            self.end(found);
        } else {
            panic.text.push(line.to_owned());
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
    fn error(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        if !line.starts_with("Error: ") {
            return false;
        }
        let Some(test) = self.test.take() else { return false };
        found.push(Diagnostic::without_location(&format!("{test}: {line}")));
        true
    }
}

/// Parses `thread 'tests::adds' panicked at src/lib.rs:10:9:`. Depending on the Rust version, it contains the
/// thread id or the message.
fn panic(line: &str) -> Option<TestPanic> {
    let (thread, at) = line.trim_start().strip_prefix("thread '")?.split_once(" panicked at ")?;
    let test = thread.split('\'').next().unwrap_or_default().to_owned();
    if let Some((location, rest)) = parse_location_prefix(at) {
        return rest.trim_matches(':').is_empty().then(|| TestPanic { location, test, text: Vec::new() });
    }
    let (text, at) = at.strip_prefix('\'')?.rsplit_once("', ")?;
    let (location, _) = parse_location_prefix(at)?;
    Some(TestPanic { location, test, text: vec![text.to_owned()] })
}
