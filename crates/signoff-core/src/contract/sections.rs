//! Classifies the headings of a review by the lists below them.

use super::{inline_severity, item, resolved};

/// Words of headings above text that holds no findings.
const ASIDE: [&str; 20] = [
    "strengths",
    "strength",
    "positives",
    "positive",
    "praise",
    "highlights",
    "pros",
    "checked",
    "verified",
    "summary",
    "overview",
    "tldr",
    "resolved",
    "addressed",
    "good",
    "well",
    "works",
    "like",
    "liked",
    "great",
];

/// Words allowed beside them: `What works well`, `Key strengths`, `I verified the following`. Any other word, as in
/// `Checked exceptions`, makes it an ordinary heading.
const BESIDE_ASIDE: [&str; 44] = [
    "what",
    "s",
    "is",
    "the",
    "done",
    "went",
    "looks",
    "look",
    "things",
    "parts",
    "that",
    "it",
    "does",
    "i",
    "already",
    "very",
    "this",
    "all",
    "was",
    "key",
    "main",
    "overall",
    "general",
    "brief",
    "short",
    "of",
    "changes",
    "and",
    "review",
    "my",
    "we",
    "have",
    "been",
    "following",
    "points",
    "aspects",
    "observations",
    "notes",
    "items",
    "ve",
    "previously",
    "since",
    "last",
    "round",
];

/// Words for earlier findings that are resolved: `Resolved findings`.
const FOUND: [&str; 8] = ["findings", "issues", "comments", "previous", "earlier", "prior", "from", "problems"];

/// Words that make a heading one of problems, with any other words: `Summary of issues`, `Not good`.
const PROBLEMS: [&str; 62] = [
    "issue",
    "issues",
    "finding",
    "findings",
    "problem",
    "problems",
    "concern",
    "concerns",
    "bug",
    "bugs",
    "weakness",
    "weaknesses",
    "negative",
    "negatives",
    "risk",
    "risks",
    "required",
    "requested",
    "request",
    "missing",
    "wrong",
    "bad",
    "but",
    "however",
    "improve",
    "improvement",
    "improvements",
    "blockers",
    "error",
    "errors",
    "failing",
    "fail",
    "fails",
    "failed",
    "fix",
    "fixes",
    "not",
    "no",
    "non",
    "never",
    "isn",
    "aren",
    "doesn",
    "don",
    "didn",
    "cannot",
    "to",
    "be",
    "must",
    "should",
    "need",
    "needs",
    "still",
    "yet",
    "open",
    "found",
    "please",
    "change",
    "todo",
    "cons",
    "broken",
    "unresolved",
];

const NOTES: [&str; 8] = ["note", "notes", "remark", "remarks", "comment", "comments", "observation", "observations"];

/// Words that begin a detail of a finding: `**Fix:** …`.
const DETAILS: [&str; 20] = [
    "problem",
    "issue",
    "impact",
    "fix",
    "suggestion",
    "suggested",
    "recommendation",
    "why",
    "evidence",
    "requirement",
    "expected",
    "actual",
    "description",
    "details",
    "detail",
    "risk",
    "example",
    "reason",
    "cause",
    "code",
];

/// Whether the items below a heading are not findings: praise, checked items, a summary.
pub(super) fn is_aside(line: &str) -> bool {
    let line = line.trim_start_matches('#').trim_start();
    let number = line.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let line = &line[number..];
    let about_resolved = any(line, &["resolved", "addressed"]);
    let beside = |word: &str| is_one(word, &BESIDE_ASIDE) || (about_resolved && is_one(word, &FOUND));
    any(line, &ASIDE) && words(line).all(|word| is_one(word, &ASIDE) || beside(word))
}

/// Words for a resolved finding.
const DONE: [&str; 6] = ["fixed", "resolved", "addressed", "verified", "gone", "closed"];

/// Whether a text is only one of these words.
pub(super) fn is_done_word(text: &str) -> bool {
    is_one(text, &DONE)
}

