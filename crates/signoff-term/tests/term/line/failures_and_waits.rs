//! Lines about failures, waits and questions.

use jiff::Timestamp;
use signoff_core::agent_output::{AgentError, AgentErrorKind};
use signoff_core::machine::{
    AttemptFailure, AttemptLoss, CheckReport, Choice, Event, LandingReport, LimitPlan, PauseReason,
};
use signoff_core::review::Severity::Critical;

use crate::story::{Story, finding, head, reviewed};

#[test]
fn an_implementer_that_fails_is_retried_by_a_person() {
    let story = Story::task(reviewed("task"))
        .writer_fails(AttemptFailure::Exit { code: 1 })
        .retry()
        .works()
        .approves("general");
    insta::assert_snapshot!(story.lines(), @"
        Running task #29: Add user authentication
          [1/3] Implementing...
          [1/3] Implementation failed: exit code 1
        ✗ Task #29 failed: the implementer failed (implementer_failed)
            Next: signoff show 29, then signoff retry 29
        Retrying task #29: Add user authentication
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] Review: APPROVED
        ✓ Task #29 completed (APPROVED after 1 cycle)
    ");
}

#[test]
fn a_reviewer_that_times_out_ends_the_task() {
    let story = Story::task(reviewed("task")).works().reviewer_fails("general", AttemptFailure::TimedOut);
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: INCONCLUSIVE - general: timed out
        hint: `[reviewers.general] timeout` sets the timeout; `signoff config` shows the settings in effect
    ✗ Task #29 failed: a reviewer or check failed (reviewer_failed)
        Next: signoff show 29, then signoff retry 29
    ");
}

#[test]
fn a_fixer_that_is_killed() {
    let story = Story::task(reviewed("task"))
        .works()
        .objects("general", &[(Critical, "src/auth.rs:12", "missing input validation")])
        .writer_fails(AttemptFailure::Signal { number: 9 });
    insta::assert_snapshot!(story.lines(), @"
        Running task #29: Add user authentication
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] Review: CHANGES_REQUESTED - missing input validation
          [2/3] Improving...
          [2/3] Improvement failed: killed by signal 9
        ✗ Task #29 failed: the fixer failed (fixer_failed)
            Next: signoff show 29, then signoff retry 29
    ");
}

#[test]
fn a_reviewer_is_called_again_and_then_a_person_is_asked() {
    let story = Story::task(reviewed("plan"))
        .works()
        .reviewer_fails("code", AttemptFailure::Silent)
        .approves("spec")
        .answers_unclearly("code")
        .reviewer_fails("code", AttemptFailure::NotStarted { message: "claude: not found".into() })
        .person(Choice::Retry)
        .approves("code");
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Reviewer code failed: printed nothing for too long; trying again
        hint: raise `[limits] silence`; `signoff config` shows the settings in effect
      [1/3] Review by code is unclear: there is no verdict line; trying again
      [1/3] Review: INCONCLUSIVE - code: could not be started: claude: not found
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: INCONCLUSIVE - no answer: could not be started: claude: not found
      [1/3] Question: code gave no usable review; the others did. Retry, proceed without, or stop?
        signoff answer 29 CHOICE (retry, proceed, stop, restart)
      [1/3] ann answers: retry
      [1/3] Asking code again...
      [1/3] Review: APPROVED
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: APPROVED (high confidence)

        Action: Proceed
    ✓ Task #29 completed (APPROVED after 1 cycle)
    ");
}

