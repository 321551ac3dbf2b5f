//! Parses tools of JavaScript: errors and stack frames, TAP, tsc, and eslint (also stylelint).

use super::diagnostic::{
    Diagnostic, DiagnosticLevel, SourceLocation, clipped, is_path, number, parse_location_prefix, push_if_some,
};

#[derive(Debug, Default)]
pub(super) struct JavaScript {
    text: Option<String>,
    /// Whether only the name of the test was printed so far.
    named: bool,
}

impl JavaScript {
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        let line = line.trim();
        if let Some(location) = stack_frame(line) {
            if let Some(text) = self.text.take_if(|_| !location.is_third_party()) {
                found.push(Diagnostic::error(location, &text));
            }
            return true;
        }
        // jest prints the name of the test, and the error below it.
        let test = line.strip_prefix("● ");
        let error = is_error(line);
        match (&self.text, test) {
            (_, Some(test)) => self.text = Some(test.to_owned()),
            (Some(test), None) if self.named && !line.is_empty() => self.text = Some(format!("{test}: {line}")),
            (_, None) if error => self.text = Some(line.to_owned()),
            (_, None) => return false,
        }
        self.named = test.is_some();
        true
    }
}

/// Whether the line is an error: `TypeError: x is not a function`, `AssertionError [ERR_ASSERTION]: …`, also after
/// `Uncaught `.
fn is_error(line: &str) -> bool {
    let line = line.strip_prefix("Uncaught ").unwrap_or(line);
    let Some((name, _)) = line.split_once(':') else { return false };
    let name = name.split(" [").next().unwrap_or_default();
    name.ends_with("Error") && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Parses `at add (src/a.js:3:9)` or `at src/a.js:3:9`.
fn stack_frame(line: &str) -> Option<SourceLocation> {
    let at = line.strip_prefix("at ")?;
    let inner = at.strip_suffix(')').and_then(|at| at.rsplit_once('(')).map_or(at, |(_, inner)| inner);
    let inner = inner.strip_prefix("async ").unwrap_or(inner);
    let (location, rest) = parse_location_prefix(inner)?;
    rest.is_empty().then_some(location)
}

/// The keys that may follow a multi-line error.
const KEYS_AFTER_ERROR: [&str; 5] = ["code: ", "name: ", "stack: ", "expected: ", "actual: "];

#[derive(Debug, Default)]
pub(super) struct Tap {
    failure: Option<TapFailure>,
}

#[derive(Debug)]
struct TapFailure {
    diagnostic: Diagnostic,
    stage: TapStage,
}

#[derive(Debug, PartialEq, Eq)]
enum TapStage {
    /// At the line after `not ok`, where the block begins if there is one.
    Named,
    InBlock,
    /// The error is in the lines below its key.
    ErrorBelow,
}

impl Tap {
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        let line = line.trim();
        if let Some(name) = failed_test(line) {
            self.end(found);
            let diagnostic = Diagnostic::without_location(name);
            self.failure = Some(TapFailure { diagnostic, stage: TapStage::Named });
            return true;
        }
        let Some(failure) = &mut self.failure else { return false };
        let begins = failure.stage == TapStage::Named;
        if begins == (line == "---") && line != "..." {
            failure.detail(line);
            return true;
        }
        self.end(found);
        !begins
    }

    /// Reports the failure, unless it is a suite that failed because of its subtests, which are reported
    /// themselves.
    pub(super) fn end(&mut self, found: &mut Vec<Diagnostic>) {
        let diagnostic = self.failure.take().map(|failure| failure.diagnostic);
        let own = |diagnostic: &Diagnostic| {
            !diagnostic.message.ends_with(" failed") || !diagnostic.message.contains(" subtest")
        };
        found.extend(diagnostic.filter(own));
    }
}

impl TapFailure {
    fn detail(&mut self, line: &str) {
        if let Some(location) =
            line.strip_prefix("location: ").and_then(|at| parse_location_prefix(at.trim_matches('\'')))
        {
            self.diagnostic.location = Some(location.0);
        }
        let ends_error = KEYS_AFTER_ERROR.iter().any(|key| line.starts_with(key));
        if let Some(error) = line.strip_prefix("error: ") {
            let below = error.starts_with(['|', '>']);
            self.stage = if below { TapStage::ErrorBelow } else { TapStage::InBlock };
            self.append_message(if below { "" } else { error.trim_matches('\'') });
        } else if self.stage == TapStage::ErrorBelow && !ends_error {
            self.append_message(line);
        } else {
            self.stage = TapStage::InBlock;
        }
    }

    fn append_message(&mut self, more: &str) {
        let text = self.diagnostic.message.trim_end_matches(':');
        if !more.is_empty() {
            self.diagnostic.message = clipped(&format!("{text}: {more}"));
        }
    }
}

/// Parses `not ok 1 - adds`, unless it was expected to fail.
fn failed_test(line: &str) -> Option<&str> {
    let (_, name) = number(line.strip_prefix("not ok ")?)?;
    let expected = name.contains("# TODO") || name.contains("# SKIP");
    (!expected).then(|| name.trim_start_matches([' ', '-']))
}

/// Parses `src/a.ts(3,5): error TS2322: message`.
pub(super) fn compiler_error(line: &str) -> Option<Diagnostic> {
    let (head, text) = line.trim_start().split_once("): ")?;
    let (file, location) = head.rsplit_once('(')?;
    let (at, column) = number(location)?;
    let plain = column.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    let (level, message) = DiagnosticLevel::parse(text);
    (plain && is_path(file)).then(|| Diagnostic::new(level, Some(SourceLocation::new(file, Some(at))), message))
}

#[derive(Debug, Default)]
pub(super) struct Eslint {
    file: Option<String>,
}

const LEVELS: [([&str; 3], DiagnosticLevel); 2] =
    [(["error", "✖", "×"], DiagnosticLevel::Error), (["warning", "⚠", "‼"], DiagnosticLevel::Warning)];

impl Eslint {
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Diagnostic>) -> bool {
        if !line.starts_with(' ') {
            self.file = is_path(line).then(|| line.to_owned());
            return self.file.is_some();
        }
        push_if_some(self.file.as_deref().and_then(|file| linted(file, line.trim())), found)
    }
}

/// `3:5  error  message  rule`
fn linted(file: &str, item: &str) -> Option<Diagnostic> {
    let (line, rest) = number(item)?;
    let (_, rest) = number(rest.strip_prefix(':')?)?;
    let rest = rest.trim_start();
    let after = |marks: [&str; 3]| marks.into_iter().find_map(|mark| rest.strip_prefix(mark));
    let (text, level) = LEVELS.into_iter().find_map(|(marks, level)| Some((after(marks)?.trim_start(), level)))?;
    let message = match text.rsplit_once("  ") {
        Some((message, rule)) => format!("{} ({rule})", message.trim_end()),
        None => text.to_owned(),
    };
    Some(Diagnostic::new(level, Some(SourceLocation::new(file, Some(line))), &message))
}
