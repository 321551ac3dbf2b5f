//! Finds lines with the label of a blocking finding that are not list items in a contract's format.

use std::ops::Range;

use super::message::FinalMessage;
use super::{ReviewRequest, inline_severity, item, location, sections};
use crate::review::Severity;

/// The first line in which one part is only a label whose severity reaches the bar and another part describes it:
/// `src/a.rs:6: critical: …`, `P1: …`, `Must fix: …`, `| 🔴 Critical | src/a.rs | … |`, `**Severity:** Important`. A
/// known finding or a location with a state such as `not fixed` counts too.
pub(super) fn first_blocking(prose: &FinalMessage<'_>, ask: &ReviewRequest) -> Option<usize> {
    let text = prose.text();
    let mut start = 0;
    // Whether the current table has a severity column.
    let mut graded = false;
    text.split_inclusive('\n').find_map(|line| {
        let at = start + (line.len() - line.trim_start().len());
        start += line.len();
        let line = LabelledLine::new(line.trim());
        let is_row = line.text.starts_with('|');
        graded &= is_row;
        let is_header = is_row && is_delimiter(&text[start..]);
        let is_said = |part: usize| prose.structure().markup_at(at + part).is_none();
        let blocks = !is_header && is_said(0) && line.blocks(graded, is_said, ask);
        graded |= is_row && line.parts.iter().any(|part| names_severity(&line.text[part.clone()]));
        blocks.then_some(at)
    })
}

