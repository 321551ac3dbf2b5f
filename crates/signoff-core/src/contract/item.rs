//! What a list item or a line of a review says: a place, a severity, a description.

use super::Ask;
use super::message::Message;
use super::outline::{ListItem, Shown};
use super::place::{self, Place};
use super::stated;
use crate::review::{Finding, Note, Severity};

#[derive(Debug, Clone)]
pub(super) struct Item {
    pub place: Option<Place>,
    pub severity: Option<Severity>,
    kind: Option<&'static str>,
    description: String,
}

impl Item {
    /// Reads the text at `offset` of the message. None if it is empty, struck through or commented out.
    pub fn of(message: &Message<'_>, offset: usize, text: &str) -> Option<Self> {
        let place = place::find(text);
        let at = offset + place.as_ref().map_or(0, |place| place.range.start);
        if text.trim().is_empty()
            || matches!(message.outline().shown(at), Some(Shown::Struck | Shown::Comment))
        {
            return None;
        }
        let stated = stated::severity(text);
        let kind = stated::kind(text);
        let tags = [stated.as_ref().map(|(_, range)| range), kind.as_ref().map(|(_, range)| range)];
        let description = stated::description(text, tags, place.as_ref());
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let severity = stated.map(|(severity, _)| severity);
        Some(Self { place, severity, kind: kind.map(|(kind, _)| kind), description })
    }

    pub fn note(self) -> Note {
        let (file, line) = split(self.place);
        Note { file, line, description: self.description }
    }

    /// A finding; without a stated severity, a critical one.
    pub fn finding(self, kind: &str, ask: &Ask) -> Finding {
        let (file, line) = split(self.place);
        let severity = self.severity.unwrap_or(Severity::Critical);
        let finding = Finding::of(&ask.reviewer, self.kind.unwrap_or(kind), severity, self.description);
        Finding { file, line, ..finding }
    }
}

fn split(place: Option<Place>) -> (Option<String>, Option<u32>) {
    place.map_or((None, None), |place| (Some(place.file), place.line))
}

/// An item's own text and its offset: without the bullet or number, and up to a line that Markdown
/// counts to the item only because no blank line comes before it.
pub(super) fn own_text<'m>(message: &Message<'m>, item: &ListItem) -> (usize, &'m str) {
    let whole = &message.text()[item.range.clone()];
    let unnumbered = whole.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = match whole.strip_prefix(['-', '*', '+']) {
        Some(rest) => rest,
        None if unnumbered.len() < whole.len() => unnumbered.strip_prefix(['.', ')']).unwrap_or(whole),
        None => whole,
    };
    let text = rest.trim_start();
    let mut end = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if number > 0 && (label(line).is_some() || line.trim_start().starts_with("**Verdict:")) {
            break;
        }
        end += line.len();
    }
    (item.range.end - text.len(), &text[..end])
}

/// The severity that a line announces for the list below it: `Critical:`, `**Important:**`, `### Minor`.
pub(super) fn label(line: &str) -> Option<Severity> {
    let line = line.trim();
    let decoration = ['*', '_', '#', ' '];
    let bare = line.trim_matches(decoration);
    let word = match bare.strip_suffix(':') {
        Some(word) => word.trim_end_matches(decoration),
        None if line.starts_with('#') => bare,
        None => return None,
    };
    let first = word.split_whitespace().next()?;
    let of_issues = word
        .split_whitespace()
        .skip(1)
        .all(|word| matches!(word, "issues" | "Issues" | "issue" | "findings"));
    Severity::known(first).filter(|_| of_issues)
}
