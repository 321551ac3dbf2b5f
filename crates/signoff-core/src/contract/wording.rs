//! Recognizes what the words of a heading or a line say: praise, notes, a detail, that there is nothing, that a finding
//! is done. A list of words is one text whose entries are separated by blanks.

use super::inline_severity;

/// The words of a text: runs of letters and digits.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Whether a list contains a word, in any case.
pub(super) fn is_listed(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|entry| entry.eq_ignore_ascii_case(word))
}

/// Whether a text contains a word of a list.
pub(super) fn has_listed(text: &str, list: &str) -> bool {
    words(text).any(|word| is_listed(word, list))
}

/// The text after the number of a list item: `2. …`, `2) …`.
pub(super) fn without_number(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix(['.', ')']).filter(|_| rest.len() < text.len()).map_or(text, str::trim_start)
}

/// Words of headings above text that holds no findings.
const COMMENTARY_WORDS: &str = "strengths strength positives positive praise highlights pros checked verified summary \
    overview tldr resolved addressed good well works like liked great";

/// Words allowed beside them: `What works well`, `Key strengths`, `I verified the following`. Any other word, as in
/// `Checked exceptions`, makes it an ordinary heading.
const BESIDE_COMMENTARY: &str = "what s is the done went looks look things parts that it does i already very this all \
    was key main overall general brief short of changes and review my we have been following points aspects \
    observations notes items ve previously since last round";

/// Words for earlier findings that are resolved: `Resolved findings`.
const FOUND: &str = "findings issues comments previous earlier prior from problems";

/// Words that make a heading one of problems, with any other words: `Summary of issues`, `Not good`.
const PROBLEMS: &str = "issue issues finding findings problem problems concern concerns bug bugs weakness \
    weaknesses negative negatives risk risks required requested request missing wrong bad but however improve \
    improvement improvements blockers error errors failing fail fails failed fix fixes not no non never isn aren \
    doesn don didn cannot to be must should need needs still yet open found please change todo cons broken \
    unresolved";

const NOTES: &str = "note notes remark remarks comment comments observation observations";

/// Words that begin a detail of a finding: `**Fix:** …`.
const DETAILS: &str = "problem issue impact fix suggestion suggested recommendation why evidence requirement \
    expected actual description details detail risk example reason cause code";

/// Whether the items below a heading are not findings: praise, checked items, a summary.
pub(super) fn is_commentary(line: &str) -> bool {
    let line = line.trim_start_matches('#').trim_start();
    let number = line.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let line = &line[number..];
    let about_resolved = has_listed(line, "resolved addressed");
    let beside = |word: &str| is_listed(word, BESIDE_COMMENTARY) || (about_resolved && is_listed(word, FOUND));
    has_listed(line, COMMENTARY_WORDS) && words(line).all(|word| is_listed(word, COMMENTARY_WORDS) || beside(word))
}

/// Whether a heading introduces required changes: `Must fix before merge`, `Required changes`, `P1 issues`.
pub(super) fn requires_changes(heading: &str) -> bool {
    const MUST: &str = "must required needed necessary before need needs";
    const WORK: &str = "fix fixes fixed change changes address addressed";
    const PRIORITY: &str = "p0 p1";
    const BESIDE: &str = "be to the this can merge merging landing release issue issues items finding findings";
    let known = |word| [MUST, WORK, PRIORITY, BESIDE].iter().any(|list| is_listed(word, list));
    let about_work = has_listed(heading, MUST) && has_listed(heading, WORK);
    (about_work || has_listed(heading, PRIORITY)) && words(heading).all(known)
}

/// Whether a text names a finding id and says that the finding is fixed: `f-22d1aa90c4 …: fixed`.
pub(super) fn reports_fixed(text: &str) -> bool {
    const UNDONE: &str = "not never no still remains partially partly isn wasn hasn but however again yet";
    let done = has_listed(text, DONE) || has_check_mark(text);
    contains_finding_id(text) && done && !has_listed(text, UNDONE)
}

/// Whether a line below a heading says that there is nothing, or nothing left: `None found`, `I found no critical
/// issues`, `Not applicable`, `Both were fixed`. `The name is not escaped` and `A fixed size overflows` do not.
pub(super) fn says_none(line: &str) -> bool {
    const NO: &str = "no zero 0";
    const FIND: &str = "applicable find see identify spot any";
    let words: Vec<&str> = words(line).collect();
    let follows = |at: usize, list: &str| words.get(at).is_some_and(|word| is_listed(word, list));
    let of_problems = |rest: &[&str]| {
        let mut rest = rest
            .iter()
            .skip_while(|word| inline_severity::severity_word(word).is_some() || is_listed(word, BESIDE_SEVERITY));
        rest.next().is_none_or(|word| is_listed(word, PROBLEMS) || is_listed(word, "changes action"))
    };
    words.is_empty()
        || says_done(line)
        || line.split(['.', ',', ';', ':', '!', '(', '—', '–']).any(is_nothing)
        || words.iter().enumerate().any(|(at, word)| {
            let not = is_listed(word, "not") && follows(at + 1, FIND);
            let not = not || (is_listed(word, "n") && follows(at + 1, "a"));
            let no = is_listed(word, NO) && of_problems(&words[at + 1..]);
            not || no
        })
}

