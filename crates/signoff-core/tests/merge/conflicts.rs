//! Conflicts between findings are reported, not resolved.

use signoff_core::merge::{MergedReview, merge};
use signoff_core::review::{FailThreshold, Finding, Review};

use crate::merge::panel::*;

const ADD: &str = "Add a null check to parse()";
const REMOVE: &str = "Remove the null check from parse()";

fn conflicts(reviews: &[Review]) -> Vec<String> {
    let MergedReview { issues, conflicts, .. } = merge(reviews, FailThreshold::Medium);
    let description = |index: usize| issues[index].finding.description.clone();
    conflicts
        .iter()
        .map(|clash| format!("{} | {} | {}", description(clash.a), description(clash.b), clash.about))
        .collect()
}

#[test]
fn opposite_requests_at_one_location_are_a_conflict() {
    let panel =
        [issues("code", [finding(CRITICAL, "a.rs:12", REMOVE)]), issues("spec", [finding(IMPORTANT, "a.rs:10", ADD)])];
    insta::assert_snapshot!(conflicts(&panel).join("\n"), @"Remove the null check from parse() | Add a null check to parse() | remove against add: null check parse");
    assert_eq!(merge(&panel, FailThreshold::Medium).issues.len(), 2, "both stay");
}

#[test]
fn the_suggestion_counts_as_well_as_the_description() {
    let suggests = |place, suggestion: &str| Finding {
        suggestion: Some(suggestion.into()),
        ..finding(IMPORTANT, place, "This is not right")
    };
    let panel = [
        issues("security", [suggests("a.rs:10", "Disable the debug endpoint.")]),
        issues("tests", [suggests("a.rs:11", "Enable the debug endpoint in staging.")]),
    ];
    insta::assert_snapshot!(conflicts(&panel).join("\n"), @"This is not right | This is not right | disable against enable: debug endpoint");
}

#[test]
fn distant_findings_and_those_of_one_reviewer_do_not_conflict() {
    let far =
        [issues("spec", [finding(IMPORTANT, "a.rs:10", ADD)]), issues("code", [finding(IMPORTANT, "a.rs:90", REMOVE)])];
    assert!(conflicts(&far).is_empty());
    let one = [issues("code", [finding(IMPORTANT, "a.rs:10", ADD), finding(IMPORTANT, "a.rs:11", REMOVE)])];
    assert!(conflicts(&one).is_empty());
}

#[test]
fn equal_requests_do_not_conflict() {
    let panel = [
        issues("spec", [finding(IMPORTANT, "a.rs:10", "Missing input validation")]),
        issues("code", [finding(IMPORTANT, "a.rs:12", "User input not sanitized")]),
    ];
    assert!(conflicts(&panel).is_empty());
    assert_eq!(merge(&panel, FailThreshold::Medium).groups.len(), 1, "but related they are");
}
