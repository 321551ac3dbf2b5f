//! The state file at several moments of an iteration.

use signoff_core::ids::LoopId;
use signoff_core::machine::{CheckReport, Choice, Event, ImportedProgress, Outcome, Position, Stage};
use signoff_core::policy::OnExhausted;
use signoff_core::review::Severity;
use signoff_core::state_v4::{FINAL_PHASE, IterationMode, IterationState, export, read, resume};
use signoff_core::task::TaskSpec;
use signoff_core::workflow::preset;

use super::{imported, log, policy, state};
use crate::machine::builders;
use crate::machine::story::Story;

fn to_code_review(story: Story) -> Story {
    story.works().works().approves("plan").works()
}

fn now(story: &Story) -> IterationState {
    state(&story.policy, &story.events)
}

/// A line for each iteration: status, count and number of issues of every phase.
fn short(state: &IterationState) -> String {
    let mut lines = format!("iteration {}, phase {}\n", state.current_iteration, state.current_phase);
    for iteration in &state.iterations {
        lines.push_str(&format!("{}:", iteration.iteration));
        for number in 1..FINAL_PHASE {
            let status = iteration.phases.status(number).map_or("", |status| status.into_str());
            let count = iteration.phases.retries(number).filter(|count| *count > 0);
            let count = count.map(|count| format!(" ×{count}")).unwrap_or_default();
            let issues = match iteration.phases.issues(number).len() {
                0 => String::new(),
                some => format!(" ({some} issues)"),
            };
            lines.push_str(&format!(" {number} {status}{count}{issues};"));
        }
        lines.push('\n');
    }
    lines.push_str(&format!("9 {}", state.phase9.status.into_str()));
    lines
}

