//! The default gate: whether tasks are reviewed, and by which reviewers.

use signoff_core::settings::{Settings, TaskFlags};
use signoff_core::task::TaskSpec;

use crate::config::configured;

/// The reviewers of a task, or a placeholder if its gate is off.
fn reviewers(settings: &Settings, task: &TaskSpec, flags: &TaskFlags) -> String {
    let workflow = settings.task_workflow(task, flags).expect("a workflow");
    let Some(gate) = workflow.first_gate().and_then(|phase| phase.policy()) else {
        return "none".to_owned();
    };
    let names: Vec<&str> = gate.gate.reviewers.iter().map(|name| name.as_str()).collect();
    assert!(names.iter().all(|name| workflow.reviewers.contains_key(&(*name).into())), "{names:?}");
    names.join(", ")
}

fn with_found(text: &str) -> Settings {
    configured(text).with_found_checks(vec![("test".to_owned(), "cargo test".to_owned())])
}

fn by_default(settings: &Settings) -> String {
    reviewers(settings, &TaskSpec::from_text("Add login"), &TaskFlags::default())
}

const CHECKS: &str = "[checks]\ntest = \"make test\"\n";
const REVIEWER: &str = "[reviewers.code]\n";

#[test]
fn a_reviewer_or_a_check_turns_review_on() {
    let rows = [
        ("nothing", by_default(&configured(""))),
        ("a reviewer", by_default(&configured(REVIEWER))),
        ("the role review", by_default(&configured("[agents.codex]\n[roles]\nreview = \"codex\"\n"))),
        ("named reviewers", by_default(&configured("[reviewers.code]\n[gate]\nreviewers = [\"code\"]\n"))),
        ("checks", by_default(&configured(CHECKS))),
        ("found checks", by_default(&with_found(""))),
        ("a reviewer and found checks", by_default(&with_found(REVIEWER))),
        ("named reviewers and checks", by_default(&with_found("[reviewers.code]\n[gate]\nreviewers = [\"code\"]\n"))),
        (
            "checks that are named",
            by_default(&with_found("[reviewers.code]\n[gate]\nreviewers = [\"code\", \"checks\"]\n")),
        ),
        ("turned off", by_default(&with_found("[defaults]\nauto_review = false\n"))),
        ("turned off for the type", by_default(&with_found("[task_types.implement]\nauto_review = false\n"))),
        ("turned on", by_default(&with_found("[defaults]\nauto_review = true\n"))),
    ];
    let table: Vec<String> = rows.iter().map(|(what, reviewers)| format!("{what}: {reviewers}")).collect();
    insta::assert_snapshot!(table.join("\n"), @"
    nothing: none
    a reviewer: general
    the role review: general
    named reviewers: code
    checks: checks
    found checks: checks
    a reviewer and found checks: general, checks
    named reviewers and checks: code
    checks that are named: code, checks
    turned off: none
    turned off for the type: none
    turned on: general, checks
    ");
}

#[test]
fn auto_review_adds_reviewers_and_checks() {
    let asks = |review| TaskSpec { auto_review: Some(review), ..TaskSpec::from_text("Add login") };
    let flags = TaskFlags::default();
    assert_eq!(reviewers(&with_found(""), &asks(true), &flags), "general, checks");
    assert_eq!(reviewers(&with_found(REVIEWER), &asks(false), &flags), "none");
}

#[test]
fn slots_are_reviewed_only_on_request() {
    let slots = |review| TaskFlags { preset: Some("slots".to_owned()), review, ..TaskFlags::default() };
    let task = TaskSpec::from_text("Add login");
    for text in ["", "preset = \"slots\"\n"] {
        let settings = with_found(&format!("{text}{REVIEWER}"));
        assert_eq!(reviewers(&settings, &task, &slots(None)), "none");
        assert_eq!(reviewers(&settings, &task, &slots(Some(true))), "general, checks");
    }
}

/// The preset `plan` adds the checks to its reviewers; `phases` has a phase for checks.
#[test]
fn checks_join_the_reviewers_unless_there_is_a_check_phase() {
    let seats = |preset: &str| {
        let workflow = with_found("").workflow(preset).expect("a workflow");
        let gates = workflow.phases.iter().filter(|phase| phase.is_gate()).filter_map(|phase| phase.policy());
        let names = gates.map(|gate_policy| {
            gate_policy.gate.reviewers.iter().map(|name| name.as_str()).collect::<Vec<_>>().join("+")
        });
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(seats("plan"), "spec+code+checks");
    assert_eq!(seats("loops"), "general+checks");
    assert!(!seats("phases").contains("checks"), "{}", seats("phases"));
}
