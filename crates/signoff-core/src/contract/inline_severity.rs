//! Severities and kinds that a reviewer states inline.

use std::ops::Range;

use super::location::LocationMention;
use super::wording::is_listed;
use crate::review::Severity;

/// The kinds of findings that reviewers are asked to use.
const KINDS: &str = "over-engineering missing-error-handling pattern-violation dead-code spec-intent-mismatch \
    missing_requirement extra_feature misunderstanding bug security architecture error_handling testing";

/// Words for severities outside our scale. An unknown severity counts as critical.
const UNKNOWN: &str = "blocker blockers blocking major severe fatal urgent showstopper";

/// Words for optional remarks.
const REMARKS: &str = "nit nits nitpick nitpicks suggestion suggestions";

/// Nouns allowed between a severity and its colon: `Critical issue:`, `(high severity)`.
const NOUNS: &str = "severity priority risk issue issues bug bugs problem problems finding findings concern";

/// Words before a severity that negate it.
const DENIALS: &str = "no not non without any zero nor";

/// The first severity that the text states, and its range. A word states one as a [`tag`], in capitals (`HIGH`), in
/// bold or between separators (`a.rs:1 - minor: …`). "high latency" states none.
pub(super) fn severity(text: &str) -> Option<(Severity, Range<usize>)> {
    tag(text).or_else(|| first(text, is_mention))
}

/// The first severity that is a mark, so that it also counts without a location: in brackets or parentheses, after
/// the word `severity`, or as a label at the start of the text (`Minor: …`, `**Critical — …**`, `HIGH …`).
pub(super) fn tag(text: &str) -> Option<(Severity, Range<usize>)> {
    first(text, is_tag)
}

/// Whether an unindented line begins with a severity label.
pub(super) fn begins_with_severity(line: &str) -> bool {
    let at_margin = !line.starts_with(char::is_whitespace);
    at_margin && tag(line).is_some_and(|(_, range)| !line[..range.start].contains(char::is_alphanumeric))
}

/// A severity word and its context.
struct SeverityWord<'t> {
    text: &'t str,
    range: Range<usize>,
    previous: &'t str,
    /// Whether no letter comes before it.
    leads: bool,
    /// The end of the word and its noun.
    end: usize,
}

fn first(text: &str, states: fn(&SeverityWord<'_>) -> bool) -> Option<(Severity, Range<usize>)> {
    let mut previous = "";
    let mut leads = true;
    for range in words(text) {
        let word = &text[range.clone()];
        if let Some(severity) = severity_word(word).or_else(|| priority(text, &range)) {
            let end = noun_end(text, range.end);
            let found = SeverityWord { text, range: range.clone(), previous, leads, end };
            if !is_listed(previous, DENIALS) && states(&found) {
                return Some((severity, range.start..end));
            }
        }
        leads &= !word.contains(char::is_alphabetic);
        previous = word;
    }
    None
}

/// The severity of `[P0]` to `[P3]`.
fn priority(text: &str, range: &Range<usize>) -> Option<Severity> {
    let bracketed = text[..range.start].ends_with('[') && text[range.end..].starts_with(']');
    Severity::from_priority(&text[range.clone()]).filter(|_| bracketed)
}

pub(super) fn severity_word(word: &str) -> Option<Severity> {
    const MAX_WORD_BYTES: usize = 11;
    if word.len() > MAX_WORD_BYTES {
        return None;
    }
    let unknown = is_listed(word, UNKNOWN).then_some(Severity::Critical);
    let remark = is_listed(word, REMARKS).then_some(Severity::Minor);
    Severity::parse(word).or(unknown).or(remark)
}

/// The end of the noun after the severity, if there is one.
fn noun_end(text: &str, end: usize) -> usize {
    let rest = &text[end..];
    let Some(noun) = rest.strip_prefix([' ', '-']) else { return end };
    let length = noun.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(noun.len());
    if is_listed(&noun[..length], NOUNS) { end + 1 + length } else { end }
}

impl SeverityWord<'_> {
    fn before(&self) -> &str {
        &self.text[..self.range.start]
    }

    fn after(&self) -> &str {
        &self.text[self.end..]
    }

    fn is_capital(&self) -> bool {
        let joined = |side: Option<char>| matches!(side, Some('-' | '.' | '/' | '\\' | '\'' | '`' | '='));
        let after = &self.text[self.range.end..];
        let sentence_end =
            after.strip_prefix('.').is_some_and(|rest| rest.chars().next().is_none_or(char::is_whitespace));
        self.text[self.range.clone()].bytes().all(|byte| byte.is_ascii_uppercase())
            && !joined(self.before().chars().next_back())
            && (!joined(after.chars().next()) || sentence_end || self.end > self.range.end)
    }

    /// Whether a colon, bracket, table cell or dash comes next.
    fn is_label(&self) -> bool {
        let after = self.after();
        let bare = after.trim_start_matches([' ', '*', '_']);
        after.starts_with([':', ']', ')', '*', '|']) || bare.starts_with([':', '—', '–', '|']) || bare.starts_with("- ")
    }
}

