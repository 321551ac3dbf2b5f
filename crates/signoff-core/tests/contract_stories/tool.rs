//! Reports through the tool of the `tool` contract.

use signoff_core::contract::{Contract, ReviewAnswer, ReviewRequest, parse};
use signoff_core::review::IntentSatisfied;

use super::render::{looped, one_line, review_request};

fn reported(arguments: &str, request: &ReviewRequest) -> String {
    let answer = ReviewAnswer { text: b"", tool: Some(arguments.as_bytes()) };
    one_line(&parse(Contract::Tool, answer, request))
}

#[test]
fn a_report_is_a_strict_object() {
    let reports = [
        r#"{"passed": true}"#,
        r#"{"passed": true, "issues": [{"file": "src/a.rs", "line": 3, "type": "dead-code", "description": "unused import"}]}"#,
        r#"{"passed": false, "issues": [{"file": "src/a.rs", "line": 3.0, "type": "dead-code", "description": "unused", "suggestion": "remove"}, {}]}"#,
        r#"{"passed": true, "interpretedIntent": "log people in", "intentSatisfied": false}"#,
        r#"{"passed": true, "intentSatisfied": false, "issues": [{"description": "small"}]}"#,
        r#"{"passed": false, "interpretedIntent": "log people in"}"#,
        r#"{"passed": false}"#,
        r#"{"passed": "yes"}"#,
        r#"{"intentSatisfied": true}"#,
        r#"{"passed": true, "issues": {}}"#,
        r#"{"passed": true, "issues": ["x"]}"#,
        r#"{"passed": true, "issues": [{"line": "3"}]}"#,
        r#"{"passed": true, "issues": [{"line": -3, "file": 1}]}"#,
        r#"{"passed": false, "passed": true}"#,
        r#"{"passed": true} {"passed": false}"#,
        r#"{"passed": true"#,
        r#"[true]"#,
        r#""#,
        r#"{"passed": true, "commit": "ffffffff"}"#,
        r#"{"passed": true, "somethingElse": 1}"#,
    ];
    let lines: Vec<_> = reports
        .iter()
        .map(|report| format!("{report}\n    {}", reported(report, &review_request(Contract::Tool))))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"passed": true}
        approved
    {"passed": true, "issues": [{"file": "src/a.rs", "line": 3, "type": "dead-code", "description": "unused import"}]}
        approved (note) src/a.rs:3 "unused import"
    {"passed": false, "issues": [{"file": "src/a.rs", "line": 3.0, "type": "dead-code", "description": "unused", "suggestion": "remove"}, {}]}
        changes_requested [critical dead-code] src/a.rs:3 "unused" (remove) [critical unstated] "An issue without a description."
    {"passed": true, "interpretedIntent": "log people in", "intentSatisfied": false}
        changes_requested [critical spec-intent-mismatch] "The intent is not satisfied: log people in"
    {"passed": true, "intentSatisfied": false, "issues": [{"description": "small"}]}
        changes_requested [critical spec-intent-mismatch] "The intent is not satisfied." (note) "small"
    {"passed": false, "interpretedIntent": "log people in"}
        changes_requested [critical spec-intent-mismatch] "log people in"
    {"passed": false}
        changes_requested [critical spec-intent-mismatch] "The review did not pass and names no issue."
    {"passed": "yes"}
        ! wrong_type @0: `passed` must be true or false, not a string
    {"intentSatisfied": true}
        ! missing_key @0: `passed` is missing: true or false is required
    {"passed": true, "issues": {}}
        ! wrong_type @0: `issues` must be an array of objects, not an object
    {"passed": true, "issues": ["x"]}
        ! wrong_type @0: `issues[0]` must be an object, not a string
    {"passed": true, "issues": [{"line": "3"}]}
        ! wrong_type @0: issues[0]: `line` must be a number, not a string
    {"passed": true, "issues": [{"line": -3, "file": 1}]}
        ! wrong_type @0: issues[0]: `file` must be a string, not a number
    {"passed": false, "passed": true}
        ! duplicate_key @0: the key `passed` appears twice in one object
    {"passed": true} {"passed": false}
        changes_requested [critical spec-intent-mismatch] "The review did not pass and names no issue."
    {"passed": true
        ! truncated @15: the arguments are not a JSON object: EOF while parsing an object at line 1 column 15
    [true]
        ! wrong_type @0: the arguments must be an object, not an array

        ! empty @0: the argument object is empty
    {"passed": true, "commit": "ffffffff"}
        ! commit_mismatch @0: the answer is bound to commit `ffffffff`, not to the one under review
    {"passed": true, "somethingElse": 1}
        approved
    "#);
}

#[test]
fn an_issue_labelled_as_blocking_does_not_pass() {
    let report = |text: &str| format!(r#"{{"passed": true, "issues": [{{"description": "{text}"}}]}}"#);
    for text in ["[Critical] src/a.rs:6 loses money", "Severity: Important", "**Must fix:** it loses money"] {
        let review = reported(&report(text), &review_request(Contract::Tool));
        assert!(review.starts_with("! disagreement"), "{text}: {review}");
    }
    for text in ["[Minor] the name could be longer", "It should be renamed"] {
        let review = reported(&report(text), &review_request(Contract::Tool));
        assert!(review.starts_with("approved"), "{text}: {review}");
    }
}

#[test]
fn a_loop_review_names_its_loop() {
    let reports = [
        r#"{"loopId": "b", "taskId": "12", "passed": true}"#,
        r#"{"loopId": "a", "passed": true}"#,
        r#"{"passed": true}"#,
        r#"{"loopId": 2, "passed": true}"#,
    ];
    let lines: Vec<_> = reports.iter().map(|report| reported(report, &looped(Contract::Tool))).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    approved
    ! wrong_loop @0: `loopId` must be "b", the loop under review, not "a"
    ! missing_key @0: `loopId` is missing: a string is required
    ! wrong_type @0: `loopId` must be a string, not a number
    "#);
}

#[test]
fn the_intent_is_kept() {
    let arguments = br#"{"passed": true, "interpretedIntent": " log people in ", "intentSatisfied": true}"#;
    let review =
        parse(Contract::Tool, ReviewAnswer { text: b"", tool: Some(arguments) }, &review_request(Contract::Tool))
            .unwrap();
    assert_eq!(review.interpreted_intent.as_deref(), Some("log people in"));
    assert_eq!(review.intent_satisfied, IntentSatisfied::Yes);
}

#[test]
fn text_does_not_count_as_a_report() {
    let answer = ReviewAnswer { text: br#"{"passed": true}"#, tool: None };
    insta::assert_snapshot!(one_line(&parse(Contract::Tool, answer, &review_request(Contract::Tool))), @"! empty @0: the reviewer did not report its result");
}
