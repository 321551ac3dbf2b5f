//! Recognizes text that says that a finding is done.

/// Words for a resolved finding.
const DONE: [&str; 6] = ["fixed", "resolved", "addressed", "verified", "gone", "closed"];

/// Words allowed beside them: `now fixed in this commit`.
const BESIDE: [&str; 19] = [
    "is",
    "was",
    "has",
    "been",
    "are",
    "were",
    "have",
    "now",
    "already",
    "and",
    "in",
    "this",
    "the",
    "commit",
    "round",
    "diff",
    "change",
    "fully",
    "correctly",
];

/// Words that negate or request the fix.
const UNDONE: [&str; 36] = [
    "not",
    "never",
    "no",
    "still",
    "remains",
    "remain",
    "remaining",
    "partially",
    "partly",
    "isn",
    "wasn",
    "hasn",
    "aren",
    "doesn",
    "didn",
    "but",
    "however",
    "again",
    "yet",
    "must",
    "should",
    "needs",
    "need",
    "can",
    "cannot",
    "could",
    "to",
    "be",
    "if",
    "until",
    "unless",
    "once",
    "wrongly",
    "claimed",
    "only",
    "unresolved",
];

/// Words that say that the problem persists, or that attribute the claim to another person.
const DOUBTS: [&str; 12] = [
    "still",
    "again",
    "remains",
    "unresolved",
    "open",
    "says",
    "said",
    "claims",
    "claimed",
    "claim",
    "marked",
    "reports",
];

/// Whether a clause of a text says that the problem is done (`… is fixed now`) and nothing negates it. `A buffer of
/// fixed size` and `the file is closed too early` do not.
pub(super) fn says_done(text: &str) -> bool {
    const BEFORE: [&str; 11] =
        ["is", "are", "was", "were", "been", "now", "all", "both", "already", "correctly", "properly"];
    const AFTER: [&str; 10] = ["now", "in", "by", "with", "and", "since", "as", "here", "correctly", "properly"];
    let is_done = |clause: &str| {
        let words: Vec<&str> = words(clause).collect();
        words.iter().enumerate().any(|(at, word)| {
            let before = at.checked_sub(1).is_none_or(|at| is_one(words[at], &BEFORE));
            let after = words.get(at + 1).is_none_or(|word| is_one(word, &AFTER));
            is_one(word, &DONE[..3]) && before && after
        })
    };
    text.split(['.', ',', ';', ':', '!', '(', ')', '—', '–']).any(is_done) && !says_undone(text)
}

/// Whether a text has a word that negates that something is done.
fn says_undone(text: &str) -> bool {
    any(text, &UNDONE)
}

/// Whether a finding is marked as fixed at its start or end: `[Critical] a.rs:1 … — fixed`, `Fixed: [Critical] …`.
/// The text of the finding itself does not count: "the id is not checked — fixed".
pub(super) fn is_marked_done(text: &str) -> bool {
    let (first, rest) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
    let bare = first.trim_end_matches(|c: char| !c.is_alphanumeric());
    let (finding, mark) = match bare.rfind(is_separator).max(bare.rfind(" - ")) {
        Some(at) if says_only_done(&bare[at..]) => bare.split_at(at),
        Some(_) | None => match leading_mark(first) {
            Some(end) => (&first[end..], &first[..end]),
            None => return false,
        },
    };
    says_only_done(mark) && !any(finding, &DOUBTS) && !says_undone(rest)
}

fn is_separator(c: char) -> bool {
    matches!(c, '—' | '–' | ':' | '|' | '→' | '✅' | '✔' | '(' | '[')
}

/// The end of the mark at the start of a text: `Fixed:`, `(Fixed)`, `RESOLVED `.
fn leading_mark(text: &str) -> Option<usize> {
    let start = text.find(char::is_alphabetic)?;
    let end = start + text[start..].find(|c: char| !c.is_alphabetic()).unwrap_or(text.len() - start);
    let after = text[end..].trim_start_matches(['*', '_', ' ']);
    let is_set_apart = after.starts_with([':', ')', ']', '—', '–']);
    let is_capital = text[start..end].chars().all(char::is_uppercase);
    (is_set_apart || is_capital).then_some(end)
}

fn says_only_done(mark: &str) -> bool {
    any(mark, &DONE) && words(mark).all(|word| is_one(word, &DONE) || is_one(word, &BESIDE))
}

fn any(text: &str, list: &[&str]) -> bool {
    words(text).any(|word| is_one(word, list))
}

fn is_one(word: &str, list: &[&str]) -> bool {
    list.iter().any(|one| one.eq_ignore_ascii_case(word))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_that_a_finding_is_done() {
        let done = [
            "- ✅ [Critical] cache.ts:14 unbounded map — fixed",
            "- Fixed: [Critical] cache.ts:14 unbounded",
            "- (Fixed) [Critical] cache.ts:14 unbounded",
            "- [Resolved] Critical: cache.ts:14 unbounded",
            "- RESOLVED [critical] cache.ts:14 unbounded",
            "- [Critical] cache.ts:14 the id is not checked — **resolved**.",
            "- Critical — cache.ts:14: fixed",
            "- [Critical] cache.ts:14 unbounded - fixed",
            "- [Critical] cache.ts:14 unbounded (now fixed in this commit)",
            "| cache.ts:14 | Critical | ✅ Fixed |",
        ];
        for text in done {
            assert!(is_marked_done(text), "{text}");
        }
        let open = [
            "- [Critical] a.py:1 fixed-size buffer overflows",
            "- [Critical] a.py:1 fixed point arithmetic loses cents",
            "- [Critical] a.py:1 hostname resolved",
            "- [Critical] a.py:1 DNS name is resolved twice",
            "- [Critical] a.py:1: fixed? No.",
            "- [Critical] a.py:1 — not fixed",
            "- [Critical] a.py:1 race: fixed in a.py but not in b.py",
            "- [Critical] a.py:1 still overflows — fixed",
            "- [Critical] a.py:1 the fixer says: fixed",
            "- [Critical] a.py:1 race — fixed\n  but it is back",
            "- Fixed size: [Critical] a.py:1",
            "- ✅ [Critical] a.py:1 boom",
        ];
        for text in open {
            assert!(!is_marked_done(text), "{text}");
        }
    }
}
