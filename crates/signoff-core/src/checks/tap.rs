//! Parses the Test Anything Protocol: `not ok 1 - adds`, and below it a block with the location and the error.

use super::location;
use super::remark::{Remark, RemarkLevel, RemarkList, clipped};

/// The keys that may follow a multi-line error.
const KEYS: [&str; 5] = ["code: ", "name: ", "stack: ", "expected: ", "actual: "];

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
    pub(super) fn read(&mut self, line: &str, found: &mut RemarkList) -> bool {
        let line = line.trim();
        if let Some(name) = failed(line) {
            self.end(found);
            let remark = Remark::new(RemarkLevel::Error, None, name);
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
    pub(super) fn end(&mut self, found: &mut RemarkList) {
        let remark = self.failure.take().map(|failure| failure.remark);
        let own = |remark: &Remark| !remark.message.ends_with(" failed") || !remark.message.contains(" subtest");
        found.remarks.extend(remark.filter(own));
    }
}

impl TapFailure {
    fn detail(&mut self, line: &str) {
        if let Some(place) = line.strip_prefix("location: ").and_then(|at| location::leading(at.trim_matches('\''))) {
            self.remark.place = Some(place.0);
        }
        if let Some(error) = line.strip_prefix("error: ") {
            let below = error.starts_with(['|', '>']);
            self.stage = if below { TapStage::ErrorBelow } else { TapStage::InBlock };
            if !below {
                self.append_message(error.trim_matches('\''));
            }
        } else if KEYS.iter().any(|key| line.starts_with(key)) {
            self.stage = TapStage::InBlock;
        } else if self.stage == TapStage::ErrorBelow {
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
fn failed(line: &str) -> Option<&str> {
    let (_, name) = location::number(line.strip_prefix("not ok ")?)?;
    let expected = name.contains("# TODO") || name.contains("# SKIP");
    (!expected).then(|| name.trim_start_matches([' ', '-']))
}