/// Whether a heading introduces required changes: `Must fix before merge`, `Required changes`, `P1 issues`.
pub(super) fn requires_changes(heading: &str) -> bool {
    const MUST: [&str; 7] = ["must", "required", "needed", "necessary", "before", "need", "needs"];
    const WORK: [&str; 7] = ["fix", "fixes", "fixed", "change", "changes", "address", "addressed"];
    const PRIORITY: [&str; 2] = ["p0", "p1"];
    const BESIDE: [&str; 14] = [
        "be", "to", "the", "this", "can", "merge", "merging", "landing", "release", "issue", "issues", "items",
        "finding", "findings",
    ];
    let known = |word| [&MUST[..], &WORK, &PRIORITY, &BESIDE].iter().any(|list| is_one(word, list));
    let about_work = any(heading, &MUST) && any(heading, &WORK);
    (about_work || any(heading, &PRIORITY)) && words(heading).all(known)
}

/// Whether a text names a finding id and says that the finding is fixed: `f-22d1aa90c4 …: fixed`.
pub(super) fn reports_fixed(text: &str) -> bool {
    const UNDONE: [&str; 14] = [
        "not",
        "never",
        "no",
        "still",
        "remains",
        "partially",
        "partly",
        "isn",
        "wasn",
        "hasn",
        "but",
        "however",
        "again",
        "yet",
    ];
    let done = any(text, &DONE) || has_check_mark(text);
    contains_finding_id(text) && done && !any(text, &UNDONE)
}

/// Whether a line below a heading says that there is nothing, or nothing left: `None found`, `I found no critical
/// issues`, `Not applicable`, `Both were fixed`. `The name is not escaped` and `A fixed size overflows` do not.
pub(super) fn says_none(line: &str) -> bool {
    const NO: [&str; 3] = ["no", "zero", "0"];
    const FIND: [&str; 6] = ["applicable", "find", "see", "identify", "spot", "any"];
    let words: Vec<&str> = words(line).collect();
    let follows = |at: usize, list: &[&str]| words.get(at).is_some_and(|word| is_one(word, list));
    let of_problems = |rest: &[&str]| {
        let mut rest = rest
            .iter()
            .skip_while(|word| inline_severity::severity_word(word).is_some() || is_one(word, &BESIDE_SEVERITY));
        rest.next().is_none_or(|word| is_one(word, &PROBLEMS) || is_one(word, &["changes", "action"]))
    };
    words.is_empty()
        || resolved::says_done(line)
        || line.split(['.', ',', ';', ':', '!', '(', '—', '–']).any(is_nothing)
        || words.iter().enumerate().any(|(at, word)| {
            let not = is_one(word, &["not"]) && follows(at + 1, &FIND);
            let not = not || (is_one(word, &["n"]) && follows(at + 1, &["a"]));
            let no = is_one(word, &NO) && of_problems(&words[at + 1..]);
            not || no
        })
}

/// Whether a clause only says that there is nothing: `None found`, `There are none`. `Nothing is validated` and `An
/// empty cart crashes` say more.
fn is_nothing(clause: &str) -> bool {
    const NOTHING: [&str; 4] = ["none", "nothing", "na", "empty"];
    const AFTER: [&str; 18] = [
        "found",
        "identified",
        "detected",
        "reported",
        "noted",
        "seen",
        "spotted",
        "to",
        "blocking",
        "critical",
        "important",
        "major",
        "significant",
        "remaining",
        "left",
        "open",
        "here",
        "i",
    ];
    const BEFORE: [&str; 8] = ["are", "is", "found", "see", "saw", "were", "identified", "have"];
    let words: Vec<&str> = words(clause).collect();
    let begins = words.first().is_some_and(|word| is_one(word, &NOTHING))
        && words.get(1).is_none_or(|word| is_one(word, &AFTER));
    let found = |pair: &[&str]| match pair {
        [before, word] => is_one(word, &NOTHING[..2]) && (is_one(before, &BEFORE) || is_one(before, &PROBLEMS)),
        _ => false,
    };
    begins || words.windows(2).any(found)
}

/// Words between `no` and the problems: `no critical or other blocking issues`.
const BESIDE_SEVERITY: [&str; 9] = ["or", "and", "other", "new", "further", "such", "remaining", "more", "real"];

