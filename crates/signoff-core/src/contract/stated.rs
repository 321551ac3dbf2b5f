//! Severities and kinds that a reviewer states in running text.

use std::ops::Range;

use super::place::Place;
use crate::review::Severity;

/// The kinds of findings that reviewers are asked for.
const KINDS: [&str; 13] = [
    "over-engineering",
    "missing-error-handling",
    "pattern-violation",
    "dead-code",
    "spec-intent-mismatch",
    "missing_requirement",
    "extra_feature",
    "misunderstanding",
    "bug",
    "security",
    "architecture",
    "error_handling",
    "testing",
];

/// Words that state a severity we do not have. An unknown severity is a critical one.
const UNKNOWN: [&str; 6] = ["blocker", "blocking", "major", "severe", "fatal", "urgent"];

/// The first severity the text states, and where. A word states one in capitals (`HIGH`), in brackets,
/// parentheses or bold (`[Critical]`, `(minor)`), as a label (`Minor: …`) or after the word `severity`.
/// "high latency" states none.
pub(super) fn severity(text: &str) -> Option<(Severity, Range<usize>)> {
    let mut previous = "";
    let mut first = true;
    for range in words(text) {
        let word = &text[range.clone()];
        if let Some(severity) = severity_word(word)
            && (previous.eq_ignore_ascii_case("severity") || is_stated(text, &range, first))
        {
            return Some((severity, range));
        }
        previous = word;
        first = false;
    }
    None
}

fn severity_word(word: &str) -> Option<Severity> {
    const LONGEST: usize = 9;
    if word.len() > LONGEST {
        return None;
    }
    let unknown = UNKNOWN.iter().any(|unknown| unknown.eq_ignore_ascii_case(word));
    Severity::known(word).or(unknown.then_some(Severity::Critical))
}

fn is_stated(text: &str, range: &Range<usize>, first: bool) -> bool {
    let before = text[..range.start].chars().next_back();
    let after = text[range.end..].chars().next();
    let opened = matches!(before, Some('[' | '(' | '*'));
    let closed = matches!(after, Some(']' | ')' | '*' | ':'));
    let capitals = text[range.clone()].bytes().all(|byte| byte.is_ascii_uppercase());
    let joined = |side: Option<char>| matches!(side, Some('-' | '.' | '/' | '\\' | '\'' | '`' | '='));
    let sentence_end =
        after == Some('.') && text[range.end + 1..].chars().next().is_none_or(char::is_whitespace);
    (opened && closed)
        || (capitals && !joined(before) && (!joined(after) || sentence_end))
        || (first && after == Some(':'))
}

/// Maximal runs of letters, digits and underscores.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find(is_word)?;
        from = text[start..].find(|c| !is_word(c)).map_or(text.len(), |at| start + at);
        Some(start..from)
    })
}

/// A kind named in brackets or parentheses, and where: `[bug]`, `(dead-code)`.
pub(super) fn kind(text: &str) -> Option<(&'static str, Range<usize>)> {
    text.match_indices(['[', '(']).find_map(|(at, _)| {
        let inside = &text[at + 1..];
        let closes = |kind: &&str| inside.strip_prefix(kind).is_some_and(|rest| rest.starts_with([']', ')']));
        KINDS.into_iter().find(closes).map(|kind| (kind, at + 1..at + 1 + kind.len()))
    })
}

/// What an item says, without the tags and the place it begins with: those are fields of their own. A
/// place further on keeps its file only, so that the text stays the same when the code moves.
pub(super) fn description(text: &str, tags: [Option<&Range<usize>>; 2], place: Option<&Place>) -> String {
    let opening =
        |c: char| c.is_whitespace() || matches!(c, '[' | '(' | '*' | '`' | '|' | ':' | '-' | '–' | '—' | ',');
    let skips = [tags[0], tags[1], place.map(|place| &place.range)];
    let mut from = 0;
    loop {
        let next = text.len() - text[from..].trim_start_matches(opening).len();
        let Some(skip) = skips.iter().flatten().find(|skip| skip.start == next) else { break };
        let rest = &text[skip.end..];
        from = text.len() - rest.trim_start_matches([']', ')', '*', '`', ':']).len();
    }
    let said = match place {
        Some(place) if place.range.start >= from => {
            format!("{}{}{}", &text[from..place.range.start], place.file, &text[place.range.end..])
        }
        Some(_) | None => text[from..].to_owned(),
    };
    let bare = said.trim_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '–' | '—' | '|' | ','));
    let bare = if from > 0 { bare.trim_start_matches(['-', ' ']) } else { bare };
    if bare.is_empty() { text.trim().to_owned() } else { bare.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::place;

    #[test]
    fn a_severity_is_stated_not_mentioned() {
        let texts = [
            "[Critical] src/a.rs:10 Missing check",
            "src/a.rs:10 - HIGH: `x` is never closed",
            "`src/a.rs:10` (minor) rename it",
            "**Important:** src/a.rs:3 no test",
            "minor: src/a.rs:3 typo",
            "src/a.rs:3 severity: high, no check",
            "src/a.rs:3 high latency under a low limit",
            "src/a.rs:3 HIGH_WATER and src/LOW/x.rs and HIGH-level",
            "[blocker] src/a.rs:3 it burns",
            "| HIGH | src/a.rs:3 | it burns |",
        ];
        let shown: Vec<_> = texts
            .iter()
            .map(|text| {
                let stated = severity(text);
                let place = place::find(text);
                let tags = [stated.as_ref().map(|(_, range)| range), None];
                let said = description(text, tags, place.as_ref());
                format!("{} | {said}", stated.map_or("-", |(severity, _)| severity.word()))
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @"
    critical | Missing check
    critical | `x` is never closed
    minor | rename it
    important | no test
    minor | typo
    critical | severity: high, no check
    - | high latency under a low limit
    - | HIGH_WATER and src/LOW/x.rs and HIGH-level
    critical | it burns
    critical | it burns
    ");
    }
}