#[test]
fn the_json_in_the_middle_of_a_mini_loop() {
    let story = to_code_review(Story::new(policy(IterationMode::Full))).objects("code", &["a.rs"]).works();
    let story = story.objects("code", &["a.rs", "b.rs"]);
    insta::assert_snapshot!(now(&story).to_json(), @r#"
    {
      "version": 4,
      "task": "Add login\n\nWith OAuth.",
      "mode": "full",
      "maxIterations": 10,
      "currentIteration": 1,
      "currentPhase": 5,
      "startedAt": "2026-01-23T10:03:00Z",
      "iterations": [
        {
          "iteration": 1,
          "startedAt": "2026-01-23T10:03:00Z",
          "phases": {
            "1": {
              "status": "completed"
            },
            "2": {
              "status": "completed"
            },
            "3": {
              "status": "completed",
              "retryCount": 0,
              "lastIssues": []
            },
            "4": {
              "status": "completed"
            },
            "5": {
              "status": "in_progress",
              "retryCount": 2,
              "lastIssues": [
                {
                  "severity": "HIGH",
                  "message": "the error of the call in a.rs is thrown away",
                  "location": "a.rs:7"
                },
                {
                  "severity": "HIGH",
                  "message": "the error of the call in b.rs is thrown away",
                  "location": "b.rs:7"
                }
              ]
            },
            "6": {
              "status": "pending",
              "retryCount": 0
            },
            "7": {
              "status": "pending"
            },
            "8": {
              "status": "pending",
              "retryCount": 0,
              "lastIssues": []
            }
          }
        }
      ],
      "phase9": {
        "status": "pending"
      }
    }
    "#);
}

#[test]
fn restarts_are_counted_over_all_iterations() {
    let story = Story::new(policy(IterationMode::Full)).works().works().objects("plan", &["plan.md"]);
    insta::assert_snapshot!(short(&now(&story)), @"
    iteration 2, phase 1
    1: 1 completed; 2 completed; 3 failed ×1 (1 issues); 4 pending; 5 pending; 6 pending; 7 pending; 8 pending;
    2: 1 in_progress; 2 pending; 3 pending ×1; 4 pending; 5 pending; 6 pending; 7 pending; 8 pending;
    9 pending
    ");
    let story = to_code_review(story).objects("code", &["a.rs"]).works().approves("code").check_fails();
    insta::assert_snapshot!(short(&now(&story)), @"
    iteration 3, phase 1
    1: 1 completed; 2 completed; 3 failed ×1 (1 issues); 4 pending; 5 pending; 6 pending; 7 pending; 8 pending;
    2: 1 completed; 2 completed; 3 completed ×1; 4 completed; 5 completed ×1 (1 issues); 6 failed ×1; 7 pending; 8 pending;
    3: 1 in_progress; 2 pending; 3 pending ×1; 4 pending; 5 pending; 6 pending ×1; 7 pending; 8 pending;
    9 pending
    ");
    let story = to_code_review(story).approves("code").check_passes().works().approves("final");
    insta::assert_snapshot!(short(&now(&story)), @"
    iteration 3, phase 9
    1: 1 completed; 2 completed; 3 failed ×1 (1 issues); 4 pending; 5 pending; 6 pending; 7 pending; 8 pending;
    2: 1 completed; 2 completed; 3 completed ×1; 4 completed; 5 completed ×1 (1 issues); 6 failed ×1; 7 pending; 8 pending;
    3: 1 completed; 2 completed; 3 completed ×1; 4 completed; 5 completed; 6 completed ×1; 7 completed; 8 completed;
    9 in_progress
    ");
    insta::assert_snapshot!(short(&now(&story.objects("codex", &["a.rs"]))), @"
    iteration 3, phase 9
    1: 1 completed; 2 completed; 3 failed ×1 (1 issues); 4 pending; 5 pending; 6 pending; 7 pending; 8 pending;
    2: 1 completed; 2 completed; 3 completed ×1; 4 completed; 5 completed ×1 (1 issues); 6 failed ×1; 7 pending; 8 pending;
    3: 1 completed; 2 completed; 3 completed ×1; 4 completed; 5 completed; 6 completed ×1; 7 completed; 8 completed;
    9 completed
    ");
}

#[test]
fn a_lite_iteration_without_checks() {
    let story = to_code_review(Story::new(policy(IterationMode::Lite))).approves("code");
    let attempt = story.job("check", |_| true).attempt;
    let story = story.then("no checks", Event::CheckEnded { attempt, report: CheckReport::NothingToCheck });
    insta::assert_snapshot!(short(&now(&story.works().approves("final"))), @"
    iteration 1, phase 8
    1: 1 completed; 2 completed; 3 completed; 4 completed; 5 completed; 6 skipped; 7 completed; 8 completed;
    9 skipped
    ");
}

#[test]
fn a_gate_that_is_switched_off_is_skipped() {
    let mut policy = policy(IterationMode::Full);
    for phase in policy.workflow.phases.iter_mut().filter(|phase| phase.name == "plan_review") {
        phase.policy_mut().expect("a gate").gate.enabled = false;
    }
    insta::assert_snapshot!(short(&now(&Story::new(policy.clone()))), @"
    iteration 1, phase 1
    1: 1 in_progress; 2 pending; 3 skipped; 4 pending; 5 pending; 6 pending; 7 pending; 8 pending;
    9 pending
    ");
    insta::assert_snapshot!(short(&now(&Story::new(policy).works().works())), @"
    iteration 1, phase 4
    1: 1 completed; 2 completed; 3 skipped; 4 in_progress; 5 pending; 6 pending; 7 pending; 8 pending;
    9 pending
    ");
}

#[test]
fn an_iteration_that_stopped_failed_where_it_stopped() {
    let mut policy = policy(IterationMode::Full);
    policy.workflow.limits.max_passes = 1;
    let stopped = Story::new(policy).works().works().objects("plan", &["plan.md"]);
    insta::assert_snapshot!(short(&now(&stopped)), @"
    iteration 1, phase 3
    1: 1 completed; 2 completed; 3 failed (1 issues); 4 pending; 5 pending; 6 pending; 7 pending; 8 pending;
    9 pending
    ");
    insta::assert_snapshot!(short(&now(&stopped.retry())), @"
    iteration 2, phase 1
    1: 1 completed; 2 completed; 3 failed ×1 (1 issues); 4 pending; 5 pending; 6 pending; 7 pending; 8 pending;
    2: 1 in_progress; 2 pending; 3 pending ×1; 4 pending; 5 pending; 6 pending; 7 pending; 8 pending;
    9 pending
    ");
}

#[test]
fn a_skipped_review_is_not_completed() {
    let mut policy = policy(IterationMode::Full);
    for gate_policy in policy.workflow.phases.iter_mut().filter_map(|phase| phase.policy_mut()) {
        gate_policy.gate.on_reviewer_failure =
            signoff_core::policy::EscalationPolicy::new(&[signoff_core::policy::FailureAction::Ask]);
        gate_policy.gate.on_exhausted = OnExhausted::Ask;
    }
    let story = Story::new(policy).works().works().times_out("plan").answer(Choice::Skip);
    insta::assert_snapshot!(short(&now(&story)), @"
    iteration 1, phase 4
    1: 1 completed; 2 completed; 3 skipped; 4 in_progress; 5 pending; 6 pending; 7 pending; 8 pending;
    9 pending
    ");
}

#[test]
fn an_approval_by_a_person_skips_the_remaining_phases() {
    let story = to_code_review(Story::new(policy(IterationMode::Full)));
    let story = story.edit(signoff_core::machine::FinalVerdict::Approved);
    insta::assert_snapshot!(short(&now(&story)), @"
    iteration 1, phase 5
    1: 1 completed; 2 completed; 3 completed; 4 completed; 5 completed; 6 skipped; 7 skipped; 8 skipped;
    9 skipped
    ");
}

#[test]
fn a_loop_that_has_not_begun_is_pending() {
    insta::assert_snapshot!(short(&state(&policy(IterationMode::Lite), &[])), @"
    iteration 1, phase 1
    1: 1 pending; 2 pending; 3 pending; 4 pending; 5 pending; 6 pending; 7 pending; 8 pending;
    9 skipped
    ");
}

#[test]
fn a_workflow_without_numbered_phases_has_no_state() {
    let policy = signoff_core::machine::Policy::new(preset("task").expect("shipped"));
    let error = export(&log(&policy, &[]), &LoopId::new("1"), &TaskSpec::from_text("Add login")).unwrap_err();
    insta::assert_snapshot!(error, @"its workflow `task` does not number its phases from 1 to 9");
}

/// The example of the design document.
const EXAMPLE: &str = include_str!("../../../../../testdata/state-v4/good/example.json");

#[test]
fn an_iteration_resumes_from_a_file() {
    let state = read(EXAMPLE.as_bytes()).expect("a state");
    assert_eq!(state.to_json(), EXAMPLE);
    assert_eq!(imported(&state), state);
    let policy = policy(IterationMode::Full);
    let story = Story::queued(policy.clone()).then("taken over", resume(&state, builders::head(9), &policy));
    insta::assert_snapshot!(story.objects("plan", &["plan.md"]).transcript(), @"
    taken over                         → a1 review 1 of c9 by plan [plan_review]
    plan objects to plan.md            → a2 brainstorm [brainstorm pass 2]
    ");
}

#[test]
fn the_fix_count_of_a_mini_loop_is_imported() {
    let mut state = now(&to_code_review(Story::new(policy(IterationMode::Full))));
    state.iterations[0].phases.code_review.retry_count = 10;
    let policy = policy(IterationMode::Full);
    let story = Story::queued(policy.clone()).then("taken over", resume(&state, builders::head(9), &policy));
    insta::assert_snapshot!(story.objects("code", &["a.rs"]).transcript(), @"
    taken over                         → a1 review 11 of c9 by code [code_review]
    code objects to a.rs               → END failed (cycles_exhausted), CHANGES_REQUESTED
    ");
}

#[test]
fn the_fix_count_of_checks_is_imported() {
    let mut policy = policy(IterationMode::Full);
    for phase in policy.workflow.phases.iter_mut().filter(|phase| phase.name == "test") {
        phase.policy_mut().expect("a check").gate.on_failure = signoff_core::policy::OnFailure::MiniLoop;
    }
    let mut state = now(&to_code_review(Story::new(policy.clone())).approves("code"));
    state.iterations[0].phases.test.retry_count = 10;
    let story = Story::queued(policy.clone()).then("taken over", resume(&state, builders::head(9), &policy));
    insta::assert_snapshot!(story.check_fails().transcript(), @"
    taken over                         → a1 check 11 [test]
    the checks fail                    → END failed (cycles_exhausted), no verdict
    ");
}

#[test]
fn counters_of_a_disabled_gate_do_not_apply_to_another_gate() {
    let mut policy = policy(IterationMode::Full);
    for phase in policy.workflow.phases.iter_mut().filter(|phase| phase.name == "code_review") {
        phase.policy_mut().expect("a gate").gate.enabled = false;
    }
    let at = Position { pass: 1, phase: 5, item: 0 };
    let findings = vec![builders::finding("old.rs", Severity::Important)];
    let imported = Event::Imported {
        head: builders::head(9),
        position: at,
        progress: ImportedProgress { fixes: 10, findings, ..ImportedProgress::default() },
    };
    let story = Story::queued(policy).then("taken over", imported);
    assert_eq!((story.state.counters.fixes, story.state.ledger.entries().len()), (0, 0));
}

/// Exports the state of a story and resumes it in a new loop.
fn exported_and_resumed(story: &Story) -> Story {
    let state = read(now(story).to_json().as_bytes()).expect("a state");
    assert_eq!(imported(&state), state);
    let policy = story.policy.clone();
    Story::queued(policy.clone()).then("taken over", resume(&state, builders::head(9), &policy))
}

fn open(story: &Story) -> Vec<(u32, String)> {
    let all = story.state.ledger.findings_for_fix(signoff_core::review::FailThreshold::Low).into_iter();
    all.map(|entry| (entry.seen[0].pass, entry.finding.description.clone())).collect()
}

#[test]
fn findings_that_restart_an_iteration_stay_open_until_their_phase_passes() {
    let story = to_code_review(Story::new(policy(IterationMode::Full))).approves("code").check_passes().works();
    let story = story.objects("final", &["a.rs"]);
    assert_eq!((story.state.position.pass, open(&story).len()), (2, 1));
    assert_eq!(open(&exported_and_resumed(&story)), open(&story));
    let story = story.works().works().objects("plan", &["plan.md"]);
    assert_eq!((story.state.position.pass, open(&story).len()), (3, 2));
    assert_eq!(open(&exported_and_resumed(&story)), open(&story));
    let story = to_code_review(story);
    assert_eq!(open(&story).len(), 1);
    assert_eq!(open(&exported_and_resumed(&story)), open(&story));
    let story = exported_and_resumed(&story).approves("code").check_passes().works().approves("final");
    assert_eq!(open(&story), []);
    assert!(matches!(&story.approves("codex").state.stage, Stage::Done(end) if end.outcome.is_approval()));
}

#[test]
fn failed_checks_that_restart_an_iteration_are_imported() {
    let story = to_code_review(Story::new(policy(IterationMode::Full))).approves("code").check_fails();
    let story = exported_and_resumed(&story);
    let failed = "the project's checks failed in iteration 1; what they reported is not known";
    assert_eq!(open(&story), [(1, failed.to_owned())]);
    assert_eq!(open(&to_code_review(story).approves("code").check_passes()), []);
}

/// A policy that proceeds with open findings.
fn lenient(fixes: u32) -> signoff_core::machine::Policy {
    let mut policy = policy(IterationMode::Full);
    for gate_policy in policy.workflow.phases.iter_mut().filter_map(|phase| phase.policy_mut()) {
        gate_policy.gate.on_exhausted = OnExhausted::Proceed;
        gate_policy.gate.bound = signoff_core::policy::Bound::MaxFixes(fixes);
        gate_policy.gate.on_reviewer_failure =
            signoff_core::policy::EscalationPolicy::new(&[signoff_core::policy::FailureAction::Ask]);
    }
    policy
}

/// The end of a story in which all phases pass from the tests on.
fn end_from_tests(story: Story) -> String {
    let story = if story.state.position.phase == 6 { story.check_passes() } else { story };
    let story = story.works().approves("final").approves("codex");
    let Stage::Done(end) = story.state.stage else { panic!("it ends") };
    let outcome =
        if let Outcome::Approved { .. } = end.outcome { "approved".to_owned() } else { format!("{:?}", end.outcome) };
    format!("{outcome} {:?}", end.reason)
}

#[test]
fn an_iteration_that_proceeded_without_approval_is_not_approved_after_import() {
    for fixes in [0, 2] {
        let mut story = to_code_review(Story::new(lenient(fixes))).objects("code", &["a.rs"]);
        for _ in 0..fixes {
            story = story.works().objects("code", &["a.rs"]);
        }
        assert_eq!(open(&exported_and_resumed(&story)), open(&story));
        assert_eq!(end_from_tests(exported_and_resumed(&story)), "CompletedWithIssues Some(CyclesExhausted)");
        assert_eq!(end_from_tests(story), "CompletedWithIssues Some(CyclesExhausted)");
    }
    let skipped = Story::new(lenient(1)).works().works().times_out("plan").answer(Choice::Skip);
    let skipped = exported_and_resumed(&skipped).works().approves("code");
    assert_eq!(end_from_tests(skipped), "CompletedWithIssues Some(ReviewSkipped)");
}

#[test]
fn a_review_that_passed_after_a_fix_is_imported_as_passed() {
    let story = to_code_review(Story::new(policy(IterationMode::Full))).objects("code", &["a.rs"]).works();
    let story = story.approves("code");
    assert_eq!(signoff_core::state_v4::uncertain_phases(&now(&story), &story.policy.workflow), [5]);
    assert_eq!(end_from_tests(exported_and_resumed(&story)), "approved None");
    let content = to_code_review(Story::new(policy(IterationMode::Full))).approves("code");
    assert!(signoff_core::state_v4::uncertain_phases(&now(&content), &content.policy.workflow).is_empty());
}