/// Whether a text has a check mark.
pub(super) fn has_check_mark(text: &str) -> bool {
    text.contains(['✅', '✔'])
}

/// Whether a text contains a finding id.
pub(super) fn contains_finding_id(text: &str) -> bool {
    text.match_indices("f-").any(|(at, _)| id_length(text, at).is_some())
}

/// Whether `offset` lies within a finding id.
pub(super) fn is_in_finding_id(text: &str, offset: usize) -> bool {
    const LONGEST: usize = 18;
    let is_part = |byte: &u8| *byte == b'-' || byte.is_ascii_hexdigit();
    let before = text.as_bytes()[..offset].iter().rev().take(LONGEST).take_while(|byte| is_part(byte)).count();
    (offset - before..=offset).any(|start| id_length(text, start).is_some_and(|length| offset < start + length))
}

/// The length of the finding id that begins at `start`.
fn id_length(text: &str, start: usize) -> Option<usize> {
    const SHORTEST: usize = 4;
    let bytes = text.as_bytes();
    let digits = bytes.get(start..)?.strip_prefix(b"f-")?.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let joined = text[..start].ends_with(|c: char| c.is_alphanumeric());
    (digits >= SHORTEST && !joined).then_some(digits + 2)
}

pub(super) fn names_problem(line: &str) -> bool {
    words(line).any(|word| is_one(word, &PROBLEMS) || inline_severity::severity_word(word).is_some())
}

pub(super) fn is_notes_heading(line: &str) -> bool {
    !names_problem(line) && any(line, &NOTES)
}

/// Whether an item is a detail of the finding in the title above it.
pub(super) fn is_detail(text: &str) -> bool {
    names_detail(text) && !item::is_heading(text)
}

/// Whether a text begins with the name of a detail: `**Fix:**`.
pub(super) fn names_detail(text: &str) -> bool {
    const LONGEST: usize = 40;
    let name = text.split_once(':').map(|(name, _)| name).filter(|name| name.len() <= LONGEST);
    name.and_then(|name| words(name).next()).is_some_and(|word| is_one(word, &DETAILS))
}

fn any(line: &str, list: &[&str]) -> bool {
    words(line).any(|word| is_one(word, list))
}

fn is_one(word: &str, list: &[&str]) -> bool {
    list.iter().any(|one| one.eq_ignore_ascii_case(word))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_reported_as_fixed_are_recognized() {
        assert!(reports_fixed("f-22d1aa01bb (critical) SQL injection in src/db.py:14 — **fixed**: parameterised."));
        assert!(reports_fixed("| f-22d1aa01bb SQL injection | critical | ✅ fixed |"));
        assert!(reports_fixed("| f-22d1aa01bb | critical | ✅ |"));
        assert!(!reports_fixed("f-22d1aa01bb [critical] src/db.py:14 is not fixed"));
        assert!(!reports_fixed("[critical] src/db.py:14 the old bug was fixed and this one came"));
        assert!(!reports_fixed("f-22d1aa01bb was fixed, but the same happens in src/cart.py:3"));
    }

    #[test]
    fn headings_of_praise_and_summaries_are_recognized() {
        let asides = [
            "## Strengths",
            "**Positive:**",
            "### Checked",
            "# Summary",
            "What works well:",
            "What's good",
            "## Summary of changes",
            "Verified",
            "## The Good",
            "## 1. Key strengths",
            "I verified the following:",
            "### Resolved findings",
        ];
        for heading in asides {
            assert!(is_aside(heading), "{heading}");
        }
        let others = [
            "## Issues",
            "Summary of issues",
            "## Not good",
            "## What does not work well",
            "# Well-formedness",
            "## Must be addressed",
            "Strengths and weaknesses",
            "## Findings",
            "Login",
            "## Needs work",
            "## Checklist",
            "## Checked exceptions",
            "## Verified on Windows",
            "I checked the code:",
        ];
        for heading in others {
            assert!(!is_aside(heading), "{heading}");
        }
    }
}
