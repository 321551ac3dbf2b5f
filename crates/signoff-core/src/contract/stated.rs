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
const UNKNOWN: [&str; 8] =
    ["blocker", "blockers", "blocking", "major", "severe", "fatal", "urgent", "showstopper"];

/// Words for remarks that nobody has to act on.
const REMARKS: [&str; 6] = ["nit", "nits", "nitpick", "nitpicks", "suggestion", "suggestions"];

/// What may stand between a severity and its colon: `Critical issue:`, `(high severity)`.
const NOUNS: [&str; 12] = [
    "severity", "priority", "risk", "issue", "issues", "bug", "bugs", "problem", "problems", "finding",
    "findings", "concern",
];

/// Words before a severity that take it back.
const DENIALS: [&str; 7] = ["no", "not", "non", "without", "any", "zero", "nor"];

/// The first severity the text states, and where. A word states one as a [`tag`], in capitals (`HIGH`), in
/// bold or between separators (`a.rs:1 - minor: …`). "high latency" states none.
pub(super) fn severity(text: &str) -> Option<(Severity, Range<usize>)> {
    tag(text).or_else(|| first(text, mentions))
}

/// The first severity that stands as a mark of its own, so that it says something without a place too: in
/// brackets or parentheses, after the word `severity`, or at the head of the text as a label (`Minor: …`,
/// `**Critical — …**`, `HIGH …`).
pub(super) fn tag(text: &str) -> Option<(Severity, Range<usize>)> {
    first(text, marks)
}

/// Whether a line at the margin begins with a severity as its label.
pub(super) fn opens(line: &str) -> bool {
    let at_margin = !line.starts_with(char::is_whitespace);
    at_margin && tag(line).is_some_and(|(_, range)| !line[..range.start].contains(char::is_alphanumeric))
}

/// A severity word and what is around it.
struct Word<'t> {
    text: &'t str,
    range: Range<usize>,
    previous: &'t str,
    /// Whether no letter comes before it.
    leads: bool,
    /// Where the word and its noun end.
    end: usize,
}

fn first(text: &str, states: fn(&Word<'_>) -> bool) -> Option<(Severity, Range<usize>)> {
    let mut previous = "";
    let mut leads = true;
    for range in words(text) {
        let word = &text[range.clone()];
        if let Some(severity) = severity_word(word).or_else(|| priority(text, &range)) {
            let end = noun_end(text, range.end);
            let found = Word { text, range: range.clone(), previous, leads, end };
            let denied = DENIALS.iter().any(|denial| denial.eq_ignore_ascii_case(previous));
            if !denied && states(&found) {
                return Some((severity, range.start..end));
            }
        }
        leads &= !word.contains(char::is_alphabetic);
        previous = word;
    }
    None
}

/// `[P0]` and `[P1]` block, `[P2]` and `[P3]` are important and minor.
fn priority(text: &str, range: &Range<usize>) -> Option<Severity> {
    let bracketed = text[..range.start].ends_with('[') && text[range.end..].starts_with(']');
    match &text[range.clone()] {
        "P0" | "P1" if bracketed => Some(Severity::Critical),
        "P2" if bracketed => Some(Severity::Important),
        "P3" if bracketed => Some(Severity::Minor),
        _ => None,
    }
}

pub(super) fn severity_word(word: &str) -> Option<Severity> {
    const LONGEST: usize = 11;
    if word.len() > LONGEST {
        return None;
    }
    let is = |known: &str| known.eq_ignore_ascii_case(word);
    let unknown = UNKNOWN.iter().any(|one| is(one)).then_some(Severity::Critical);
    let remark = REMARKS.iter().any(|one| is(one)).then_some(Severity::Minor);
    Severity::known(word).or(unknown).or(remark)
}

/// Where a noun after the severity ends, if there is one.
fn noun_end(text: &str, end: usize) -> usize {
    let rest = &text[end..];
    let Some(noun) = rest.strip_prefix([' ', '-']) else { return end };
    let length = noun.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(noun.len());
    let is_noun = NOUNS.iter().any(|one| one.eq_ignore_ascii_case(&noun[..length]));
    if is_noun { end + 1 + length } else { end }
}

impl Word<'_> {
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

    /// Whether a colon, a bracket, a cell or a dash comes next.
    fn is_label(&self) -> bool {
        let after = self.after();
        let bare = after.trim_start_matches([' ', '*', '_']);
        after.starts_with([':', ']', ')', '*', '|'])
            || bare.starts_with([':', '—', '–', '|'])
            || bare.starts_with("- ")
    }
}

