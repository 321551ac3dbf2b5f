//! rustc, clippy, rustfmt, and who prints like them: a headline, and below it ` --> src/a.rs:3:5`.

use super::place::{self, Place};
use super::remark::{Found, Level, Remark, clipped};

#[derive(Debug, Default)]
pub(super) struct Rust {
    headline: Option<Headline>,
    /// Whether the last remark is ours, and what follows may be help for it.
    open: bool,
    /// The line before, where it may be a headline.
    before: Option<String>,
}

#[derive(Debug)]
struct Headline {
    level: Level,
    message: String,
}

impl Rust {
    pub(super) fn read(&mut self, line: &str, found: &mut Found) -> bool {
        if line.is_empty() {
            *self = Self::default();
        }
        let taken = self.headline(line) || self.arrow(line, found) || self.help(line, found);
        // ruff's headlines say only the rule.
        self.before = (!taken && !line.starts_with(' ')).then(|| clipped(line));
        taken || unformatted(line, found)
    }

    /// `error[E0308]: mismatched types`, `warning: unused variable`, `note: …`.
    fn headline(&mut self, line: &str) -> bool {
        const WORDS: [(&str, Level); 4] = [
            ("error", Level::Error),
            ("warning", Level::Warning),
            ("note", Level::Note),
            ("help", Level::Note),
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
        self.open &= level == Level::Note;
        true
    }

    fn arrow(&mut self, line: &str, found: &mut Found) -> bool {
        let Some(place) = line.trim_start().strip_prefix("--> ").and_then(whole) else { return false };
        let before = self.before.take().filter(|before| !before.is_empty() && !self.open);
        let unstated = before.map(|message| Headline { level: Level::Unstated, message });
        match self.headline.take().or(unstated) {
            // A note tells more about the remark before it.
            None | Some(Headline { level: Level::Note, .. }) => {}
            Some(Headline { level, message }) => {
                found.push(Remark::of(level, Some(place), &message));
                self.open = true;
            }
        }
        true
    }

    /// `= help: …`, `help: …`, or `^^^ help: …` beside the source.
    fn help(&mut self, line: &str, found: &mut Found) -> bool {
        let Some((before, help)) = line.split_once("help: ").filter(|_| self.open) else { return false };
        if !before.trim_end().ends_with(['=', '^', '-']) && !before.is_empty() {
            return false;
        }
        // How to silence a lint is no help, and neither is a page about it.
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

/// A place with nothing behind it.
fn whole(text: &str) -> Option<Place> {
    place::leading(text.trim_end()).filter(|(_, rest)| rest.is_empty()).map(|(place, _)| place)
}

/// `Diff in src/main.rs:1:` of rustfmt.
fn unformatted(line: &str, found: &mut Found) -> bool {
    let Some(place) = line.strip_prefix("Diff in ").and_then(|rest| whole(rest.trim_end_matches(':'))) else {
        return false;
    };
    found.push(Remark::error(place, "not formatted as rustfmt formats it"));
    true
}