#[test]
fn a_person_grants_one_more_cycle_and_then_proceeds() {
    let object = |story: Story| story.objects("spec", &[(Critical, "src/auth.ts:45", "no OAuth")]).approves("code");
    let story = object(Story::task(reviewed("plan")).works());
    let story = object(story.works());
    let story = object(story.works()).person(Choice::Continue);
    let story = object(story.works()).person(Choice::Proceed);
    let lines = story.lines();
    let short: Vec<_> = lines
        .lines()
        .filter(|line| !line.is_empty() && (!line.starts_with("    ") || line.contains("signoff")))
        .collect();
    insta::assert_snapshot!(short.join("\n"), @"
    Running task #29: Add user authentication
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - no OAuth
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: CHANGES_REQUESTED - no OAuth
      [3/3] Improving...
      [3/3] Running review...
      [3/3] Review: CHANGES_REQUESTED - no OAuth
      [3/3] Question: 3 reviews did not lead to approval. One more fix and review, proceed with the findings open, or stop?
        signoff answer 29 CHOICE (continue, proceed, stop, restart)
      [3/3] ann answers: continue
      [4/4] Improving...
      [4/4] Running review...
      [4/4] Review: CHANGES_REQUESTED - no OAuth
      [4/4] Question: 4 reviews did not lead to approval. One more fix and review, proceed with the findings open, or stop?
        signoff answer 29 CHOICE (continue, proceed, stop, restart)
      [4/4] ann answers: proceed
    Max review cycles (4) reached without approval
    ! Task #29 completed with issues (MAX_CYCLES_REACHED after 4 cycles): the review cycles are used up (cycles_exhausted)
        Next: signoff show 29, then signoff improve 29 --review
    ");
}

#[test]
fn an_agent_that_needs_several_attempts_and_gives_up() {
    let story = Story::task(reviewed("loops"))
        .reports_incomplete()
        .writer_fails(AttemptFailure::Exit { code: 2 })
        .gives_up("the library cannot do this");
    insta::assert_snapshot!(story.lines(), @"
    Planned 1 task in 1 group
    Group 1/1: #29 Add user authentication
    Running task #29: Add user authentication
      [1/4] Implementing...
      [1/4] Not complete yet
      [1/4] Implementing again (attempt 2)...
      [1/4] Implementation failed: exit code 2
      [1/4] Implementing again (attempt 3)...
      [1/4] The agent reports it is stuck: the library cannot do this
    ! Task #29 is stuck: the agent reports that it is stuck (task_stuck)
        Next: signoff show 29, then signoff retry 29
    ");
}

#[test]
fn a_checkpoint_review_is_waited_for() {
    let mut story = Story::task(reviewed("loops"));
    for _ in 0..5 {
        story = story.reports_incomplete();
    }
    let findings = vec![finding("general", Critical, "a.rs:1", "the wrong file")];
    let story = story.then(Event::CheckpointEnded { findings, number: Some(1) });
    insta::assert_snapshot!(story.lines(), @"
    Planned 1 task in 1 group
    Group 1/1: #29 Add user authentication
    Running task #29: Add user authentication
      [1/4] Implementing...
      [1/4] Not complete yet
      [1/4] Implementing again (attempt 2)...
      [1/4] Not complete yet
      [1/4] Implementing again (attempt 3)...
      [1/4] Not complete yet
      [1/4] Implementing again (attempt 4)...
      [1/4] Not complete yet
      [1/4] Implementing again (attempt 5)...
      [1/4] Not complete yet
      [1/4] Waiting for a checkpoint review
    Checkpoint review of #29...
      [1/4] Checkpoint review: 1 finding, for the next attempt
      [1/4] Implementing again (attempt 6)...
    ");
}

#[test]
fn paused_by_budget_and_rate_limit() {
    let story = Story::task(reviewed("task")).then(Event::BudgetReached);
    let story = story.then(Event::Resumed { reason: PauseReason::Budget });
    let attempt = story.jobs()[0].attempt;
    let until: Timestamp = "2026-01-29T12:00:00Z".parse().unwrap();
    let story =
        story.then(Event::RateLimited { attempt, plan: LimitPlan::WaitUntil(until), error: None, next_agent: None });
    let story = story.then(Event::Resumed { reason: PauseReason::RateLimit { until } });
    let attempt = story.jobs()[0].attempt;
    let story = story.then(Event::RateLimited { attempt, plan: LimitPlan::FallBack, error: None, next_agent: None });
    let attempt = story.jobs()[0].attempt;
    let story = story.then(Event::AttemptLost { attempt, loss: AttemptLoss::Crashed });
    let story = story.works().approves("general");
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
      [1/3] Implementing...
      [1/3] Paused: another attempt may go over the budget
        Next: raise the budget, then signoff work 29
      [1/3] Resuming: budget available
      [1/3] Rate limited: waiting until 12:00 UTC
      [1/3] Resuming: the wait is over
      [1/3] Rate limited: another agent takes over
      [1/3] An attempt was lost when signoff ended; trying again
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #29 completed (APPROVED after 1 cycle)
    ");
}

#[test]
fn cancelled() {
    let story = Story::task(reviewed("task")).works().then(Event::Cancelled { by: "ann".into() });
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
    - Task #29 cancelled
    ");
}

#[test]
fn a_landing_is_rejected_once() {
    let story = Story::task(reviewed("slots")).works().approves("general");
    let attempt = story.program();
    let findings = vec![finding("landing", Critical, "src/lib.rs", "conflict in src/lib.rs")];
    let story =
        story.then(Event::LandingEnded { attempt, report: LandingReport::SentBack { head: head(7), findings } });
    let story = story.works().approves("general").lands();
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
      [1/6] Implementing...
      [1/6] Implementation complete
      [1/6] Running review...
      [1/6] Review: pass
      Landing...
      Landing: SENT BACK - conflict in src/lib.rs
      [fix 1/5] Fixing...
      [2/6] Running review...
      [2/6] Review: pass
      Landing...
      Landed on signoff/run-3 as m1
    ✓ Task #29 completed (APPROVED after 2 cycles)
    ");
}

#[test]
fn a_branch_that_moves_is_reviewed_again() {
    let story = Story::task(reviewed("task")).works().then(Event::HeadMoved { head: head(9) });
    insta::assert_snapshot!(story.approves("general").lines(), @"
        Running task #29: Add user authentication
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] New commit on the branch: c9
          [1/3] Running review...
          [1/3] Review: APPROVED
        ✓ Task #29 completed (APPROVED after 1 cycle)
    ");
}

#[test]
fn a_late_report_says_nothing() {
    let story = Story::task(reviewed("task")).works();
    let lines = story.lines();
    let attempt = signoff_core::ids::AttemptId(99);
    let story = story.then(Event::CheckEnded { attempt, report: CheckReport::Passed });
    assert_eq!(story.lines(), lines);
}

#[test]
fn a_failure_with_a_known_cause_has_a_hint() {
    let trouble = AgentError::new(AgentErrorKind::NotLoggedIn, "Please run /login");
    let story = Story::task(reviewed("task")).works().reviewer_fails("general", AttemptFailure::Agent(trouble));
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: INCONCLUSIVE - general: not logged in: Please run /login
        hint: log in with the agent itself, or give it its key; then `signoff agents --check claude`
    ✗ Task #29 failed: a reviewer or check failed (reviewer_failed)
        Next: signoff show 29, then signoff retry 29
    ");
    let model = AgentError::new(AgentErrorKind::ModelUnavailable, "no such model");
    insta::assert_snapshot!(Story::task(reviewed("task")).writer_fails(AttemptFailure::Agent(model)).lines(), @"
    Running task #29: Add user authentication
      [1/3] Implementing...
      [1/3] Implementation failed: the model cannot be used: no such model
        hint: `[agents.claude] model` names the model
    ✗ Task #29 failed: the implementer failed (implementer_failed)
        Next: signoff show 29, then signoff retry 29
    ");
}