fn is_tag(word: &SeverityWord<'_>) -> bool {
    let bracketed = word.before().ends_with(['[', '(']) && word.after().starts_with([']', ')']);
    let named = word.previous.eq_ignore_ascii_case("severity") || word.previous.eq_ignore_ascii_case("priority");
    let leading = word.leads && (word.is_label() || word.is_capital() || word.before().ends_with('['));
    bracketed || named || leading
}

fn is_mention(word: &SeverityWord<'_>) -> bool {
    let bold = word.before().ends_with('*') && word.after().starts_with(['*', ':']);
    let separated = word.before().trim_end().ends_with(['-', '–', '—', '|']) && word.is_label();
    bold || separated || word.is_capital()
}

/// Maximal runs of letters, digits and underscores.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find(is_word)?;
        from = text[start..].find(|c| !is_word(c)).map_or(text.len(), |at| start + at);
        let word = &text[start..from];
        // `__Critical__` is emphasis.
        let begin = start + (word.len() - word.trim_start_matches('_').len());
        Some(begin.min(from)..(start + word.trim_end_matches('_').len()).max(begin.min(from)))
    })
}

/// A kind in brackets or parentheses, and its range: `[bug]`, `(dead-code)`.
pub(super) fn kind(text: &str) -> Option<(&'static str, Range<usize>)> {
    text.match_indices(['[', '(']).find_map(|(at, _)| {
        let inside = &text[at + 1..];
        let closes = |kind: &&str| inside.strip_prefix(kind).is_some_and(|rest| rest.starts_with([']', ')']));
        KINDS.split(' ').find(closes).map(|kind| (kind, at + 1..at + 1 + kind.len()))
    })
}

/// The description of an item, without the tags and the location at its start, which are separate fields. The rest
/// of the text is unchanged.
pub(super) fn description(text: &str, tags: [Option<&Range<usize>>; 2], location: Option<&LocationMention>) -> String {
    let skips = [tags[0], tags[1], location.map(|location| &location.range)];
    let mut lead = LeadingMarks::default();
    loop {
        let next = text.len() - text[lead.end..].trim_start_matches(is_opening).len();
        let Some(skip) = skips.iter().flatten().find(|skip| skip.start <= next && next < skip.end) else {
            break;
        };
        lead.skip(text, skip.end);
    }
    if lead.end == 0 {
        return text.trim().to_owned();
    }
    let rest = without_separator(&text[lead.end..]).trim();
    let is_row = text.trim_start().starts_with('|');
    let rest = rest.strip_suffix('|').filter(|_| is_row).map_or(rest, str::trim_end);
    if rest.is_empty() { text.trim().to_owned() } else { lead.without_closing_bold(rest) }
}

fn is_opening(c: char) -> bool {
    c.is_whitespace() || matches!(c, '[' | '(' | '*' | '`' | '|' | ':' | '-' | '–' | '—' | ',')
}

