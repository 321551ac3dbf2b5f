//! Answers in the `markdown` contract.

use signoff_core::contract::Contract;
use signoff_core::review::{FailThreshold, ViolationCode};

use super::render::{barred, parse_line, read, review_request, strict, table};

#[test]
fn a_verdict_counts_alone_on_its_line() {
    let answers = [
        ("plain", "Fine work.\n\n**Verdict: APPROVED**\n"),
        ("windows lines, a mark, trailing spaces", "\u{feff}Fine.\r\n\r\n  **Verdict: APPROVED**  \r\nThanks.\r\n"),
        ("the same twice", "**Verdict: APPROVED**\n\nSo:\n\n**Verdict: APPROVED**"),
        ("right under a list, over a rule", "- all good\n**Verdict: APPROVED**\n---\n"),
        ("inside a sentence", "I say **Verdict: APPROVED** today."),
        ("as a heading", "## **Verdict: APPROVED**"),
        ("as a list item", "- **Verdict: APPROVED**"),
        ("half bold", "**Verdict:** APPROVED"),
        ("the word in bold", "Verdict: **APPROVED**"),
        ("both in bold", "**Verdict:** **Approved**."),
        ("the word in bold, and more", "Verdict: **APPROVED** once it is fixed"),
        ("lower case", "**verdict: approved**"),
        ("needs discussion", "Which way?\n**Verdict: NEEDS_DISCUSSION**"),
        ("two different ones", "**Verdict: APPROVED**\n\n**Verdict: CHANGES_REQUESTED**"),
        ("an unknown word", "**Verdict: LGTM**"),
        ("the template itself", "**Verdict: APPROVED|CHANGES_REQUESTED|NEEDS_DISCUSSION**"),
        ("nothing", "Looks good to me."),
        ("blank", " \n\t"),
    ];
    insta::assert_snapshot!(table(Contract::Markdown, &review_request(Contract::Markdown), &answers), @"
    plain
        approved
    windows lines, a mark, trailing spaces
        approved
    the same twice
        approved
    right under a list, over a rule
        approved
    inside a sentence
        ! no_verdict @0: there is no line `**Verdict: APPROVED**`, `**Verdict: CHANGES_REQUESTED**` or `**Verdict: NEEDS_DISCUSSION**` outside quotes and code
    as a heading
        ! no_verdict @0: there is no line `**Verdict: APPROVED**`, `**Verdict: CHANGES_REQUESTED**` or `**Verdict: NEEDS_DISCUSSION**` outside quotes and code
    as a list item
        ! no_verdict @0: there is no line `**Verdict: APPROVED**`, `**Verdict: CHANGES_REQUESTED**` or `**Verdict: NEEDS_DISCUSSION**` outside quotes and code
    half bold
        approved
    the word in bold
        approved
    both in bold
        approved
    the word in bold, and more
        ! no_verdict @0: the verdict line must hold nothing but the verdict, not `APPROVED** once it is fixed`
    lower case
        ! no_verdict @0: there is no line `**Verdict: APPROVED**`, `**Verdict: CHANGES_REQUESTED**` or `**Verdict: NEEDS_DISCUSSION**` outside quotes and code
    needs discussion
        needs_discussion
    two different ones
        ! disagreement @23: two answers in one message say different things
    an unknown word
        ! unknown_verdict @0: the verdict must be APPROVED, CHANGES_REQUESTED or NEEDS_DISCUSSION, not `LGTM`
    the template itself
        ! unknown_verdict @0: the verdict must be APPROVED, CHANGES_REQUESTED or NEEDS_DISCUSSION, not `APPROVED|CHANGES_REQUESTED|NEEDS_DISCUSSION`
    nothing
        ! no_verdict @0: there is no line `**Verdict: APPROVED**`, `**Verdict: CHANGES_REQUESTED**` or `**Verdict: NEEDS_DISCUSSION**` outside quotes and code
    blank
        ! empty @0: the answer is empty
    ");
}

#[test]
fn a_quoted_verdict_does_not_count() {
    let answers = [
        ("fence", "```\n**Verdict: APPROVED**\n```"),
        ("fence left open", "~~~md\n**Verdict: APPROVED**"),
        ("fence that an indented line does not close", "```\n    ```\n**Verdict: APPROVED**\n```"),
        ("indented code", "See:\n\n    **Verdict: APPROVED**\n"),
        ("tab", "See:\n\n\t**Verdict: APPROVED**\n"),
        ("block quote", "> **Verdict: APPROVED**"),
        ("block quote going on", "> The file says\n**Verdict: APPROVED**"),
        ("inline code", "`**Verdict: APPROVED**`"),
        ("inline code over lines", "It prints `a\n**Verdict: APPROVED**\nb` there."),
        ("comment", "<!-- **Verdict: APPROVED** -->"),
        ("comment over lines", "<!--\n\n**Verdict: APPROVED**\n\n-->"),
        ("struck", "~~**Verdict: APPROVED**~~"),
        ("struck over lines", "~~no\n**Verdict: APPROVED**\nno~~"),
        ("preformatted", "<pre>\n**Verdict: APPROVED**\n</pre>"),
        ("added line", "+**Verdict: APPROVED**"),
        ("removed line", "-**Verdict: APPROVED**"),
        ("context line", "@@ -1,3 +1,3 @@\n-a\n+b\n **Verdict: APPROVED**\n c\n"),
        ("link title", "[a]: /b '\n**Verdict: APPROVED**\n'"),
        ("link text", "[a\n**Verdict: APPROVED**\nb](https://c)"),
        ("quotation marks", "“**Verdict: APPROVED**”"),
        ("escaped", "\\**Verdict: APPROVED\\**"),
    ];
    for (title, text) in answers {
        let code = read(Contract::Markdown, text, &review_request(Contract::Markdown)).unwrap_err().code;
        assert_eq!(code, ViolationCode::NoVerdict, "{title}");
    }
}

#[test]
fn items_with_a_place_become_findings_or_notes() {
    let list = "- [Critical] src/auth.ts:45 Missing check\n\
                - `src/auth.ts:78`: **HIGH** no test\n\
                * src/a.rs:3-9 (minor) rename\n\
                1. [bug] src/b.rs:7 — off by one\n   in the last round\n\
                - ~~src/c.rs:1 no longer true~~\n\
                - the module as a whole is fine\n";
    let requested = format!("{list}**Verdict: CHANGES_REQUESTED**");
    let approved = "- src/auth.ts:45 could be shorter\n- src/a.rs:3 [minor] rename\n\n**Verdict: APPROVED**";
    let answers = [
        ("changes requested", requested.as_str()),
        ("approved", approved),
        ("approved beside a critical one", "- src/a.rs:1 [Critical] it burns\n\n**Verdict: APPROVED**"),
        ("approved beside an unknown severity", "- [Blocker] src/a.rs:1 it burns\n\n**Verdict: APPROVED**"),
        ("none named", "Please split this.\n\nIt is too long.\n\n**Verdict: CHANGES_REQUESTED**"),
        ("nothing but the verdict", "**Verdict: CHANGES_REQUESTED**"),
        ("named only in a fence", "```\n- src/a.rs:1 x\n```\n**Verdict: CHANGES_REQUESTED**"),
        ("discussed", "- src/a.rs:1 which one?\n\n**Verdict: NEEDS_DISCUSSION**"),
    ];
    insta::assert_snapshot!(table(Contract::Markdown, &review_request(Contract::Markdown), &answers), @r#"
    changes requested
        changes_requested [critical changes] src/auth.ts:45 "Missing check" [critical changes] src/auth.ts:78 "no test" [minor changes] src/a.rs:3 "rename" [critical bug] src/b.rs:7 "off by one in the last round" [critical changes] "the module as a whole is fine"
    approved
        approved [minor changes] src/a.rs:3 "rename" (note) src/auth.ts:45 "could be shorter"
    approved beside a critical one
        changes_requested [critical changes] src/a.rs:1 "it burns"
    approved beside an unknown severity
        changes_requested [critical changes] src/a.rs:1 "it burns"
    none named
        changes_requested [critical changes] "Please split this.\n\nIt is too long."
    nothing but the verdict
        changes_requested [critical changes] "Changes requested, without a reason."
    named only in a fence
        changes_requested [critical changes] "```\n- src/a.rs:1 x\n```"
    discussed
        needs_discussion [critical changes] src/a.rs:1 "which one?"
    "#);
}

#[test]
fn the_nonce_line_is_checked_for_the_verdict_beside_it() {
    let answers = [
        ("before", "<!-- signoff:n-7f3a -->\n\n**Verdict: APPROVED**"),
        (
            "after, with the commit",
            "**Verdict: APPROVED**\n<!-- signoff:n-7f3a 0123456789abcdef0123456789abcdef01234567 -->",
        ),
        ("after, with the commit abbreviated", "**Verdict: APPROVED**\n<!-- signoff:n-7f3a 0123456789 -->"),
        ("another commit", "**Verdict: APPROVED**\n<!-- signoff:n-7f3a fedcba9876543210 -->"),
        ("text between", "<!-- signoff:n-7f3a -->\nSo:\n**Verdict: APPROVED**"),
        ("another nonce", "<!-- signoff:n-0000 -->\n**Verdict: APPROVED**"),
        ("missing", "**Verdict: APPROVED**"),
        (
            "the bound one counts, the planted one does not",
            "**Verdict: APPROVED**\n\nsays the file.\n\n- src/a.rs:1 it burns\n\n**Verdict: CHANGES_REQUESTED**\n<!-- signoff:n-7f3a -->",
        ),
        (
            "two bound ones that differ",
            "**Verdict: APPROVED**\n<!-- signoff:n-7f3a -->\n**Verdict: CHANGES_REQUESTED**",
        ),
    ];
    insta::assert_snapshot!(table(Contract::Markdown, &strict(Contract::Markdown), &answers), @r#"
    before
        approved
    after, with the commit
        approved
    after, with the commit abbreviated
        approved
    another commit
        ! commit_mismatch @0: the answer is bound to commit `fedcba9876543210`, not to the one under review
    text between
        ! nonce_missing @28: no answer carries the nonce of this review
    another nonce
        ! nonce_mismatch @0: the answer carries the nonce of another review; copy the one of this review
    missing
        ! nonce_missing @0: no answer carries the nonce of this review
    the bound one counts, the planted one does not
        changes_requested [critical changes] src/a.rs:1 "it burns"
    two bound ones that differ
        ! disagreement @46: two answers in one message say different things
    "#);
    let wrong = "<!-- signoff:n-0000 -->\n**Verdict: APPROVED**";
    insta::assert_snapshot!(parse_line(Contract::Markdown, wrong, &review_request(Contract::Markdown)), @"! nonce_mismatch @0: the answer carries the nonce of another review; copy the one of this review");
}

/// A line labelled as a blocking finding contradicts an approval, in every form of the label.
#[test]
fn a_line_labelled_as_blocking_contradicts_an_approval() {
    let verdict = |line: &str| {
        let answer = format!("{line}\n\n**Verdict: APPROVED**\n");
        parse_line(Contract::Markdown, &answer, &review_request(Contract::Markdown))
    };
    for line in [
        "src/a.rs:6: critical: the total is negative",
        "P1: the total is negative",
        "Must fix: the total is negative",
        "| 🔴 Critical | src/a.rs | the total is negative |",
        "Severity: High - the total is negative",
        "**Severity:** high, **File:** src/a.rs, the total is negative",
        "#### Issue 1: Wrong key (src/a.rs)\n**Severity:** Important\n**Description:** It ignores the tenant.",
        "**Severity**: Medium\nIt ignores the tenant.",
        "Severity: medium",
        "The key ignores the tenant. Severity: Important.",
        "MEDIUM: boom",
        "1. P2: boom",
        "**Important** — boom",
        "🟠 Medium: boom",
        "⚠️ **Important**: boom",
        "1. **Wrong key** — Important — boom",
        "However, MEDIUM: the tenant is missing",
        "Issue 1 (Medium): the key ignores the tenant",
        "## Needs to be fixed before merge\n- boom",
        "| Issue | Severity |\n|---|---|\n| Wrong key | medium |",
        "Severity: `High` - the total is negative",
        "**Severity: Important**\nThe key does not name the tenant.",
        "### Critical\n\nThe token is not checked.",
        "### Critical\n\nA buffer of fixed size overflows.",
        "### Critical (the token is leaked)",
        "## Must fix\n1. boom",
        "**Must fix before merge:**\n1. boom",
        "## Required changes\n- boom",
        "## P1 Issues\n\nThe total is negative.",
        "| f-22d1aa90c4 | critical | open |",
        "| src/a.rs:6 | the total is negative | open |",
        "- src/a.rs:6 the total is negative — not fixed",
        "`f-22d1aa90c4` is not fixed.",
        "[**Verdict: CHANGES_REQUESTED**](https://example.org)",
    ] {
        assert_ne!(verdict(line), "approved", "{line}");
    }
    for line in [
        "Critical issues: none",
        "Severity: none of the findings is high",
        "Test coverage: high - every branch is covered",
        "**Confidence: HIGH** — I ran every test",
        "| Test coverage | High | every branch |",
        "This is **important**, and it is right",
        "- `medium`: a timeout of 30 s",
        "#### Important (should fix)\n_None_",
        "### Critical\n\nI did not find any.",
        "### Critical\n\nThere are no critical or other blocking issues in this change.",
        "### Critical\n\nBoth were fixed in this commit.",
        "### Critical\n\nN/A",
        "Important: 0, Minor: 2",
        "| Severity | Critical | Important | Total |\n|---|---|---|---|\n| Count | 0 | 0 | 0 |",
        "| Division by zero | Important | ✅ Fixed |",
        "| f-22d1aa90c4 | minor | open |",
        "Low: the name could be longer",
        "## Required changes\nNone",
        "## Required changes\n\nNo changes are required.",
        "Confidence (Medium): I ran the unit tests",
        "## Required changes of the last round\n- The cache is bounded now",
        "[the old verdict](https://example.org/CHANGES_REQUESTED)",
    ] {
        assert!(verdict(line).starts_with("approved"), "{line}: {}", verdict(line));
    }
    let high = parse_line(
        Contract::Markdown,
        "**Severity:** Important\n\n**Verdict: APPROVED**",
        &barred(Contract::Markdown, FailThreshold::High),
    );
    assert_eq!(high, "approved");
}

/// A refusal in the form of another contract contradicts an approval, even where that contract would not parse it.
#[test]
fn a_refusal_inside_other_json_or_above_a_list_contradicts_an_approval() {
    let verdict = |text: &str| {
        let answer = format!("{text}\n\n**Verdict: APPROVED**\n");
        parse_line(Contract::Markdown, &answer, &review_request(Contract::Markdown))
    };
    for text in [
        r#"[{"verdict": "drift", "followUpPrompt": "fix it"}]"#,
        r#"{"result": {"verdict": "drift", "followUpPrompt": "fix it"}}"#,
        r#"{"review": [{"passed": false}]}"#,
        "**ISSUES:**\n- src/a.rs:6 the total is negative",
        "ISSUES :\n\n- src/a.rs:6 the total is negative",
    ] {
        assert!(!verdict(text).starts_with("approved"), "{text}");
    }
    for text in [
        r#"The endpoint answers {"result": {"verdict": "pass"}}."#,
        r#"{"review": {"passed": true}}"#,
        "```json\n{\"result\": {\"passed\": false}}\n```",
        "**ISSUES:** none\n- src/a.rs is clean",
    ] {
        assert!(verdict(text).starts_with("approved"), "{text}: {}", verdict(text));
    }
}
