//! Lines about several tasks and several gates.

use signoff_core::group::RunEvent;
use signoff_core::ids::LoopId;
use signoff_core::machine::{AttemptFailure, CheckReport, Choice, Event, Outcome, Policy};
use signoff_core::review::Severity::Critical;
use signoff_term::line::{self, LineNaming, LineRenderer};

use crate::story::{Story, caught_up, finding, id, reviewed};

#[test]
fn a_plan_is_worked_task_by_task() {
    let mut policy = reviewed("plan");
    policy.workflow.phases[1].policy_mut().unwrap().gate.reviewers = vec!["code".into()];
    let story = Story::new(policy)
        .plan(&[&[(1, "Add the table")], &[(2, "Read from it")]])
        .starts(1)
        .works()
        .approves("code")
        .starts(2)
        .works()
        .approves("code");
    insta::assert_snapshot!(story.lines(), @"
        Running task #1: Add the table
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] Review: APPROVED
        ✓ Task #1 completed (APPROVED after 1 cycle)
        Running task #2: Read from it
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] Review: APPROVED
        ✓ Task #2 completed (APPROVED after 1 cycle)
        ✓ Run 3 completed, all approved: 2 tasks, 2 completed
    ");
}

#[test]
fn lines_of_parallel_tasks_name_their_task() {
    let story = Story::new(reviewed("task"))
        .plan(&[&[(29, "Add user authentication"), (30, "Add rate limiting")]])
        .starts(29)
        .starts(30)
        .on(29)
        .works()
        .approves("general")
        .on(30)
        .works()
        .approves("general");
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
      [1/3] Implementing...
    Running task #30: Add rate limiting
      #30 [1/3] Implementing...
      #29 [1/3] Implementation complete
      #29 [1/3] Running review...
      #29 [1/3] Review: APPROVED
    ✓ Task #29 completed (APPROVED after 1 cycle)
      #30 [1/3] Implementation complete
      #30 [1/3] Running review...
      #30 [1/3] Review: APPROVED
    ✓ Task #30 completed (APPROVED after 1 cycle)
    ✓ Run 3 completed, all approved: 2 tasks, 2 completed
    ");
    insta::assert_snapshot!(story.lines_named(LineNaming::Always), @"
        Running task #29: Add user authentication
          #29 [1/3] Implementing...
        Running task #30: Add rate limiting
          #30 [1/3] Implementing...
          #29 [1/3] Implementation complete
          #29 [1/3] Running review...
          #29 [1/3] Review: APPROVED
        ✓ Task #29 completed (APPROVED after 1 cycle)
          #30 [1/3] Implementation complete
          #30 [1/3] Running review...
          #30 [1/3] Review: APPROVED
        ✓ Task #30 completed (APPROVED after 1 cycle)
        ✓ Run 3 completed, all approved: 2 tasks, 2 completed
    ");
}

#[test]
fn a_stuck_task_blocks_its_group() {
    let story = Story::new(reviewed("loops"))
        .plan(&[&[(1, "Add the table"), (2, "Add the page")], &[(3, "Join them")]])
        .starts(1)
        .starts(2)
        .on(1)
        .works()
        .approves("general")
        .on(2)
        .gives_up("there is no page")
        .then(Event::Cancelled { by: "ann".into() })
        .on(1)
        .then(Event::LandingGranted)
        .lands();
    insta::assert_snapshot!(story.lines(), @"
    Planned 3 tasks in 2 groups
    Group 1/2: #1 Add the table, #2 Add the page
    Running task #1: Add the table
      #1 [1/4] Implementing...
    Running task #2: Add the page
      #2 [1/4] Implementing...
      #1 [1/4] Implementation complete
      #1 [1/4] Running review...
      #1 [1/4] Review: APPROVED
      #1 Signed off, lands with its group
      #2 [1/4] The agent reports it is stuck: there is no page
    ! Task #2 is stuck: the agent reports that it is stuck (task_stuck)
        Next: signoff show 2, then signoff retry 2
    ▪ Run 3 is blocked by #2 (the agent reports that it is stuck)
        signoff retry 2, signoff edit 2 --verdict APPROVED, or signoff cancel 2
        then: signoff run --resume 3
    - Task #2 cancelled
      #1 Landing...
      #1 Landed on signoff/run-3 as m1
    ✓ Task #1 completed (APPROVED after 1 cycle)
    Group 2/2: #3 Join them
    ");
}

#[test]
fn a_workflow_with_many_gates_names_them_and_starts_over() {
    let failed = CheckReport::Failed { findings: vec![finding("checks", Critical, "", "2 tests failed")] };
    let mut story = Story::task(reviewed("phases"));
    for _ in 0..8 {
        story = story.works();
    }
    let story = story.approves("plan").works().objects("code", &[(Critical, "a.rs:1", "no error handling")]);
    let story = story.works().approves("code").checks(failed);
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
    Iteration 1/10
      Phase 1/9: Brainstorm: 3 researchers first...
      Phase 1/9: Brainstorm: Combining the results...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan: 3 researchers first...
      Phase 2/9: Plan: Combining the results...
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: APPROVED
      Phase 4/9: Implement...
      Phase 4/9: Implement complete
      Phase 5/9: Code Review...
      Phase 5/9: Code Review: CHANGES_REQUESTED - no error handling
      Phase 5/9: Code Review 2/11: Improving...
      Phase 5/9: Code Review 2/11...
      Phase 5/9: Code Review 2/11: APPROVED
      Phase 6/9: Test...
      Phase 6/9: Test: FAILED - 2 tests failed
      Phase 6/9: Test: 1 issue, back to phase 1 (iteration 2/10)
    Iteration 2/10
      Phase 1/9: Brainstorm: 3 researchers first...
    ");
}

#[test]
fn past_lines_are_not_printed_again() {
    let story = Story::task(reviewed("task")).works();
    let mut renderer = LineRenderer::new(LineNaming::WhenNeeded);
    assert_eq!(caught_up(&mut renderer, &story.transitions), [""; 0]);
    let facts = story.log.len();
    let story = story.approves("general");
    let lines: Vec<_> = story.transitions[facts..].iter().flat_map(|transition| renderer.apply(transition)).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
        Resuming task #29: Add user authentication
          [1/3] Review: APPROVED
        ✓ Task #29 completed (APPROVED after 1 cycle)
    ");
}

#[test]
fn a_decision_that_ended_its_task_is_not_printed_again() {
    let story = Story::new(reviewed("plan"))
        .plan(&[&[(1, "Ask")], &[(2, "Go on")]])
        .starts(1)
        .writer_fails(AttemptFailure::Exit { code: 1 })
        .starts(2)
        .on(1)
        .person(Choice::Stop);
    insta::assert_snapshot!(line::ending_lines(&story.view, &id(1)).join("\n"), @"
    ✗ Task #1 failed: a person stopped it (stopped_by_person)
        Next: signoff show 1, then signoff retry 1
    ");
    assert_eq!(line::ending_lines(&story.view, &id(2)), [""; 0]);
    let lines = caught_up(&mut LineRenderer::new(LineNaming::WhenNeeded), &story.transitions);
    assert_eq!(lines, [""; 0]);
}

#[test]
fn no_steps_are_announced_during_shutdown() {
    let story = Story::task(reviewed("task"));
    let mut renderer = LineRenderer::new(LineNaming::WhenNeeded);
    story.transitions.iter().for_each(|transition| drop(renderer.apply(transition)));
    renderer.set_shutting_down();
    let facts = story.log.len();
    let story = story.works().reviewer_fails("general", AttemptFailure::TimedOut);
    let lines: Vec<_> = story.transitions[facts..].iter().flat_map(|transition| renderer.apply(transition)).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
      [1/3] Implementation complete
      [1/3] Review: INCONCLUSIVE - general: timed out
        hint: `[reviewers.general] timeout` sets the timeout; `signoff config` shows the settings in effect
    ✗ Task #29 failed: a reviewer or check failed (reviewer_failed)
        Next: signoff show 29, then signoff retry 29
    ");
}

/// A run whose planning has started.
fn planning() -> Story {
    let policy = reviewed("loops");
    let part = Policy::new(policy.workflow.run_level_workflow(&policy.workflow.before));
    let mut story = Story::new(policy);
    story.run(RunEvent::Started);
    story.serves(LoopId::planning(), part)
}

#[test]
fn planning_has_lines_like_a_task() {
    let story = planning().works().approves("general").works();
    let story = story.objects("general", &[(Critical, "", "a task is missing")]).works().approves("general");
    insta::assert_snapshot!(story.lines(), @"
    Run 3: planning
      [enumerate] Listing the tasks...
      [enumerate] Task list complete
      [enumerate_review 1/4] Running review...
      [enumerate_review 1/4] Review: APPROVED
      [plan] Planning...
      [plan] Plan complete
      [plan_review 1/4] Running review...
      [plan_review 1/4] Review: CHANGES_REQUESTED - a task is missing
      [plan_review 2/4] Improving...
      [plan_review 2/4] Running review...
      [plan_review 2/4] Review: APPROVED
    ✓ Planning completed (APPROVED after 3 reviews)
    ");
}

#[test]
fn a_run_ends_when_its_planning_fails() {
    let mut story = planning();
    for _ in 0..2 {
        story = story.writer_fails(AttemptFailure::TimedOut);
    }
    story.run(RunEvent::PreparationEnded { outcome: Outcome::Failed });
    insta::assert_snapshot!(story.lines(), @"
    Run 3: planning
      [enumerate] Listing the tasks...
      [enumerate] Task list failed: timed out
        hint: `timeout_minutes` of the task's type, or without one `[agents.claude] timeout`, sets the timeout; `signoff config` shows the settings in effect
      [enumerate] Listing the tasks again...
      [enumerate] Task list failed: timed out
        hint: `timeout_minutes` of the task's type, or without one `[agents.claude] timeout`, sets the timeout; `signoff config` shows the settings in effect
    ✗ Planning failed: the implementer failed (implementer_failed)
    ✗ Run 3 failed before its first task
    ");
}

#[test]
fn an_answered_task_continues_in_parallel() {
    let story = Story::new(reviewed("plan"))
        .plan(&[&[(1, "Add the table")], &[(2, "Add the page")]])
        .starts(1)
        .writer_fails(AttemptFailure::Exit { code: 1 })
        .starts(2)
        .on(1)
        .person(Choice::Retry)
        .works()
        .on(2)
        .works();
    insta::assert_snapshot!(story.lines(), @"
        Running task #1: Add the table
          [1/3] Implementing...
          [1/3] Implementation failed: exit code 1
          [1/3] Question: The implementer failed. Retry or stop?
            signoff answer 1 CHOICE (retry, stop)
        Running task #2: Add the page
          [1/3] Implementing...
          #1 [1/3] ann answers: retry
          #1 [1/3] Implementing...
          #1 [1/3] Implementation complete
          #1 [1/3] Running review...
          #2 [1/3] Implementation complete
          #2 [1/3] Running review...
    ");
}
