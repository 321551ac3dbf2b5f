//! The verdict of the panel and the resulting action.

use signoff_core::merge::merge;
use signoff_core::review::{FailThreshold, Review, Verdict};

use crate::merge::panel::*;

fn verdict_word(reviews: &[Review], threshold: FailThreshold) -> String {
    let merged = merge(reviews, threshold);
    format!("{} -> {}", merged.overall.into_str(), merged.action.into_str())
}

fn at_medium(reviews: &[Review]) -> String {
    verdict_word(reviews, FailThreshold::Medium)
}

fn spec_critical() -> Review {
    issues("spec", [finding(CRITICAL, "a.rs:1", "wrong thing built")])
}

fn code(severity: signoff_core::review::Severity) -> Review {
    issues("code", [finding(severity, "b.rs:9", "handle is leaked")])
}

#[test]
fn verdicts_have_a_fixed_precedence() {
    let discussion = || review("code", Verdict::NeedsDiscussion);
    let with_minor = || review("code", Verdict::ApprovedWithMinor);
    let rows = [
        ("nobody reviewed", at_medium(&[])),
        ("a seat is unheard, beside everything else", at_medium(&[spec_critical(), discussion(), missing("tests")])),
        ("a discussion, beside a spec critical", at_medium(&[spec_critical(), discussion()])),
        ("spec critical, beside code critical", at_medium(&[spec_critical(), code(CRITICAL)])),
        ("code critical", at_medium(&[approved("spec"), code(CRITICAL)])),
        (
            "security critical ranks with code",
            at_medium(&[approved("spec"), issues("security", [finding(CRITICAL, "c.rs:1", "sql injection")])]),
        ),
        (
            "code critical, beside spec important",
            at_medium(&[issues("spec", [finding(IMPORTANT, "a.rs:1", "extra flag")]), code(CRITICAL)]),
        ),
        ("code important", at_medium(&[approved("spec"), code(IMPORTANT)])),
        (
            "spec important, code approved with minor",
            at_medium(&[issues("spec", [finding(IMPORTANT, "a.rs:1", "extra flag")]), with_minor()]),
        ),
        ("code approved with minor", at_medium(&[approved("spec"), with_minor()])),
        ("both approved", at_medium(&[approved("spec"), approved("code")])),
    ];
    let table: Vec<String> = rows.iter().map(|(case, verdict_word)| format!("{case}: {verdict_word}")).collect();
    insta::assert_snapshot!(table.join("\n"), @"
    nobody reviewed: INCONCLUSIVE -> FIX_AND_REREVIEW
    a seat is unheard, beside everything else: INCONCLUSIVE -> FIX_AND_REREVIEW
    a discussion, beside a spec critical: NEEDS_DISCUSSION -> FIX_AND_REREVIEW
    spec critical, beside code critical: SPEC_CRITICAL -> FIX_AND_REREVIEW
    code critical: CODE_CRITICAL -> FIX_AND_REREVIEW
    security critical ranks with code: CODE_CRITICAL -> FIX_AND_REREVIEW
    code critical, beside spec important: CODE_CRITICAL -> FIX_AND_REREVIEW
    code important: ISSUES -> FIX_AND_REREVIEW
    spec important, code approved with minor: ISSUES -> FIX_AND_REREVIEW
    code approved with minor: APPROVED_WITH_MINOR -> PROCEED_WITH_NOTES
    both approved: APPROVED -> PROCEED
    ");
}

#[test]
fn the_bar_decides_the_action_but_not_the_verdict() {
    let panel = |severity| [approved("spec"), code(severity)];
    let mut table = Vec::new();
    for severity in [CRITICAL, IMPORTANT, MINOR] {
        for threshold in [FailThreshold::Low, FailThreshold::Medium, FailThreshold::High, FailThreshold::None] {
            table.push(format!(
                "{} under {threshold:?}: {}",
                severity.into_str(),
                verdict_word(&panel(severity), threshold)
            ));
        }
    }
    insta::assert_snapshot!(table.join("\n"), @"
    critical under Low: CODE_CRITICAL -> FIX_AND_REREVIEW
    critical under Medium: CODE_CRITICAL -> FIX_AND_REREVIEW
    critical under High: CODE_CRITICAL -> FIX_AND_REREVIEW
    critical under None: CODE_CRITICAL -> PROCEED_WITH_NOTES
    important under Low: ISSUES -> FIX_AND_REREVIEW
    important under Medium: ISSUES -> FIX_AND_REREVIEW
    important under High: ISSUES -> PROCEED_WITH_NOTES
    important under None: ISSUES -> PROCEED_WITH_NOTES
    minor under Low: APPROVED -> FIX_AND_REREVIEW
    minor under Medium: APPROVED -> PROCEED_WITH_NOTES
    minor under High: APPROVED -> PROCEED_WITH_NOTES
    minor under None: APPROVED -> PROCEED_WITH_NOTES
    ");
}

#[test]
fn no_bar_waives_a_missing_review_or_a_discussion() {
    assert_eq!(
        verdict_word(&[approved("spec"), missing("code")], FailThreshold::None),
        "INCONCLUSIVE -> FIX_AND_REREVIEW"
    );
    let discussion = review("code", Verdict::NeedsDiscussion);
    assert_eq!(
        verdict_word(&[approved("spec"), discussion], FailThreshold::None),
        "NEEDS_DISCUSSION -> FIX_AND_REREVIEW"
    );
    assert_eq!(verdict_word(&[], FailThreshold::None), "INCONCLUSIVE -> FIX_AND_REREVIEW");
}

#[test]
fn changes_requested_without_findings_does_not_pass() {
    let bare = [approved("spec"), issues("code", [])];
    assert_eq!(verdict_word(&bare, FailThreshold::Low), "ISSUES -> FIX_AND_REREVIEW");
    assert_eq!(verdict_word(&bare, FailThreshold::High), "ISSUES -> FIX_AND_REREVIEW");
    assert_eq!(verdict_word(&bare, FailThreshold::None), "ISSUES -> PROCEED_WITH_NOTES");
}

#[test]
fn a_finding_outranks_the_verdict_beside_it() {
    let mut generous = code(CRITICAL);
    generous.verdict = Verdict::Approved;
    assert_eq!(at_medium(&[approved("spec"), generous]), "CODE_CRITICAL -> FIX_AND_REREVIEW");
}

#[test]
fn notes_never_block() {
    let mut noted = approved("code");
    noted.minor.push(note("a.rs", 3, "magic number"));
    assert_eq!(verdict_word(&[approved("spec"), noted], FailThreshold::Low), "APPROVED -> PROCEED_WITH_NOTES");
}

#[test]
fn results_are_sorted_spec_then_code_then_by_name() {
    let reviews = ["zoe", "tests", "code", "general", "spec", "anna"].map(approved);
    let results: Vec<String> =
        merge(&reviews, FailThreshold::Medium).results.iter().map(|seat| seat.reviewer.to_string()).collect();
    assert_eq!(results, ["spec", "code", "anna", "general", "tests", "zoe"]);
}
