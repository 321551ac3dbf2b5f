//! Duplicate findings of several reviewers.

use signoff_core::merge::{MergedReview, merge};
use signoff_core::review::{FailThreshold, Finding, Review};

use crate::merge::panel::*;

const LEAK: &str = "The session token is written to the log in clear text";

fn merged(reviews: &[Review]) -> MergedReview {
    merge(reviews, FailThreshold::Medium)
}

fn finding_at(location: &str) -> Finding {
    finding(CRITICAL, location, LEAK)
}

#[test]
fn a_finding_of_two_reviewers_is_merged_with_two_sources() {
    let code = issues("code", [Finding { suggestion: Some("Redact it".into()), ..finding_at("a.rs:12") }]);
    let spec = issues(
        "spec",
        [Finding {
            requirement: Some("No secrets in logs".into()),
            kind: "misunderstanding".into(),
            ..finding_at("a.rs:10")
        }],
    );
    let merged = merged(&[code, spec]);
    insta::assert_debug_snapshot!(merged.issues, @r#"
    [
        MergedIssue {
            finding: Finding {
                id: FindingId(
                    "The session token is written to the log in clear text@a.rs:10",
                ),
                sources: [
                    ReviewerName(
                        "spec",
                    ),
                    ReviewerName(
                        "code",
                    ),
                ],
                kind: "misunderstanding",
                severity: Critical,
                file: Some(
                    "a.rs",
                ),
                line: Some(
                    10,
                ),
                description: "The session token is written to the log in clear text",
                requirement: Some(
                    "No secrets in logs",
                ),
                suggestion: Some(
                    "Redact it",
                ),
            },
            aliases: [
                FindingId(
                    "The session token is written to the log in clear text@a.rs:12",
                ),
            ],
            priority: 1,
            group: None,
        },
    ]
    "#);
    assert!(merged.groups.is_empty(), "one finding is not related to itself");
}

#[test]
fn the_most_urgent_text_and_the_highest_severity_are_kept() {
    let spec = issues("spec", [Finding { severity: IMPORTANT, ..finding_at("a.rs:10") }]);
    let code = issues("code", [finding_at("a.rs:12")]);
    let security = issues("security", [finding_at("a.rs:14")]);
    insta::assert_snapshot!(listing(&merged(&[spec, code, security])), @"2 group - [code+spec+security] a.rs:12 The session token is written to the log in clear text");
}

#[test]
fn equal_text_at_another_location_is_another_finding() {
    let elsewhere = ["a.rs:16", "b.rs:10", "a.rs", ""];
    for location in elsewhere {
        let panel = [issues("spec", [finding_at("a.rs:10")]), issues("code", [finding_at(location)])];
        assert_eq!(merged(&panel).issues.len(), 2, "{location}");
    }
}

#[test]
fn findings_without_a_line_are_matched_by_file() {
    for location in ["a.rs", ""] {
        let panel = [issues("spec", [finding_at(location)]), issues("code", [finding_at(location)])];
        assert_eq!(merged(&panel).issues.len(), 1, "{location:?}");
    }
}

#[test]
fn equal_findings_of_one_reviewer_are_not_merged() {
    let panel = [issues("code", [finding_at("a.rs:10"), finding_at("a.rs:12")])];
    assert_eq!(merged(&panel).issues.len(), 2);
}

#[test]
fn repeated_findings_are_matched_one_to_one() {
    let spec = issues("spec", [finding_at("a.rs:10"), finding_at("a.rs:13")]);
    let code = issues("code", [finding_at("a.rs:13"), finding_at("a.rs:10")]);
    insta::assert_snapshot!(listing(&merged(&[spec, code])), @"
    1 group 0 [spec+code] a.rs:10 The session token is written to the log in clear text
    1 group 0 [spec+code] a.rs:13 The session token is written to the log in clear text
    ");
}

#[test]
fn identical_texts_are_matched_on_a_line_with_many_findings() {
    let crowd = |name: &str| {
        issues(name, (0..300).map(|n| finding(CRITICAL, "a.rs:1", &format!("finding number {n} of this line"))))
    };
    assert_eq!(merged(&[crowd("spec"), crowd("code")]).issues.len(), 300);
}

#[test]
fn merging_duplicates_never_changes_the_verdict() {
    let spec = issues("spec", [Finding { severity: IMPORTANT, ..finding_at("a.rs:10") }]);
    let code = issues("code", [finding_at("a.rs:12")]);
    let merged = merged(&[spec, code]);
    assert_eq!(merged.overall.into_str(), "CODE_CRITICAL");
    assert_eq!(merged.issues[0].priority, 2);
}
