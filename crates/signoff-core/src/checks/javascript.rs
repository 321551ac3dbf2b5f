//! Parses tools of JavaScript: errors and stack frames, TAP, tsc, and eslint (also stylelint).

use super::remark::{Remark, RemarkLevel, SourceLocation, clipped, is_path, leading, number, report};

#[derive(Debug, Default)]
pub(super) struct JavaScript {
    said: Option<String>,
    /// Whether only the name of the test was printed so far.
    named: bool,
}

impl JavaScript {
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Remark>) -> bool {
        let line = line.trim();
        if let Some(place) = stack_frame(line) {
            if let Some(said) = self.said.take_if(|_| !place.is_foreign()) {
                found.push(Remark::error(place, &said));
            }
            return true;
        }
        // jest prints the name of the test, and the error below it.
        let test = line.strip_prefix("● ");
        let error = is_error(line);
        match (&self.said, test) {
            (_, Some(test)) => self.said = Some(test.to_owned()),
            (Some(test), None) if self.named && !line.is_empty() => self.said = Some(format!("{test}: {line}")),
            (_, None) if error => self.said = Some(line.to_owned()),
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
    let (place, rest) = leading(inner)?;
    rest.is_empty().then_some(place)
}

/// The keys that may follow a multi-line error.
const KEYS_AFTER_ERROR: [&str; 5] = ["code: ", "name: ", "stack: ", "expected: ", "actual: "];

#[derive(Debug, Default)]
pub(super) struct Tap {
    failure: Option<TapFailure>,
}

#[derive(Debug)]
struct TapFailure {
    remark: Remark,
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
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Remark>) -> bool {
        let line = line.trim();
        if let Some(name) = failed_test(line) {
            self.end(found);
            let remark = Remark::unplaced(name);
            self.failure = Some(TapFailure { remark, stage: TapStage::Named });
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
    pub(super) fn end(&mut self, found: &mut Vec<Remark>) {
        let remark = self.failure.take().map(|failure| failure.remark);
        let own = |remark: &Remark| !remark.message.ends_with(" failed") || !remark.message.contains(" subtest");
        found.extend(remark.filter(own));
    }
}

impl TapFailure {
    fn detail(&mut self, line: &str) {
        if let Some(place) = line.strip_prefix("location: ").and_then(|at| leading(at.trim_matches('\''))) {
            self.remark.place = Some(place.0);
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
        let said = self.remark.message.trim_end_matches(':');
        if !more.is_empty() {
            self.remark.message = clipped(&format!("{said}: {more}"));
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
pub(super) fn compiler_error(line: &str) -> Option<Remark> {
    let (head, said) = line.trim_start().split_once("): ")?;
    let (file, place) = head.rsplit_once('(')?;
    let (at, column) = number(place)?;
    let plain = column.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    let (level, message) = RemarkLevel::parse(said);
    (plain && is_path(file)).then(|| Remark::new(level, Some(SourceLocation::new(file, Some(at))), message))
}

#[derive(Debug, Default)]
pub(super) struct Eslint {
    file: Option<String>,
}

const LEVELS: [([&str; 3], RemarkLevel); 2] =
    [(["error", "✖", "×"], RemarkLevel::Error), (["warning", "⚠", "‼"], RemarkLevel::Warning)];

impl Eslint {
    pub(super) fn read(&mut self, line: &str, found: &mut Vec<Remark>) -> bool {
        if !line.starts_with(' ') {
            self.file = is_path(line).then(|| line.to_owned());
            return self.file.is_some();
        }
        report(self.file.as_deref().and_then(|file| linted(file, line.trim())), found)
    }
}

/// `3:5  error  message  rule`
fn linted(file: &str, item: &str) -> Option<Remark> {
    let (line, rest) = number(item)?;
    let (_, rest) = number(rest.strip_prefix(':')?)?;
    let rest = rest.trim_start();
    let after = |marks: [&str; 3]| marks.into_iter().find_map(|mark| rest.strip_prefix(mark));
    let (said, level) = LEVELS.into_iter().find_map(|(marks, level)| Some((after(marks)?.trim_start(), level)))?;
    let message = match said.rsplit_once("  ") {
        Some((message, rule)) => format!("{} ({rule})", message.trim_end()),
        None => said.to_owned(),
    };
    Some(Remark::new(level, Some(SourceLocation::new(file, Some(line))), &message))
}
