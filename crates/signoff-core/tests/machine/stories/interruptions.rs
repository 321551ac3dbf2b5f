//! Crashes, budgets and rate limits, which do not count as failures of the work.

use signoff_core::ids::AttemptId;
use signoff_core::machine::{AttemptLoss, Event, PauseReason, Reason};

use crate::machine::builders::reviewed;
use crate::machine::story::Story;

#[test]
fn a_lost_attempt_is_started_again_under_a_new_id() {
    let story = Story::new(reviewed("plan")).works();
    let lost = story.reviewer("code");
    insta::assert_snapshot!(story.lost(lost).approves("code").approves("spec").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    the program is killed              → a4 review 1 of c1 by code [review]
    code approves                      → –
    spec approves                      → END approved, APPROVED
    ");
}

#[test]
fn repeated_crashes_end_the_loop() {
    let mut story = Story::new(reviewed("task"));
    for _ in 0..6 {
        let attempt = story.writer();
        story = story.lost(attempt);
    }
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the program is killed              → a2 implement [implement]
    the program is killed              → a3 implement [implement]
    the program is killed              → a4 implement [implement]
    the program is killed              → a5 implement [implement]
    the program is killed              → a6 implement [implement]
    the program is killed              → END failed (recovery_exhausted), no verdict
    ");
}

#[test]
fn at_the_cap_the_loop_pauses_and_resumes() {
    let story = Story::new(reviewed("plan")).works().approves("spec").budget();
    assert!(story.state.is_paused());
    insta::assert_snapshot!(story.resumed(PauseReason::Budget).approves("code").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec approves                      → –
    the budget is used up              → kill a3; wait (budget)
    the wait is over                   → a4 review 1 of c1 by code [review]
    code approves                      → END approved, APPROVED
    ");
}

#[test]
fn one_reviewer_waits_out_its_limit_while_the_other_goes_on() {
    let story = Story::new(reviewed("plan")).works();
    let limited = story.reviewer("spec");
    let story = story.limited(limited).approves("code");
    let until = jiff::Timestamp::UNIX_EPOCH;
    insta::assert_snapshot!(story.resumed(PauseReason::RateLimit { until }).approves("spec").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    rate limited                       → wait (rate limit)
    code approves                      → –
    the wait is over                   → a4 review 1 of c1 by spec [review]
    spec approves                      → END approved, APPROVED
    ");
}

#[test]
fn fallback_agents_are_tried_in_turn_before_the_loop_waits() {
    let mut story = Story::new(reviewed("task"));
    let mut turns = Vec::new();
    for _ in 0..3 {
        let attempt = story.writer();
        turns.push(story.state.agent_index(attempt));
        story = story.refused(attempt, 2);
    }
    assert_eq!(turns, [0, 1, 2]);
    assert_eq!(story.state.pause_cause(), Some(Reason::RateLimited));
    let until = jiff::Timestamp::UNIX_EPOCH;
    let waits = story.state.pending_rate_limits();
    let refused: Vec<_> = waits[0].refused.iter().map(|refusal| refusal.attempt).collect();
    assert_eq!((waits.len(), waits[0].until), (1, until));
    assert_eq!(refused, [1, 2, 3].map(AttemptId), "attempts that were refused");
    let story = story.resumed(PauseReason::RateLimit { until });
    assert_eq!(story.state.agent_index(story.writer()), 0);
    let attempt = story.writer();
    insta::assert_snapshot!(story.refused(attempt, 0).transcript(), @"
    started                            → a1 implement [implement]
    refused: a fallback agent starts   → a2 implement [implement]
    refused: a fallback agent starts   → a3 implement [implement]
    refused: waits                     → wait (rate limit)
    the wait is over                   → a4 implement [implement]
    refused: waits                     → wait (rate limit)
    ");
}

#[test]
fn repeated_rate_limits_are_a_failure() {
    let mut story = Story::new(reviewed("task"));
    story.policy.workflow.limits.max_rate_limits = 2;
    for _ in 0..2 {
        let attempt = story.writer();
        let until = jiff::Timestamp::UNIX_EPOCH;
        story = story.refused(attempt, 0).resumed(PauseReason::RateLimit { until });
    }
    let attempt = story.writer();
    insta::assert_snapshot!(story.refused(attempt, 0).transcript(), @"
    started                            → a1 implement [implement]
    refused: waits                     → wait (rate limit)
    the wait is over                   → a2 implement [implement]
    refused: waits                     → wait (rate limit)
    the wait is over                   → a3 implement [implement]
    refused once too often             → END failed (implementer_failed), no verdict
    ");
}

#[test]
fn repeatedly_lost_sessions_are_a_failure() {
    let mut story = Story::new(reviewed("task"));
    story.policy.workflow.limits.max_recoveries = 2;
    while !story.state.is_done() {
        let attempt = story.writer();
        let gone = Event::AttemptLost { attempt, loss: AttemptLoss::SessionGone };
        story = story.then("the session is gone", gone);
    }
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the session is gone                → a2 implement [implement]
    the session is gone                → a3 implement [implement]
    the session is gone                → END failed (implementer_failed), no verdict
    ");
}

#[test]
fn an_answer_resets_the_count_of_rate_limits() {
    let mut story = Story::new(reviewed("plan")).works();
    for name in ["spec", "code"] {
        let attempt = story.reviewer(name);
        story = story.refused(attempt, 1);
    }
    assert_eq!(story.state.counters.limited.len(), 2);
    let story = story.approves("spec");
    assert_eq!(story.state.counters.limited.len(), 1);
    assert_eq!(story.state.agent_index(story.reviewer("code")), 1);
    let story = story.objects("code", &["a.rs"]);
    assert!(story.state.counters.limited.is_empty());
}

#[test]
fn a_crash_counts_once_for_all_its_attempts() {
    let files: Vec<_> = (0..7).map(|number| format!("{number}.rs")).collect();
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    let mut story = Story::new(reviewed("phases"));
    for _ in 0..8 {
        story = story.works();
    }
    let mut story = story.approves("plan").works().objects("code", &files);
    let running: Vec<_> = story.state.slots().into_iter().filter_map(|slot| slot.attempt()).collect();
    assert_eq!(running.len(), 7);
    for attempt in running {
        story = story.lost(attempt);
    }
    assert_eq!(story.state.counters.losses, 1);
    assert!(!story.state.is_done());
}

#[test]
fn a_refused_budget_pauses_only_that_reviewer() {
    let story = Story::new(reviewed("plan")).works();
    let attempt = story.reviewer("spec");
    let story = story.then("no money for spec", Event::BudgetRefused { attempt }).approves("code");
    insta::assert_snapshot!(story.resumed(PauseReason::Budget).approves("spec").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    no money for spec                  → wait (budget)
    code approves                      → –
    the wait is over                   → a4 review 1 of c1 by spec [review]
    spec approves                      → END approved, APPROVED
    ");
}