/// Removes the separator between a label or location and the description. A dash is a separator only before a
/// blank: `-1 is returned` and `--force` begin with their dash.
fn without_separator(text: &str) -> &str {
    let text = text.trim_start();
    let rest = text.strip_prefix([':', '–', '—', '|', ',']);
    rest.or_else(|| text.strip_prefix('-').filter(|rest| rest.starts_with(char::is_whitespace))).unwrap_or(text)
}

/// The labels and locations at the start of a text, and the marks still open after them.
#[derive(Default)]
struct LeadingMarks {
    end: usize,
    brackets: usize,
    parentheses: usize,
    stars: usize,
    ticks: usize,
}

impl LeadingMarks {
    /// Skips the text up to `to` and the marks that close after it.
    fn skip(&mut self, text: &str, to: usize) {
        for c in text[self.end..to].chars() {
            match c {
                '[' => self.brackets += 1,
                ']' => self.brackets = self.brackets.saturating_sub(1),
                '(' => self.parentheses += 1,
                ')' => self.parentheses = self.parentheses.saturating_sub(1),
                '*' => self.stars += 1,
                '`' => self.ticks = 1 - self.ticks,
                _ => {}
            }
        }
        // Two pairs of stars open and close bold type.
        self.stars %= 4;
        self.end = to;
        let mut labelled = false;
        for c in text[to..].chars() {
            let open = match c {
                ']' => &mut self.brackets,
                ')' => &mut self.parentheses,
                '*' => &mut self.stars,
                '`' => &mut self.ticks,
                ':' if !labelled => {
                    labelled = true;
                    self.end += 1;
                    continue;
                }
                _ => break,
            };
            if *open == 0 {
                break;
            }
            *open -= 1;
            self.end += 1;
        }
    }

    /// Removes the end of bold type that began before the description: `**Critical — it burns** now`.
    fn without_closing_bold(&self, text: &str) -> String {
        let closes = |at: &usize| {
            let before = text[..*at].chars().next_back();
            let after = text[at + 2..].chars().next();
            before.is_some_and(|c| !c.is_whitespace()) && after.is_none_or(|c| !c.is_alphanumeric())
        };
        let mark = text.match_indices("**").map(|(at, _)| at).find(closes).filter(|_| self.stars >= 2);
        mark.map_or_else(|| text.to_owned(), |at| format!("{}{}", &text[..at], &text[at + 2..]))
    }
}

/// Whether a text only says that there is nothing: `None`, `N/A`, `No critical issues found.`
pub(super) fn says_nothing(text: &str) -> bool {
    const NONE_WORDS: &str = "none no nothing n na 0 zero";
    const AROUND: &str = "a found identified detected noted reported remaining remain were was are is there have \
        been to report here at all this time in diff of note any other or and blockers concerns";
    let mut nothing = false;
    words(text).all(|range| {
        let word = &text[range];
        let none = is_listed(word, NONE_WORDS);
        nothing |= none;
        none || is_listed(word, AROUND) || is_listed(word, NOUNS) || severity_word(word).is_some()
    }) && nothing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::location;

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
            "**Critical — SQL injection** (`src/a.rs:10`)",
            "**Critical issue:** src/a.rs:10 it burns",
            "`src/a.rs`:10 it burns (high severity)",
            "src/a.rs:10 - minor: rename",
            "src/a.rs:3 has no HIGH issue",
            "Nit: src/a.rs:3 rename",
        ];
        let shown: Vec<_> = texts
            .iter()
            .map(|text| {
                let found = severity(text);
                let location = location::find(text);
                let tags = [found.as_ref().map(|(_, range)| range), None];
                let description = description(text, tags, location.as_ref());
                format!("{} | {description}", found.map_or("-", |(severity, _)| severity.into_str()))
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
        critical | SQL injection (`src/a.rs:10`)
        critical | it burns
        critical | it burns (high severity)
        minor | rename
        - | has no HIGH issue
        minor | rename
        ");
    }
}
