//! Crashes, budgets and rate limits: none of them is the work's fault.

use signoff_core::machine::{Event, Hold};

use crate::say::reviewed;
use crate::story::Story;

#[test]
fn a_lost_attempt_is_started_again_under_a_new_id() {
    let story = Story::of(reviewed("plan")).works();
    let lost = story.reviewer("code");
    insta::assert_snapshot!(story.lost(lost).approves("code").approves("spec").told(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    the program is killed              → a4 review 1 of c1 by code [review]
    code approves                      → –
    spec approves                      → END approved, APPROVED
    ");
}

#[test]
fn crashing_again_and_again_ends() {
    let mut story = Story::of(reviewed("task"));
    for _ in 0..6 {
        let attempt = story.writer();
        story = story.lost(attempt);
    }
    insta::assert_snapshot!(story.told(), @"
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
    let story = Story::of(reviewed("plan")).works().approves("spec").budget();
    assert!(story.state.is_paused());
    insta::assert_snapshot!(story.resumed(Hold::Budget).approves("code").told(), @"
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
    let story = Story::of(reviewed("plan")).works();
    let limited = story.reviewer("spec");
    let story = story.limited(limited).approves("code");
    let until = jiff::Timestamp::UNIX_EPOCH;
    insta::assert_snapshot!(story.resumed(Hold::RateLimit { until }).approves("spec").told(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    rate limited                       → wait (rate limit)
    code approves                      → –
    the wait is over                   → a4 review 1 of c1 by spec [review]
    spec approves                      → END approved, APPROVED
    ");
}

#[test]
fn one_crash_is_one_however_much_it_took_along() {
    let files: Vec<_> = (0..7).map(|number| format!("{number}.rs")).collect();
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    let mut story = Story::of(reviewed("phases"));
    for _ in 0..8 {
        story = story.works();
    }
    let mut story = story.approves("plan").works().objects("code", &files);
    let running: Vec<_> = story.state.slots().into_iter().filter_map(|slot| slot.attempt()).collect();
    assert_eq!(running.len(), 7);
    for attempt in running {
        story = story.lost(attempt);
    }
    assert_eq!(story.state.tally.losses, 1);
    assert!(!story.state.is_done());
}

#[test]
fn no_money_for_one_reviewer_holds_only_that_one() {
    let story = Story::of(reviewed("plan")).works();
    let attempt = story.reviewer("spec");
    let story = story.then("no money for spec", Event::BudgetRefused { attempt }).approves("code");
    insta::assert_snapshot!(story.resumed(Hold::Budget).approves("spec").told(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    no money for spec                  → wait (budget)
    code approves                      → –
    the wait is over                   → a4 review 1 of c1 by spec [review]
    spec approves                      → END approved, APPROVED
    ");
}
