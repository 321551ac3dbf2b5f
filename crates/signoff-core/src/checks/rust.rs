//! Parses rustc, clippy, rustfmt and tools that print like them: a headline, and below it ` --> src/a.rs:3:5`.

use super::location::{self, SourceLocation};
use super::remark::{Remark, RemarkLevel, RemarkList, clipped};

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
    location::leading(text.trim_end()).filter(|(_, rest)| rest.is_empty()).map(|(place, _)| place)
}

/// Parses `Diff in src/main.rs:1:` of rustfmt.
fn unformatted(line: &str, found: &mut RemarkList) -> bool {
    let Some(place) = line.strip_prefix("Diff in ").and_then(|rest| bare_location(rest.trim_end_matches(':'))) else {
        return false;
    };
    found.push(Remark::error(place, "not formatted as rustfmt formats it"));
    true
}
