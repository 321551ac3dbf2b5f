//! Lines about a task with counted phases.

use signoff_core::machine::{AttemptFailure, CheckReport, Policy};
use signoff_core::policy::{Bound, OnExhausted};
use signoff_core::review::Severity::{Critical, Minor};
use signoff_core::workflow::PhaseKind;

use crate::story::{Story, reviewed};

/// The preset `phases` without researchers.
fn short_workflow() -> Policy {
    let mut policy = reviewed("phases");
    for phase in &mut policy.workflow.phases {
        if let PhaseKind::Agent { researchers, .. } = &mut phase.kind {
            *researchers = 0;
        }
    }
    policy
}

fn planned(story: Story) -> Story {
    story.works().works()
}

#[test]
fn findings_of_the_plan_review_start_the_next_iteration() {
    let story = planned(Story::task(short_workflow()));
    let found = [(Critical, "plan.md:1", "no way back"), (Minor, "plan.md:9", "a typo")];
    let story = planned(story.objects("plan", &found)).approves("plan").works().approves("code");
    let story = story.checks(CheckReport::NothingToCheck).works().approves("final");
    let story = story.objects("codex", &[(Minor, "a.rs:1", "a long line")]);
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
    Iteration 1/10
      Phase 1/9: Brainstorm...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: CHANGES_REQUESTED - no way back
      Phase 3/9: Plan Review: 2 issues, back to phase 1 (iteration 2/10)
    Iteration 2/10
      Phase 1/9: Brainstorm...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: APPROVED
      Phase 4/9: Implement...
      Phase 4/9: Implement complete
      Phase 5/9: Code Review...
      Phase 5/9: Code Review: APPROVED
      Phase 6/9: Test...
      Phase 6/9: Test: Nothing to check: no checks are configured, and none were found
      Phase 7/9: Simplify...
      Phase 7/9: Simplify complete
      Phase 8/9: Final Review...
      Phase 8/9: Final Review: APPROVED
      Phase 9/9: Codex Final...
      Phase 9/9: Codex Final: CHANGES_REQUESTED - a long line
    ! Task #29 completed with issues (CHANGES_REQUESTED after 5 reviews in 2 iterations): findings were noted and left open (findings_noted)
        Next: signoff show 29, then signoff improve 29 --review
    ");
}

#[test]
fn a_disabled_phase_is_not_counted() {
    let policy = short_workflow();
    let workflow = policy.workflow.in_mode("lite").unwrap();
    let story = Story::task(Policy::new(workflow));
    insta::assert_snapshot!(story.works().lines(), @"
    Running task #29: Add user authentication
    Iteration 1/10
      Phase 1/8: Brainstorm...
      Phase 1/8: Brainstorm complete
      Phase 2/8: Plan...
    ");
}

#[test]
fn work_continues_without_failed_researchers() {
    let mut story = Story::task(reviewed("phases"));
    for _ in 0..2 {
        story = story.writer_fails(AttemptFailure::Exit { code: 1 });
    }
    insta::assert_snapshot!(story.works().works().works().lines(), @"
    Running task #29: Add user authentication
    Iteration 1/10
      Phase 1/9: Brainstorm: 3 researchers first...
      Phase 1/9: Brainstorm: A researcher failed: exit code 1; trying again
      Phase 1/9: Brainstorm: A researcher failed: exit code 1; continuing without it
      Phase 1/9: Brainstorm: Combining the results...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan: 3 researchers first...
    ");
}

#[test]
fn exhausted_fixes_and_iterations_are_reported() {
    let mut policy = short_workflow();
    policy.workflow.limits.max_passes = 1;
    for gate_policy in policy.workflow.phases.iter_mut().filter_map(|phase| phase.policy_mut()) {
        gate_policy.gate.bound = Bound::MaxFixes(1);
        gate_policy.gate.on_exhausted = OnExhausted::Restart;
    }
    let findings = [(Critical, "a.rs:1", "no error handling")];
    let story = planned(Story::task(policy)).approves("plan").works().objects("code", &findings);
    insta::assert_snapshot!(story.works().objects("code", &findings).lines(), @"
    Running task #29: Add user authentication
    Iteration 1/1
      Phase 1/9: Brainstorm...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: APPROVED
      Phase 4/9: Implement...
      Phase 4/9: Implement complete
      Phase 5/9: Code Review...
      Phase 5/9: Code Review: CHANGES_REQUESTED - no error handling
      Phase 5/9: Code Review 2/2: Improving...
      Phase 5/9: Code Review 2/2...
      Phase 5/9: Code Review 2/2: CHANGES_REQUESTED - no error handling
    ✗ Task #29 failed: the maximum number of passes is reached (passes_exhausted)
        Next: signoff show 29, then signoff retry 29
    ");
}

#[test]
fn lines_name_their_task_if_other_runs_are_active() {
    let story = Story::task(short_workflow()).works();
    let lines = story.lines_named(signoff_term::line::LineNaming::Always);
    insta::assert_snapshot!(lines, @"
    Running task #29: Add user authentication
    #29 Iteration 1/10
      #29 Phase 1/9: Brainstorm...
      #29 Phase 1/9: Brainstorm complete
      #29 Phase 2/9: Plan...
    ");
}
