//! The order and the grouping of issues.

use signoff_core::merge::merge;
use signoff_core::review::FailThreshold;

use crate::merge::panel::*;

#[test]
fn issues_are_sorted_by_priority_then_file_then_line() {
    let spec = issues(
        "spec",
        [
            finding(MINOR, "a.rs:300", "typo in a heading"),
            finding(IMPORTANT, "a.rs:1", "extra flag"),
            finding(CRITICAL, "z.rs:1", "wrong thing built"),
        ],
    );
    let code = issues(
        "code",
        [
            finding(IMPORTANT, "a.rs:100", "error swallowed"),
            finding(CRITICAL, "b.rs:20", "use after free"),
            finding(CRITICAL, "b.rs:3", "off by one"),
            finding(CRITICAL, "a.rs:200", "deadlock"),
            finding(CRITICAL, "b.rs", "file is not formatted as UTF-8"),
            finding(CRITICAL, "", "build is broken"),
        ],
    );
    let security = issues("security", [finding(CRITICAL, "b.rs:10", "token is logged")]);
    insta::assert_snapshot!(listing(&merge(&[code, security, spec], FailThreshold::Medium)), @"
    1 group - [spec] z.rs:1 wrong thing built
    2 group - [code] nowhere:- build is broken
    2 group - [code] a.rs:200 deadlock
    2 group - [code] b.rs:- file is not formatted as UTF-8
    2 group - [code] b.rs:3 off by one
    2 group - [security] b.rs:10 token is logged
    2 group - [code] b.rs:20 use after free
    3 group - [spec] a.rs:1 extra flag
    4 group - [code] a.rs:100 error swallowed
    5 group - [spec] a.rs:300 typo in a heading
    ");
}

#[test]
fn relation_is_transitive_and_ends_after_five_lines() {
    let code = issues(
        "code",
        [
            finding(IMPORTANT, "a.rs:10", "first"),
            finding(IMPORTANT, "a.rs:15", "five on"),
            finding(IMPORTANT, "a.rs:20", "ten on"),
            finding(IMPORTANT, "a.rs:26", "six further: alone"),
            finding(IMPORTANT, "b.rs:11", "another file"),
            finding(IMPORTANT, "a.rs", "no line: related to nothing"),
            finding(IMPORTANT, "a.rs", "no line either"),
        ],
    );
    let merged = merge(&[code], FailThreshold::Medium);
    insta::assert_snapshot!(listing(&merged), @"
    4 group - [code] a.rs:- no line either
    4 group - [code] a.rs:- no line: related to nothing
    4 group 0 [code] a.rs:10 first
    4 group 0 [code] a.rs:15 five on
    4 group 0 [code] a.rs:20 ten on
    4 group - [code] a.rs:26 six further: alone
    4 group - [code] b.rs:11 another file
    ");
    assert_eq!(merged.groups.len(), 1);
    assert_eq!(merged.groups[0].issues, [2, 3, 4]);
}

#[test]
fn a_group_is_sorted_by_its_most_urgent_member() {
    let spec = issues("spec", [finding(CRITICAL, "m.rs:50", "login is missing")]);
    let code = issues(
        "code",
        [
            finding(CRITICAL, "a.rs:1", "panics on empty input"),
            finding(MINOR, "m.rs:52", "name is vague"),
            finding(IMPORTANT, "m.rs:47", "error swallowed"),
            finding(IMPORTANT, "b.rs:1", "no test"),
        ],
    );
    insta::assert_snapshot!(listing(&merge(&[spec, code], FailThreshold::Medium)), @"
    1 group 0 [spec] m.rs:50 login is missing
    4 group 0 [code] m.rs:47 error swallowed
    5 group 0 [code] m.rs:52 name is vague
    2 group - [code] a.rs:1 panics on empty input
    4 group - [code] b.rs:1 no test
    ");
}

#[test]
fn two_spellings_of_a_path_are_one_location() {
    let spec = issues("spec", [finding(IMPORTANT, "./src/a.rs:10", "extra flag")]);
    let code = issues("code", [finding(IMPORTANT, "src\\a.rs:12", "no test")]);
    assert_eq!(merge(&[spec, code], FailThreshold::Medium).groups.len(), 1);
}

#[test]
fn lines_at_the_end_of_the_range_are_compared_without_overflow() {
    let spec = issues("spec", [finding(IMPORTANT, "a.rs:4294967295", "x"), finding(IMPORTANT, "a.rs:0", "y")]);
    let code = issues("code", [finding(IMPORTANT, "a.rs:4294967293", "x"), finding(IMPORTANT, "a.rs:2", "y")]);
    insta::assert_snapshot!(listing(&merge(&[spec, code], FailThreshold::Medium)), @"
    3 group - [spec+code] a.rs:0 y
    3 group - [spec+code] a.rs:4294967295 x
    ");
}
