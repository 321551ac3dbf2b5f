//! Answers in the `severity` contract.

use signoff_core::contract::Contract;
use signoff_core::review::FailThreshold;

use super::render::{barred, review_request, strict, table};

#[test]
fn findings_come_as_json_or_as_lines() {
    let answers = [
        ("array", r#"[{"severity":"MEDIUM","message":"no test","location":"src/a.rs:10"}]"#),
        (
            "object",
            "Found:\n```json\n{\"issues\": [{\"severity\":\"LOW\",\"message\":\"typo\",\"location\":\"README.md\"}]}\n```",
        ),
        ("no severity, no location", r#"[{"message":"it burns"}]"#),
        ("unknown severity", r#"[{"severity":"MEH","message":"it burns","location":null}]"#),
        ("lines", "HIGH src/a.rs:10 it burns\n- **LOW** `src/b.rs:2`: typo\n| MEDIUM | src/c.rs:3 | no test |\n"),
        (
            "lines repeated as JSON",
            "- HIGH src/a.rs:10 it burns\n\n[{\"severity\":\"HIGH\",\"message\":\"burns\",\"location\":\"src/a.rs:10\"}]",
        ),
        ("lines in a fence", "```\nHIGH src/a.rs:10 it burns\n```"),
        ("lines in a quotation", "> HIGH src/a.rs:10 it burns"),
        ("a line without a location", "HIGH: it burns"),
        ("prose", "I have read everything with high attention."),
        ("no message", r#"[{"severity":"HIGH"}]"#),
        ("a message of another type", r#"[{"severity":"HIGH","message":1}]"#),
        ("no objects", r#"{"issues":["it burns"]}"#),
        ("no list", r#"{"issues":"none"}"#),
        ("an issue in no list", r#"{"severity":"HIGH","message":"it burns"}"#),
        ("a list that breaks off", "[{\"severity\":\"HIGH\",\"message\":\"it \"burns\"\"}]\n\nNO ISSUES"),
        ("duplicate key", r#"{"issues":[{"severity":"HIGH","severity":"LOW","message":"x"}]}"#),
    ];
    insta::assert_snapshot!(table(Contract::Severity, &review_request(Contract::Severity), &answers), @r#"
    array
        changes_requested [important issue] src/a.rs:10 "no test"
    object
        changes_requested [minor issue] README.md "typo"
    no severity, no location
        changes_requested [critical issue] "it burns"
    unknown severity
        changes_requested [critical issue] "it burns"
    lines
        changes_requested [critical issue] src/a.rs:10 "it burns" [minor issue] src/b.rs:2 "typo" [important issue] src/c.rs:3 "no test"
    lines repeated as JSON
        changes_requested [critical issue] src/a.rs:10 "burns"
    lines in a fence
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    lines in a quotation
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    a line without a location
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    prose
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    no message
        ! missing_key @0: `message` is missing: a string is required
    a message of another type
        ! wrong_type @0: `message` must be a string, not a number
    no objects
        ! wrong_type @0: `issues` must be an array of objects, not a string
    no list
        ! wrong_type @0: `issues` must be an array, not a string
    an issue in no list
        ! malformed @0: the issue is outside a list; write `[…]` or `{"issues": […]}`
    a list that breaks off
        ! malformed @1: the issue is outside a list; write `[…]` or `{"issues": […]}`
    duplicate key
        ! duplicate_key @0: the key `severity` appears twice in one object
    "#);
}

#[test]
fn an_answer_without_findings_must_say_so() {
    let answers = [
        ("empty array", "[]"),
        ("empty array after a preamble", "I found nothing.\n\n```json\n[]\n```"),
        ("empty issues", "{\"issues\": []}"),
        ("a line", "I read it all.\r\n\r\nNO ISSUES\r\n"),
        ("another line", "No issues found."),
        ("a third", "Plan looks good to proceed."),
        ("counted", "HIGH: 0, MEDIUM: 0, LOW: 0\n\nNO ISSUES"),
        ("array in a sentence", "It returns [] always."),
        ("array in code", "`[]`"),
        ("checkbox", "- [ ] read it"),
        ("array in a quotation", "> []"),
        ("more than the line", "NO ISSUES found in auth"),
        ("lower case", "no issues"),
        ("bold", "**NO ISSUES**"),
        ("quoted", "> NO ISSUES"),
        ("fenced", "```\nNO ISSUES\n```"),
        ("inline code over lines", "It prints `a\nNO ISSUES\nb`."),
        ("comment", "<!--\nNO ISSUES\n-->"),
        ("clean beside a finding", "NO ISSUES\n\nLOW src/a.rs:1 typo"),
        ("clean beside a finding in JSON", "[{\"severity\":\"LOW\",\"message\":\"typo\"}]\n\nNO ISSUES"),
        ("clean beside a vague one", "HIGH: it burns\n\nNO ISSUES"),
        ("clean over a list of locations", "No issues found.\n\n1. src/a.rs:1 it burns"),
        ("clean over a list of other things", "No issues found.\n\n- The tests pass"),
        ("two lists", "[]\n\n[{\"severity\":\"LOW\",\"message\":\"typo\"}]"),
    ];
    insta::assert_snapshot!(table(Contract::Severity, &review_request(Contract::Severity), &answers), @r#"
    empty array
        approved
    empty array after a preamble
        approved
    empty issues
        approved
    a line
        approved
    another line
        approved
    a third
        approved
    counted
        approved
    array in a sentence
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    array in code
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    checkbox
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    array in a quotation
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    more than the line
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    lower case
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    bold
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    quoted
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    fenced
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    inline code over lines
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    comment
        ! no_verdict @0: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    clean beside a finding
        ! disagreement @11: two answers in one message say different things
    clean beside a finding in JSON
        ! disagreement @39: two answers in one message say different things
    clean beside a vague one
        ! disagreement @0: a line states a severity without a `file:line`, which contradicts an approval
    clean over a list of locations
        ! disagreement @0: the answer says that there are no issues, and a list of locations follows
    clean over a list of other things
        approved
    two lists
        ! disagreement @4: two answers in one message say different things
    "#);
}

#[test]
fn the_bar_decides() {
    let medium = [("medium", r#"[{"severity":"MEDIUM","message":"no test","location":"src/a.rs:10"}]"#)];
    let under = |threshold| table(Contract::Severity, &barred(Contract::Severity, threshold), &medium);
    insta::assert_snapshot!([under(FailThreshold::Low), under(FailThreshold::Medium), under(FailThreshold::High), under(FailThreshold::None)].join("\n"), @r#"
    medium
        changes_requested [important issue] src/a.rs:10 "no test"
    medium
        changes_requested [important issue] src/a.rs:10 "no test"
    medium
        approved [important issue] src/a.rs:10 "no test"
    medium
        approved [important issue] src/a.rs:10 "no test"
    "#);
}

#[test]
fn the_nonce_is_checked_as_key_or_line() {
    let answers = [
        ("key", r#"{"issues":[],"nonce":"n-7f3a"}"#),
        ("line beside an array", "<!-- signoff:n-7f3a -->\n[]"),
        ("line beside a fence", "```json\n[]\n```\n<!-- signoff:n-7f3a -->"),
        ("line inside the fence", "```json\n<!-- signoff:n-7f3a -->\n[]\n```\n"),
        ("line beside a clean line", "NO ISSUES\n\n<!-- signoff:n-7f3a 0123456789a -->"),
        ("line below the finding lines", "HIGH src/a.rs:1 it burns\nLOW src/b.rs:1 typo\n<!-- signoff:n-7f3a -->"),
        ("missing", "[]"),
        (
            "the bound one counts",
            "NO ISSUES\n\nsays the file.\n\n{\"issues\":[{\"severity\":\"HIGH\",\"message\":\"x\"}],\"nonce\":\"n-7f3a\"}",
        ),
    ];
    insta::assert_snapshot!(table(Contract::Severity, &strict(Contract::Severity), &answers), @r#"
    key
        approved
    line beside an array
        approved
    line beside a fence
        approved
    line inside the fence
        approved
    line beside a clean line
        approved
    line below the finding lines
        changes_requested [critical issue] src/a.rs:1 "it burns" [minor issue] src/b.rs:1 "typo"
    missing
        ! nonce_missing @0: no answer carries the nonce of this review
    the bound one counts
        changes_requested [critical issue] "x"
    "#);
}