/// Whether a clause only says that there is nothing: `None found`, `There are none`. `Nothing is validated` and `An
/// empty cart crashes` say more.
fn is_nothing(clause: &str) -> bool {
    const NONE_WORDS: &str = "none nothing na empty";
    const AFTER: &str = "found identified detected reported noted seen spotted to blocking critical important \
        major significant remaining left open here i";
    const BEFORE: &str = "are is found see saw were identified have";
    let words: Vec<&str> = words(clause).collect();
    let begins = words.first().is_some_and(|word| is_listed(word, NONE_WORDS))
        && words.get(1).is_none_or(|word| is_listed(word, AFTER));
    let found = |pair: &[&str]| match pair {
        [before, word] => is_listed(word, "none nothing") && (is_listed(before, BEFORE) || is_listed(before, PROBLEMS)),
        _ => false,
    };
    begins || words.windows(2).any(found)
}

/// Words between `no` and the problems: `no critical or other blocking issues`.
const BESIDE_SEVERITY: &str = "or and other new further such remaining more real";

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
    const MAX_WORD_BYTES: usize = 18;
    let is_part = |byte: &u8| *byte == b'-' || byte.is_ascii_hexdigit();
    let before = text.as_bytes()[..offset].iter().rev().take(MAX_WORD_BYTES).take_while(|byte| is_part(byte)).count();
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
    words(line).any(|word| is_listed(word, PROBLEMS) || inline_severity::severity_word(word).is_some())
}

pub(super) fn is_notes_heading(line: &str) -> bool {
    !names_problem(line) && has_listed(line, NOTES)
}

/// Whether a text begins with the name of a detail: `**Fix:**`.
pub(super) fn names_detail(text: &str) -> bool {
    const MAX_NAME_BYTES: usize = 40;
    let name = text.split_once(':').map(|(name, _)| name).filter(|name| name.len() <= MAX_NAME_BYTES);
    name.and_then(|name| words(name).next()).is_some_and(|word| is_listed(word, DETAILS))
}

/// Words for a resolved finding.
pub(super) const DONE: &str = "fixed resolved addressed verified gone closed";

/// Words allowed beside them: `now fixed in this commit`.
const BESIDE: &str = "is was has been are were have now already and in this the commit round diff change fully \
    correctly";

/// Words that negate or request the fix.
const UNDONE: &str = "not never no still remains remain remaining partially partly isn wasn hasn aren doesn didn \
    but however again yet must should needs need can cannot could to be if until unless once wrongly claimed only \
    unresolved";

/// Words that say that the problem persists, or that attribute the claim to another person.
const DOUBTS: &str = "still again remains unresolved open says said claims claimed claim marked reports";

/// Whether a clause of a text says that the problem is done (`… is fixed now`) and nothing negates it. `A buffer of
/// fixed size` and `the file is closed too early` do not.
pub(super) fn says_done(text: &str) -> bool {
    const BEFORE: &str = "is are was were been now all both already correctly properly";
    const AFTER: &str = "now in by with and since as here correctly properly";
    let is_done = |clause: &str| {
        let words: Vec<&str> = words(clause).collect();
        words.iter().enumerate().any(|(at, word)| {
            let before = at.checked_sub(1).is_none_or(|at| is_listed(words[at], BEFORE));
            let after = words.get(at + 1).is_none_or(|word| is_listed(word, AFTER));
            is_listed(word, "fixed resolved addressed") && before && after
        })
    };
    text.split(['.', ',', ';', ':', '!', '(', ')', '—', '–']).any(is_done) && !has_listed(text, UNDONE)
}

/// Whether a finding is marked as fixed at its start or end: `[Critical] a.rs:1 … — fixed`, `Fixed: [Critical] …`.
/// The text of the finding itself does not count: "the id is not checked — fixed".
pub(super) fn is_marked_done(text: &str) -> bool {
    let (first, rest) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
    let bare = first.trim_end_matches(|c: char| !c.is_alphanumeric());
    let separators = ['—', '–', ':', '|', '→', '✅', '✔', '(', '['];
    let (finding, mark) = match bare.rfind(separators).max(bare.rfind(" - ")) {
        Some(at) if says_only_done(&bare[at..]) => bare.split_at(at),
        Some(_) | None => match leading_mark(first) {
            Some(end) => (&first[end..], &first[..end]),
            None => return false,
        },
    };
    says_only_done(mark) && !has_listed(finding, DOUBTS) && !has_listed(rest, UNDONE)
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
    has_listed(mark, DONE) && words(mark).all(|word| is_listed(word, DONE) || is_listed(word, BESIDE))
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
        let headings = [
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
        for heading in headings {
            assert!(is_commentary(heading), "{heading}");
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
            assert!(!is_commentary(heading), "{heading}");
        }
    }

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
