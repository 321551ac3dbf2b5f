//! What the headings of a review say about the lists below them.

use super::{item, stated};

/// Words of headings over what is no finding.
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

/// What may stand beside them: `What works well`, `Key strengths`, `I verified the following`. Any other word, as in
/// `Checked exceptions`, makes it a heading like others.
const BESIDE: [&str; 44] = [
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

/// What was found before and is resolved: `Resolved findings`.
const FOUND: [&str; 8] =
    ["findings", "issues", "comments", "previous", "earlier", "prior", "from", "problems"];

/// Words by which a heading stands over problems, whatever else it says: `Summary of issues`, `Not good`.
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

const NOTES: [&str; 8] =
    ["note", "notes", "remark", "remarks", "comment", "comments", "observation", "observations"];

/// What a detail of a finding begins with: `**Fix:** …`.
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

/// Whether the items below a heading are no findings: praise, what was checked, a summary.
pub(super) fn is_aside(line: &str) -> bool {
    let line = line.trim_start_matches('#').trim_start();
    let number = line.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let line = &line[number..];
    let about_resolved = any(line, &["resolved", "addressed"]);
    let beside = |word: &str| is_one(word, &BESIDE) || (about_resolved && is_one(word, &FOUND));
    any(line, &ASIDE) && words(line).all(|word| is_one(word, &ASIDE) || beside(word))
}

/// Whether a text names a finding by its id and says that it is fixed: `f-22d1aa90c4 …: fixed`.
pub(super) fn recounts(text: &str) -> bool {
    const DONE: [&str; 6] = ["fixed", "resolved", "addressed", "verified", "gone", "closed"];
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
    names_finding(text) && any(text, &DONE) && !any(text, &UNDONE)
}

/// Whether the id of a finding stands in a text.
pub(super) fn names_finding(text: &str) -> bool {
    const SHORTEST: usize = 4;
    text.match_indices("f-").any(|(at, mark)| {
        let id = text[at + mark.len()..].bytes().take_while(u8::is_ascii_hexdigit).count();
        id >= SHORTEST && !text[..at].ends_with(|c: char| c.is_alphanumeric())
    })
}

pub(super) fn names_problem(line: &str) -> bool {
    words(line).any(|word| is_one(word, &PROBLEMS) || stated::severity_word(word).is_some())
}

pub(super) fn is_notes(line: &str) -> bool {
    !names_problem(line) && any(line, &NOTES)
}

/// Whether an item explains the finding in the title above it.
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
    fn a_finding_that_is_said_to_be_fixed_is_recounted() {
        assert!(recounts(
            "f-22d1aa01bb (critical) SQL injection in src/db.py:14 — **fixed**: parameterised."
        ));
        assert!(recounts("| f-22d1aa01bb SQL injection | critical | ✅ fixed |"));
        assert!(!recounts("f-22d1aa01bb [critical] src/db.py:14 is not fixed"));
        assert!(!recounts("[critical] src/db.py:14 the old bug was fixed and this one came"));
        assert!(!recounts("f-22d1aa01bb was fixed, but the same happens in src/cart.py:3"));
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