fn marks(word: &Word<'_>) -> bool {
    let bracketed = word.before().ends_with(['[', '(']) && word.after().starts_with([']', ')']);
    let named =
        word.previous.eq_ignore_ascii_case("severity") || word.previous.eq_ignore_ascii_case("priority");
    let leading = word.leads && (word.is_label() || word.is_capital() || word.before().ends_with('['));
    bracketed || named || leading
}

fn mentions(word: &Word<'_>) -> bool {
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

/// A kind named in brackets or parentheses, and where: `[bug]`, `(dead-code)`.
pub(super) fn kind(text: &str) -> Option<(&'static str, Range<usize>)> {
    text.match_indices(['[', '(']).find_map(|(at, _)| {
        let inside = &text[at + 1..];
        let closes = |kind: &&str| inside.strip_prefix(kind).is_some_and(|rest| rest.starts_with([']', ')']));
        KINDS.into_iter().find(closes).map(|kind| (kind, at + 1..at + 1 + kind.len()))
    })
}

/// What an item says, without the tags and the place it begins with: those are fields of their own. The rest of
/// the text stays as the reviewer wrote it.
pub(super) fn description(text: &str, tags: [Option<&Range<usize>>; 2], place: Option<&Place>) -> String {
    let skips = [tags[0], tags[1], place.map(|place| &place.range)];
    let mut lead = Lead::default();
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
    let said = without_separator(&text[lead.end..]).trim();
    let is_row = text.trim_start().starts_with('|');
    let said = said.strip_suffix('|').filter(|_| is_row).map_or(said, str::trim_end);
    if said.is_empty() { text.trim().to_owned() } else { lead.without_closing_bold(said) }
}

fn is_opening(c: char) -> bool {
    c.is_whitespace() || matches!(c, '[' | '(' | '*' | '`' | '|' | ':' | '-' | '–' | '—' | ',')
}

/// Without the sign between a label or a place and what is said about it. A dash is one only before a blank:
/// `-1 is returned` and `--force` begin with theirs.
fn without_separator(text: &str) -> &str {
    let text = text.trim_start();
    let rest = text.strip_prefix([':', '–', '—', '|', ',']);
    rest.or_else(|| text.strip_prefix('-').filter(|rest| rest.starts_with(char::is_whitespace)))
        .unwrap_or(text)
}

/// The labels and places a text begins with, and the marks that are still open behind them.
#[derive(Default)]
struct Lead {
    end: usize,
    brackets: usize,
    parentheses: usize,
    stars: usize,
    ticks: usize,
}

impl Lead {
    /// Takes the text up to `to`, and the marks that close behind it.
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
        // Two pairs of stars are bold type that is closed again.
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

    /// The text without the end of the bold type that begins with the label: `**Critical — it burns** now`.
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
    const NOTHING: [&str; 7] = ["none", "no", "nothing", "n", "na", "0", "zero"];
    const AROUND: [&str; 30] = [
        "a",
        "found",
        "identified",
        "detected",
        "noted",
        "reported",
        "remaining",
        "remain",
        "were",
        "was",
        "are",
        "is",
        "there",
        "have",
        "been",
        "to",
        "report",
        "here",
        "at",
        "all",
        "this",
        "time",
        "in",
        "diff",
        "of",
        "note",
        "any",
        "other",
        "or",
        "and",
    ];
    let mut nothing = false;
    words(text).all(|range| {
        let word = text[range].to_ascii_lowercase();
        let none = NOTHING.contains(&word.as_str());
        nothing |= none;
        let known = |list: &[&str]| list.contains(&word.as_str());
        none || known(&AROUND)
            || known(&NOUNS)
            || known(&["blockers", "concerns"])
            || severity_word(&word).is_some()
    }) && nothing
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
        critical | SQL injection (`src/a.rs:10`)
        critical | it burns
        critical | it burns (high severity)
        minor | rename
        - | has no HIGH issue
        minor | rename
        ");
    }
}
