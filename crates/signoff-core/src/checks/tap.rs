//! The Test Anything Protocol: `not ok 1 - adds`, and below it a block with the place and the error.

use super::place;
use super::remark::{Found, Level, Remark, clipped};

/// What may come behind an error of several lines.
const KEYS: [&str; 5] = ["code: ", "name: ", "stack: ", "expected: ", "actual: "];

#[derive(Debug, Default)]
pub(super) struct Tap {
    failure: Option<Failure>,
}

#[derive(Debug)]
struct Failure {
    remark: Remark,
    stage: Stage,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// The line behind `not ok`, where the block begins if there is one.
    Named,
    InBlock,
    /// The error is told in the lines below its key.
    ErrorBelow,
}

impl Tap {
    pub(super) fn read(&mut self, line: &str, found: &mut Found) -> bool {
        let line = line.trim();
        if let Some(name) = failed(line) {
            self.end(found);
            let remark = Remark::of(Level::Error, None, name);
            self.failure = Some(Failure { remark, stage: Stage::Named });
            return true;
        }
        let Some(failure) = &mut self.failure else { return false };
        let begins = failure.stage == Stage::Named;
        if begins == (line == "---") && line != "..." {
            failure.detail(line);
            return true;
        }
        self.end(found);
        !begins
    }

    /// A suite fails because its parts do, and these are told.
    pub(super) fn end(&mut self, found: &mut Found) {
        let remark = self.failure.take().map(|failure| failure.remark);
        let own =
            |remark: &Remark| !remark.message.ends_with(" failed") || !remark.message.contains(" subtest");
        found.remarks.extend(remark.filter(own));
    }
}

impl Failure {
    fn detail(&mut self, line: &str) {
        if let Some(place) =
            line.strip_prefix("location: ").and_then(|at| place::leading(at.trim_matches('\'')))
        {
            self.remark.place = Some(place.0);
        }
        if let Some(told) = line.strip_prefix("error: ") {
            let below = told.starts_with(['|', '>']);
            self.stage = if below { Stage::ErrorBelow } else { Stage::InBlock };
            if !below {
                self.say(told.trim_matches('\''));
            }
        } else if KEYS.iter().any(|key| line.starts_with(key)) {
            self.stage = Stage::InBlock;
        } else if self.stage == Stage::ErrorBelow {
            self.say(line);
        } else {
            self.stage = Stage::InBlock;
        }
    }

    fn say(&mut self, more: &str) {
        let said = self.remark.message.trim_end_matches(':');
        if !more.is_empty() {
            self.remark.message = clipped(&format!("{said}: {more}"));
        }
    }
}

/// `not ok 1 - adds`, unless it was expected to fail.
fn failed(line: &str) -> Option<&str> {
    let (_, name) = place::number(line.strip_prefix("not ok ")?)?;
    let expected = name.contains("# TODO") || name.contains("# SKIP");
    (!expected).then(|| name.trim_start_matches([' ', '-']))
}
