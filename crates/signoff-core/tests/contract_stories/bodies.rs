//! Findings keep the text below their title, and are also recognized outside lists.

use signoff_core::contract::Contract;
use signoff_core::review::Verdict;

use super::render::{parse_line, read, review_request, table};

fn requested(answers: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    answers.iter().map(|(title, text)| (*title, format!("{text}\n\n**Verdict: CHANGES_REQUESTED**\n"))).collect()
}

fn markdown_table(answers: &[(&'static str, &str)]) -> String {
    let answers = requested(answers);
    let answers: Vec<(&str, &str)> = answers.iter().map(|(title, text)| (*title, text.as_str())).collect();
    table(Contract::Markdown, &review_request(Contract::Markdown), &answers)
}

#[test]
fn the_text_below_a_title_is_a_part_of_the_finding() {
    let answers = [
        (
            "title and fields",
            "#### Issue 1: Unbounded cache (`cache.ts:14`)\n**Severity:** Critical\n**Description:** The map grows \
             forever.\n**Fix:** Use an LRU.\n\n#### Issue 2: Wrong key\n**Severity:** Important\n**File:** `cache.ts:20`\n\n\
             The key ignores the tenant.",
        ),
        (
            "title with a severity",
            "### [Critical] Unbounded cache — `cache.ts:14`\nThe map grows\nforever.\n\n```ts\nmap.set(k, v);\n```\n\n\
             **Fix:**\nUse an LRU.\n\n### [Important] Wrong key — `cache.ts:20`\n\nThe key ignores the tenant.\n\n---\n\nThat is all.",
        ),
        (
            "titles below a severity",
            "## Critical Issues\n\n### Unbounded cache\n`cache.ts:14`: The map grows forever.\n\n### Wrong key\n\n\
             In `cache.ts:20` the key ignores the tenant.\n\nTenants see each other's data.",
        ),
        (
            "bold title with a severity",
            "**1. Unbounded cache (Critical)** — `cache.ts:14`\nThe map grows forever.\n\n**[P2] Wrong key** — cache.ts:20\n  \
             The key ignores the tenant.\n\nThe rest is fine.",
        ),
        (
            "bold titles and fields",
            "**Unbounded cache**\nSeverity: High\nFile: cache.ts:14\nThe map grows forever.\n\n**Wrong key**\n- **Severity:** Medium\n\
             - **File:** cache.ts:20\n- **Problem:** The key ignores the tenant.",
        ),
        (
            "paragraphs between the items of a list",
            "1. **Race** (`a.py:3`)\n\nTwo threads write.\n\nBoth hold no lock.\n\n2. **Leak** (`b.py:4`)\n\nNever closed.\n\nThe rest is fine.",
        ),
        ("a list with a sentence below", "1. a.py:3 race\n2. b.py:4 leak\n\nThe rest is fine."),
        (
            "paragraphs below a severity",
            "## Critical\n\n**Unbounded cache** (`cache.ts:14`)\nThe map grows forever.\n\n**Wrong key** (`cache.ts:20`)\n\
             The key ignores the tenant.\n\n## Important\n\nNone.\n\n## Minor\n\nThe names.",
        ),
    ];
    insta::assert_snapshot!(markdown_table(&answers), @r#"
    title and fields
        changes_requested [critical changes] cache.ts:14 "Issue 1: Unbounded cache (`cache.ts:14`)\n**Description:** The map grows forever.\n**Fix:** Use an LRU." [important changes] cache.ts:20 "Issue 2: Wrong key\n\nThe key ignores the tenant."
    title with a severity
        changes_requested [critical changes] cache.ts:14 "Unbounded cache — `cache.ts:14`\nThe map grows\nforever.\n\n```ts\nmap.set(k, v);\n```\n\n**Fix:**\nUse an LRU." [important changes] cache.ts:20 "Wrong key — `cache.ts:20`\n\nThe key ignores the tenant."
    titles below a severity
        changes_requested [critical changes] cache.ts:14 "Unbounded cache\n`cache.ts:14`: The map grows forever." [critical changes] cache.ts:20 "Wrong key\n\nIn `cache.ts:20` the key ignores the tenant.\n\nTenants see each other's data."
    bold title with a severity
        changes_requested [critical changes] cache.ts:14 "**1. Unbounded cache (Critical)** — `cache.ts:14`\nThe map grows forever." [important changes] cache.ts:20 "Wrong key — cache.ts:20\nThe key ignores the tenant."
    bold titles and fields
        changes_requested [critical changes] cache.ts:14 "**Unbounded cache**\nThe map grows forever." [important changes] cache.ts:20 "**Wrong key**\n- **Problem:** The key ignores the tenant."
    paragraphs between the items of a list
        changes_requested [critical changes] a.py:3 "**Race** (`a.py:3`)\n\nTwo threads write.\n\nBoth hold no lock." [critical changes] b.py:4 "**Leak** (`b.py:4`)\n\nNever closed."
    a list with a sentence below
        changes_requested [critical changes] a.py:3 "race" [critical changes] b.py:4 "leak"
    paragraphs below a severity
        changes_requested [critical changes] cache.ts:14 "**Unbounded cache** (`cache.ts:14`) The map grows forever." [critical changes] cache.ts:20 "**Wrong key** (`cache.ts:20`) The key ignores the tenant." [minor changes] "The names."
    "#);
}

#[test]
fn a_paragraph_beside_a_list_is_a_finding_if_it_names_a_line() {
    let answers = [
        (
            "a paragraph, then a list",
            "The design loses data on crash:\n`store.py:44` truncates first. This must be fixed.\n\nAlso:\n\n- typo in README",
        ),
        (
            "a title, then a list elsewhere",
            "### 1. Data loss\n\n`store.py:44` truncates first.\n\n### 2. Docs\n- typo in README",
        ),
        ("paragraphs alone", "First, `a.py:1` divides by zero.\n\nSecond, `b.py:2` leaks."),
        ("what is fixed", "`a.py:1` is fixed now.\n\n- b.py:2 leaks"),
        ("praise", "## Strengths\n\n`a.py:1` is clear.\n\n## Issues\n- b.py:2 leaks"),
        ("no line", "The design of the store is odd.\n\n- b.py:2 leaks"),
    ];
    insta::assert_snapshot!(markdown_table(&answers), @r#"
    a paragraph, then a list
        changes_requested [critical changes] store.py:44 "The design loses data on crash: `store.py:44` truncates first. This must be fixed." [critical changes] "typo in README"
    a title, then a list elsewhere
        changes_requested [critical changes] store.py:44 "Data loss\ntruncates first." [critical changes] "typo in README"
    paragraphs alone
        changes_requested [critical changes] "First, `a.py:1` divides by zero.\n\nSecond, `b.py:2` leaks."
    what is fixed
        changes_requested [critical changes] b.py:2 "leaks"
    praise
        changes_requested [critical changes] b.py:2 "leaks"
    no line
        changes_requested [critical changes] b.py:2 "leaks"
    "#);
}

#[test]
fn a_paragraph_below_a_severity_is_a_finding_of_the_severity_contract() {
    let answers = [
        ("a paragraph and a list", "### HIGH\n\nThe map grows forever in cache.ts:14.\n\n### LOW\n- naming"),
        ("without a location", "### HIGH\nThe map grows forever.\nNothing bounds it."),
        ("none of them", "### HIGH\n\nNo issues of this kind in a.py:3.\n\n### LOW\n- a.py:9 naming"),
    ];
    insta::assert_snapshot!(table(Contract::Severity, &review_request(Contract::Severity), &answers), @r#"
    a paragraph and a list
        changes_requested [critical issue] cache.ts:14 "The map grows forever in cache.ts:14." [minor issue] "naming"
    without a location
        changes_requested [critical issue] "The map grows forever. Nothing bounds it."
    none of them
        changes_requested [critical issue] "No issues of this kind in a.py:3." [minor issue] a.py:9 "naming"
    "#);
}

#[test]
fn the_words_of_an_item_are_kept() {
    let answers = [
        ("an indented list", "  - loses money\n  - leaks\n\n   1. slow"),
        ("the highest number", "999999999. loses money\n\n4294967295. leaks\n\nslow"),
        ("two paragraphs in an item", "- a.py:1 loses money\n  on refund\n\n  and on sale\n- leaks"),
        ("items of a quote or code alone", "- > loses money\n- `leaks`\n- ```\n  f(-1)\n  ```\n- slow"),
        (
            "a table of counts",
            "| Severity | Count |\n|---|---|\n| Critical | 1 |\n| Minor | 1 |\n\n- a.py:1 loses money",
        ),
    ];
    insta::assert_snapshot!(markdown_table(&answers), @r#"
    an indented list
        changes_requested [critical changes] "loses money" [critical changes] "leaks" [critical changes] "slow"
    the highest number
        changes_requested [critical changes] "loses money"
    two paragraphs in an item
        changes_requested [critical changes] a.py:1 "loses money on refund\n\nand on sale" [critical changes] "leaks"
    items of a quote or code alone
        changes_requested [critical changes] "> loses money" [critical changes] "`leaks`" [critical changes] "```\nf(-1)\n```" [critical changes] "slow"
    a table of counts
        changes_requested [critical changes] a.py:1 "loses money"
    "#);
    let numbered = [("numbered lines", "1. HIGH: a.py:1 `f(**kw)` drops\n2) LOW b.py:2 naming")];
    insta::assert_snapshot!(table(Contract::Severity, &review_request(Contract::Severity), &numbered), @r#"
    numbered lines
        changes_requested [critical issue] a.py:1 "`f(**kw)` drops" [minor issue] b.py:2 "naming"
    "#);
}

#[test]
fn items_marked_as_done_are_not_findings() {
    let done = [
        "- [x] [Critical] cache.ts:14 unbounded map: fixed",
        "- ✅ [Critical] cache.ts:14 unbounded map — fixed",
        "- Fixed: [Critical] cache.ts:14 unbounded map",
        "## Previous findings\n- [Critical] cache.ts:14 unbounded map — fixed",
        "## Resolved findings\n- [Critical] cache.ts:14 the size is not bounded — resolved",
    ];
    for text in done {
        let approved = format!("{text}\n\n**Verdict: APPROVED**\n");
        let review = read(Contract::Auto, &approved, &review_request(Contract::Auto)).expect(text);
        assert_eq!(review.verdict, Verdict::Approved, "{text}");
        let review = read(Contract::Markdown, &approved, &review_request(Contract::Markdown)).expect(text);
        assert_eq!((review.verdict, review.findings), (Verdict::Approved, Vec::new()), "{text}");
        let requested = format!("{text}\n\n- b.py:2 leaks\n\n**Verdict: CHANGES_REQUESTED**\n");
        let review = read(Contract::Markdown, &requested, &review_request(Contract::Markdown)).expect(text);
        assert_eq!(review.findings.len(), 1, "{text}");
    }
    let none =
        "| Critical | 0 |\n| Important | 0 |\n| Minor | 1 |\n\n**Critical:** None\n**Important:** None\nFine work.";
    let approved = format!("{none}\n\n**Verdict: APPROVED**\n");
    let review = read(Contract::Markdown, &approved, &review_request(Contract::Markdown)).expect(none);
    assert_eq!((review.verdict, review.findings), (Verdict::Approved, Vec::new()));
    let open = [
        "- [x] [Critical] cache.ts:14 unbounded map",
        "- [x] [Critical] cache.ts:14 not fixed",
        "- [x] [Critical] cache.ts:14 still grows",
        "- [Critical] cache.ts:14 — not fixed",
        "- [Critical] cache.ts:14 fixed-size buffer overflows",
        "- [Critical] cache.ts:14 the map: fixed in a.ts but not in b.ts",
        "- ✅ [Critical] cache.ts:14 unbounded map",
    ];
    for text in open {
        let approved = format!("{text}\n\n**Verdict: APPROVED**\n");
        let read = read(Contract::Markdown, &approved, &review_request(Contract::Markdown));
        assert!(read.is_err() || read.is_ok_and(|review| !review.findings.is_empty()), "{text}");
    }
}

/// A paragraph below the heading of a severity is a finding, even if it says what is *not* done.
#[test]
fn a_paragraph_with_a_negation_is_a_finding() {
    let read = |text: &str, rest: &str| {
        let answer = format!("### Critical\n\n{text}\n\n{rest}\n");
        parse_line(Contract::Markdown, &answer, &review_request(Contract::Markdown))
    };
    let (requested, approved) =
        ("### Minor\n\n- src/a.rs:1 a typo\n\n**Verdict: CHANGES_REQUESTED**", "**Verdict: APPROVED**");
    for text in [
        "The token is not checked.",
        "A buffer of fixed size overflows.",
        "There is no limit on retries.",
        "The connection in `src/a.rs:6` is closed too early, and data is lost.",
        "A user who is not found makes it panic.",
        "The result is not a number.",
        "Nothing is validated.",
        "None of the inputs is checked.",
        "An empty cart crashes the checkout.",
        "The retry does nothing.",
    ] {
        assert!(read(text, requested).contains(text), "{text}: {}", read(text, requested));
        assert!(!read(text, approved).starts_with("approved"), "{text}");
    }
    for none in [
        "None found.",
        "None — all inputs are validated.",
        "There are none.",
        "Nothing blocking.",
        "I found none in this diff.",
        "All of them are fixed.",
        "N/A",
        "I did not find any.",
    ] {
        assert!(!read(none, requested).contains(none), "{none}: {}", read(none, requested));
        assert!(read(none, approved).starts_with("approved"), "{none}: {}", read(none, approved));
    }
}
