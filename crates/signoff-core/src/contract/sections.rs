//! What the headings of a review say about the lists below them.

use super::{item, stated};

/// Headings over what is no finding, by one of their words.
const ASIDE: [&str; 14] = [
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
];

/// Words that do so in a longer line, where others may stand in any sentence.
const CHECKED: [&str; 5] = ["strengths", "positives", "positive", "checked", "verified"];

/// Words of praise, and what may stand around them: `What works well`, `The good parts`.
const GOOD: [&str; 6] = ["good", "well", "works", "like", "liked", "great"];
const AROUND_GOOD: [&str; 19] = [
    "what", "s", "is", "the", "done", "went", "looks", "look", "things", "parts", "that", "it", "does", "i",
    "already", "very", "this", "all", "was",
];

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
    let good =
        || any(line, &GOOD) && words(line).all(|word| is_one(word, &GOOD) || is_one(word, &AROUND_GOOD));
    !names_problem(line) && (any(line, &ASIDE) || good())
}

/// The same for a line that is as long as a sentence.
pub(super) fn checks(line: &str) -> bool {
    !names_problem(line) && any(line, &CHECKED)
}

pub(super) fn names_problem(line: &str) -> bool {
    words(line).any(|word| is_one(word, &PROBLEMS) || stated::severity_word(word).is_some())
}

pub(super) fn is_notes(line: &str) -> bool {
    !names_problem(line) && any(line, &NOTES)
}

/// Whether an item explains the finding in the title above it.
pub(super) fn is_detail(text: &str) -> bool {
    const LONGEST: usize = 40;
    let Some((name, _)) = text.split_once(':').filter(|(name, _)| name.len() <= LONGEST) else {
        return false;
    };
    words(name).next().is_some_and(|word| is_one(word, &DETAILS)) && !item::is_heading(text)
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
        ];
        for heading in others {
            assert!(!is_aside(heading), "{heading}");
        }
    }
}
