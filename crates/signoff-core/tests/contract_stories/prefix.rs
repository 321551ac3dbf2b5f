//! Answers in the `prefix` contract.

use signoff_core::contract::Contract;

use super::render::{review_request, spec, strict, table};

#[test]
fn the_prefix_must_be_at_the_start() {
    let answers = [
        ("approved", "APPROVED: all requirements met"),
        ("white space before", "\u{feff}\n  APPROVED: fine\r\n"),
        ("approved with minor", "APPROVED_WITH_MINOR: two remarks\n- [Minor] src/a.rs:1 rename\n- src/b.rs:2 shorten"),
        ("approved beside a critical one", "APPROVED: fine\n\nCritical:\n- src/a.rs:1 it burns"),
        ("preamble", "I think:\nAPPROVED: fine"),
        ("fenced", "```\nAPPROVED: fine\n```"),
        ("quoted", "> APPROVED: fine"),
        ("bold", "**APPROVED:** fine"),
        ("without the colon", "APPROVED fine"),
        ("longer", "APPROVED_WITH_MAJOR: fine"),
        ("taken back", "APPROVED: fine\n\nISSUES:\n- src/a.rs:1 it burns"),
        ("taken back in a quotation", "APPROVED: it prints\n\n> ISSUES: none\n"),
        ("the other way round", "ISSUES: it burns\n\nAPPROVED: never"),
        ("the same again", "APPROVED: a\n\nAPPROVED: b"),
    ];
    insta::assert_snapshot!(table(Contract::Prefix, &review_request(Contract::Prefix), &answers), @r#"
    approved
        approved
    white space before
        approved
    approved with minor
        approved_with_minor [minor issue] src/a.rs:1 "rename" (note) src/b.rs:2 "shorten"
    approved beside a critical one
        changes_requested [critical issue] src/a.rs:1 "it burns"
    preamble
        ! no_verdict @0: the message does not start with APPROVED:, APPROVED_WITH_MINOR: or ISSUES:
    fenced
        ! no_verdict @0: the message does not start with APPROVED:, APPROVED_WITH_MINOR: or ISSUES:
    quoted
        ! no_verdict @0: the message does not start with APPROVED:, APPROVED_WITH_MINOR: or ISSUES:
    bold
        ! no_verdict @0: the message does not start with APPROVED:, APPROVED_WITH_MINOR: or ISSUES:
    without the colon
        ! no_verdict @0: the message does not start with APPROVED:, APPROVED_WITH_MINOR: or ISSUES:
    longer
        ! no_verdict @0: the message does not start with APPROVED:, APPROVED_WITH_MINOR: or ISSUES:
    taken back
        ! disagreement @16: two answers in one message say different things
    taken back in a quotation
        approved
    the other way round
        ! disagreement @18: two answers in one message say different things
    the same again
        approved
    "#);
    let minor = [("approved with minor", "APPROVED_WITH_MINOR: x")];
    insta::assert_snapshot!(table(Contract::Prefix, &spec(Contract::Prefix), &minor), @"
    approved with minor
        ! unknown_verdict @0: the verdict must be APPROVED or ISSUES, not APPROVED_WITH_MINOR
    ");
}

#[test]
fn issues_are_lists_with_or_without_headings() {
    let tagged = "ISSUES: three\n- [Critical] src/a.rs:1 it burns\n- [Important] src/b.rs:2: no test\n- [Minor] typo\n";
    let headed = "ISSUES:\n\nCritical:\n- src/a.rs:1 it burns\n  - because of x\n\n**Important:**\n1. src/b.rs:2 no test\n2. src/c.rs no docs\n";
    let tight = "ISSUES:\nCritical:\n- src/a.rs:1 it burns\nImportant:\n- src/b.rs:2 no test\n### Minor\n- typo";
    let nested = "ISSUES:\n- Critical:\n  - it burns\n- Important issues:\n  - no test\n";
    let answers = [
        ("tagged", tagged),
        ("under headings", headed),
        ("without blank lines", tight),
        ("nested", nested),
        ("neither", "ISSUES:\n- src/a.rs:1 it burns"),
        ("no list", "ISSUES: the whole module has to go"),
        ("nothing", "ISSUES:\n"),
        ("struck", "ISSUES: one left\n- ~~src/a.rs:1 it burns~~\n- src/b.rs:2 it smokes"),
    ];
    insta::assert_snapshot!(table(Contract::Prefix, &review_request(Contract::Prefix), &answers), @r#"
    tagged
        changes_requested [critical issue] src/a.rs:1 "it burns" [important issue] src/b.rs:2 "no test" [minor issue] "typo"
    under headings
        changes_requested [critical issue] src/a.rs:1 "it burns\n- because of x" [important issue] src/b.rs:2 "no test" [important issue] "src/c.rs no docs"
    without blank lines
        changes_requested [critical issue] src/a.rs:1 "it burns" [important issue] src/b.rs:2 "no test" [minor issue] "typo"
    nested
        changes_requested [critical issue] "it burns" [important issue] "no test"
    neither
        changes_requested [critical issue] src/a.rs:1 "it burns"
    no list
        changes_requested [critical issue] "the whole module has to go"
    nothing
        ! issues_without_issue @0: ISSUES: without any issue
    struck
        changes_requested [critical issue] src/b.rs:2 "it smokes"
    "#);
}

#[test]
fn the_nonce_line_is_checked() {
    let answers = [
        ("after", "APPROVED: fine\n<!-- signoff:n-7f3a -->\nMore."),
        ("before", "<!-- signoff:n-7f3a -->\nAPPROVED: fine"),
        ("not beside it", "APPROVED: fine\nMore.\n<!-- signoff:n-7f3a -->"),
        ("another", "APPROVED: fine\n<!-- signoff:n-0000 -->"),
        ("missing", "APPROVED: fine"),
    ];
    insta::assert_snapshot!(table(Contract::Prefix, &strict(Contract::Prefix), &answers), @"
    after
        approved
    before
        approved
    not beside it
        ! nonce_missing @0: no answer carries the nonce of this review
    another
        ! nonce_mismatch @15: the answer carries the nonce of another review; copy the one of this review
    missing
        ! nonce_missing @0: no answer carries the nonce of this review
    ");
}