/// Whether the next line is the delimiter row of a table: `|---|:--|`.
fn is_delimiter(rest: &str) -> bool {
    let line = rest.split('\n').next().unwrap_or_default().trim();
    line.contains("--") && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

/// A line and its parts: the text between separators, without the signs around it.
struct LabelledLine {
    text: String,
    parts: Vec<Range<usize>>,
    /// The first part that contains a letter.
    lead: usize,
}

const SEPARATORS: [char; 10] = ['|', ':', '[', ']', '(', ')', '—', '–', '*', '_'];

impl LabelledLine {
    fn new(line: &str) -> Self {
        // A dash between blanks, with the same number of bytes.
        let text = line.replace(" - ", "—");
        let mut parts = Vec::new();
        let mut start = 0;
        for part in text.split_inclusive(SEPARATORS) {
            let bare = part.trim_start_matches(|c: char| !c.is_alphanumeric());
            let begin = start + (part.len() - bare.len());
            let length = bare.trim_end_matches(|c: char| !c.is_alphanumeric()).len();
            parts.extend((length > 0).then_some(begin..begin + length));
            start += part.len();
        }
        let has_letter = |part: &Range<usize>| text[part.clone()].contains(char::is_alphabetic);
        let lead = parts.iter().position(has_letter).unwrap_or_default();
        Self { text, parts, lead }
    }

    fn part(&self, index: usize) -> Option<&str> {
        self.parts.get(index).map(|part| &self.text[part.clone()])
    }

    fn blocks(&self, graded: bool, is_said: impl Fn(usize) -> bool, ask: &ReviewRequest) -> bool {
        let labels: Vec<(usize, Severity)> = (0..self.parts.len())
            .filter_map(|index| {
                let weak = || self.weak_label(index).filter(|_| is_said(self.parts[index].start));
                Some((index, self.label(index, graded).or_else(weak)?))
            })
            .collect();
        let worst = labels.iter().map(|(_, severity)| *severity).max();
        let is_below = worst.is_some_and(|severity| !ask.fail_on.is_reached_by(severity));
        let labelled = worst.is_some() && self.is_described(&labels) && !self.is_negated(&labels);
        !is_below && (labelled || self.is_open(ask)) && !sections::reports_fixed(&self.text)
    }

    /// The severity of a part that can only be a label: `critical`, or any other severity after `Severity:` or in a
    /// severity column.
    fn label(&self, index: usize, graded: bool) -> Option<Severity> {
        const LABELS: [&str; 7] = ["critical", "blocker", "blocking", "severe", "p0", "p1", "must fix"];
        let part = without_number(self.part(index)?);
        if LABELS.iter().any(|label| label.eq_ignore_ascii_case(part)) {
            return Some(Severity::Critical);
        }
        let named = || index.checked_sub(1).and_then(|index| self.part(index)).is_some_and(names_severity);
        severity_of(part).filter(|_| graded || named())
    }

    /// The severity of a part with a word such as `high` in the position of a label: at the start of the line, in
    /// brackets, as `HIGH:`, or as `— Important —`. A heading is not a label; it applies to the lines below it.
    fn weak_label(&self, index: usize) -> Option<Severity> {
        let part = without_number(self.part(index)?);
        let last = part.rsplit(' ').next().unwrap_or_default();
        let severity = inline_severity::severity_word(last).or_else(|| severity_of(part))?;
        let (before, after) = (self.gap(index), self.gap(index + 1));
        let shouted = last.bytes().all(|byte| byte.is_ascii_uppercase()) && after.starts_with(':');
        let of_problem =
            || index.checked_sub(1).and_then(|index| self.part(index)).is_some_and(sections::names_problem);
        let bracketed = before.contains('[') || (before.contains('(') && of_problem());
        let bracketed = bracketed && after.starts_with([']', ')', '*', '_']);
        let apart = |gap: &str| gap.contains(['|', '—', '–', '(', ')']);
        let telling = matches!(part, "Important" | "Major") && apart(before) && apart(after);
        let bare = severity_of(part).is_some() && (index == self.lead || bracketed || telling);
        ((shouted || bare) && item::heading_severity(&self.text).is_none()).then_some(severity)
    }

    /// The text between a part and the one before it.
    fn gap(&self, index: usize) -> &str {
        let start = index.checked_sub(1).and_then(|index| self.parts.get(index)).map_or(0, |part| part.end);
        let end = self.parts.get(index).map_or(self.text.len(), |part| part.start);
        &self.text[start..end]
    }

    /// Whether the line describes the label, or states that the label is the severity of something above it.
    fn is_described(&self, labels: &[(usize, Severity)]) -> bool {
        let is_label = |index: &usize| labels.binary_search_by_key(index, |(at, _)| *at).is_ok();
        let mut others = (0..self.parts.len()).filter(|index| !is_label(index));
        others.any(|index| {
            let part = self.part(index).unwrap_or_default();
            if names_severity(part) { labels.len() == 1 } else { part.contains(char::is_alphabetic) }
        }) || labels.iter().any(|(index, _)| self.part(*index).is_some_and(|part| part.contains(", ")))
    }

    /// Whether a part says that there is nothing or that it is done: `Critical: 0, Important: 0`, `| … | Fixed |`.
    fn is_negated(&self, labels: &[(usize, Severity)]) -> bool {
        let denies = |part: &str| {
            inline_severity::says_nothing(part)
                || sections::is_aside(part)
                || sections::is_done_word(without_number(part))
        };
        let counted = |(index, _): &(usize, Severity)| {
            let next = self.part(index + 1).and_then(|part| part.split(',').next());
            next.is_some_and(inline_severity::says_nothing)
        };
        self.parts.iter().any(|part| denies(&self.text[part.clone()])) || labels.iter().all(counted)
    }

    /// Whether the line names a location or a known finding and gives it an unresolved state.
    fn is_open(&self, ask: &ReviewRequest) -> bool {
        const OPEN: [&str; 9] = [
            "open",
            "still open",
            "still there",
            "still present",
            "unresolved",
            "unfixed",
            "not fixed",
            "not resolved",
            "not addressed",
        ];
        let parts = || (0..self.parts.len()).filter_map(|index| self.part(index));
        let is_state = |part: &str| OPEN.iter().any(|state| state.eq_ignore_ascii_case(part));
        let is_below = |part: &str| severity_of(part).is_some_and(|severity| !ask.fail_on.is_reached_by(severity));
        ask.fail_on.is_reached_by(Severity::Critical)
            && parts().any(is_state)
            && !parts().any(is_below)
            && (sections::contains_finding_id(&self.text) || location::find(&self.text).is_some())
    }
}

fn without_number(part: &str) -> &str {
    let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix(['.', ')']).filter(|_| rest.len() < part.len()).map_or(part, str::trim_start)
}

/// The severity of a part that is only its word, perhaps with a noun: `High`, `Medium severity`, `P2`.
fn severity_of(part: &str) -> Option<Severity> {
    const NOUNS: [&str; 5] = ["severity", "priority", "issue", "bug", "finding"];
    let (word, noun) = part.split_once([' ', '-']).unwrap_or((part, NOUNS[0]));
    let severity = match word {
        "P2" => Some(Severity::Important),
        "P3" => Some(Severity::Minor),
        _ => inline_severity::severity_word(word),
    };
    severity.filter(|_| NOUNS.iter().any(|known| known.eq_ignore_ascii_case(noun)))
}

/// Whether a part ends with the name of the next one: `Severity`, `The key is wrong. Severity`.
fn names_severity(part: &str) -> bool {
    let last = part.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    ["severity", "priority"].iter().any(|name| name.eq_ignore_ascii_case(last))
}
